"""Other searches in the place of the swarm: a genetic algorithm, ants, differential evolution.

The second DeepSensor paper (Section 7) ran a genetic algorithm and an ant colony with its fitness,
and says neither which nor with which settings: those here are the usual ones.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from dnnlib import checks
from dnnlib.fuzzing.guided import Guided, Score
from dnnlib.fuzzing.numbers import Numbers


@dataclass(frozen=True, kw_only=True)
class _Population(Guided):
    """Random images, then in each iteration but the first as many children; the fittest stay."""

    def fly(self, score: Score, inputs: torch.Tensor, rows: torch.Tensor,
            numbers: Numbers, iterations: int) -> Iterator[torch.Tensor]:
        members = self.scattered(inputs, numbers)
        fitness = score(members, rows)
        for g in range(iterations):
            if g:
                children = self.inside(self.children(members, fitness, numbers), inputs)
                members, fitness = self.survivors(members, fitness, children,
                                                  score(children, rows))
            yield _pick(members, fitness.argmax(1, keepdim=True))[:, 0]

    def children(self, members: torch.Tensor, fitness: torch.Tensor,
                 numbers: Numbers) -> torch.Tensor:
        """As many new images as ``members`` (s, P, C, H, W), from these and their ``fitness``."""
        raise NotImplementedError

    def survivors(self, members: torch.Tensor, fitness: torch.Tensor, children: torch.Tensor,
                  theirs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The fittest of members and children, the best first, and their fitness."""
        every, fitness = torch.cat([members, children], 1), torch.cat([fitness, theirs], 1)
        places = fitness.argsort(dim=1, descending=True, stable=True)[:, :self.population]
        return _pick(every, places), fitness.gather(1, places)


@dataclass(frozen=True, kw_only=True)
class Genetic(_Population):
    """A genetic algorithm: tournaments of two, uniform crossover, mutation of single pixels.

    - ``budget``, ``fitness``, ``population``, ``batch_size``: as of :class:`Swarm`.
    - ``mutation``: the probability with which a pixel of a child is drawn anew from [0, 1]; None:
      one pixel of each image on average.

    Raises ``ValueError`` or ``TypeError`` naming the option.

    >>> from torch import nn
    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    >>> found = Genetic(population=6).run(
    ...     model, torch.full((3, 1, 2, 2), 0.5), torch.tensor([0, 1, 1]), iterations=4,
    ...     generator=torch.Generator().manual_seed(0))
    >>> found.predicted.shape
    torch.Size([4, 3])
    """

    mutation: float | None = None

    def __post_init__(self):
        super().__post_init__()
        if self.mutation is not None:
            checks.share(self.mutation, "mutation")

    def children(self, members: torch.Tensor, fitness: torch.Tensor,
                 numbers: Numbers) -> torch.Tensor:
        count, shape = self.population, members.shape[1:]
        # selection: the fitter of two members becomes a parent, and each child has two
        rivals = (numbers.uniform(2, 2, count) * count).long()
        strength = fitness[:, None, None].expand(-1, 2, 2, -1).gather(3, rivals)
        winner = torch.where(strength[:, :, 0] >= strength[:, :, 1], rivals[:, :, 0],
                             rivals[:, :, 1])
        first, second = (_pick(members, winner[:, parent]) for parent in (0, 1))
        # crossover: every pixel from one of them
        child = torch.where(numbers.uniform(*shape) < 0.5, first, second)
        rate = 1 / math.prod(shape[1:]) if self.mutation is None else self.mutation
        mutated = numbers.uniform(*shape) < rate
        return torch.where(mutated, numbers.uniform(*shape), child)


@dataclass(frozen=True, kw_only=True)
class Ants(_Population):
    """An ant colony for continuous variables (Socha and Dorigo, 2008): Gaussians around members.

    The members are the colony's memory. An ant follows one of them, the better the more likely,
    and draws each pixel from a Gaussian around that member's, as wide as ``width`` times the mean
    distance of the others' pixels.

    - ``budget``, ``fitness``, ``population``, ``batch_size``: as of :class:`Swarm`; as many ants as
      members.
    - ``locality``: the authors' q, above 0: the smaller, the more ants follow the best; with their
      0.0001 all do.
    - ``width``: the authors' xi, above 0.

    Raises ``ValueError`` or ``TypeError`` naming the option.

    >>> from torch import nn
    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    >>> found = Ants(population=6).run(
    ...     model, torch.full((3, 1, 2, 2), 0.5), torch.tensor([0, 1, 1]), iterations=4,
    ...     generator=torch.Generator().manual_seed(0))
    >>> found.predicted.shape
    torch.Size([4, 3])
    """

    locality: float = 1e-4
    width: float = 0.85

    def __post_init__(self):
        super().__post_init__()
        checks.finite(self.locality, "locality", above=0)
        checks.finite(self.width, "width", above=0)

    def weights(self) -> torch.Tensor:
        """How likely an ant follows the best member, the second, ...: (P,), of sum 1.

        >>> Ants(population=4, locality=0.5).weights().numpy().round(2)
        array([0.36, 0.31, 0.22, 0.12], dtype=float32)
        """
        rank = torch.arange(self.population) / (self.locality * self.population)
        found = torch.exp(-rank.square() / 2)
        return found / found.sum()

    def children(self, members: torch.Tensor, fitness: torch.Tensor,
                 numbers: Numbers) -> torch.Tensor:
        members = _pick(members, fitness.argsort(dim=1, descending=True, stable=True))
        shares = self.weights().cumsum(0).to(members.device)
        followed = torch.searchsorted(shares, numbers.uniform(self.population), right=True)
        followed.clamp_(max=self.population - 1)  # the sum may be rounded below 1
        normal = numbers.normal(*members.shape[1:])
        found = torch.empty_like(members)
        for s, (each, of) in enumerate(zip(members, followed)):
            for place in of.unique():
                ants = of == place
                apart = (each - each[place]).abs().sum(0) / max(1, self.population - 1)
                found[s, ants] = each[place] + self.width * apart * normal[s, ants]
        return found


@dataclass(frozen=True, kw_only=True)
class Differential(_Population):
    """Differential evolution (Storn and Price, 1997), best/1/bin: a child replaces its parent.

    A child is the best member plus a difference of two others, mixed pixel by pixel with its
    parent; it takes the parent's place if it is at least as fit.

    - ``budget``, ``fitness``, ``population``, ``batch_size``: as of :class:`Swarm`; at least three
      images.
    - ``weight``: of the difference, drawn anew for each iteration from (low, high).
    - ``recombination``: the probability that a pixel is not the parent's. This and ``weight`` are
      SciPy's defaults.

    Raises ``ValueError`` or ``TypeError`` naming the option.

    >>> from torch import nn
    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    >>> found = Differential(population=6).run(
    ...     model, torch.full((3, 1, 2, 2), 0.5), torch.tensor([0, 1, 1]), iterations=4,
    ...     generator=torch.Generator().manual_seed(0))
    >>> found.predicted.shape
    torch.Size([4, 3])
    """

    weight: tuple[float, float] = (0.5, 1.0)
    recombination: float = 0.7

    def __post_init__(self):
        super().__post_init__()
        if self.population < 3:
            raise ValueError("population: expected at least 3 for differential evolution, "
                             f"got {self.population}")
        checks.pair(self.weight, "weight", least=0)
        checks.share(self.recombination, "recombination")

    def children(self, members: torch.Tensor, fitness: torch.Tensor,
                 numbers: Numbers) -> torch.Tensor:
        count, shape = self.population, members.shape[1:]
        best = _pick(members, fitness.argmax(1, keepdim=True))
        # two others for each parent: the first two of the rest in a random order
        order = numbers.uniform(count, count)
        order.diagonal(dim1=1, dim2=2).fill_(2)
        others = order.argsort(dim=2)[:, :, :2]
        first, second = (_pick(members, which) for which in others.unbind(2))
        low, high = self.weight
        weight = (low + (high - low) * numbers.uniform(1)).view(-1, 1, 1, 1, 1)
        mixed = numbers.uniform(*shape) < self.recombination
        return torch.where(mixed, best + weight * (first - second), members)

    def survivors(self, members: torch.Tensor, fitness: torch.Tensor, children: torch.Tensor,
                  theirs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        better = theirs >= fitness
        return (torch.where(better[:, :, None, None, None], children, members),
                torch.where(better, theirs, fitness))


def _pick(members: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Of each population (s, P, C, H, W) the members at ``places`` (s, K)."""
    return members[torch.arange(len(members), device=members.device)[:, None], places]
