"""The distance slider: what each fuzzer makes of one image within a bound that the reader moves."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import nn

from dnnbook.interactive.block import Block, canvas, named, picture, pixels
from dnnlib import checks
from dnnlib.fuzzing import Campaign
from dnnlib.inference import predict

COLOURS = ("#949494", "#0173b2", "#de8f05", "#029e73", "#cc78bc", "#ca9161")  # colour-blind safe
Found = Mapping[float, Mapping[str, Campaign]]


def distance_slider(model: nn.Module, images: torch.Tensor, labels: torch.Tensor, found: Found, *,
                    classes: Sequence[str] | None = None,
                    curves: Mapping[str, Mapping[float, float]] | None = None,
                    source: str = "", colours: Mapping[str, str] | None = None) -> Block:
    """A figure with one image, what each method makes of it, and a slider of the L2 bound.

    It opens at the least bound within which a method breaks the first image that any breaks; if
    none does, on the first image, at the middle bound.

    - ``images``: the seeds (N, C, H, W); ``labels``: their classes (N,).
    - ``found``: for every bound above 0, in rising order, the campaign of each method by its name
      in words, run on these seeds. Its last examples are shown.
    - ``curves``: share of test errors in percent by bound, for some of the methods; drawn beside
      the examples. ``source``: where they come from, in words.
    - ``colours``: of the methods, as '#0072b2'; by default others that can be told apart.

    Raises ``ValueError`` for bounds that do not rise, methods that are missing at one, and
    campaigns of other seeds.
    """
    checks.images(images, "images")
    bounds, methods = list(found), list(next(iter(found.values()), {}))
    if not methods or sorted({float(b) for b in bounds if b > 0}) != [float(b) for b in bounds]:
        raise ValueError(f"found: expected campaigns by rising bounds above 0, got {bounds}")
    for bound, campaigns in found.items():
        _same_seeds(campaigns, bound, methods, len(images))
    p = predict(model, images)
    names = named(classes, p.shape[1])
    labels = checks.labels(labels, len(images), len(names))
    curves = curves or {}
    for name in curves:
        checks.known(name, methods, "method of curves")
    data = {
        "images": pixels(images), "shape": list(images.shape[1:]), "labels": labels.tolist(),
        "classes": names, "bounds": bounds, "source": source, "clean": _said(p),
        "methods": [_method(model, name, [found[bound][name] for bound in bounds],
                            (colours or {}).get(name, COLOURS[i % len(COLOURS)]),
                            curves.get(name, {}))
                    for i, name in enumerate(methods)]}
    first, at = next(((seed, stop) for seed, label in enumerate(data["labels"])
                      for stop in range(len(bounds))
                      for method in data["methods"] if method["class"][stop][seed] != label),
                     (0, len(bounds) // 2))
    data |= {"first": first, "at": at + 1}  # before the bounds the slider has 0
    return Block("distance_slider", "Distance slider", data, _still(data, found, names),
                 f"Examples that {', '.join(methods)} made of one image of class "
                 f"{names[labels[0]]}, at growing distances, with the network's class.")


def _same_seeds(campaigns: Mapping[str, Campaign], bound: float, methods: list[str],
                count: int) -> None:
    if list(campaigns) != methods:
        raise ValueError(f"found: expected the methods {methods} at every bound, got "
                         f"{list(campaigns)} at {bound:g}")
    for name, campaign in campaigns.items():
        if campaign.origin[-1].tolist() != list(range(count)):
            raise ValueError(f"found: expected one last example of each of {count} seeds, in their "
                             f"order, from {name} at {bound:g}")


def _said(p: torch.Tensor) -> dict[str, list]:
    """What the network says, and how sure it is: rounded, as it is shown."""
    return {"class": p.argmax(1).tolist(), "sure": [round(v, 3) for v in p.amax(1).tolist()]}


def _method(model: nn.Module, name: str, campaigns: Sequence[Campaign], colour: str,
            curve: Mapping[float, float]) -> dict:
    said = [_said(predict(model, campaign.images)) for campaign in campaigns]
    return {
        "name": name, "colour": colour,
        "examples": [pixels(campaign.images) for campaign in campaigns],
        "class": [part["class"] for part in said], "sure": [part["sure"] for part in said],
        "l2": [[round(v, 2) for v in campaign.l2[-1].tolist()] for campaign in campaigns],
        "errors": [campaign.errors.sum(0).tolist() for campaign in campaigns],
        "examples_each": len(campaigns[0].predicted),
        "curve": [[float(bound), float(value)] for bound, value in sorted(curve.items())]}


def _still(data: dict, found: Found, names: Sequence[str]) -> bytes:
    """The first seed: a row for each method, some bounds as columns."""
    bounds = data["bounds"]
    columns = np.unique(np.linspace(0, len(bounds) - 1, 7).round().astype(int)).tolist()
    figure = canvas(1.15 * len(columns) + 1.2, 1.4 * len(data["methods"]))
    axes = figure.subplots(len(data["methods"]), len(columns), squeeze=False)
    for row, method in zip(axes, data["methods"]):
        for axis, place in zip(row, columns):
            image = found[bounds[place]][method["name"]].images[0].permute(1, 2, 0).squeeze(-1)
            axis.imshow(image.numpy(), cmap="gray", vmin=0, vmax=1)
            axis.set(xticks=[], yticks=[])
            wrong = method["class"][place][0] != data["labels"][0]
            said = names[method["class"][place][0]]
            axis.set_title(f"L2 ≤ {bounds[place]:g}: {said}", fontsize=8,
                           color="#b34700" if wrong else "black",
                           weight="bold" if wrong else "normal")
        row[0].set_ylabel(method["name"], fontsize=8)
    return picture(figure)
