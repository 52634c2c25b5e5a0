"""One JSON file for each paper-scale run: parameters, tidy rows, and where they come from."""

import json
import math
import platform
import re
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, field, replace
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from dnnbook import places, reproducible
from dnnbook.data import known
from dnnbook.records import counted
from dnnlib import __version__, files

COLUMNS = ("dataset", "model", "seed", "distance", "definition", "fit", "points", "quantity", "x",
           "value")  # so that a table of no records can still be asked
BOOK = "of the book's records"
asked: set[str] = set()  # the experiments whose records this process has read
# By experiment (stored names): the value that records had before a parameter was one. It is read
# where a record lacks the parameter, and left out of names, so that a new one renames no record.
OLDER: dict[str, dict] = {  # polluted networks were new ones, not the well trained ones trained on
    f"{paper}/{name}": {"retrained": False}
    for paper in ("deepsensor_sensitivity", "deepsensor_excitable")
    for name in ("polluted", "thresholds", "start")
} | {experiment: {"random_starts": 0} for experiment in (  # PGD started at the image
    "deepsensor_sensitivity/robustness", "deepsensor_excitable/attack_success",
    "deepsensor_excitable/clever")
} | {experiment: {"one_class": False}  # pairs were of any classes
     for experiment in ("nsatp/motivation", "peacepact/motivation")}
ADDED: dict[str, dict] = {  # parameters that chapters set as it was
    "nsatp/motivation": {"side": 2},
    **dict.fromkeys(("nss/fault_detection", "nsatp/rq1", "nsatp/rq3",
                     "deepsensor_sensitivity/test_errors"), {"beside": ""})}
LIBRARIES = ("torch", "torchvision", "numpy", "scipy", "pandas", "scikit-learn")


@dataclass(frozen=True, config=ConfigDict(strict=True, extra="forbid"))
class Record:
    """``rows``: a list of flat dicts, one measured quantity each, under the key 'value'."""

    experiment: str
    parameters: dict
    rows: list[dict]
    provenance: dict = field(default_factory=dict)


_RECORD = TypeAdapter(Record)


class Clock:
    """Seconds since it was made; handed to :func:`provenance` at the end of a run."""

    def __init__(self) -> None:
        self.start = time.perf_counter()

    def seconds(self) -> float:
        return round(time.perf_counter() - self.start, 1)


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    """The seconds of the faster of two runs of ``action``, and what the second gave."""
    taken = []
    for _ in range(2):
        start = time.perf_counter()
        result = action()
        taken.append(time.perf_counter() - start)
    return min(taken), result


def provenance(*, data: str, device: str = "cpu", clock: Clock | None = None, **more) -> dict:
    """What made a record: versions, commit, processor, the data's fingerprint, seconds,
    and the :func:`reproducible.settings`.

    The seconds are those of the run that saved it; what was in the cache already took none.
    """
    libraries = {}
    for name in LIBRARIES:
        try:
            libraries[name] = version(name)
        except PackageNotFoundError:
            libraries[name] = "not installed"
    return {"dnnlib": __version__, "commit": _commit(), "python": platform.python_version(),
            "libraries": libraries, "device": device, "processor": platform.machine(),
            "data": data, "seconds": clock.seconds() if clock else None,
            **reproducible.settings(device), **more}


def _commit() -> str:
    checkout = places.checkout()

    def git(*arguments: str) -> str:
        return subprocess.run(["git", "-C", checkout, *arguments], capture_output=True, text=True,
                              check=True).stdout.strip()

    try:
        dirty = git("status", "--porcelain", "--untracked-files=no", "--", "dnnlib", "book/dnnbook",
                    "notebooks")
        return git("rev-parse", "--short=12", "HEAD") + ("+changes" if dirty else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def save(record: Record, root: Path | None = None) -> Path:
    """Write a record, replacing one with the same parameters; returns its path.

    Raises ``ValueError`` for a value JSON cannot hold.
    """
    if not record.rows:
        raise ValueError(f"record {record.experiment}: expected at least one row, got none")
    try:
        content = asdict(record) | {"rows": [{k: _plain(v) for k, v in row.items()}
                                             for row in record.rows]}
        text = json.dumps(content, indent=1, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"record {record.experiment}: {error}") from error
    path = (root or places.results_dir()) / name(record.experiment, record.parameters)
    files.write_atomically(path, text.encode() + b"\n")
    return path


def _plain(value):
    """Numbers to seven digits; NaN and infinity, which JSON lacks, as null."""
    if isinstance(value, (float,)) or hasattr(value, "dtype"):
        value = float(value)
        return float(f"{value:.7g}") if math.isfinite(value) else None
    return value


def _older(experiment: str) -> dict:
    return OLDER.get(experiment, {}) | ADDED.get(experiment, {})


def name(experiment: str, parameters: dict) -> str:
    """Where a record with these parameters is kept, below the results: any other value, any other
    name.

    >>> name("nsatp/rq1", {"dataset": "mnist", "model": "net2", "seed": 0})
    'nsatp/rq1/mnist-net2-seed0-28e1c02f.json'
    """
    return f"{experiment}/{_slug(without(_older(experiment), parameters))}.json"


def without(older: dict, parameters: dict) -> dict:
    """The parameters but for those that have the value of before they came.

    >>> without({"side": 2}, {"side": 2, "seed": 0}), without({"side": 2}, {"side": 3})
    ({'seed': 0}, {'side': 3})
    """
    return {key: value for key, value in parameters.items()
            if key not in older or older[key] != value}


def _slug(parameters: dict) -> str:
    names = [re.sub(r"[^\w.-]+", "_", str(parameters[k]))[-60:]  # a dataset may be a folder's path
             for k in ("dataset", "model") if k in parameters]
    names += [f"seed{parameters['seed']}"] if "seed" in parameters else []
    return "-".join([*names, files.digest(parameters)[:8]])


def read(path: Path) -> Record:
    """The record in a file; ``ValueError`` with its name if it is damaged or no record."""
    try:
        return parsed(path.read_bytes())
    except ValidationError as error:
        wrong = error.errors()[0]
        place = ".".join(map(str, wrong["loc"]))
        raise ValueError(f"{path} is not a record: {place or 'its content'}: {wrong['msg']}"
                         ) from error


def parsed(text: bytes | str) -> Record:
    """The record in a file's content; a parameter younger than it has the value of before."""
    record = _RECORD.validate_json(text)
    older = _older(record.experiment)
    return replace(record, parameters=older | record.parameters) if older else record


def find(experiment: str, root: Path | None = None, **parameters) -> list[Record]:
    """The records of an experiment whose parameters include those given, in order of file name.

    A damaged file gives a ``ValueError`` with its name.
    """
    asked.add(experiment)
    every = map(read, sorted(((root or places.results_dir()) / experiment).glob("*.json")))
    return [record for record in every
            if all(record.parameters.get(k) == v for k, v in parameters.items())]


def state(experiments: Iterable[str] | None = None) -> str:
    """A hash of what the records of some experiments say (default: of all); not of how they ran."""
    root = places.results_dir()
    if experiments is None:
        experiments = {path.parent.relative_to(root).as_posix() for path in root.glob("*/*/*.json")}
    return files.digest([[record.experiment, record.parameters, record.rows]
                         for name in sorted(experiments) for record in find(name, root)])


def frame(experiment: str, root: Path | None = None, *, told: Iterable[str] = (),
          named: bool = False, **parameters) -> pd.DataFrame:
    """All rows of the matching records, their parameters beside them; empty if there are none.

    Records in settings that do not count (:mod:`counted`) are left out, unless ``parameters``, or
    the names ``told``, say all in which they differ. Rows of the book's records have the attribute
    :data:`BOOK`, which tables made of them keep. ``named``: with the column 'record', the
    name of the file. Files that have not changed are read once.
    """
    asked.add(experiment)
    folder = (root or places.results_dir()) / experiment
    stats = {path: path.stat() for path in sorted(folder.glob("*.json"))}
    seen = tuple((path, of.st_ino, of.st_mtime_ns) for path, of in stats.items())
    found, variants = _frame(experiment, root, seen, tuple(sorted(parameters.items())))
    left = [record for record, differing in variants.items()
            if not differing <= {*told, *parameters}]
    if left:
        found = found[~found["record"].isin(left)]
    found = found.copy() if named else found.drop(columns="record", errors="ignore")
    found.attrs[BOOK] = root is None
    return found


def _network(record: Record) -> tuple:
    return tuple(record.parameters.get(name) for name in ("dataset", "model", "candidates"))


@lru_cache(maxsize=256)
def _frame(experiment: str, root: Path | None, seen: tuple,
           parameters: tuple) -> tuple[pd.DataFrame, dict[str, frozenset[str]]]:
    """All rows, and in which settings each record does not count.

    Of a dataset and network with records on the published pictures, those on a JPEG copy are left
    out, however it was trained: no table mixes the two. What was selected from other candidates
    has tables of its own; whoever asks for several at once gets both.
    """
    kept = {name(experiment, record.parameters): record
            for record in find(experiment, root, **dict(parameters))}
    copies = {path for path, record in kept.items()
              if known.copy_of(str(record.provenance.get("data"))) == "JPEG copy"}
    published = {_network(record) for path, record in kept.items() if path not in copies}
    kept = {path: record for path, record in kept.items()
            if path not in copies or _network(record) not in published}
    rows = [record.parameters | row | {"record": path}
            for path, record in kept.items() for row in record.rows]
    return (pd.DataFrame(rows, columns=None if rows else COLUMNS),
            {path: counted.variant(experiment, record.parameters)
             for path, record in kept.items()})


def existing(experiment: str, root: Path | None = None, **parameters) -> pd.DataFrame:
    """As :func:`frame`; ``ValueError`` if there is nothing to show.

    >>> existing("nss/no_such")
    Traceback (most recent call last):
    ValueError: no records of nss/no_such; `dnnbook sweep sweeps/paper.toml` makes all there are
    """
    found = frame(experiment, root, **parameters)
    if found.empty:
        with_ = "".join(f", {name} = {value}" for name, value in parameters.items())
        raise ValueError(f"no records of {experiment}{with_}; `dnnbook sweep sweeps/paper.toml` "
                         "makes all there are")
    return found
