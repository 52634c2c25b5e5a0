"""What is a neuron, and how strongly does it fire: the activations of any PyTorch model.

A neuron is a channel, read as its mean over positions (DeepXplore and most of those after it),
or a unit, every scalar by itself (NSS, dnn-tip). Say which with every result.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from math import prod

import torch
from torch import nn

from dnnlib import checks, models
from dnnlib.inference import device_of, fast_layout

NEURONS = ("channel", "unit")
SOFTMAX = "softmax"  # the layer that the networks' modules lack, their outputs being logits


@dataclass(frozen=True, eq=False)
class Activations:
    """``values``: float32 (N, neurons), layer after layer; ``layers``: their names.

    ``shapes``: what a neuron's place is in, layer by layer: (C,) for channels and dense units,
    (C, H, W) for the units of a convolution.
    """

    values: torch.Tensor
    layers: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]

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

    ``layers``: see :func:`layers_of`. ``neuron``: 'channel' or 'unit'. ``scale``: (a - min) /
    (max - min) over all elements of the layer, input by input, before the mean over positions
    (DeepXplore); 0 where max = min. Scaled values are in [0, 1]. The model is put in evaluation
    mode. Raises ``ValueError`` for activations that are not finite, naming the layer, and what
    :func:`watched` raises.

    >>> found = record(models.build("lenet1"), torch.rand(2, 1, 28, 28))
    >>> found.values.shape, found.layers, found.offsets
    (torch.Size([2, 52]), ('1', '2', '4', '5', '7', 'softmax'), (0, 4, 8, 20, 32, 42, 52))
    """
    checks.images(x)
    checks.known(neuron, NEURONS, "neuron")
    checks.positive(batch_size, "batch_size")
    chosen = layers_of(model, layers)
    if neuron == "channel":
        reduce = scaled_channel_means if scale else channel_means
    else:  # a copy: the next layer may be an in-place ReLU
        reduce = _scaled if scale else lambda a: a.float().clone()
    values, start, device = None, 0, device_of(model)
    model.eval()
    with watched(model, chosen, reduce) as parts:
        for part in x.split(batch_size):
            with torch.inference_mode():
                model(fast_layout(part, device))
                block = torch.cat([parts[name].flatten(1) for name in chosen], 1).cpu()
            _finite(block, {name: parts[name][0].numel() for name in chosen})
            if values is None:  # allocated once: joining the blocks would take twice the memory
                values = torch.empty(len(x), block.shape[1])
            values[start:start + len(part)] = block
            start += len(part)
        shapes = tuple(tuple(parts[name].shape[1:]) for name in chosen)
    return Activations(values, tuple(chosen), shapes)


def record_classes(model: nn.Module, x: torch.Tensor,
                   **options) -> tuple[Activations, torch.Tensor]:
    """The activations and the predicted classes, int64 (N,), by one pass, both on the CPU.

    ``options`` and what is raised: see :func:`record`.

    >>> found, predicted = record_classes(models.build("lenet1"), torch.rand(2, 1, 28, 28))
    >>> torch.equal(found.layer("7").argmax(1), predicted)
    True
    """
    classes: list[torch.Tensor] = []
    handle = model.register_forward_hook(
        lambda module, inputs, logits: classes.append(logits.argmax(1).cpu()))
    try:
        found = record(model, x, **options)
    finally:
        handle.remove()
    return found, torch.cat(classes)


def layers_of(model: nn.Module,
              layers: Sequence[str] | None = None) -> dict[str, nn.Module | None]:
    """The layers that count, by name and in order; None stands for the softmax.

    ``layers``: names of modules, in the order wanted; default those of
    :func:`models.neuron_layers`, and "softmax" where the network counts it as a layer. Raises
    ``ValueError`` for an unknown name, none or one twice.

    >>> list(layers_of(models.build("lenet1")))
    ['1', '2', '4', '5', '7', 'softmax']
    """
    spec = models.spec_of(model)
    softmax = {SOFTMAX: None} if spec and spec.softmax else {}
    if layers is None:
        return models.neuron_layers(model) | softmax
    known = dict(model.named_modules()) | softmax
    return {name: known[name] for name in checks.layers(layers, filter(None, known))}


@contextmanager
def watched(model: nn.Module, layers: dict[str, nn.Module | None],
            reduce: Callable[[torch.Tensor], object]) -> Iterator[dict]:
    """Within it, a pass leaves ``reduce`` of every layer's output in the dict given, by name.

    ``layers``: of :func:`layers_of`. What a layer gives out, the next one may overwrite, so
    ``reduce`` must not return a view. A pass raises ``ValueError`` for a layer that does not run,
    or more than once, and ``TypeError`` for one whose output is no floating-point tensor (N, ...).

    >>> model = models.build("lenet1")
    >>> with watched(model, layers_of(model, ["7"]), channel_means) as parts:
    ...     logits = model(torch.rand(2, 1, 28, 28))
    >>> torch.equal(parts["7"], logits)
    True
    """
    parts, size = {}, 0

    def begin(module, inputs):
        nonlocal size
        parts.clear()
        size = len(inputs[0])

    def keep(name: str, output) -> None:
        if name in parts:
            raise ValueError(f"layer {name!r} runs more than once in a pass, so that its "
                             "activations are ambiguous: give each use a module of its own")
        parts[name] = reduce(_checked(name, output, size))

    def hook(name: str):
        return lambda module, inputs, output: keep(name, output)

    def end(module, inputs, output):
        for name in (name for name, module in layers.items() if module is None):
            keep(name, output.softmax(1))
        if missing := [name for name in layers if name not in parts]:
            raise ValueError(f"layers: {missing[0]!r} does not run in a pass")

    handles = [model.register_forward_pre_hook(begin),
               *(module.register_forward_hook(hook(name))
                 for name, module in layers.items() if module is not None),
               model.register_forward_hook(end)]
    try:
        yield parts
    finally:
        for handle in handles:
            handle.remove()


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


def _checked(name: str, output, n: int) -> torch.Tensor:
    if not isinstance(output, torch.Tensor) or not output.is_floating_point():
        kind = output.dtype if isinstance(output, torch.Tensor) else type(output).__name__
        raise TypeError(f"layer {name!r}: expected a floating-point tensor as output, got {kind}; "
                        "name other layers with layers=")
    if output.ndim < 2 or len(output) != n or not output.numel():
        raise TypeError(f"layer {name!r}: expected an output ({n}, neurons, ...), "
                        f"got shape {tuple(output.shape)}; name other layers with layers=")
    return output


def _finite(block: torch.Tensor, widths: dict[str, int]) -> None:
    """``ValueError`` naming the first layer with NaN or infinity."""
    if block.isfinite().all():
        return
    for (name, width), part in zip(widths.items(), block.split(list(widths.values()), 1)):
        if not part.isfinite().all():
            bad = int((~part.isfinite()).sum())
            raise ValueError(f"layer {name!r}: expected finite activations, got NaN or infinity "
                             f"in {bad} of {len(part)} x {width} values")
