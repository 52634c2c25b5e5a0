"""Excitable neurons (second DeepSensor, Definition 3), and their share as a fitness (Eq. 6)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from dnnlib import checks
from dnnlib.inference import device_of, doubles
from dnnlib.neurons.gates import Gates, finite
from dnnlib.neurons.shapley import nodes, permutation
from dnnlib.neurons.shapley.game import players

SCALES = ("none", "total")
_BATCH = 512  # inputs in a pass


def excitable(values, threshold: float = 0.5, *, scale: str = "none") -> torch.Tensor:
    r"""Which neurons are excitable (second DeepSensor, Definition 3), bool (..., N).

    .. math:: \psi(n) > \lambda \qquad \text{or} \qquad
              \psi(n) > \frac{\lambda}{N} \sum_{m=1}^N |\psi(m)|

    ``values``: Shapley values psi (..., N). ``threshold``: lambda. ``scale``: 'none', the first,
    psi in nats, as printed; or 'total', the second, where 1 is an average neuron of the input and
    the size of the perturbation cancels. The paper's example, 37 % of VGG16's 12,426 neurons above
    0.5, would take 2,299 nats by the first reading unless negative values cancel, since the values
    sum to the change of loss; by the second it is possible. An input whose values are all 0 has no
    excitable neuron. Raises ``ValueError`` for values that are not finite.

    >>> psi = torch.tensor([0.3, 0.1, -0.2, 0.0])
    >>> excitable(psi).sum().item(), excitable(psi, scale="total").tolist()
    (0, [True, True, False, False])
    """
    checks.known(scale, SCALES, "scale")
    checks.finite(threshold, "threshold")
    values = checks.tensor(values)
    if not values.ndim or not values.shape[-1]:
        raise ValueError("values: expected Shapley values (..., N) of at least one neuron, got "
                         f"shape {tuple(values.shape)}")
    if not values.isfinite().all():
        raise ValueError("values: expected finite Shapley values, got NaN or infinity")
    if scale == "none":
        return values > threshold
    # no quotient: 0 / 0 would be NaN
    return values > threshold * values.abs().mean(-1, keepdim=True)


@dataclass(frozen=True, kw_only=True)
class ExcitableNeurons:
    """The second DeepSensor's fitness (Eq. 6), the share of excitable neurons; these are channels.

    The paper does not say how it finds Shapley values for every particle. Here they are those of
    :func:`estimators.diagonal`, by ``points`` gradients: about 3 passes each, for all neurons. With
    1 next to none of the neurons above 0.5 nats are found, with 4 most of those that more points
    find (the chapter "Neurons as players").

    - ``threshold``: lambda, and ``scale``, its unit: see :func:`excitable`.
    - ``permutations``: with a number, the values are those of :func:`estimators.permutation` with
      as many orders, and ``points`` does not count. The orders are drawn from ``seed`` and the same
      for all images: about as many passes to an image as orders times neurons.
    - ``layers``: names, default those of :func:`layers.layers_of`.

    Called with a model, inputs (S, C, H, W) and their labels, it gives the function
    ``score(x, of)`` that a swarm maximises: images (N, C, H, W), and which input each came from,
    int64 (N,), to float32 (N,) in [0, 1]. The inputs' own gradients are computed once. An image
    equal to its input has values of 0, and scores 0 unless ``threshold`` is below 0 nats. Raises
    ``ValueError`` for bad options, an unknown layer, and a loss that is not finite.

    >>> from dnnlib import models
    >>> model, inputs = models.build("lenet1"), torch.zeros(1, 1, 28, 28)
    >>> score = ExcitableNeurons(scale="total")(model, inputs, torch.tensor([3]))
    >>> score(inputs, torch.tensor([0])).tolist(), score(inputs + 1, torch.tensor([0])).item() > 0
    ([0.0], True)
    """

    threshold: float = 0.5
    scale: str = "none"
    points: int = 4
    permutations: int | None = None
    seed: int = 0
    layers: Sequence[str] | None = None

    def __post_init__(self):
        checks.known(self.scale, SCALES, "scale")
        checks.positive(self.points, "points")
        checks.seed(self.seed)
        if self.permutations is not None and checks.positive(self.permutations, "permutations") % 2:
            raise ValueError("permutations: expected an even number, since every second order is "
                             f"the reverse of the one before, got {self.permutations}")
        checks.finite(self.threshold, "threshold")

    def __call__(self, model: nn.Module, inputs: torch.Tensor,
                 labels: torch.Tensor) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
        inputs, labels = (given.to(device_of(model)) for given in (inputs, labels))
        found = players(model, inputs[:1], self.layers)
        gates = Gates(model, found.layers, found.shapes, found.calls)
        ts, weights = (values.tolist() for values in nodes(self.points))

        def shares(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            if self.permutations is not None:
                orders = torch.Generator().manual_seed(self.seed)
                return permutation(_Loss(gates, x, y), permutations=self.permutations,
                                   generator=orders).values.to(x.device)
            everyone = torch.ones(len(x), gates.neurons, device=x.device)
            return sum(w * gates.slopes(x, y, t * everyone) for t, w in zip(ts, weights))

        before = torch.cat([shares(*part)
                            for part in zip(inputs.split(_BATCH), labels.split(_BATCH))])

        def score(x: torch.Tensor, of: torch.Tensor) -> torch.Tensor:
            x, of = x.to(inputs.device), of.to(inputs.device)
            psi = shares(x, labels[of]) - before[of]
            # 0, and not the rounding of two passes, which scale='total' would blow up
            psi[(x == inputs[of]).flatten(1).all(1)] = 0
            return excitable(psi, self.threshold, scale=self.scale).float().mean(1)

        return score


@dataclass(frozen=True)
class _Loss:
    """What coalitions of neurons make of the loss of images: a game for each of them."""

    gates: Gates
    x: torch.Tensor
    labels: torch.Tensor

    @property
    def players(self) -> int:
        return self.gates.neurons

    @torch.no_grad()
    def value(self, coalitions: torch.Tensor) -> torch.Tensor:
        """The loss (B, K) in nats under gates (K, N); by whole passes, which a swarm counts."""
        k, device, losses = len(coalitions), self.x.device, []
        for rows in torch.arange(len(self.x) * k, device=device).split(_BATCH):
            of = rows // k
            with self.gates.applied(coalitions.to(device)[rows % k].float()):
                logits = self.gates.model(self.x[of]).to(doubles(device)).double()
            labels = self.labels[of].to(logits.device)
            losses.append(nn.functional.cross_entropy(logits, labels, reduction="none"))
            finite(losses[-1])
        return torch.cat(losses).view(-1, k)
