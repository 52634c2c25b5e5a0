"""Switching neurons off: a gate for every neuron, by which its layer's output is multiplied."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from math import prod

import torch
from torch import nn

from dnnlib.inference import hooked
from dnnlib.neurons.calls import Layer


@dataclass(frozen=True, eq=False)
class Stage:
    """A part of the network that runs as one, and ``layers``: the places of those gated in it.

    ``inside``: whether a gated layer lies within the module; then the module's input must have
    a row for each set of gates, since a block's shortcut would carry on the old number of rows.
    """

    module: nn.Module
    layers: tuple[int, ...]
    inside: bool


@dataclass(frozen=True, eq=False)
class Gates:
    """Gates for the neurons of ``model``, one column each: 0 is off, 1 leaves the neuron as it is.

    ``layers``: names, none twice; ``shapes``: what a neuron's place in them is, (C,) for channels
    and dense units, (C, H, W) for the units of a convolution; ``calls``: what the layers are. All
    are those of :func:`activations.record`, which also checks them.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    >>> calls, x = (Layer(model[2]), Layer(model[3])), torch.rand(1, 1, 2, 2)
    >>> gates = Gates(model, ("2", "3"), ((3,), (2,)), calls)
    >>> with torch.no_grad():
    ...     on = gates.logits(x, torch.tensor([0]), torch.ones(1, 5))
    ...     off = gates.logits(x, torch.tensor([0]), torch.zeros(1, 5))
    ...     torch.equal(on, model(x)), bool((off == 0).all())
    (True, True)
    """

    model: nn.Module
    layers: Sequence[str]
    shapes: Sequence[tuple[int, ...]]
    calls: Sequence[Layer]

    @cached_property
    def columns(self) -> tuple[slice, ...]:
        """The columns of every layer."""
        found, start = [], 0
        for shape in self.shapes:
            found.append(slice(start, start + prod(shape)))
            start += prod(shape)
        return tuple(found)

    @property
    def neurons(self) -> int:
        return self.columns[-1].stop

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The network as a chain; whatever is not a plain ``nn.Sequential`` is one stage."""
        gated = [layer.module for layer in self.calls]
        if any(layer.call > 1 for layer in self.calls):  # which call it is only the whole tells
            return (Stage(self.model, tuple(range(len(gated))), inside=True),)
        found = []
        for module in _chain(self.model, gated):
            parts = set(module.modules())
            layers = tuple(i for i, layer in enumerate(gated) if layer in parts)
            found.append(Stage(module, layers, any(gated[i] is not module for i in layers)))
        return tuple(found)

    def logits(self, x: torch.Tensor, of: torch.Tensor, gates: torch.Tensor) -> torch.Tensor:
        """The logits (R, classes) of image ``of[r]`` under the gates (R, neurons) of row r.

        ``x``: (B, C, H, W); ``of``: int64 (R,), both on the model's device. Rows that follow each
        other with the same image, and the same gates up to some layer, go through the layers up
        to there as one: of a chain of growing coalitions, the early layers see few.
        """
        first = torch.ones(len(of), dtype=torch.bool, device=of.device)
        first[1:] = of[1:] != of[:-1]  # whether a row is the first of those that are still one
        changed = gates[1:] != gates[:-1]
        state = x[of[first]]
        for stage in self.stages:
            if not stage.layers:
                state = stage.module(state)
                continue
            parent = first.cumsum(0) - 1
            for place in stage.layers:
                first[1:] |= changed[:, self.columns[place]].any(1)
            parent, applied = parent[first], gates[first]
            if stage.inside:
                with self.applied(applied, stage.layers):
                    state = stage.module(state[parent])
            else:
                output = stage.module(state)
                state = self._gated(output, applied, stage.layers[0], parent)
        return state[first.cumsum(0) - 1]

    def slopes(self, x: torch.Tensor, labels: torch.Tensor, gates: torch.Tensor) -> torch.Tensor:
        """d loss / d gate of each image under its ``gates``, both (B, neurons), float32.

        ``x``: (B, C, H, W); ``labels``: int64 (B,), both on the model's device. The loss is the
        cross-entropy in nats. One forward and one backward pass. Raises ``ValueError`` for a loss
        that is not finite or that cannot be differentiated.
        """
        gates = gates.detach().float().requires_grad_()
        with torch.enable_grad(), self.applied(gates):
            loss = nn.functional.cross_entropy(self.model(x), labels, reduction="none")
        finite(loss)
        if not loss.requires_grad:
            raise ValueError("model: expected a loss that can be differentiated by the gates, got "
                             "one without gradient")
        return torch.autograd.grad(loss, gates, torch.ones_like(loss))[0]

    @contextmanager
    def applied(self, gates: torch.Tensor, layers: Sequence[int] | None = None) -> Iterator[None]:
        """Inside, the model's layers (or those at the places ``layers``) are gated.

        ``gates``: (N, neurons), for passes of N images.
        """
        counts: Counter = Counter()
        places = range(len(self.layers)) if layers is None else layers
        wanted = {(self.calls[i].module, self.calls[i].call): i for i in places}

        def begin(module, inputs):
            counts.clear()

        def hook(module, inputs, output):
            counts[module] += 1
            place = wanted.get((module, counts[module]))
            # a new tensor, so that an in-place layer behind cannot write into this one's output
            return None if place is None else self._gated(output, gates, place)

        modules = {self.calls[i].module: None for i in places}
        with hooked(self.model.register_forward_pre_hook(begin),
                    *(module.register_forward_hook(hook) for module in modules)):
            yield

    def _gated(self, output, gates: torch.Tensor, place: int, rows: torch.Tensor | None = None):
        """The output of one layer, or its ``rows``, times the gates (N, neurons) of the layer."""
        whole = output if isinstance(output, torch.Tensor) else output[0]
        a = self.calls[place].first(whole)
        columns, shape = gates[:, self.columns[place]].to(a.dtype), self.shapes[place]
        shaped = columns.reshape(len(columns), *shape, *[1] * (a.ndim - 1 - len(shape)))
        # in place where rows were taken, which makes a copy
        a = a * shaped if rows is None else a[rows].mul_(shaped)
        a = a if whole.ndim == 2 else a.movedim(1, self.calls[place].axis)
        return a if whole is output else type(output)([a, *output[1:]])


def finite(loss: torch.Tensor) -> None:
    """``ValueError`` unless every loss of the gated model is finite."""
    if bad := int((~loss.isfinite()).sum()):
        raise ValueError("model: expected a finite loss whichever neurons are off, got NaN or "
                         f"infinity in {bad} of {len(loss)} passes; name other layers with "
                         "layers=")


def _chain(module: nn.Module, gated: Sequence[nn.Module]) -> Iterator[nn.Module]:
    """The modules that run one after the other; a container that does more is kept whole."""
    plain = type(module).forward is nn.Sequential.forward and module not in gated
    if plain and not module._forward_hooks and not module._forward_pre_hooks:
        for part in module.children():
            yield from _chain(part, gated)
    else:
        yield module
