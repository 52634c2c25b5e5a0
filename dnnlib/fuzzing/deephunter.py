"""DeepHunter: mutate a queue of inputs, and queue what reaches new neuron boundaries."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field

import torch

from dnnlib import checks
from dnnlib import coverage as cov
from dnnlib.fuzzing.protocol import Budget, Log
from dnnlib.fuzzing.together import Look, Record, Search, Side
from dnnlib.perturb.metamorphic import AFFINE, allowed, apply, distances, draw

SCHEDULES = ("paper", "released")
_TRIES = 50  # draws of a mutation until one is allowed
GAMMA, P_MIN = 5.0, 0.3  # the released code's: see :func:`probability`
ALPHA, BETA = 0.02, 0.2  # shares of pixels and of their range: see :func:`metamorphic.allowed`
_START = 0.8  # the released code's probability of an entry that was never picked


def probability(picked: int, *, schedule: str = "paper") -> float:
    r"""How likely an entry is accepted that was ``picked`` so many times, t (DeepHunter, Eq. 3).

    .. math:: P(t) = \begin{cases} 1 - t / \gamma & \text{if } t < (1 - p_{min}) \, \gamma \\
                                   p_{min} & \text{otherwise} \end{cases}

    This is 'paper', with :data:`GAMMA` and :data:`P_MIN`. 'released': 0.8 - picked / gamma, no
    longer lowered once it is at most p_min or that many times have passed.

    >>> [probability(n) for n in range(6)]
    [1.0, 0.8, 0.6, 0.4, 0.3, 0.3]
    """
    checks.known(schedule, SCHEDULES, "schedule")
    if schedule == "paper":
        return 1 - picked / GAMMA if picked < (1 - P_MIN) * GAMMA else P_MIN
    p = _START
    for times in range(1, picked + 1):
        if p <= P_MIN or times >= (1 - P_MIN) * GAMMA:
            break
        p = _START - times / GAMMA
    return p


@dataclass(eq=False)
class Entry:
    """An image in the queue, and what it is compared with, both (C, H, W).

    ``root``: the input it descends from. ``affine``: whether its lineage had its affine mutation;
    then ``reference`` is the input after it, and ``l0`` and ``linf`` are what pixels had changed
    before. ``picked``: how often it was mutated.
    """

    image: torch.Tensor
    reference: torch.Tensor
    root: int
    affine: bool = False
    l0: int = 0
    linf: float = 0.0
    picked: int = 0


class Queue:
    """Entries, walked in a circle, and the items that they cover.

    ``chance``: how often an entry was picked, to the probability that it is again, above 0.
    """

    def __init__(self, chance: Callable[[int], float]):
        self.chance, self.place = chance, 0
        self.entries: list[Entry] = []
        self.seen: set[int] = set()

    def add(self, entry: Entry, items: set[int]) -> None:
        self.entries.append(entry)
        self.seen |= items

    def offer(self, entry: Entry, items: set[int]) -> bool:
        """Add the entry if it covers an item that no other does; returns whether."""
        new = not items <= self.seen
        if new:
            self.add(entry, items)
        return new

    def pick(self, count: int, generator: torch.Generator) -> list[Entry]:
        """The next ``count`` entries that are accepted, some perhaps several times.

        >>> queue = Queue(probability)
        >>> queue.add(Entry(torch.zeros(1, 4, 4), torch.zeros(1, 4, 4), root=0), set())
        >>> len(queue.pick(2, torch.Generator())), queue.entries[0].picked
        (2, 2)
        """
        chosen: list[Entry] = []
        while len(chosen) < count:
            if self.place == len(self.entries):
                self.place = 0
            entry = self.entries[self.place]
            self.place += 1
            if torch.rand((), generator=generator) < self.chance(entry.picked):
                entry.picked += 1
                chosen.append(entry)
        return chosen


@dataclass(frozen=True, kw_only=True, eq=False)
class DeepHunter(Side):
    """Coverage-guided mutation, with SNAC as in DeepSensor's experiments.

    Every iteration picks as many entries from the queue as there are inputs, and makes one mutant
    of each (the released code: 20 mutants of one entry). Mutants of another class than their
    input's are test errors and are dropped; others are queued if they take a neuron, a channel,
    beyond what it does on the reference, and no entry did so before. The inputs start the queue,
    all of them, whatever they cover, and should be classified correctly. Where no mutation is
    allowed, the released code drops the mutant, and here the unchanged entry is logged in its
    place, since every iteration gives one example for each input.

    An affine mutation passes unchecked, once in a lineage; it also moves the reference, with
    which later mutants are compared, and what had changed before is added to their L0, and
    sets the least L-infinity.

    - ``reference``: benign images (M, C, H, W) that neurons' boundaries are taken from, 1,000 in
      DeepSensor.
    - ``budget``: how far mutants and moved references may be from the input of the lineage; default
      any distance.
    - ``affine``: which mutations are affine, 'paper' or 'released': see :data:`metamorphic.AFFINE`.
    - ``schedule``: how likely an entry is picked: see :func:`probability`. The released code
      accepts with p x 100 / 101, since it draws from 0 to 100; here it is p.
    - ``steps``: 1, coverage of neurons, as the criterion, or 11, the finer feedback of the released
      code: see :func:`coverage.snac`.
    - ``layers``: names of modules, default all that count: see :func:`activations.record`.
    - ``batch_size``: images in a pass.

    Model passes: one for each image of ``reference`` and each input, and for each mutant.

    >>> from dnnlib import models
    >>> x = torch.rand(4, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    >>> found = DeepHunter(reference=x, budget=Budget(l2=2.0)).run(
    ...     models.build("lenet1"), x[:2], torch.tensor([3, 5]), iterations=3,
    ...     generator=torch.Generator().manual_seed(1))
    >>> found.predicted.shape, found.passes, bool(found.l2.max() < 2.0001)
    (torch.Size([3, 2]), 12, True)
    """

    reference: torch.Tensor = field(repr=False)
    budget: Budget = Budget()
    affine: str = "paper"
    schedule: str = "paper"
    steps: int = 1
    layers: tuple[str, ...] | None = None
    batch_size: int = 512

    def __post_init__(self):
        checks.images(self.reference, "reference")
        checks.known(self.affine, AFFINE, "affine")
        checks.known(self.schedule, SCHEDULES, "schedule")
        for name in ("steps", "batch_size"):
            checks.positive(getattr(self, name), name)

    def search(self, log: Log, iterations: int, generator: torch.Generator) -> Search:
        if self.reference.shape[1:] != log.inputs.shape[1:]:
            raise ValueError("reference: expected images of shape "
                             f"{tuple(log.inputs.shape[1:])} as in inputs, got "
                             f"{tuple(self.reference.shape[1:])}")
        seen = cov.boundaries((yield from self._look(log, self.reference))[0])
        queue = Queue(lambda picked: probability(picked, schedule=self.schedule))
        values, _ = yield from self._look(log, log.inputs)
        for root, items in enumerate(self._items(values, seen)):
            queue.add(Entry(log.inputs[root], log.inputs[root], root), items)
        for _ in range(iterations):
            mutants = self.mutate(queue.pick(len(log.inputs), generator), generator)
            roots = torch.tensor([mutant.root for mutant in mutants])
            home = log.inputs[roots.to(log.inputs.device)]
            x = self.budget.project(torch.stack([mutant.image for mutant in mutants]), home)
            moved = self.budget.project(torch.stack([m.reference for m in mutants]), home)
            values, predicted = yield from self._look(log, x)
            log.add(x, origin=roots, predicted=predicted)
            right = (predicted == log.labels[roots]).tolist()
            for i, items in enumerate(self._items(values, seen)):
                mutant = mutants[i]
                if right[i] and queue.offer(mutant, items):  # a view would keep the whole batch
                    mutant.image = x[i].clone()
                    mutant.reference = (moved[i].clone() if mutant.affine
                                        else log.inputs[mutant.root])

    def mutate(self, parents: list[Entry], generator: torch.Generator) -> list[Entry]:
        """One mutant of each entry, not yet within the budget (DeepHunter, Algorithm 2)."""
        x = torch.stack([parent.image for parent in parents])
        references = torch.stack([parent.reference for parent in parents])
        affine = torch.tensor([parent.affine for parent in parents])
        l0 = torch.tensor([parent.l0 for parent in parents])
        linf = torch.tensor([parent.linf for parent in parents])
        left = torch.arange(len(parents))
        for _ in range(_TRIES):
            there = left.to(x.device)
            before, beside = x[there], references[there]
            names, values = draw(~affine[left], affine=self.affine, generator=generator)
            after = apply(before, names, values, generator=generator)
            changed, most = distances(after, beside)
            once = torch.tensor([name in AFFINE[self.affine] for name in names])
            passed = once | allowed(l0[left] + changed, linf[left].maximum(most), x[0].numel(),
                                    alpha=ALPHA, beta=BETA)
            if once.any():
                rows, here = left[once], once.to(x.device)
                affine[rows] = True
                l0[rows], linf[rows] = distances(before[here], beside[here])  # Eq. 2
                references[rows.to(x.device)] = apply(
                    beside[here], [name for name in names if name in AFFINE[self.affine]],
                    values[once])
            x[left[passed].to(x.device)] = after[passed.to(x.device)]
            left = left[~passed]
            if not len(left):
                break
        return [Entry(x[i], references[i], parent.root, bool(affine[i]), int(l0[i]),
                      float(linf[i])) for i, parent in enumerate(parents)]

    def _look(self, log: Log, x: torch.Tensor
              ) -> Generator[Look, tuple[torch.Tensor, torch.Tensor],
                             tuple[torch.Tensor, torch.Tensor]]:
        """Activations (N, neurons) and classes (N,) of images, by one pass, on the CPU."""
        log.passes += len(x)
        return (yield Record(log.model, x, self.batch_size, self.layers))

    def _items(self, values: torch.Tensor, seen: cov.Boundaries) -> list[set[int]]:
        """What each input covers."""
        bins, sections = cov.snac(values, seen, steps=self.steps)
        items: list[set[int]] = [set() for _ in bins]
        rows, columns = (bins >= 0).nonzero(as_tuple=True)
        numbers = columns * sections + bins[rows, columns]
        for row, number in zip(rows.tolist(), numbers.tolist()):
            items[row].add(number)
        return items
