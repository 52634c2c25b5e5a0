"""``dnnlib layers``: what the neurons of a person's own model are."""

import math
from typing import Annotated

import typer

from dnnlib.cli import options as own
from dnnlib.cli.terminal import print_table, say

LISTED = 10  # modules left out that are named


def layers(model: own.Model, weights: own.Weights = "", images: own.Images = "",
           match: Annotated[str, typer.Option(
               help="Only those by name or pattern, with commas: 'layer3.*'.")] = "",
           size: own.Size = None, channels: own.Channels = None, classes: own.Classes = None,
           width: own.Width = None) -> None:
    """List the layers of your model whose neurons count, with shapes; and what is left out."""
    import pandas as pd
    import torch

    from dnnlib import checks, custom, models
    from dnnlib.custom.preparation import of
    from dnnlib.custom.rehearsal import outputs_only
    from dnnlib.neurons import layers as rooms

    given = {k: v for k, v in {"classes": classes, "width": width}.items() if v is not None}
    network = custom.load_model(model, weights or None, size=size, channels=channels, **given)
    outputs_only("layers", network)
    spec, side = models.spec_of(network), size or of(network).crop
    if images:
        fit, x, *_ = custom.first_look(network, custom.read_photos(images, network, size=size,
                                                               channels=channels))
        x = x[:2]
    elif spec or side:
        shape = spec.shape if spec else (channels or 3, side, side)
        x = torch.rand(2, *shape, generator=torch.Generator().manual_seed(0))
        fit = custom.classifier(network, x)
    else:
        raise ValueError("--size: expected the pixels a side of the images, or --images with some")
    known = rooms.layers_of(fit, x)
    names = rooms.matching(fit, x, checks.words(match, "match")) if match else list(known)
    found = rooms.layers_of(fit, x, names)
    with torch.no_grad(), rooms.watched(fit, found, lambda a: a.shape[1:]) as parts:
        fit(x)
    sizes = {name: tuple(shape) for name, shape in parts.items()}
    rows = [{"layer": name, "module": type(found[name].module).__name__
             if found[name].module is not None else "softmax",
             "output": " x ".join(map(str, sizes[name])), "neurons": sizes[name][0],
             "units": math.prod(sizes[name])} for name in names]
    print_table(pd.DataFrame(rows), f"Layers for images of {' x '.join(map(str, x.shape[1:]))}")
    say(f"{len(rows):,} layers, {sum(r['neurons'] for r in rows):,} neurons (channels), "
        f"{sum(r['units'] for r in rows):,} units")
    left = rooms.left_out(fit, x)
    if left and not match:
        say(f"left out: {len(left):,}", *(f"  {name}: {why}" for name, why in
                                          [*left.items()][:LISTED]))
    if len(left) > LISTED and not match:
        say(f"  ... and {len(left) - LISTED:,} more")
