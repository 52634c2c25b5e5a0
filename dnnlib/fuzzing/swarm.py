"""DeepSensor: a particle swarm around every input, guided by a fitness (Algorithm 1)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from dnnlib import checks
from dnnlib.fuzzing.guided import Guided, Score
from dnnlib.fuzzing.numbers import Numbers
from dnnlib.neurons.sensitivity import SensitiveNeurons

STARTS = ("random", "input")
RANDOM = ("particle", "pixel")
REPORTS = ("best", "current")


@dataclass(frozen=True, kw_only=True)
class Swarm(Guided):
    r"""Particle swarm optimisation of test inputs, a swarm for every input (DeepSensor, III.D).

    Iteration g, of 0 to G - 1, scores all particles, updates the best position of each,
    :math:`p_{best}`, and of its swarm, :math:`g_{best}`, and moves them (Eqs. 3 to 5):

    .. math::

        \omega^g &= (\omega_{initial} - \omega_{end}) (G - g) / G + \omega_{end} \\
        v &\leftarrow \omega^g v + c_1 r_1 (p_{best} - x) + c_2 r_2 (g_{best} - x) \\
        x &\leftarrow x + v

    and then brings x within the budget and [0, 1]. The first one thus scores the start, as in
    Algorithm 1, and no position is scored after the last move. All particles move at once.

    - ``budget``, ``fitness``, ``batch_size``: of every :class:`Guided` search. A fitness of your
      own is below.
    - ``population``: particles to an input, 100 in the second paper; the first gives none.
    - ``start``: 'random' (IV.F), uniform in [0, 1] and the budget's L-infinity box, then brought
      within the budget; or 'input' (III.D), where all particles start on the input.
    - ``velocity``: (low, high), between which the first velocity of every pixel is drawn, or None,
      "the change of the pixel value": start minus input.
    - ``inertia``: the initial one and that at the end; rising, as printed.
    - ``compound``: whether Eq. 3 puts the last inertia for the initial one, as the released code.
    - ``c1``, ``c2``: pull of the particle's and of the swarm's best position.
    - ``random``: r of Eq. 4, uniform in [0, 1), is one number for each 'particle' and term (the
      equation and the released code), or one for each 'pixel'.
    - ``clamp``: largest speed of a pixel, applied after the move as in the released code, or None.
    - ``epsilon``: a swarm stops once its best fitness is above this value. The paper's value is 1.
      A share of neurons never exceeds 1, so the paper's swarms never stop. A stopped swarm costs no
      more passes; its last example counts again in each iteration that is left.
    - ``report``: the example of an iteration is the swarm's 'best' position so far, or the fittest
      of its 'current' ones.

    Raises ``ValueError`` or ``TypeError`` naming the option.

    >>> from torch import nn
    >>> from dnnlib.fuzzing import Budget
    >>> def unsure(model, inputs, labels):
    ...     return lambda x, of: -model(x).softmax(1).amax(1)
    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    >>> found = Swarm(fitness=unsure, population=5, budget=Budget(linf=0.1)).run(
    ...     model, torch.full((3, 1, 2, 2), 0.5), torch.tensor([0, 1, 1]), iterations=4,
    ...     generator=torch.Generator().manual_seed(0))
    >>> found.predicted.shape, found.passes  # 3 inputs x 4 iterations x (5 scored + 1 judged)
    (torch.Size([4, 3]), 72)
    """

    start: str = "random"
    velocity: tuple[float, float] | None = None
    inertia: tuple[float, float] = (0.4, 0.9)
    compound: bool = False
    c1: float = 2.0
    c2: float = 2.0
    random: str = "particle"
    clamp: float | None = None
    epsilon: float = 1.0
    report: str = "best"

    def __post_init__(self):
        super().__post_init__()
        checks.known(self.start, STARTS, "start")
        checks.known(self.random, RANDOM, "random")
        checks.known(self.report, REPORTS, "report")
        if self.velocity is not None:
            checks.pair(self.velocity, "velocity")
            low, high = self.velocity
            if low > high:
                raise ValueError(f"velocity: expected low <= high, got {self.velocity}")
        if self.start == "input" and self.velocity in (None, (0, 0)):
            raise ValueError("velocity: expected (low, high) with start='input', where particles "
                             f"without velocity never move; got {self.velocity}")
        checks.pair(self.inertia, "inertia", least=0)
        checks.pair((self.c1, self.c2), "c1, c2", least=0)
        if self.clamp is not None and not 0 < self.clamp < math.inf:
            raise ValueError(f"clamp: expected a speed above 0 or None, got {self.clamp!r}")
        if math.isnan(self.epsilon):
            raise ValueError("epsilon: expected a number, got NaN")

    @classmethod
    def paper(cls, **changes) -> "Swarm":
        """The paper's text: the defaults, with ``changes``."""
        return cls(**changes)

    @classmethod
    def released(cls, **changes) -> "Swarm":
        """The authors' released script, with ``changes``.

        Its fitness also adds the neuron boundary coverage of the image, by a function that the
        repository lacks: left out here.

        >>> Swarm.released().population, Swarm.released().fitness.scale
        (1, 'difference')
        """
        fitness = SensitiveNeurons(threshold=0.2, scale="difference", divide=False, logits=False)
        return cls(**{"fitness": fitness, "population": 1, "start": "input",
                      "velocity": (0.0, 0.7), "inertia": (0.2, 2.0), "compound": True,
                      "clamp": 0.7, "epsilon": math.inf} | changes)

    def inertias(self, iterations: int) -> list[float]:
        """The inertia of every move (Eq. 3).

        >>> [round(w, 3) for w in Swarm().inertias(5)]
        [0.4, 0.5, 0.6, 0.7, 0.8]
        """
        first, end = self.inertia
        found = []
        for g in range(iterations):
            found.append((first - end) * (iterations - g) / iterations + end)
            first = found[-1] if self.compound else first
        return found

    def fly(self, score: Score, inputs: torch.Tensor, rows: torch.Tensor,
            numbers: Numbers, iterations: int) -> Iterator[torch.Tensor]:
        position, velocity = self._begin(inputs, numbers)
        best_fitness = torch.full(position.shape[:2], -math.inf, device=position.device)
        best_position = position.clone()
        swarm_fitness, swarm_position = best_fitness[:, 0].clone(), inputs.clone()
        shown, flying = inputs.clone(), torch.arange(len(inputs), device=position.device)
        for inertia in self.inertias(iterations):
            if len(rows):
                # score
                fitness = score(position, rows)
                # remember: each particle's best position, then each swarm's
                better = fitness > best_fitness
                best_fitness = torch.where(better, fitness, best_fitness)
                best_position[better] = position[better]
                top_fitness, top_particle = best_fitness.max(1)
                ahead = (top_fitness > swarm_fitness).nonzero()[:, 0]
                swarm_fitness[ahead] = top_fitness[ahead]
                swarm_position[ahead] = best_position[ahead, top_particle[ahead]]
                swarms = torch.arange(len(position), device=position.device)
                shown[flying] = (swarm_position if self.report == "best"
                                 else position[swarms, fitness.argmax(1)])
            yield shown
            going = swarm_fitness <= self.epsilon
            if not going.all():
                (position, velocity, best_fitness, best_position, swarm_fitness, swarm_position,
                 inputs, flying) = (state[going] for state in (
                     position, velocity, best_fitness, best_position, swarm_fitness,
                     swarm_position, inputs, flying))
                rows = rows[going.cpu()]
                numbers = numbers[going]
            if len(rows):
                # move
                position = self._move(position, velocity, best_position, swarm_position, inputs,
                                      numbers, inertia)

    def _begin(self, inputs: torch.Tensor,
               numbers: Numbers) -> tuple[torch.Tensor, torch.Tensor]:
        """Positions and velocities (s, P, C, H, W)."""
        shape = (self.population, *inputs.shape[1:])
        origin = inputs.unsqueeze(1)
        if self.start == "input":
            position = origin.expand(-1, *shape).clone()
        else:
            position = self.scattered(inputs, numbers)
        if self.velocity is None:
            return position, position - origin
        low, high = self.velocity
        return position, numbers.uniform(*shape) * (high - low) + low

    def _move(self, position: torch.Tensor, velocity: torch.Tensor, best_position: torch.Tensor,
              swarm_position: torch.Tensor, inputs: torch.Tensor,
              numbers: Numbers, inertia: float) -> torch.Tensor:
        """The next positions (s, P, C, H, W); ``position`` and ``velocity`` are overwritten."""
        pixels = position.shape[2:] if self.random == "pixel" else (1, 1, 1)
        r1, r2 = numbers.uniform(2, self.population, *pixels).unbind(1)
        # Eq. 4: v = w v + c1 r1 (best - x) + c2 r2 (swarm's best - x), in place
        velocity.mul_(inertia)
        velocity.addcmul_(best_position - position, r1, value=self.c1)
        velocity.addcmul_(swarm_position.unsqueeze(1) - position, r2, value=self.c2)
        position.add_(velocity)  # Eq. 5
        if self.clamp is not None:
            velocity.clamp_(-self.clamp, self.clamp)
        return self.inside(position, inputs)
