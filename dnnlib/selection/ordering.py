"""Many selectors on the same candidates, each order computed once and kept in the cache."""

import hashlib
from collections.abc import Mapping
from dataclasses import fields

import torch
from torch import nn
from tqdm import tqdm

from dnnlib import files
from dnnlib.inference import device_of, fingerprint
from dnnlib.selection.protocol import Selector, candidates

REVISION = 1  # raise when a selector changes what it computes


def orders(model: nn.Module, x: torch.Tensor,
           selectors: Mapping[str, Selector]) -> dict[str, torch.Tensor]:
    """The order of the candidates (N, C, H, W) by each selector, under the selector's name.

    The key in the cache covers the weights, the images and every option, so that chapters on
    the same candidates share the work.

    >>> from dnnlib import models, selection
    >>> found = orders(models.build("lenet1"), torch.rand(4, 1, 28, 28),
    ...                {"gini": selection.selector("gini")})
    >>> sorted(found["gini"].tolist())
    [0, 1, 2, 3]
    """
    key = {"model": fingerprint(model), "x": _digest(candidates(x)),
           "device": device_of(model).type, "torch": torch.__version__, "revision": REVISION}
    bar = tqdm(selectors.items(), desc="selectors", leave=False)
    return {name: files.cached("orders", key | {"selector": _options(selector)},
                               lambda: {"order": selector.order(model, x)})["order"]
            for name, selector in bar}


def _options(selector: Selector) -> list:
    values = [[entry.name, getattr(selector, entry.name)] for entry in fields(selector)]
    return [type(selector).__name__,
            [[k, _digest(v) if isinstance(v, torch.Tensor) else v] for k, v in values]]


def _digest(x: torch.Tensor) -> str:
    return hashlib.sha256(x.detach().cpu().contiguous().numpy()).hexdigest()[:16]
