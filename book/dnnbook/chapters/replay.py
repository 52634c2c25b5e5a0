"""A record made again, and compared row by row; and records that are older than their code."""

import json
import random
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from io import StringIO
from pathlib import Path
from statistics import mean, stdev

import pandas as pd
from scipy import stats

from dnnbook import places, reproducible
from dnnbook.chapters import declared, notebooks, sweeps
from dnnbook.records import ages, records
from dnnbook.records.records import Record
from dnnbook.records.rows import named
from dnnlib import checks, files

STATES = ("identical", "within", "different", "gone", "new", "timed")
NOTED = ("record", "date", "rows", "identical", "within", "different", "new", "timed", "threads",
         "recorded with", "processor", "torch", "commit", "changed since")


@dataclass(frozen=True)
class Replay:
    """A record and what its chapter gave when it ran again.

    ``rows``: a table with the columns row, recorded, replayed, low, high and state, of:

    - 'identical': the same to the last recorded digit.
    - 'within': another value, but one that a further seed might have given: within the 95 %
      interval of prediction, 'low' to 'high', of the recorded seeds of the same cell.
    - 'different': another value outside it, or where fewer than two seeds are recorded.
    - 'gone', 'new': only the record, only the replay has it. What is gone counts as different.
    - 'timed': seconds, which are not compared.
    """

    path: Path
    record: Record
    made: Record
    rows: pd.DataFrame

    @property
    def counts(self) -> dict[str, int]:
        """Rows by state, in the order of ``STATES``."""
        found = Counter(self.rows["state"])
        return {state: found[state] for state in STATES}

    @property
    def differs(self) -> bool:
        """Whether a row of the record is different or gone."""
        return bool(self.counts["different"] + self.counts["gone"])


def find(names: Sequence[str], root: Path | None = None) -> list[Path]:
    """Records by path, or by the start of their name below the results; all for no names.

    Raises ``ValueError`` for a name that no record starts with.
    """
    root = root or places.results_dir()
    every = sorted(root.glob("*/*/*.json"))
    found = []
    for name in names:
        if Path(name).is_file():
            found.append(Path(name))
            continue
        matching = [path for path in every if path.relative_to(root).as_posix().startswith(name)]
        if not matching:
            known = sorted({path.parent.relative_to(root).as_posix() for path in every})
            checks.known(name, known, "record")
        found += matching
    return list(dict.fromkeys(found if names else every))


def sample(paths: Sequence[Path], count: int, seed: int = 0) -> list[Path]:
    """Some of the records, drawn from ``seed``; ``ValueError`` if there are fewer."""
    if count > len(paths):
        raise ValueError(f"--sample: expected at most the {len(paths)} records there are, "
                         f"got {count}")
    return sorted(random.Random(seed).sample(list(paths), count))


def chapter(record: Record, among: Iterable[Path] | None = None) -> tuple[Path, dict]:
    """The notebook that makes a record, and the values of its parameters.

    ``among``: the notebooks, default all of the book. Raises ``ValueError`` if none declares an
    experiment with these parameters: then the chapter has changed since.
    """
    for path in among if among is not None else notebooks.starting([], ".ipynb"):
        if (about := notebooks.recorded(path, {})) is None or about[0] != record.experiment:
            continue
        kept = {name: declared.stored(name, record.experiment)
                for name in notebooks.parameters(path)}
        values = {name: record.parameters[key] for name, key in kept.items()
                  if key in record.parameters}
        values["profile"] = "paper"
        parameters = notebooks.recorded(path, values)[1]
        if parameters.items() <= record.parameters.items():  # a run may add what follows from these
            return path, values
    raise ValueError(f"{record.experiment}: no chapter makes a record with the parameters "
                     f"{json.dumps(record.parameters)} now")


def replay(path: Path, *, threads: int | None = None, cache: bool | Path = False,
           keep: Path | None = None, among: Iterable[Path] | None = None) -> Replay:
    """Run the chapter of the record in ``path`` again, with its parameters, and compare.

    ``threads``: default those of the record, or one where it does not say. ``cache``: take
    networks and measurements from the cache, or from this one; else they are made anew, in an
    empty one. ``keep``: a folder for the new record and the notebook that ran. No record of the
    book is touched. Raises :class:`notebooks.CellFailed` or ``ValueError`` if the chapter leaves
    no such record.
    """
    record = records.read(path)
    notebook, values = chapter(record, among)
    count = threads or record.provenance.get("threads") or 1
    with tempfile.TemporaryDirectory() as empty:
        environment = {reproducible.THREADS: str(count), "OMP_NUM_THREADS": str(count),
                       "PYTHONHASHSEED": "0"}
        if cache is not True:
            environment |= {"DNNLIB_CACHE": str(cache or empty),
                            "DNNLIB_DATA": str(files.data_dir().resolve())}
        made, _ = sweeps.work(str(notebook.resolve()), values, **environment)
    if keep is not None:
        for name, content in made.items():
            folder = keep / record.experiment / path.stem
            files.write_atomically(folder / Path(name).name, content)
    found = [records.parsed(content) for name, content in made.items()
             if name.endswith(".json")]
    for new in found:
        if (new.experiment, new.parameters) == (record.experiment, record.parameters):
            return Replay(path, record, new, compared(record, new, seeds(record, path)))
    raise ValueError(f"{notebook.name} left another record: "
                     f"{', '.join(json.dumps(new.parameters) for new in found)}")


def seeds(record: Record, path: Path) -> list[Record]:
    """The records beside the one in ``path`` that differ from it in nothing but the seed."""
    def cell(parameters: dict) -> dict:
        return {k: v for k, v in parameters.items() if k != "seed"}

    beside = [records.read(other) for other in sorted(path.parent.glob("*.json"))]
    return [other for other in beside if other.experiment == record.experiment
            and cell(other.parameters) == cell(record.parameters)]


def compared(record: Record, made: Record, spread: Iterable[Record]) -> pd.DataFrame:
    """The rows of :class:`Replay`; ``spread``: the records of all seeds of the same cell.

    >>> one, two, again = (Record("toy/x", {}, [{"quantity": "fdr", "value": v}])
    ...                    for v in (50, 54, 51))
    >>> compared(one, again, [one, two])[["recorded", "replayed", "state"]].values.tolist()
    [[50, 51, 'within']]
    """
    old, new = _named(record), _named(made)
    others = [_named(other) for other in spread]
    rows = []
    for name in dict.fromkeys([*old, *new]):
        was, now = old.get(name), new.get(name)
        values = [other[name]["value"] for other in others
                  if name in other and other[name]["value"] is not None]
        low, high = _interval(values)
        rows.append({"row": name, "recorded": was and was["value"],
                     "replayed": now and now["value"], "low": low, "high": high,
                     "state": _state(was, now, low, high)})
    return pd.DataFrame(rows)


def _state(was: dict | None, now: dict | None, low: float, high: float) -> str:
    if timed(was or now):
        return "timed"
    if was is None or now is None:
        return "new" if was is None else "gone"
    if (was["value"], was.get("x")) == (now["value"], now.get("x")):
        return "identical"
    inside = None not in (was["value"], now["value"]) and low <= now["value"] <= high
    return "within" if inside else "different"


def timed(row: dict) -> bool:
    """Whether a row holds seconds, or a ratio of seconds, which no run repeats.

    >>> [timed({"quantity": name}) for name in ("estimate_seconds", "times_nss", "times_passes")]
    [True, True, False]
    """
    quantity = str(row.get("quantity", ""))
    return "seconds" in quantity or quantity.startswith("times_") and quantity != "times_passes"


def _named(record: Record) -> dict[str, dict]:
    return named(row for row in record.rows
                 if row.get("quantity") != "rows_kept")  # what was copied; a replay copies nothing


def _interval(values: Sequence[float]) -> tuple[float, float]:
    """Where a further value would lie in 95 of 100 cases; nowhere for fewer than two."""
    if len(values) < 2:
        return float("nan"), float("nan")
    half = (stats.t.ppf(0.975, len(values) - 1) * stdev(values)
            * (1 + 1 / len(values)) ** 0.5)
    return mean(values) - half, mean(values) + half


def note(done: Replay, *, day: date | None = None) -> Path:
    """Write a replay into ``replayed.csv`` of the results: a line for each record and threads."""
    path, counts, made = places.results_dir() / "replayed.csv", done.counts, done.made.provenance
    lines = (pd.read_csv(path, dtype=str, keep_default_na=False) if path.exists()
             else pd.DataFrame(columns=list(NOTED), dtype=str))
    compared_rows = len(done.rows) - counts["new"] - counts["timed"]
    line = {"record": f"{done.record.experiment}/{done.path.stem}",
            "date": str(day or date.today()), "rows": compared_rows,
            "identical": counts["identical"], "within": counts["within"],
            "different": counts["different"] + counts["gone"], "new": counts["new"],
            "timed": counts["timed"], "threads": made["threads"],
            "recorded with": done.record.provenance.get("threads", "unknown"),
            "processor": made["capability"], "torch": made["libraries"]["torch"],
            "commit": made["commit"],
            "changed since": ", ".join(ages.another_protocol(done.record))}
    same = (lines["record"] == line["record"]) & (lines["threads"] == str(line["threads"]))
    lines = pd.concat([lines[~same], pd.DataFrame([{k: str(v) for k, v in line.items()}])])
    lines = lines.fillna("")  # a column that is younger than a line
    text = StringIO()
    lines.sort_values(["record", "threads"]).to_csv(text, index=False, columns=list(NOTED))
    files.write_atomically(path, text.getvalue().encode())
    return path
