"""``dnnlib layers``: what the neurons of a person's own model are."""

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

    from dnnlib import checks, custom

    given = {k: v for k, v in {"classes": classes, "width": width}.items() if v is not None}
    network = custom.load_model(model, weights or None, size=size, channels=channels, **given)
    photos = custom.read_photos(images, network, size=size, channels=channels) if images else None
    found = custom.counted_layers(network, photos, size=size, channels=channels,
                                  match=checks.words(match, "match") if match else None)
    shape = " x ".join(map(str, found.shape))
    print_table(pd.DataFrame(found.rows), f"Layers for images of {shape}")
    say(f"{len(found.rows):,} layers, {found.total('neurons'):,} neurons (channels), "
        f"{found.total('units'):,} units")
    if found.left and not match:
        say(f"left out: {len(found.left):,}",
            *(f"  {name}: {why}" for name, why in [*found.left.items()][:LISTED]))
        if len(found.left) > LISTED:
            say(f"  ... and {len(found.left) - LISTED:,} more")
