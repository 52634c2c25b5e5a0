"""Small campaigns side by side: what several of them ask of one model at a time is one pass.

A :class:`Side`'s ``search`` is its campaign as a generator: it yields what it asks
(:class:`Look`, :class:`Climb`, :class:`Record`), and is sent the answer.
"""

import time
from collections.abc import Callable, Generator, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast, runtime_checkable

import torch
from torch import nn

from dnnlib import checks
from dnnlib.fuzzing.ascent import Response, ascent, look
from dnnlib.fuzzing.protocol import Campaign, Fuzzer, Log, Watch
from dnnlib.neurons.activations import record_classes


@dataclass(frozen=True, eq=False)
class Look:
    """Asks for the :class:`ascent.Response` of ``model`` to images ``x`` (N, C, H, W).

    This and the others: ``batch_size`` images in a pass; questions of equal ``key`` are answered as
    one, by ``answer``, each with what it would get alone but for the rounding of a larger pass.
    """

    model: nn.Module
    x: torch.Tensor
    batch_size: int

    @property
    def key(self) -> Hashable:
        return type(self), self.model, self.batch_size

    @staticmethod
    def answer(asked: Sequence["Look"]) -> list[Response]:
        first, sizes = asked[0], [len(one.x) for one in asked]
        found = look(first.model, torch.cat([one.x for one in asked]),
                     batch_size=first.batch_size)
        return [Response(*parts) for parts in zip(*(column.split(sizes) for column in found))]


@dataclass(frozen=True, eq=False)
class Climb(Look):
    """Asks for the gradients (N, C, H, W) of ``objective``: see :func:`ascent.ascent`."""

    objective: Callable[[Response, slice], torch.Tensor]

    @staticmethod
    def answer(asked: Sequence["Climb"]) -> list[torch.Tensor]:  # type: ignore[override]
        first, sizes = asked[0], [len(one.x) for one in asked]

        def objective(answer: Response, rows: slice) -> torch.Tensor:
            values, start = [], 0
            for one in asked:  # each judges its own images
                end = start + len(one.x)
                low, high = max(rows.start, start), min(rows.stop, end)
                if low < high:
                    own = slice(low - rows.start, high - rows.start)
                    values.append(one.objective(Response(*(column[own] for column in answer)),
                                                slice(low - start, high - start)))
                start = end
            return torch.cat(values)

        return list(ascent(first.model, torch.cat([one.x for one in asked]), objective,
                           batch_size=first.batch_size).split(sizes))


@dataclass(frozen=True, eq=False)
class Record(Look):
    """Asks for the activations (N, neurons) of ``layers`` and the classes (N,), on the CPU."""

    layers: tuple[str, ...] | None

    @property
    def key(self) -> Hashable:
        return type(self), self.model, self.batch_size, self.layers

    @staticmethod
    def answer(asked: Sequence["Record"]):  # type: ignore[override]
        first, sizes = asked[0], [len(one.x) for one in asked]
        found, classes = record_classes(first.model, torch.cat([one.x for one in asked]),
                                        layers=first.layers, batch_size=first.batch_size)
        return list(zip(found.values.split(sizes), classes.split(sizes)))


Asking = Generator[Look, Any, Campaign]
Search = Generator[Look, Any, None]


class Side:
    """A fuzzer whose campaign can run beside others; each kind has a ``search`` of its own."""

    batch_size: int

    def run(self, model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor, *, iterations: int,
            generator: torch.Generator, watch: Watch | None = None) -> Campaign:
        """See :class:`protocol.Fuzzer`. Raises ``ValueError`` for what does not go together."""
        return side_by_side([self.asking(model, inputs, labels, iterations=iterations,
                                         generator=generator, watch=watch)])[0]

    def asking(self, model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor, *,
               iterations: int, generator: torch.Generator, watch: Watch | None = None) -> Asking:
        """The campaign of :meth:`run`, pass by pass."""
        checks.generator(generator)
        iterations = checks.positive(iterations, "iterations")
        log = Log(model, inputs, labels, watch)
        yield from self.search(log, iterations, generator)
        return log.campaign()

    def search(self, log: Log, iterations: int, generator: torch.Generator) -> Search:
        """Fill ``log`` with the examples of every iteration."""
        raise NotImplementedError


@runtime_checkable
class Choosing(Protocol):
    """A fuzzer that chooses another by campaigns from other inputs: :class:`released.Best`."""

    def held_out(self, model: nn.Module, inputs: torch.Tensor
                 ) -> tuple[torch.Tensor, torch.Tensor, dict[str, Fuzzer]]: ...

    def chosen(self, model: nn.Module, inputs: torch.Tensor, *,
               iterations: int) -> tuple[str, Fuzzer]: ...


def run_all(fuzzers: Sequence[Fuzzer], model: nn.Module, inputs: torch.Tensor,
            labels: torch.Tensor, *, iterations: int, seed: int) -> list[Campaign]:
    """The campaign of each fuzzer, drawn from ``seed``; several are each a :class:`Side`."""
    def drawn() -> torch.Generator:
        return torch.Generator().manual_seed(seed)

    if len(fuzzers) == 1:
        return [fuzzers[0].run(model, inputs, labels, iterations=iterations, generator=drawn())]
    return side_by_side([fuzzer.asking(model, inputs, labels, iterations=iterations,
                                       generator=drawn()) for fuzzer in cast(
        Sequence[Side], fuzzers)])


def side_by_side(runs: Sequence[Asking]) -> list[Campaign]:
    """The campaigns of ``runs``, each step of all of them together.

    A measurement on a CPU showed no gain in time; on a GPU none was made yet.

    A campaign's ``seconds`` are its own and, of the passes that it shared, by its images.
    """
    found: dict[int, Campaign] = {}
    seconds = [0.0] * len(runs)
    answers: dict[int, Any] = dict.fromkeys(range(len(runs)))
    while answers:
        asked: dict[Hashable, list[tuple[int, Look]]] = {}
        for i, answer in answers.items():
            start = time.perf_counter()
            try:
                one = runs[i].send(answer)
                asked.setdefault(one.key, []).append((i, one))
            except StopIteration as end:
                found[i] = end.value
            seconds[i] += time.perf_counter() - start
        answers = {}
        for group in asked.values():
            places, questions = zip(*group)
            start = time.perf_counter()
            answers |= zip(places, questions[0].answer(questions))
            taken, images = time.perf_counter() - start, sum(len(one.x) for one in questions)
            for i, one in group:
                seconds[i] += taken * len(one.x) / images
        answers = dict(sorted(answers.items()))
    return [replace(found[i], seconds=seconds[i]) for i in range(len(runs))]
