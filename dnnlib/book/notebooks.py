"""Making the book's notebooks from their sources, and running them with other parameters."""

import ast
import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from dnnlib import checks, data, files, models
from dnnlib.book import records
from dnnlib.data import sources
from dnnlib.perturb import vulnerability

KEPT_METADATA = ("tags", "mystnb")
FETCH = """\
import importlib.util

if importlib.util.find_spec("dnnlib") is None:  # opened alone, as on Colab: fetch the book
    import subprocess
    import sys

    url = "https://github.com/dnnlib/dnnlib"
    subprocess.run(["git", "clone", "-q", "--depth", "1", url, "book"], check=True)
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "-e", "book"], check=True)
    sys.path.insert(0, "book")"""
CHOICES = {"model": models.SPECS, "patch": vulnerability.PATCHES, "profile": data.PROFILES,
           "split": ("train", "test")}


class CellFailed(RuntimeError):
    """A cell of a notebook raised an error; what ran before it was kept."""


@dataclass(frozen=True)
class Parameter:
    """A line of a notebook's parameters cell."""

    name: str
    default: object
    help: str


def folder() -> Path:
    """The checkout's ``notebooks`` folder, else the one here."""
    checkout = Path(__file__).resolve().parents[2] / "notebooks"
    return checkout if checkout.is_dir() else Path("notebooks")


def find(name: str) -> Path:
    """A notebook by path, or by the start of its name below the notebooks folder.

    'nsatp/02' finds ``notebooks/nsatp/02_noise_sensitivity.ipynb``. Raises ``ValueError`` with
    the names there are if none or several match.
    """
    if name.endswith(".ipynb") or Path(name).exists():
        path = Path(name)
        if not path.is_file() or path.suffix != ".ipynb":
            raise ValueError(f"{name} is not a notebook (.ipynb)")
        return path
    known = {p.relative_to(folder()).with_suffix("").as_posix(): p
             for p in sorted(folder().glob("*/*.ipynb"))}
    matching = [k for k in known if k.startswith(name)]
    if len(matching) > 1:
        raise ValueError(f"notebook {name!r} is one of several: {', '.join(matching)}")
    return known[matching[0] if matching else checks.known(name, known, "notebook")]


def starting(names: list[str], ending: str) -> list[Path]:
    """The sources (``.py``) or notebooks (``.ipynb``) whose names start so; all for no names."""
    found = [p for p in sorted(folder().glob(f"*/*{ending}")) if not names or any(
        p.relative_to(folder()).as_posix().startswith(name) for name in names)]
    if not found:
        raise ValueError(f"no {ending} file below {folder()} starts with {', '.join(names)}")
    return found


def parameters(path: Path) -> dict[str, Parameter]:
    """The parameters of a notebook with their defaults, in order; comments are their help."""
    tagged = [c for c in _cells(path) if "parameters" in c["metadata"].get("tags", ())]
    if not tagged:
        return {}
    source = "".join(tagged[0]["source"])
    found = {}
    try:
        for line in ast.parse(source).body:
            if isinstance(line, ast.Assign):
                name = line.targets[0].id
                _, _, comment = source.splitlines()[line.end_lineno - 1].encode()[
                    line.end_col_offset:].decode().partition("#")
                found[name] = Parameter(name, ast.literal_eval(line.value), comment.strip())
    except (SyntaxError, ValueError, AttributeError) as error:
        raise ValueError(f"{path}: the parameters cell holds more than plain values: "
                         f"{error}") from error
    return found


def recorded(path: Path, values: dict) -> tuple[str, dict] | None:
    """The experiment and the parameters of the record that a run with ``values`` saves.

    Read from the call ``records.Record("...", dict(...))`` in the notebook: parameters of the
    notebook and constants, others are left out. None if there is no such call.

    >>> recorded(find("nss/04"), {"seed": 2})[0]
    'nss/diversity'
    """
    known = {name: p.default for name, p in parameters(path).items()} | values
    code = "\n".join("".join(c["source"]) for c in _cells(path) if c["cell_type"] == "code")
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "records.Record":
            name, given = node.args[:2]
            return ast.literal_eval(name), {
                k.arg: k.value.value if isinstance(k.value, ast.Constant) else known[k.value.id]
                for k in given.keywords
                if isinstance(k.value, ast.Constant) or getattr(k.value, "id", None) in known}
    return None


def _cells(path: Path) -> list[dict]:
    try:
        return json.loads(path.read_bytes())["cells"]
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a notebook: {error}") from error


def typed(path: Path, given: dict[str, str]) -> dict:
    """Values from the command line as the types of the notebook's defaults.

    Raises ``ValueError`` for a name the notebook lacks (with the nearest), a value of another
    type, a count below one, or a dataset, network, patch, profile or split that does not exist:
    before anything is computed.
    """
    known = parameters(path)
    values = {}
    for name, text in given.items():
        if not known:
            raise ValueError(f"{path.name} has no parameters; got {name!r}")
        default = known[checks.known(name, known, f"parameter of {path.stem}")].default
        values[name] = _typed(name, text, default)
    if "dataset" in values:
        if sources.is_folder(values["dataset"]):  # the notebook runs in its own folder
            values["dataset"] = str(Path(values["dataset"]).expanduser().resolve())
        else:
            checks.known(values["dataset"], sources.SOURCES, "dataset")
    for name, choices in CHOICES.items():
        if name in values:
            checks.known(values[name], choices, name)
    for name, value in values.items():
        if type(value) is int and name != "seed":
            checks.positive(value, name)
    return values


def _typed(name: str, text: str, default):
    kind = type(default)
    if kind is str:
        return text
    if kind is bool and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    raise ValueError(f"parameter {name}: expected {kind.__name__}, such as {default!r}, "
                     f"got {text!r}")


def run(path: Path, values: dict, output: Path, *, bar: bool = True) -> Path:
    """Execute a notebook with ``values`` into ``output``, with a progress bar.

    The cells' own bars and warnings go to the terminal. If a cell fails, what ran is in
    ``output``, and :class:`CellFailed` is raised.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    execute(path, output, parameters=values, cwd=path.parent, progress_bar=bar,
            stderr_file=sys.stderr)
    return output


def execute(path: Path, output: Path, **options) -> None:
    """papermill's ``execute_notebook``; raises :class:`CellFailed` if a cell does."""
    import papermill

    for name in ("DNNLIB_DATA", "DNNLIB_CACHE", "DNNLIB_RESULTS"):
        if os.environ.get(name):  # the kernel runs in the notebook's folder
            os.environ[name] = str(Path(os.environ[name]).expanduser().resolve())
    try:
        papermill.execute_notebook(  # quiet: a kernel calls an interrupted shutdown an error
            path, output, kernel_name="python3", language="python",
            extra_arguments=["--log-level=CRITICAL"], **options)
    except papermill.PapermillExecutionError as error:
        raise CellFailed(f"cell {error.exec_count} of {path.name}: {error.ename}: {error.evalue} "
                         f"(what ran is in {output})") from error


def make(source: Path) -> Path:
    """Write the notebook beside a py:percent ``source``: same cells, run on its defaults.

    Before them stands a cell, not shown in the book, that fetches the book where it is not at hand.
    Nothing in it depends on when or how fast it ran, so that two runs on one machine give
    the same bytes. If a cell fails, the old notebook stays and :class:`CellFailed` is raised.
    """
    import jupytext
    import nbformat
    from papermill.iorw import load_notebook_node

    os.environ["TQDM_DISABLE"] = "1"  # read by the kernel: bars do not belong in a page
    os.environ["PYTHONHASHSEED"] = "0"
    work = files.cache_dir() / "notebooks" / source.parent.name
    work.mkdir(parents=True, exist_ok=True)
    fresh, done = work / f"{source.stem}.in.ipynb", work / f"{source.stem}.ipynb"
    notebook = jupytext.read(source)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(FETCH, metadata={"tags": ["remove-cell"]}))
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3",
                                    "language": "python"}
    nbformat.write(notebook, fresh)
    execute(fresh, done, cwd=source.parent, progress_bar=False)
    product = source.with_suffix(".ipynb")
    text = nbformat.writes(_normalised(load_notebook_node(str(done)))) + "\n"
    files.write_atomically(product, text.encode())
    return product


def quoted(notebook) -> set[str] | None:
    """The experiments whose records a notebook shows; None for all of them."""
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    judged = "scoreboard()" in code or "published.claims()" in code
    return None if judged else set(re.findall(r'"([a-z]\w*/\w+)"', code))


def stale(path: Path) -> bool:
    """Whether the records that a made notebook shows have changed since it was made."""
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    return notebook.metadata.get("records") != records.state(quoted(notebook))


def _normalised(notebook):
    """Drop what differs between two runs, name cells by place and text, note what was shown."""
    notebook.metadata = type(notebook.metadata)(
        kernelspec=notebook.metadata.kernelspec, language_info={"name": "python"},
        records=records.state(quoted(notebook)))
    for i, cell in enumerate(notebook.cells):
        cell.metadata = type(cell.metadata)(
            {k: v for k, v in cell.metadata.items() if k in KEPT_METADATA and v})
        cell.id = f"{i:02d}-{files.digest(cell.source)[:8]}"
        for output in cell.get("outputs", ()):
            output.pop("transient", None)
            output.get("metadata", {}).clear()
    return notebook
