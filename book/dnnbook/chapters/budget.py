"""One record of each experiment made again, the cheapest first, within a budget of minutes."""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dnnbook.chapters import notebooks, replay, sweeps
from dnnbook.records import ages, records
from dnnbook.records.records import Record

Network = tuple[str | int | None, ...]


@dataclass(frozen=True)
class Ended:
    """A record of an experiment, and what became of it. ``outcome``:

    - 'agrees': every row is identical or within the spread over the seeds.
    - 'differs': some row is not, though the record is of today's code and protocol.
    - 'of another protocol': some row is not, and ``why`` says what has changed since.
    - 'failed': the chapter did not run; ``why`` is its last error.
    - 'did not fit': about ``minutes`` were expected, more than were left.
    """

    record: str
    outcome: str
    minutes: float
    why: str = ""
    done: replay.Replay | None = None

    @property
    def wrong(self) -> bool:
        """Whether the record could not be made again as it is."""
        return self.outcome in ("differs", "failed")


def network(parameters: dict) -> Network:
    """What networks that take as long to train have in common: dataset, model, recipe."""
    return tuple(parameters.get(key) for key in ("dataset", "model", "recipe"))


def trainings() -> dict[Network, float]:
    """The minutes of the first cell of the book's sweep that trains a network, by :func:`network`.

    They hold what else the cell does.
    """
    cells, _ = sweeps.read(notebooks.folder().parent / "sweeps" / "paper.toml")
    found: dict[Network, float] = {}
    for cell in cells:
        asked = {name: one.default for name, one in notebooks.parameters(cell.notebook).items()}
        about = asked | cell.values
        if cell.minutes:
            found.setdefault(network(about | {"model": about.get("model_name")}), cell.minutes)
    return found


def training(costs: dict[Network, float], of: Network) -> float:
    """Minutes to train a network; by another recipe, or the dearest, where its own is unknown.

    >>> training({("mnist", "net2", "nsatp"): 3.0, ("cifar10", "vgg16", "nss"): 90.0},
    ...          ("mnist", "net2", "other"))
    3.0
    """
    alike = [minutes for network, minutes in costs.items() if network[:2] == of[:2]]
    return costs.get(of, max(alike or [*costs.values()], default=0.0))


def each(paths: Sequence[Path], minutes: float, *, costs: dict[Network, float] | None = None,
         run: Callable[..., replay.Replay] | None = None) -> Iterator[Ended]:
    """Make one record of each experiment among ``paths`` again, and give each as it ends.

    Of an experiment, the cheapest record of today's protocol; if there is none, the cheapest. It
    costs the seconds of its provenance, and the training of its network (``costs``, default
    :func:`trainings`) until one has trained it: all begin with one empty cache, and share it. None
    starts that is expected to take longer than what is left of ``minutes``. ``run``: default
    :func:`replay.replay`.

    Raises ``ValueError`` at once if files of the engine or of the chapters are changed: then no
    commit would show what was compared.
    """
    if "+" in (commit := records.provenance(data="none")["commit"]):
        raise ValueError(f"expected a clean tree, so that a commit shows what ran, got {commit}")
    run, left = run or replay.replay, _candidates(paths)
    costs = trainings() if costs is None else costs
    start = time.monotonic()
    trained: set[tuple[Network, int]] = set()

    def expected(one: tuple[Path, Record]) -> float:
        of = network(one[1].parameters)
        return ((one[1].provenance.get("seconds") or 0) / 60
                + (0 if (of, one[1].parameters.get("seed", 0)) in trained else training(costs, of)))

    with tempfile.TemporaryDirectory() as empty:
        while left:
            cost, (path, record) = min(((expected(one), one) for some in left.values()
                                        for one in some), key=lambda pair: (pair[0], pair[1][0]))
            del left[record.experiment]
            name, before = f"{record.experiment}/{path.stem}", time.monotonic()
            if cost > minutes - (before - start) / 60:
                yield Ended(name, "did not fit", cost)
                continue
            try:
                done = run(path, cache=Path(empty))
            except (notebooks.CellFailed, ValueError) as error:
                yield Ended(name, "failed", _minutes(before), str(error))
                continue
            trained.add((network(record.parameters), record.parameters.get("seed", 0)))
            why = ", ".join(ages.another_protocol(record))
            outcome = ("agrees" if not done.differs else "of another protocol" if why
                       else "differs")
            yield Ended(name, outcome, _minutes(before), why, done)


def of_a_run(experiment: str, parameters: dict) -> str:
    """What records say of the time that a run at paper scale takes, in one sentence.

    Those of the same dataset and network count, whatever their other parameters.
    """
    alike = [record.provenance.get("seconds") for record in records.find(
        experiment, **{key: parameters[key] for key in ("dataset", "model") if key in parameters})]
    seconds = sorted(each for each in alike if each)
    if not seconds:
        return "no record of the book says how long this takes"
    low, high = (f"{max(1, round(each / 60)):,}" for each in (seconds[0], seconds[-1]))
    took = f"about {low} min" if low == high else f"{low} to {high} min"
    return (f"runs of this network in the book ({len(seconds)}) took {took}, on the processor that "
            "each record names; without the training where it was kept")


def _minutes(start: float) -> float:
    return (time.monotonic() - start) / 60


def _candidates(paths: Sequence[Path]) -> dict[str, list[tuple[Path, Record]]]:
    """By experiment its records of today's protocol, or all where none is."""
    found = {}
    for path in paths:
        found.setdefault((record := records.read(path)).experiment, []).append((path, record))
    return {name: [one for one in every if not ages.another_protocol(one[1])] or every
            for name, every in found.items()}
