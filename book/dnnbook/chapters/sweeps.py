"""Sweeps: a grid of notebooks, datasets, networks and seeds, each cell run where there is room.

A cell is done when its record is among the results, whoever made it, so that a sweep goes on
where any other run ended. A cell runs in a Dask worker, one at a time in each, and hands back
its files; only the driver writes results.
"""

import os
import re
import tempfile
import threading
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import median

from dnnbook import places, reproducible
from dnnbook.chapters import notebooks, plan
from dnnbook.chapters.parameters import renamed
from dnnbook.data import in_file, own
from dnnbook.records import ages, records, rows, signed
from dnnlib import files, inference
from dnnlib.custom.cluster import TRIMMING

BOOK = ("paper.toml", "blank.toml")  # of the folder sweeps
DEVICE = "device"  # the parameter, which tells no record from another
NEEDS = ("minutes", "gpu_minutes", "memory_gib", "gpu_memory_gib")  # of a grid, not its parameters
_ONE_AT_A_TIME = threading.Lock()  # the kernel reads where to write from the process's environment
LONGEST = 150  # characters of a cell's settings in the name of the notebook that ran


@dataclass(frozen=True)
class Cell:
    """One run of a notebook.

    None if not given:

    - ``minutes``: on one core; ``gpu_minutes``: on a GPU, estimated; ``measured``: on a GPU as the
      one here, see :func:`measured`.
    - ``memory_gib`` that it needs; ``gpu_memory_gib``: on a GPU.
    """

    notebook: Path
    values: dict
    minutes: float | None = None
    memory_gib: float | None = None
    gpu_minutes: float | None = None
    gpu_memory_gib: float | None = None
    measured: float | None = None

    @property
    def name(self) -> str:
        """'nss/02_fault_detection dataset=mnist seed=0': without the device, as its record's"""
        place = f"{self.notebook.parent.name}/{self.notebook.stem}"
        return " ".join([place, *(f"{k}={v}" for k, v in self.values.items() if k != DEVICE)])

    @property
    def device(self) -> str:
        """Where it runs: 'cpu', 'cuda', 'cuda:1', 'mps' or, on the workers of others, 'auto'."""
        return self.values.get(DEVICE, "cpu")

    @property
    def takes(self) -> float | None:
        """The minutes that it takes on its device, measured there or estimated."""
        return self.minutes if self.device == "cpu" else self.measured or self.gpu_minutes


@dataclass(frozen=True)
class Outcome:
    """A cell that ended: after ``seconds``, or with what its last error said as ``error``.

    ``moved``: a line for each difference from the record that it replaced.
    """

    cell: Cell
    error: str | None
    seconds: float | None
    moved: tuple[str, ...] = ()


def read(path: Path, *, device: str = "", here: bool = True) -> tuple[list[Cell], Path | None]:
    """The cells of a sweep file, in order, each once; and the folder of its results, if it has one.

    The file has ``[[grid]]`` tables: ``notebook``, by path or the start of its name; parameters;
    of each, a list gives a cell for every one of its values; and, if known, for one cell
    ``minutes``, ``gpu_minutes``, and ``memory_gib`` and ``gpu_memory_gib`` that it needs.
    ``results = "FOLDER"`` may stand first.

    - ``device``: of all cells; default: as the grids and their chapters say.
    - ``here``: whether this machine runs them, and must have their devices.

    Raises ``ValueError`` for such a device, and one naming every unknown notebook, parameter,
    dataset, network or device of the file, before anything runs.
    """
    if device and here:
        device = str(inference.device(device))
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a TOML file: {error}") from error
    grids, root, found, problems = content.pop("grid", None), content.pop("results", None), {}, []
    if not isinstance(grids, list) or not grids or content:
        raise ValueError(f"{path}: expected [[grid]] tables and at most results = \"FOLDER\", got "
                         f"{', '.join(content) or 'no [[grid]]'}")
    for i, grid in enumerate(grids, 1):
        asked = dict(grid) | ({DEVICE: device} if device else {})
        for cell in _cells(asked, f"grid {i}", problems, here):
            first = found.setdefault(_record(cell), cell)
            if first.device != cell.device:
                problems.append(f"grid {i}, {cell.name}: expected one device, as it has one "
                                f"record, got {first.device} and {cell.device}")
    if problems:
        raise ValueError("\n".join([f"{path}: {len(problems)} problems, nothing was run",
                                    *(f"  {problem}" for problem in problems)]))
    return list(found.values()), None if root is None else Path(str(root)).expanduser()


def _record(cell: Cell) -> str:
    """The name of the record that a cell leaves, which is one of a run, however it was asked."""
    return records.name(*notebooks.recorded(cell.notebook, cell.values) or ("", cell.values))


def of_the_book(path: Path) -> bool:
    """Whether a file is one of the sweeps that fill the book's results; others leave them alone.

    >>> of_the_book(Path("sweeps/paper.toml").resolve()), of_the_book(Path("own.toml"))
    (True, False)
    """
    home = notebooks.folder().parent / "sweeps"
    return Path(path).resolve() in {(home / name).resolve() for name in BOOK}


def _cells(grid: dict, where: str, problems: list[str], here: bool) -> Iterator[Cell]:
    needs = {name: grid.pop(name, None) for name in NEEDS}
    for name, value in needs.items():
        if value is not None and not (isinstance(value, int | float) and value > 0):
            problems.append(f"{where}: {name}: expected a number above 0, got {value!r}")
    for name, value in grid.items():
        if value == []:
            problems.append(f"{where}: {name}: expected at least one value, got []")
    for asked in _listed(grid.pop("notebook", "")):
        try:
            path = notebooks.find(str(asked))
            if notebooks.recorded(path, {}) is None:
                raise ValueError(f"{path.name} saves no record, so that no sweep could tell "
                                 "whether it is done")
            named = renamed(path, grid)
        except ValueError as error:
            problems.append(f"{where}: {error}")
            continue
        if "profile" in notebooks.parameters(path) and _listed(grid.get("profile")) != ["paper"]:
            problems.append(f"{where}, {path.stem}: expected profile = \"paper\", without which a "
                            f"run leaves no record, got {grid.get('profile', 'no profile')!r}")
        choices = {}
        for name, value in ((k, v) for k, given in named.items() for v in _listed(given)):
            try:  # each by itself, so that one problem hides no other
                good = notebooks.typed(path, {name: str(value)}, alone=True)[name]
                if name == DEVICE and here:
                    good = str(inference.device(good))
                if name == "dataset" and here and in_file.is_own(good):
                    own.check(good)
            except ValueError as error:
                problems.append(f"{where}, {path.stem}: {error}")
            else:
                choices.setdefault(name, []).append(good)
        for combination in product(*choices.values()):
            values = dict(zip(choices, combination))
            try:
                notebooks.together(path, values, here=False)
            except ValueError as error:
                problem = f"{where}, {path.stem}: {error}"
                problems.extend([problem] if problem not in problems else [])
            yield Cell(path, values, **needs)


def _listed(value) -> list:
    return value if isinstance(value, list) else [value]


def done(cell: Cell, root: Path | None = None) -> bool:
    """Whether the results hold the record of a cell: see :func:`kept`."""
    return kept(cell, root) is not None


def kept(cell: Cell, root: Path | None = None) -> Path | None:
    """The record of a cell, made with its parameters and defaults; None if there is none.

    ``root``: of the results. A damaged record is renamed to ``*.damaged`` and does not count;
    :func:`set_aside` lists them.
    """
    experiment, parameters = notebooks.recorded(cell.notebook, cell.values)
    root = root or places.results_dir()
    for path in sorted((root / experiment).glob("*.json")):
        try:
            record = records.read(path)
        except ValueError:
            path.rename(path.with_suffix(".damaged"))
            continue
        if all(record.parameters.get(k) == v for k, v in parameters.items()):
            return path
    return None


def old(path: Path) -> bool:
    """Whether a record should be made again (:mod:`ages`)."""
    return bool(ages.reasons(records.read(path)))


def measured(cell: Cell, root: Path | None = None) -> Cell:
    """A cell for a GPU of this machine with the minutes that its other seeds took on such a one.

    ``root``: of the results. The median of the seconds in their provenance, where that names the
    same kind of device and the same GPU. Any other cell stays as it is.
    """
    if cell.device == "cpu":
        return cell
    experiment, parameters = notebooks.recorded(cell.notebook, cell.values)
    parameters.pop("seed", None)
    kind, gpu = cell.device.partition(":")[0], reproducible.capability(cell.device)
    about = [record.provenance for record in records.find(experiment, root, **parameters)]
    seconds = [made["seconds"] for made in about if made.get("seconds")
               and made.get("device", "cpu").partition(":")[0] == kind
               and made.get("capability") == gpu]
    return replace(cell, measured=median(seconds) / 60) if seconds else cell


def set_aside(root: Path | None = None) -> list[Path]:
    """Records that could not be read, and were renamed."""
    return sorted((root or places.results_dir()).glob("*/*/*.damaged"))


def work(notebook: str, values: dict, **environment: str) -> tuple[dict[str, bytes], float]:
    """Run a cell here; what it wrote, by relative path (records and 'run.ipynb'), and seconds.

    ``environment``: variables of the process's environment, for this run only.

    Raises :class:`notebooks.CellFailed` for a cell that failed, and ``ValueError`` for one that
    left no record.
    """
    with _ONE_AT_A_TIME, tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        environment = environment | {"DNNLIB_RESULTS": folder, "TQDM_DISABLE": "1"}
        before = {name: os.environ.get(name) for name in (*environment, TRIMMING)}
        os.environ.update(environment)
        os.environ.pop(TRIMMING, None)  # of a worker that others started
        try:
            notebooks.run(Path(notebook), values, Path(folder) / "run.ipynb", bar=False)
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
        made = {path.relative_to(folder).as_posix(): path.read_bytes()
                for path in sorted(Path(folder).rglob("*")) if path.is_file()}
    if not any(name.endswith(".json") for name in made):
        raise ValueError("it left no record: does it need profile = \"paper\"?")
    return made, time.perf_counter() - start


def run(cells: Sequence[Cell], client, *, root: Path | None = None, runs: Path | None = None,
        watch: Callable[[set[str]], None] | None = None,
        replace: bool = False) -> Iterator[Outcome]:
    """Run cells on a Dask ``client``, and give each as it ends; a failure stops no other.

    A cell that trains a network comes before the others that need it: :func:`plan.in_order`.
    The records go to ``root`` (default: the results), the notebooks that ran to ``runs``.
    ``watch``: called about once a second with the names of the cells that run now. ``replace``:
    whether a record may take the place of one that says something else; else the cell fails, that
    one stays, and its own goes to ``runs``.
    Raises ``ValueError`` if a worker lacks the GPU that a cell asks for, before anything runs.
    """
    from distributed import CancelledError, KilledWorker, wait
    from distributed import TimeoutError as Waited

    for device in sorted({cell.device for cell in cells} - {"cpu"}):
        client.run(inference.device, device)
    futures = {client.submit(work, str(cell.notebook.resolve()), cell.values, key=cell.name,
                             pure=False): cell for cell in plan.in_order(cells)}
    waiting = set(futures)
    while waiting:
        try:
            ended = wait(waiting, timeout=1, return_when="FIRST_COMPLETED").done
        except Waited:
            ended = set()
        if watch is not None:
            watch({str(key) for keys in client.processing().values() for key in keys})
        for future in ended:
            waiting.discard(future)
            cell, error, seconds = futures[future], None, None
            moved: tuple[str, ...] = ()
            try:
                made, seconds = future.result()
                moved = _keep(made, cell, root or places.results_dir(), runs or Path("runs"),
                              replace)
            except KilledWorker:
                error = "its worker died several times, perhaps for want of memory"
            except (notebooks.CellFailed, ValueError, OSError, CancelledError) as failed:
                error = str(failed) or type(failed).__name__
            yield Outcome(cell, error, seconds, moved)


def _keep(made: dict[str, bytes], cell: Cell, root: Path, runs: Path,
          replace: bool) -> tuple[str, ...]:
    tail = re.sub(r"[^\w.=-]+", "_", cell.name.partition(" ")[2])
    if len(tail) > LONGEST:  # a file system has 255 bytes for a name
        tail = f"{tail[:LONGEST]}-{files.digest(tail)}"
    ran = runs / cell.notebook.parent.name / f"{cell.notebook.stem}-{tail}.ipynb"
    files.write_atomically(ran, made["run.ipynb"])
    moved: tuple[str, ...] = ()
    for name, content in made.items():
        if not name.endswith(".json"):
            continue
        path = root / name
        if path.exists():
            moved += (differ := differences(records.read(path), records.parsed(content)))
            if differ and not replace:
                own = ran.with_suffix(".json")
                files.write_atomically(own, content)
                raise ValueError(f"{path} says something else and stays; this run's is {own}. With "
                                 "--replace it takes its place")
            if not (differ or replace):
                continue  # it says the same, and says how it was made
        files.write_atomically(path, content)
        signed.add(name.removesuffix(".json"), root)
    return moved


def differences(was: records.Record, now: records.Record) -> tuple[str, ...]:
    """A line for each row that moved, then what each record was made on; none if no row moved.

    >>> rows = [{"quantity": "eff", "value": 1}], [{"quantity": "eff", "value": 2}]
    >>> differences(*(records.Record("toy/luck", {}, each, {"processor": "x"}) for each in rows))
    ('quantity=eff: 1 -> 2', 'was made on x', 'now made on x')
    """
    moved = tuple(rows.moved(was.rows, now.rows))
    return moved and (*moved, f"was made on {_made_on(was)}", f"now made on {_made_on(now)}")


def _made_on(record: records.Record) -> str:
    told = record.provenance
    parts = [str(told[name]) for name in ("processor", "capability", "device") if told.get(name)]
    return ", ".join([*parts, *(f"{name} {version}"
                                for name, version in told.get("libraries", {}).items())])
