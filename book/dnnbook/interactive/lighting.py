"""Neurons lighting up: the maps of a layer before and after a mutation, and what moved in them.

A neuron is a unit, one value of a map, and its sensitivity the absolute change, as in NSS; or, if
values are given, a whole map, as in DeepSensor, and its Shapley value is what marks it.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import nn

from dnnbook.interactive.block import Block, as_shown, canvas, named, picture, pixels
from dnnbook.interactive.networks import exported
from dnnlib import checks
from dnnlib.inference import predict
from dnnlib.neurons import activations

MARK = "#d55e00"


def lighting_up(model: nn.Module, images: torch.Tensor, labels: torch.Tensor,
                mutated: Mapping[str, torch.Tensor], *, layers: Sequence[str],
                threshold: float | None = None, classes: Sequence[str] | None = None,
                values: Mapping[str, torch.Tensor] | None = None) -> Block:
    """A figure of the neurons of a layer, before and after a mutation that the reader chooses.

    It opens on the first image that the first mutation, at its greatest strength, takes from its
    class; without one, on the first image.

    - ``model``: see :func:`networks.exported`; it runs in the browser.
    - ``images``: a few, (N, C, H, W) in [0, 1]; ``labels``: (N,); ``classes``: their names.
    - ``mutated``: by the name of a mutation the same images at rising strength, (S, N, C, H, W).
    - ``layers``: names of layers with maps; the last one is shown first.
    - ``threshold``: the change above which a neuron is marked at first; None is such that a tenth
      of the neurons of the last layer are, over all mutations.
    - ``values``: by the name of a mutation the Shapley values in nats of the maps of the one layer,
      (S, N, maps). They are marked then, and not the changes.

    Raises ``ValueError`` for arguments that do not fit.
    """
    checks.images(images, "images")
    if not mutated:
        raise ValueError("mutated: expected at least one mutation, got none")
    for name, found in mutated.items():
        if found.ndim != 5 or found.shape[1:] != images.shape or not len(found):
            raise ValueError("mutated: expected shape (S, N, C, H, W), the last four "
                             f"{tuple(images.shape)}, of {name!r}, got {tuple(found.shape)}")
    network = exported(model, tuple(images.shape[1:]))
    maps = {layer["name"]: layer for layer in network["layers"] if len(layer["to"]) == 3}
    layers = checks.layers(layers, maps)
    x = as_shown(images)
    names = named(classes, network["layers"][-1]["to"][0])
    labels = checks.labels(labels, len(x), len(names))
    if values is None:
        before = _units(model, x, layers[-1])
        every = torch.cat([(_units(model, as_shown(part), layers[-1]) - before).abs().flatten()
                           for found in mutated.values() for part in found])
    else:
        _check_values(values, mutated, layers, maps[layers[-1]]["to"][0])
        every = torch.cat([values[name].flatten() for name in mutated])
    if threshold is None:
        threshold = float(every.kthvalue(max(1, int(0.9 * len(every)))).values)
    data = {"network": network, "images": pixels(x), "labels": labels.tolist(), "classes": names,
            "layers": list(layers), "threshold": round(threshold, 3),
            "most": round(float(every.max()), 3),
            "mutations": [{"name": name, "strengths": len(found),
                           "images": pixels(found.flatten(0, 1), name)}
                          | ({} if values is None else {
                              "values": values[name].double().round(decimals=4).tolist()})
                          for name, found in mutated.items()]}
    first = next(iter(mutated))
    after = as_shown(mutated[first][-1])
    broken = (predict(model, x).argmax(1) == labels) & (predict(model, after).argmax(1) != labels)
    data["first"] = i = int(broken.int().argmax())
    still = _still(model, x[i:i + 1], after[i:i + 1], layers[-1], maps[layers[-1]]["to"], threshold,
                   None if values is None else values[first][-1][i])
    return Block("lighting_up", "Neurons lighting up", data, still,
                 f"The maps of layer {layers[-1]} of an image and of its mutation by {first}; "
                 "neurons that change most are marked.")


def _check_values(values: Mapping[str, torch.Tensor], mutated: Mapping[str, torch.Tensor],
                  layers: Sequence[str], maps: int) -> None:
    if len(layers) != 1:
        raise ValueError(f"layers: expected the one that the values are of, got {list(layers)}")
    for name, found in mutated.items():
        shape = (*found.shape[:2], maps)
        if name not in values or values[name].shape != shape:
            raise ValueError(f"values: expected shape {shape} of {name!r}, got "
                             f"{tuple(values[name].shape) if name in values else 'none'}")


def _units(model: nn.Module, x: torch.Tensor, layer: str) -> torch.Tensor:
    return activations.record(model, x, layers=[layer], neuron="unit").values


def _still(model: nn.Module, before: torch.Tensor, after: torch.Tensor, layer: str,
           shape: Sequence[int], threshold: float, values: torch.Tensor | None) -> bytes:
    """Two rows, before and after: the image and its maps; the changed neurons are marked below."""
    units = [_units(model, x, layer)[0].view(*shape) for x in (before, after)]
    marked = (units[1] - units[0]).abs() > threshold
    shown = min(shape[0], 8)
    figure = canvas(1.1 * (shown + 1), 2.9)
    axes = figure.subplots(2, shown + 1, squeeze=False)
    said = [predict(model, x).argmax(1).item() for x in (before, after)]
    for row, x, maps, word in zip(axes, (before, after), units, ("before", "after")):
        row[0].imshow(x[0].permute(1, 2, 0).squeeze(-1).numpy(), cmap="gray", vmin=0, vmax=1)
        row[0].set_title(word, fontsize=8)
        for channel, axis in enumerate(row[1:]):
            both = torch.stack([part[channel] for part in units])
            low, high = both.min().item(), both.max().item()
            axis.imshow(maps[channel].numpy(), cmap="gray", vmin=low, vmax=high)
            if values is not None:
                axis.set_title(f"{values[channel]:.2f}" if word == "after" else "", fontsize=8,
                               color=MARK if values[channel] > threshold else "black")
            elif word == "after":
                at = marked[channel].nonzero().numpy()
                axis.plot(at[:, 1], at[:, 0], "s", ms=5, mfc="none", mec=MARK)
        for axis in row:
            axis.set(xticks=[], yticks=[])
    axes[0, 0].set_ylabel(f"class {said[0]}", fontsize=8)
    axes[1, 0].set_ylabel(f"class {said[1]}", fontsize=8)
    return picture(figure)
