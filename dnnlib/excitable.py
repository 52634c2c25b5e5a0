"""The share of excitable neurons as a swarm's fitness (second DeepSensor, Eq. 6), and controls."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import nn

from dnnlib import checks, fuzzing
from dnnlib.gates import Gates
from dnnlib.shapley import SCALES, excitable, nodes
from dnnlib.shapley.game import players

_BATCH = 512  # seeds in a pass


@dataclass(frozen=True, kw_only=True)
class ExcitableNeurons:
    """The second DeepSensor's fitness (Eq. 6), the share of excitable neurons; these are channels.

    The paper does not say how it finds Shapley values for every particle. Here they are those of
    :func:`shapley.diagonal`, by ``points`` gradients: about 3 passes each, for all neurons.
    ``threshold``: lambda, and ``scale``, its unit: see :func:`shapley.excitable`. ``layers``:
    names, default :func:`models.neuron_layers`.

    Called with a model, seeds (S, C, H, W) on its device and their labels, it gives the function
    ``score(x, of)`` that a swarm maximises: images (N, C, H, W), and which seed each came from,
    int64 (N,), to float32 (N,) in [0, 1]. The seeds' own gradients are computed once. An image
    equal to its seed has values of 0, and scores 0 unless ``threshold`` is below 0 nats. Raises
    ``ValueError`` for bad options, an unknown layer, and a loss that is not finite.

    >>> from dnnlib import models
    >>> model, seeds = models.build("lenet1"), torch.zeros(1, 1, 28, 28)
    >>> score = ExcitableNeurons(scale="total")(model, seeds, torch.tensor([3]))
    >>> score(seeds, torch.tensor([0])).tolist(), score(seeds + 1, torch.tensor([0])).item() > 0
    ([0.0], True)
    """

    threshold: float = 0.5
    scale: str = "none"
    points: int = 1
    layers: Sequence[str] | None = None

    def __post_init__(self):
        checks.known(self.scale, SCALES, "scale")
        checks.positive(self.points, "points")
        if not abs(self.threshold) < math.inf:
            raise ValueError(f"threshold: expected a finite number, got {self.threshold!r}")

    def __call__(self, model: nn.Module, seeds: torch.Tensor,
                 labels: torch.Tensor) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
        found = players(model, seeds[:1], self.layers)
        gates = Gates(model, found.layers, found.shapes)
        ts, weights = (values.tolist() for values in nodes(self.points))

        def integral(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            everyone = torch.ones(len(x), gates.neurons, device=x.device)
            return sum(w * gates.slopes(x, y, t * everyone) for t, w in zip(ts, weights))

        before = torch.cat([integral(*part)
                            for part in zip(seeds.split(_BATCH), labels.split(_BATCH))])

        def score(x: torch.Tensor, of: torch.Tensor) -> torch.Tensor:
            psi = integral(x, labels[of]) - before[of]
            # 0, and not the rounding of two passes, which scale='total' would blow up
            psi[(x == seeds[of]).flatten(1).all(1)] = 0
            return excitable(psi, self.threshold, scale=self.scale).float().mean(1)

        return score


def swarms(swarm: fuzzing.Swarm, names: str = "excitable sensitive constant random", *,
           points: int = 2, seed: int = 0) -> dict[str, fuzzing.Swarm]:
    """``swarm`` under the fitnesses ``names``: one method, guided by one thing after another.

    'excitable': this paper's, with ``points`` gradients, and 'excitable_scaled' with the values in
    units of their mean; 'sensitive': the first paper's, that of ``swarm``. The controls look at no
    neuron: 'constant', and 'random', drawn from ``seed``. Raises ``ValueError`` for another name.

    >>> list(swarms(fuzzing.Swarm(population=5), "excitable constant"))
    ['excitable', 'constant']
    """
    known = {"excitable": ExcitableNeurons(points=points),
             "excitable_scaled": ExcitableNeurons(points=points, scale="total"),
             "sensitive": swarm.fitness, "constant": fuzzing.Constant(),
             "random": fuzzing.RandomFitness(seed=seed)}
    return {name: replace(swarm, fitness=known[checks.known(name, known, "fitness")])
            for name in names.split()}
