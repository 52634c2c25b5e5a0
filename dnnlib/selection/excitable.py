"""Inputs first that a mutation makes excite many neurons (ours, after the second DeepSensor)."""

from dataclasses import dataclass

import torch

from dnnlib import checks
from dnnlib.inference import device_of, fast_layout, outputs
from dnnlib.neurons import excitable, shapley
from dnnlib.perturb import mutations
from dnnlib.selection.protocol import Scored

_ROOM = 2**30  # bytes that a pass may hold
_HELD = 16  # times what the modules give out, held by a pass with gates and gradients


@dataclass(frozen=True, kw_only=True, eq=False)
class Excitable(Scored):
    """The candidates first in which a fresh mutation makes the most neurons excitable.

    As NSS, with excitable neurons (second DeepSensor, Definition 3) in the place of sensitive
    ones; neither paper has it. Labels are unknown, so the loss whose change is shared out, on the
    way from a candidate to a mutation of it, is that of the class given to the candidate.

    - ``threshold``: lambda, finite.
    - ``scale``: its unit, 'none' or 'total': see :func:`excitable.excitable`.
    - ``points``: of :func:`estimators.diagonal`; each takes six passes for a candidate, after four
      at the ends.
    - ``mutation``: one of the seven at 'random', or a name in :data:`mutations.OPERATORS`.
    - ``strength``: as :func:`mutations.mutate` has it, 1 to 5, or None, all of NSS's Table III.
    - ``seed``: of the mutation; must not be that of the candidates' own mutations.
    - ``batch_size``: images in a pass on a CPU, fewer where these take more than 1 GB; elsewhere
      :func:`inference.size_for` says how many.

    Scores are whole numbers, with many ties. A candidate that its mutation leaves as it was
    scores 0. Raises ``ValueError`` for bad options, and for a loss that is not finite.

    >>> from dnnlib import models
    >>> x = torch.rand(4, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    >>> chosen = Excitable(scale="total", mutation="contrast")
    >>> sorted(chosen.order(models.build("lenet1"), x).tolist())
    [0, 1, 2, 3]
    """

    threshold: float = 0.5
    scale: str = "none"
    points: int = 4
    mutation: str = "random"
    strength: int | None = None
    seed: int = 123

    def __post_init__(self):
        super().__post_init__()
        checks.known(self.scale, excitable.SCALES, "scale")
        checks.positive(self.points, "points")
        checks.known(self.mutation, [*mutations.OPERATORS, "random"], "mutation")
        checks.finite(self.threshold, "threshold")

    @property
    def passes(self):
        return 4 + 6 * self.points

    def read(self, batch, known):
        """The number of excitable neurons of every candidate, float64 (B,)."""
        model, x, given = batch.model, batch.x, batch.p.argmax(1)
        mutated = mutations.mutate(x, self.mutation, seed=self.seed, strength=self.strength,
                                   index=batch.places).images
        moved = (mutated != x).flatten(1).any(1)
        score = torch.zeros(len(x), dtype=torch.float64)
        if moved.any():
            image = fast_layout(x[:1], device_of(model))
            size = min(self.batch_size, _ROOM // (_HELD * outputs(model, image)[0])) or 1
            game = shapley.Game(model, x[moved], mutated[moved], given[moved.cpu()],
                                batch_size=size)
            psi = shapley.diagonal(game, points=self.points).values
            found = excitable.excitable(psi, self.threshold, scale=self.scale).sum(1)
            score[moved.cpu()] = found.double()
        return score
