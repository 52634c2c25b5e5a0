"""DeepSensor: a particle swarm around every seed, guided by a fitness (Algorithm 1)."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch import nn
from tqdm import tqdm

from dnnlib import checks
from dnnlib.fuzzing.protocol import Budget, Campaign, Log, Watch
from dnnlib.inference import fast_layout
from dnnlib.neurons.sensitivity import SensitiveNeurons

Score = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
Fitness = Callable[[nn.Module, torch.Tensor, torch.Tensor], Score]

STARTS = ("random", "seed")
RANDOM = ("particle", "pixel")
REPORTS = ("best", "current")
_VALUES = 2**19  # pixels in a pass: fastest on a CPU, and ResNet-50's maps stay far below 1 GB


@dataclass(frozen=True, kw_only=True)
class Swarm:
    """Particle swarm optimisation of test inputs, a swarm for every seed (DeepSensor, III.D).

    An iteration scores all particles, updates the best position of each and of its swarm, and
    moves them (Eqs. 3 to 5). The first one thus scores the start, as in Algorithm 1, and no
    position is scored after the last move. Particles move at once, not one after the other.

    ``fitness``: called once with the model, the seeds (S, C, H, W) on its device and their labels
    (S,), it gives ``score(x, of)``: the fitness (N,), finite, of images (N, C, H, W) that came
    from the seeds ``of`` (N,). One of your own:

    >>> def unsure(model, seeds, labels):
    ...     return lambda x, of: -model(x).softmax(1).amax(1)

    ``population``: particles to a seed; the default is the second paper's, the first gives none.
    ``start``: 'random', uniform in [0, 1] and the budget's L-infinity box, then brought within
    the budget (IV.F), or 'seed' (III.D). ``velocity``: (low, high), between which every pixel's
    first velocity is drawn, or None, "the change of the pixel value": start minus seed.
    ``inertia``: at the first iteration and the end, linear between (Eq. 3); rising, as printed.
    ``compound``: the released code's Eq. 3, which puts the last inertia for the initial one.
    ``c1``, ``c2``: pull of the particle's and of the swarm's best. ``random``: rand() of Eq. 4
    is one number for each particle and term (as the equation and the released code have it), or
    one for each pixel. ``clamp``: largest speed of a pixel, applied after the move as in the
    released code; None: any. Positions are brought within ``budget`` and [0, 1].

    ``epsilon``: a swarm stops once its best fitness is above. A share of neurons never exceeds
    1, the paper's value, so that its swarms never stop. A stopped swarm costs no more passes; its
    last example counts again in the iterations left. ``report``: the example of an iteration is
    the swarm's 'best' position so far, or the fittest of its 'current' ones.

    ``batch_size``: images in a pass, and held at once beside the examples of all iterations; None:
    as many as make half a million pixels. A seed's swarm has random numbers of its own, whatever
    other seeds there are. Raises ``ValueError`` or ``TypeError`` naming the option,
    or the fitness where it is not finite.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    >>> found = Swarm(fitness=unsure, population=5, budget=Budget(linf=0.1)).run(
    ...     model, torch.full((3, 1, 2, 2), 0.5), torch.tensor([0, 1, 1]), iterations=4,
    ...     generator=torch.Generator().manual_seed(0))
    >>> found.predicted.shape, found.passes  # 3 seeds x 4 iterations x (5 scored + 1 judged)
    (torch.Size([4, 3]), 72)
    """

    budget: Budget = field(default_factory=Budget)
    fitness: Fitness = field(default_factory=SensitiveNeurons)
    population: int = 100
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
    batch_size: int | None = None

    def __post_init__(self):
        if not callable(self.fitness):
            raise TypeError("fitness: expected a function of model, seeds and labels, got "
                            f"{type(self.fitness).__name__}")
        checks.positive(self.population, "population")
        checks.known(self.start, STARTS, "start")
        checks.known(self.random, RANDOM, "random")
        checks.known(self.report, REPORTS, "report")
        if self.batch_size is not None:
            checks.positive(self.batch_size, "batch_size")
        if self.velocity is not None:
            checks.pair(self.velocity, "velocity")
            low, high = self.velocity
            if low > high:
                raise ValueError(f"velocity: expected low <= high, got {self.velocity}")
        if self.start == "seed" and self.velocity in (None, (0, 0)):
            raise ValueError("velocity: expected (low, high) with start='seed', where particles "
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
        return cls(**{"fitness": fitness, "population": 1, "start": "seed",
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

    @torch.no_grad()
    def run(self, model: nn.Module, seeds: torch.Tensor, labels: torch.Tensor, *,
            iterations: int, generator: torch.Generator, watch: Watch | None = None) -> Campaign:
        checks.positive(iterations, "iterations")
        log = Log(model, seeds, labels, watch)
        inertias = self.inertias(iterations)
        examples = torch.empty(iterations, *log.seeds.shape, device=log.seeds.device)
        draws = torch.randint(2**62, (len(seeds),), generator=generator).tolist()
        size = self.batch_size or max(1, _VALUES // log.seeds[0].numel())
        sent: list[int] = []
        counting = model.register_forward_pre_hook(  # a gradient counts as two more
            lambda module, inputs: sent.append(len(inputs[0]) * (1 + 2 * torch.is_grad_enabled())))
        try:
            score = self.fitness(model, log.seeds, log.labels)
            blocks = torch.arange(len(seeds)).split(max(1, size // self.population))
            for rows in tqdm(blocks, desc="swarms", leave=False):
                own = [torch.Generator().manual_seed(draws[i]) for i in rows]
                swarms = self._fly(score, log.seeds[rows], rows, own, inertias, size)
                for g, shown in enumerate(swarms):
                    examples[g, rows] = shown
        finally:
            counting.remove()
        log.passes += sum(sent)
        for x in examples:
            log.add(fast_layout(x, x.device))
        return log.campaign()

    def _fly(self, score: Score, seeds: torch.Tensor, rows: torch.Tensor,
             own: list[torch.Generator], inertias: list[float],
             size: int) -> Iterator[torch.Tensor]:
        """The examples (s, C, H, W) of every iteration, for seeds number ``rows`` (s,)."""
        x, v = self._begin(seeds, own)
        fit = torch.full(x.shape[:2], -math.inf, device=x.device)
        best, leader, leads = x.clone(), seeds.clone(), fit[:, 0].clone()
        shown, alive = seeds.clone(), torch.arange(len(seeds), device=x.device)
        for inertia in inertias:
            if len(rows):
                now = _scores(score, x, rows, size)
                better = now > fit
                fit = torch.where(better, now, fit)
                best[better] = x[better]
                top, who = fit.max(1)
                gained = (top > leads).nonzero()[:, 0]
                leads[gained] = top[gained]
                leader[gained] = best[gained, who[gained]]
                shown[alive] = leader if self.report == "best" else \
                    x[torch.arange(len(x), device=x.device), now.argmax(1)]
            yield shown
            going = leads <= self.epsilon
            if not going.all():
                x, v, fit, best, leader, leads, seeds, alive = (
                    state[going] for state in (x, v, fit, best, leader, leads, seeds, alive))
                rows = rows[going.cpu()]
                own = [g for g, on in zip(own, going.tolist()) if on]
            if len(rows):
                x = self._move(x, v, best, leader, seeds, own, inertia)

    def _begin(self, seeds: torch.Tensor,
               own: list[torch.Generator]) -> tuple[torch.Tensor, torch.Tensor]:
        """Positions and velocities (s, P, C, H, W)."""
        shape = (self.population, *seeds.shape[1:])
        clean = seeds.unsqueeze(1)
        if self.start == "seed":
            x = clean.expand(-1, *shape).clone()
        else:
            reach = 1 if self.budget.linf is None else self.budget.linf
            low, high = (clean - reach).clamp_min(0), (clean + reach).clamp_max(1)
            x = self._inside(_draw(shape, own, seeds.device) * (high - low) + low, seeds)
        if self.velocity is None:
            return x, x - clean
        low, high = self.velocity
        return x, _draw(shape, own, seeds.device) * (high - low) + low

    def _move(self, x: torch.Tensor, v: torch.Tensor, best: torch.Tensor, leader: torch.Tensor,
              seeds: torch.Tensor, own: list[torch.Generator], inertia: float) -> torch.Tensor:
        """Eqs. 4 and 5; ``x`` and ``v`` are overwritten."""
        pixels = x.shape[2:] if self.random == "pixel" else (1, 1, 1)
        r = _draw((2, self.population, *pixels), own, x.device)
        v.mul_(inertia).addcmul_(best - x, r[:, 0], value=self.c1)
        v.addcmul_(leader.unsqueeze(1) - x, r[:, 1], value=self.c2)
        x.add_(v)
        if self.clamp is not None:
            v.clamp_(-self.clamp, self.clamp)
        return self._inside(x, seeds)

    def _inside(self, x: torch.Tensor, seeds: torch.Tensor) -> torch.Tensor:
        if self.budget == Budget():  # projecting is slower, and would round
            return x.clamp_(0, 1)
        around = seeds.unsqueeze(1).expand_as(x).flatten(0, 1)
        return self.budget.project(x.flatten(0, 1), around).view_as(x)


def _draw(shape: tuple[int, ...], own: list[torch.Generator],
          device: torch.device) -> torch.Tensor:
    """Uniform numbers in [0, 1) of that shape, for each generator."""
    return torch.stack([torch.rand(shape, generator=g) for g in own]).to(device)


def _scores(score: Score, x: torch.Tensor, rows: torch.Tensor, size: int) -> torch.Tensor:
    """The fitness (s, P) of all particles, ``size`` of them at a time."""
    of = rows.to(x.device).repeat_interleave(x.shape[1])
    parts = []
    for part, of_part in zip(x.flatten(0, 1).split(size), of.split(size)):
        found = torch.as_tensor(score(fast_layout(part, x.device), of_part))
        if found.shape != (len(part),):
            raise ValueError(f"fitness: expected {len(part)} numbers, one for each image, "
                             f"got shape {tuple(found.shape)}")
        if bad := int((~found.isfinite()).sum()):
            raise ValueError("fitness: expected finite numbers, got NaN or infinity for "
                             f"{bad} of {len(part)} images")
        parts.append(found.to(x.device, torch.float32))
    return torch.cat(parts).view(x.shape[:2])
