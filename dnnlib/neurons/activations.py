"""What is a neuron, and how strongly does it fire: the activations of any PyTorch model.

A neuron is a channel, read as its mean over positions (DeepXplore and most of those after it),
or a unit, every scalar by itself (NSS, dnn-tip). Say which with every result.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import NamedTuple

import torch
from torch import nn

from dnnlib import checks
from dnnlib.inference import checked, classes_of, fast_layout, ready, size_for
from dnnlib.neurons.calls import Layer
from dnnlib.neurons.layers import layers_of, watched

NEURONS = ("channel", "unit")


@dataclass(frozen=True, eq=False)
class Activations:
    """``values``: float32 (N, neurons), layer after layer; ``layers``: their names.

    ``shapes``: what a neuron's place is in, layer by layer: (C,) for channels and dense units,
    (C, H, W) for the units of a convolution, (C, T) for those of T tokens. ``calls``: what the
    layers are, for :class:`gates.Gates`.
    """

    values: torch.Tensor
    layers: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    calls: tuple[Layer, ...] = ()

    @property
    def offsets(self) -> tuple[int, ...]:
        """The first column of every layer, and the number of columns."""
        return tuple(accumulate(map(prod, self.shapes), initial=0))

    def layer(self, name: str) -> torch.Tensor:
        """The columns of one layer, a view (N, neurons); ``ValueError`` for an unknown name."""
        place = self.layers.index(checks.known(name, self.layers, "layer"))
        return self.values[:, self.offsets[place]:self.offsets[place + 1]]

    def where(self, column: int) -> tuple[str, tuple[int, ...]]:
        """The layer of a column, and the neuron's place in it: (channel,) or (C, H, W).

        Raises ``IndexError`` unless 0 <= ``column`` < neurons.

        >>> Activations(torch.zeros(1, 11), ("1", "2"), ((2, 2, 2), (3,))).where(5)
        ('1', (1, 0, 1))
        """
        offsets = self.offsets
        if not 0 <= column < offsets[-1]:
            raise IndexError(f"column: expected 0 to {offsets[-1] - 1}, got {column}")
        place = max(i for i, first in enumerate(offsets[:-1]) if first <= column)
        index = torch.unravel_index(torch.tensor(column - offsets[place]), self.shapes[place])
        return self.layers[place], tuple(map(int, index))


def record(model: nn.Module, x: torch.Tensor, *, layers: Sequence[str] | None = None,
           neuron: str = "channel", scale: bool = False, batch_size: int = 128) -> Activations:
    """The activations of a model's neurons for images (N, C, H, W) in [0, 1], on the CPU.

    ``layers``: see :func:`layers.layers_of`. ``neuron``: 'channel' or 'unit'. ``scale``:
    (a - min) / (max - min) over all elements of the layer, input by input, before the mean over
    positions (DeepXplore); 0 where max = min. Scaled values are in [0, 1]. ``batch_size``: images
    in a pass on a CPU; elsewhere :func:`inference.size_for` says how many. The model is put in
    evaluation mode. Raises ``ValueError`` for activations that are not finite, naming the layer,
    and what :func:`layers.layers_of` and :func:`layers.watched` raise.

    >>> from dnnlib import models
    >>> found = record(models.build("lenet1"), torch.rand(2, 1, 28, 28))
    >>> found.values.shape, found.layers, found.offsets
    (torch.Size([2, 52]), ('1', '2', '4', '5', '7', 'softmax'), (0, 4, 8, 20, 32, 42, 52))
    """
    checks.images(x)
    checks.known(neuron, NEURONS, "neuron")
    checks.positive(batch_size, "batch_size")
    chosen = layers_of(model, x, layers)
    reduce = _reduction(neuron, scale)
    values, start, device = None, 0, ready(model, x)
    size = size_for(model, x, batch_size, times=3)
    with watched(model, chosen, reduce) as parts:
        for part in x.split(size):
            with torch.no_grad():
                model(fast_layout(part, device))
                block = torch.cat([parts[name].flatten(1) for name in chosen], 1)
            _finite(block, {name: parts[name][0].numel() for name in chosen})
            if values is None:  # allocated once: joining the blocks would take twice the memory
                values = torch.empty(len(x), block.shape[1])
            values[start:start + len(part)] = block.cpu()
            start += len(part)
        shapes = tuple(tuple(parts[name].shape[1:]) for name in chosen)
    return Activations(values, tuple(chosen), shapes, tuple(chosen.values()))


def record_classes(model: nn.Module, x: torch.Tensor,
                   **options) -> tuple[Activations, torch.Tensor]:
    """The activations and the predicted classes, int64 (N,), by one pass, both on the CPU.

    ``options`` and what is raised: see :func:`record`.

    >>> from dnnlib import models
    >>> found, predicted = record_classes(models.build("lenet1"), torch.rand(2, 1, 28, 28))
    >>> torch.equal(found.layer("7").argmax(1), predicted)
    True
    """
    classes: list[torch.Tensor] = []
    handle = model.register_forward_hook(
        lambda module, inputs, logits: classes.append(classes_of(logits).cpu()))
    try:
        found = record(model, x, **options)
    finally:
        handle.remove()
    return found, torch.cat(classes)


class Want(NamedTuple):
    """Activations that somebody wants of a pass: names of layers, and as of :func:`record`."""

    layers: tuple[str, ...]
    neuron: str = "channel"
    scale: bool = False


def record_all(model: nn.Module, x: torch.Tensor,
               wants: Sequence[Want]) -> tuple[torch.Tensor, dict[Want, torch.Tensor]]:
    """The logits (B, classes) of a batch and all activations wanted, by one pass, on the CPU.

    ``x``: (B, C, H, W) in [0, 1]. The activations (B, neurons) may hold NaN or infinity. The model
    is put in evaluation mode. Raises what :func:`layers.layers_of` and :func:`layers.watched` do.

    >>> from dnnlib import models
    >>> wants = [Want(("1", "7")), Want(("7",), "unit")]
    >>> logits, found = record_all(models.build("lenet1"), torch.rand(2, 1, 28, 28), wants)
    >>> logits.shape, [found[want].shape for want in wants]
    (torch.Size([2, 10]), [torch.Size([2, 14]), torch.Size([2, 10])])
    """
    kinds: dict[str, set[tuple[str, bool]]] = {}
    for want in wants:
        for name in want.layers:
            kinds.setdefault(name, set()).add(want[1:])
    reduce = {name: lambda a, kinds=kinds[name]: {kind: _reduction(*kind)(a) for kind in kinds}
              for name in kinds}
    chosen = layers_of(model, x, tuple(kinds)) if kinds else {}
    device = ready(model, x)
    with watched(model, chosen, reduce) as parts, torch.no_grad():
        logits = checked(model(fast_layout(x, device))).cpu()
        return logits, {want: torch.cat([parts[name][want[1:]].flatten(1) for name in want.layers],
                                        1).cpu() for want in wants}


def _reduction(neuron: str, scale: bool) -> Callable[[torch.Tensor], torch.Tensor]:
    if neuron == "channel":
        return scaled_channel_means if scale else channel_means
    # a copy: the next layer may be an in-place ReLU
    return _scaled if scale else lambda a: a.float().clone()


def channel_means(a: torch.Tensor) -> torch.Tensor:
    """Outputs of a layer (N, channels, ...) -> float32 (N, channels), means over positions.

    >>> channel_means(torch.tensor([[[1, 3], [0, 5]]])).tolist()
    [[2.0, 2.5]]
    """
    a = a.float()
    return a.mean(tuple(range(2, a.ndim))) if a.ndim > 2 else a.clone()


def scaled_channel_means(a: torch.Tensor) -> torch.Tensor:
    """:func:`channel_means` of (a - min) / (max - min), over all of an input's outputs.

    In [0, 1]; 0 where max = min. The mean is scaled, which is the same and needs no second map.

    >>> scaled_channel_means(torch.tensor([[[1, 3], [0, 5]]])).tolist()
    [[0.4000000059604645, 0.5]]
    """
    return _scaled(a, channel_means(a))


def _scaled(a: torch.Tensor, values: torch.Tensor | None = None) -> torch.Tensor:
    """``values`` (default ``a``), scaled by the least and greatest element of each input's a."""
    values = a.float() if values is None else values
    axes = tuple(range(1, a.ndim))
    low, high = (extreme.float().view(-1, *[1] * (values.ndim - 1))
                 for extreme in (a.amin(axes), a.amax(axes)))
    span = high - low
    # only 0/0 becomes 0: NaN and infinity make the span NaN, and stay visible
    return ((values - low) / span).masked_fill(span == 0, 0)


def _finite(block: torch.Tensor, widths: dict[str, int]) -> None:
    """``ValueError`` naming the first layer with NaN or infinity."""
    if block.isfinite().all():
        return
    for (name, width), part in zip(widths.items(), block.split(list(widths.values()), 1)):
        if not part.isfinite().all():
            bad = int((~part.isfinite()).sum())
            raise ValueError(f"layer {name!r}: expected finite activations, got NaN or infinity "
                             f"in {bad} of {len(part)} x {width} values")
