"""Many selectors on the same candidates, each order computed once and kept in the cache."""

from collections.abc import Mapping

import torch
from torch import nn
from tqdm import tqdm

from dnnlib import files
from dnnlib.inference import described, device_of
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
    key = {"model": described(model), "x": described(candidates(x)),
           "device": device_of(model).type, "torch": torch.__version__, "revision": REVISION}
    bar = tqdm(selectors.items(), desc="selectors", leave=False)
    return {name: files.cached("orders", key | {"selector": described(selector)},
                               lambda: {"order": selector.order(model, x)})["order"]
            for name, selector in bar}
