"""The patch painter: a 2 x 2 patch that the reader moves over an image, and what the network says.

NSATP and PEACEPACT change one block of pixels of an image many times; Eff is the share of copies
that lose the image's class.
"""

from collections.abc import Sequence

import torch
from torch import nn

from dnnbook.interactive.block import Block, as_shown, canvas, named, picture, pixels
from dnnbook.interactive.networks import exported
from dnnlib import checks
from dnnlib.inference import device_of, predict
from dnnlib.measures.uncertainty import DISTANCES
from dnnlib.perturb.patches import SIDE, Patches, apply


def patch_painter(model: nn.Module, images: torch.Tensor, labels: torch.Tensor, *,
                  classes: Sequence[str] | None = None) -> Block:
    """A figure in which the reader changes a block of 2 x 2 pixels, or throws a hundred.

    It shows the softmax vector with PD, PV and PE, where patches change the class, and a point of
    PD and Eff for every image that was tried. It opens on the first image that is read right and
    that an inverted patch breaks, with the patch where the network is then surest of another class;
    if there is none, on the first image, in its middle.

    ``model``: see :func:`networks.exported`. ``images``: a few, (N, C, H, W) in [0, 1]; ``labels``:
    (N,); ``classes``: their names. At first the patch inverts (NSATP II.B); the reader may choose
    one brightness (IV.B). Raises ``ValueError`` for a network that the browser cannot run, and for
    arguments that do not fit.

    >>> from dnnlib import models
    >>> images = torch.rand(2, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    >>> patch_painter(models.build("lenet1"), images, torch.tensor([3, 5]))
    <interactive figure: Patch painter>
    """
    checks.images(images, "images")
    network = exported(model, tuple(images.shape[1:]))
    x = as_shown(images)
    p = predict(model, x)
    names = named(classes, p.shape[1])
    labels = checks.labels(labels, len(x), len(names))
    sure = [f"an image of class {names[label]}; the network says {names[row.argmax()]} with "
            f"{row.max():.2f}" for label, row in zip(labels.tolist(), p)]
    first, change = 0, moved(model, x[0])
    for i in (p.argmax(1) == labels).nonzero()[:, 0].tolist():
        if (found := moved(model, x[i])).any():
            first, change = i, found
            break
    top, left = divmod(int(change.argmax()), change.shape[1]) if change.any() else (
        side // 2 for side in x.shape[2:])
    data = {"network": network, "images": pixels(x), "labels": labels.tolist(), "classes": names,
            "described": sure, "patch": "invert", "first": first, "at": [top, left]}
    return Block("patch_painter", "Patch painter", data,
                 _still(x[first], p[first], change > 0, names),
                 f"An image, the bars of its softmax vector, and a map of the places where an "
                 f"inverted patch changes its class: {int((change > 0).sum())} of "
                 f"{change.numel()}.")


def moved(model: nn.Module, image: torch.Tensor) -> torch.Tensor:
    """How sure the network is of another class of ``image`` (C, H, W) under an inverted patch.

    Returns (H - 1, W - 1), by the patch's upper left corner: in (0, 1] where the class changes,
    else 0.
    """
    high, wide = (side - SIDE + 1 for side in image.shape[1:])
    top, left = (part.flatten()[None] for part in torch.meshgrid(
        torch.arange(high), torch.arange(wide), indexing="ij"))
    copies = apply(image[None].cpu(), Patches(top, left, None))[0]
    with torch.no_grad():
        clean = model(image[None].to(device_of(model))).argmax(1).cpu()
    sure, found = predict(model, copies).max(1)
    return (sure * (found != clean)).view(high, wide)


def _still(image: torch.Tensor, p: torch.Tensor, changes: torch.Tensor,
           names: Sequence[str]) -> bytes:
    figure = canvas(9, 2.9)
    shown, chances, places = figure.subplots(1, 3, width_ratios=(1, 1.2, 1))
    for axis in (shown, places):
        axis.imshow(image.permute(1, 2, 0).squeeze(-1).numpy(), cmap="gray", vmin=0, vmax=1)
        axis.axis("off")
    at = changes.nonzero().numpy()
    places.plot(at[:, 1] + 0.5, at[:, 0] + 0.5, "s", ms=3, color="#d55e00")
    places.set_title(f"an inverted patch changes\nthe class at {len(at)} of {changes.numel()} "
                     "places", fontsize=9)
    chances.barh(range(len(names)), p.numpy(), color="#0173b2")
    chances.set_yticks(range(len(names)), names, fontsize=8)
    chances.set(xlim=(0, 1), xlabel="probability")
    chances.invert_yaxis()
    values = ", ".join(f"{name.upper()} {float(measure(p[None])[0]):.2f}"
                       for name, measure in DISTANCES.items())
    shown.set_title(values, fontsize=9)
    return picture(figure)
