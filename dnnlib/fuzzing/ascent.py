"""What the gradient fuzzers share: neurons in a differentiable pass, their coverage, ascent.

A neuron is a channel, read as its mean over positions, or a dense unit, in all layers of
:func:`layers.layers_of`, the softmax included where the network counts it (DeepXplore, DLFuzz).
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import nn

from dnnlib.inference import device_of, hooked
from dnnlib.neurons.activations import channel_means, scaled_channel_means
from dnnlib.neurons.layers import layers_of, watched


class Response(NamedTuple):
    """What a model answers to B images: class scores, and the activations of its N neurons.

    ``logits``: (B, n). ``raw``: (B, N), channel means, with gradient. ``scaled``: (B, N) in
    [0, 1], every layer scaled by its least and greatest element, input by input, before the
    mean, as in :func:`activations.record`; without gradient, since it only counts coverage.
    """

    logits: torch.Tensor
    raw: torch.Tensor
    scaled: torch.Tensor


def respond(model: nn.Module, x: torch.Tensor) -> Response:
    """One pass over images (B, C, H, W), on the model's device, where the answer stays.

    Raises ``ValueError`` for a layer that does not run or outputs that are not finite.

    >>> from dnnlib import models
    >>> answer = respond(models.build("lenet1"), torch.rand(2, 1, 28, 28))
    >>> answer.logits.shape, answer.raw.shape, answer.scaled.requires_grad
    (torch.Size([2, 10]), torch.Size([2, 52]), False)
    """
    x = x.to(device_of(model))
    layers = layers_of(model, x)
    with watched(model, layers, lambda a: (channel_means(a),
                                           scaled_channel_means(a.detach()))) as parts:
        logits = model(x)
    raw, scaled = (torch.cat(columns, 1) for columns in zip(*(parts[name] for name in layers)))
    if not (logits.isfinite().all() and raw.isfinite().all()):
        raise ValueError("model: expected finite outputs and activations, got NaN or infinity")
    return Response(logits, raw, scaled)


@torch.no_grad()
def look(model: nn.Module, x: torch.Tensor, *, batch_size: int) -> Response:
    """The response to any number of images, without gradient, ``batch_size`` at once."""
    return Response(*map(torch.cat, zip(*(respond(model, part) for part in x.split(batch_size)))))


def ascent(model: nn.Module, x: torch.Tensor, objective: Callable[[Response, slice], torch.Tensor],
           *, batch_size: int) -> torch.Tensor:
    """The gradient of ``objective`` with respect to every image, (S, C, H, W).

    ``objective``: from the response to some images and their places in ``x`` to the value (B,)
    for each. Raises ``ValueError`` for a gradient that is not finite.

    >>> from dnnlib import models
    >>> model, x = models.build("lenet1"), torch.rand(3, 1, 28, 28)
    >>> ascent(model, x, lambda answer, rows: answer.logits[:, 0], batch_size=2).shape
    torch.Size([3, 1, 28, 28])
    """
    parts = []
    for start in range(0, len(x), batch_size):
        rows = slice(start, start + batch_size)
        part = x[rows].detach().requires_grad_()
        with torch.enable_grad():
            # an image has no effect on the others' values, so one backward serves them all
            total = objective(respond(model, part), rows).sum()
        parts.append(torch.autograd.grad(total, part)[0])
    g = torch.cat(parts)
    if not g.isfinite().all():
        raise ValueError("model: expected finite gradients, got NaN or infinity")
    return g


def normalise(g: torch.Tensor) -> torch.Tensor:
    """g / (sqrt(mean g^2) + 1e-5), image by image: steps of one root mean square a pixel.

    >>> normalise(torch.tensor([[[[3.0, -3.0]]]])).round(decimals=3).tolist()
    [[[[1.0, -1.0]]]]
    """
    return g / (g.square().mean((1, 2, 3), keepdim=True).sqrt() + 1e-5)


@dataclass(eq=False)
class Hits:
    """How often each neuron was above ``threshold`` in a campaign; covered is one that ever was.

    ``counts``: int64 (N,), of images. Scaled activations are compared.

    >>> hits = Hits(torch.zeros(3, dtype=torch.int64), 0.5)
    >>> hits.add(torch.tensor([[0.9, 0.1, 0.5], [0.6, 0.0, 0.0]]))
    >>> hits.counts.tolist(), hits.gain(torch.tensor([[0.9, 0.9, 0.9]])).tolist()
    ([2, 0, 0], [0.6666666865348816])
    """

    counts: torch.Tensor
    threshold: float

    @classmethod
    def none(cls, seen: Response, threshold: float) -> "Hits":
        """Before the campaign, for the neurons of a response."""
        return cls(torch.zeros_like(seen.raw[0], dtype=torch.int64), threshold)

    @property
    def covered(self) -> torch.Tensor:
        """bool (N,)."""
        return self.counts > 0

    def add(self, scaled: torch.Tensor) -> None:
        """Count images (B, N)."""
        self.counts = self.counts + (scaled > self.threshold).sum(0)

    def gain(self, scaled: torch.Tensor) -> torch.Tensor:
        """The share of all neurons that each image (B, N) would be the first to cover, (B,)."""
        return ((scaled > self.threshold) & ~self.covered).float().mean(1)

    def uncovered(self, rows: int, generator: torch.Generator) -> torch.Tensor:
        """A neuron for each of ``rows`` images, uniform among the uncovered; any if none is."""
        free = (~self.covered).nonzero().flatten()
        if not len(free):
            free = torch.arange(len(self.counts), device=self.counts.device)
        return free[torch.randint(len(free), (rows,), generator=generator).to(free.device)]


class Layout(NamedTuple):
    """What the N neurons are: ``maps``, bool (N,), those that are a channel of a map; ``weights``,
    (N,), the mean of the weights into each, -inf where it has none of its own."""

    maps: torch.Tensor
    weights: torch.Tensor


@torch.no_grad()
def layout(model: nn.Module, x: torch.Tensor) -> Layout:
    """The layout of a model's neurons, from a pass over the first image of (B, C, H, W).

    Weights belong to a convolution or a dense layer, or, where that does not count as neurons
    itself, to the next layer that does, such as its ReLU. Pools and the softmax have none. Nor
    have batch normalisations, though DLFuzz's code would take their scales for weights.

    >>> from dnnlib import models
    >>> found = layout(models.build("lenet1"), torch.zeros(1, 1, 28, 28))
    >>> int(found.maps.sum()), int(found.weights.isfinite().sum())
    (32, 26)
    """
    x = x.to(device_of(model))
    layers = layers_of(model, x)
    names = {(layer.module, layer.call): name for name, layer in layers.items()}
    counts: Counter = Counter()
    found: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
    pending: torch.Tensor | None = None

    def neurons(output):
        none = output.new_full((output.shape[1],), -torch.inf)
        return torch.full_like(none, output.ndim > 2, dtype=torch.bool), none

    def keep(module, inputs, output):
        nonlocal pending
        counts[module] += 1
        if isinstance(module, nn.Conv2d | nn.Linear):
            pending = module.weight.flatten(1).mean(1)
        name = names.get((module, counts[module]))
        if name is not None:
            maps, none = neurons(layers[name].first(output))
            fits = pending is not None and pending.shape == none.shape
            found[name] = maps, pending if fits else none
            pending = None

    with hooked(*(module.register_forward_hook(keep) for module in model.modules()
                  if module is not model)):
        logits = model(x[:1])
    parts = [neurons(logits) if layer.module is None else found[name]
             for name, layer in layers.items()]
    return Layout(*map(torch.cat, zip(*parts)))
