"""The layers of a person's own model whose neurons count, and what is left out."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from dnnlib import models
from dnnlib.custom.looks import classifier, first_look
from dnnlib.custom.photos import Photos
from dnnlib.custom.preparation import of
from dnnlib.custom.rehearsal import outputs_only
from dnnlib.neurons.layers import layers_of, left_out, matching, watched


@dataclass(frozen=True)
class Counted:
    """``shape``: of the images (C, H, W); ``rows``: a layer each; ``left``: modules, and why.

    A row has 'layer', 'module', 'output', the shape of what it gives for an image, 'neurons', its
    channels, and 'units', its values.
    """

    shape: tuple[int, ...]
    rows: list[dict[str, Any]]
    left: Mapping[str, str]

    def total(self, column: str) -> int:
        """Of all layers, of 'neurons' or 'units'."""
        return sum(row[column] for row in self.rows)


def counted_layers(model: nn.Module, photos: Photos | None = None, *,
                   match: list[str] | None = None, size: int | None = None,
                   channels: int | None = None) -> Counted:
    """The layers, with the sizes of what they give for an image.

    The model is shown two ``photos``, or two images of random pixels, ``size`` a side.
    ``match``: only those by name or pattern, see :func:`layers.matching`. Raises ``ValueError``
    without photos or a size for a model that does not say its own, and for a pattern that nothing
    matches.

    >>> found = counted_layers(models.build("lenet5"))
    >>> found.shape, found.rows[0]["neurons"], found.total("neurons")
    ((1, 28, 28), 6, 268)
    """
    outputs_only("layers", model)
    spec, side = models.spec_of(model), size or of(model).crop
    if photos is not None:
        fit, x, *_ = first_look(model, photos)
        x = x[:2]
    elif spec or side:
        depth, *sides = spec.shape if spec else (3, side, side)
        shape = (channels or depth, *((side, side) if side else sides))
        x = torch.rand(2, *shape, generator=torch.Generator().manual_seed(0))
        fit = classifier(model, x)
    else:
        raise ValueError("--size: expected the pixels a side of the images, or --images with some")
    known = layers_of(fit, x)
    names = matching(fit, x, match) if match else list(known)
    found = layers_of(fit, x, names)
    with torch.no_grad(), watched(fit, found, lambda a: a.shape[1:]) as parts:
        fit(x)
    rows = []
    for name in names:
        module, sizes = found[name].module, tuple(parts[name])
        kind = "softmax" if module is None else type(module).__name__
        rows.append({"layer": name, "module": kind, "output": " x ".join(map(str, sizes)),
                     "neurons": sizes[0], "units": math.prod(sizes)})
    return Counted(tuple(x.shape[1:]), rows, left_out(fit, x))
