"""Making the book's notebooks from their sources, and running them with other parameters."""

import ast
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from dnnlib import checks, data, files, models, training
from dnnlib.book import records
from dnnlib.book.experiments import STORED
from dnnlib.data import sources
from dnnlib.perturb import vulnerability

KEPT_METADATA = ("tags", "mystnb")
OTHERS = {"others"}  # parameters that list networks by name
FETCH = """\
import importlib.util

if importlib.util.find_spec("dnnlib") is None:  # opened alone, as on Colab: fetch the book
    import subprocess
    import sys

    subprocess.run(["git", "clone", "-q", "{url}", "book"], check=True)
    subprocess.run(["git", "-C", "book", "checkout", "-q", "{commit}"], check=True)
    pip = [sys.executable, "-m", "pip", "install", "-q"]
    subprocess.run([*pip, "-e", "./book[attacks,plots]"], check=True)
    sys.path.insert(0, "book")"""
DECLARED = """\
from dnnlib.book import experiments

print(experiments.declaration())"""
CHOICES = {"model_name": models.SPECS, "patch": vulnerability.PATCHES, "profile": data.PROFILES,
           "split": ("train", "test"), "recipe": (*training.RECIPES, "pretrained")}


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
    import papermill

    _metadata(path)  # a clear word on a file that is no notebook
    found = {}
    for name, about in papermill.inspect_notebook(str(path)).items():
        try:
            found[name] = Parameter(name, ast.literal_eval(about["default"]), about["help"])
        except (SyntaxError, ValueError) as error:
            raise ValueError(f"{path}: the parameters cell holds more than plain values: "
                             f"{name} = {about['default']}") from error
    return found


def _metadata(path: Path) -> dict:
    try:
        content = json.loads(path.read_bytes())
        return content["metadata"] | {"cells": len(content["cells"])}
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a notebook: {error}") from error


def recorded(path: Path, values: dict) -> tuple[str, dict] | None:
    """The experiment and the parameters of the record that a run with ``values`` saves.

    As the chapter declared them (:class:`experiments.Experiment`) when it was made; None if it
    declares no experiment.

    >>> recorded(find("nss/04"), {"seed": 2})[0]
    'nss/diversity'
    """
    about = _metadata(path).get("dnnlib", {})
    if "experiment" not in about:
        return None
    given = {name: p.default for name, p in parameters(path).items()} | values
    return about["experiment"], {STORED.get(name, name): given.get(name, value)
                                 for name, value in about["parameters"].items()}


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
    for name in OTHERS & set(values):
        for other in values[name].split():
            checks.known(other, models.SPECS, f"network in {name}")
    for name, value in values.items():
        if type(value) is int and name != "seed":
            checks.positive(value, name)
        if _numbers(known[name].default) and not _numbers(value):
            raise ValueError(f"parameter {name}: expected numbers with spaces between, such as "
                             f"{known[name].default!r}, got {value!r}")
    return values


def _numbers(text) -> bool:
    """Whether a value is a list of numbers as text, "4 8 12"."""
    try:
        return isinstance(text, str) and bool([float(word) for word in text.split()])
    except ValueError:
        return False


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
    with checks.extra("book"):
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


def repository() -> str:
    """The book's own address: ``$DNNLIB_REPOSITORY``, else that in ``_config.yml``; '' for none."""
    if url := os.environ.get("DNNLIB_REPOSITORY"):
        return url
    with checks.extra("book"):
        import yaml

    return yaml.safe_load((folder().parent / "_config.yml").read_text("utf-8"))["repository"]["url"]


def fetching() -> str:
    """A cell that fetches the book, as of this commit, from :func:`repository`; '' without one."""
    if not (url := repository()):
        return ""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder().parent, check=True,
                            capture_output=True, text=True).stdout.strip()
    return FETCH.format(url=url, commit=commit)


def make(source: Path, into: Path | None = None) -> Path:
    """Run a py:percent ``source`` on its defaults, and write the notebook beside it.

    ``into``: a folder to write it below instead, as ``<paper>/<name>.ipynb``. If the book has an
    address, the first cell, not shown in the book, is :func:`fetching`. Nothing in the notebook
    depends on when or how fast it ran, so that two runs on one machine give the same bytes. If a
    cell fails, the old notebook stays and :class:`CellFailed` is raised.
    """
    with checks.extra("book"):
        import jupytext
        import nbformat
        from papermill.iorw import load_notebook_node

    os.environ["TQDM_DISABLE"] = "1"  # read by the kernel: bars do not belong in a page
    os.environ["PYTHONHASHSEED"] = "0"
    work = files.cache_dir() / "notebooks" / source.parent.name
    work.mkdir(parents=True, exist_ok=True)
    fresh, done = work / f"{source.stem}.in.ipynb", work / f"{source.stem}.ipynb"
    notebook = jupytext.read(source)
    if fetch := fetching():
        cell = nbformat.v4.new_code_cell(fetch, metadata={"tags": ["remove-cell"]})
        notebook.cells.insert(0, cell)
    notebook.cells.append(nbformat.v4.new_code_cell(DECLARED))
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3",
                                    "language": "python"}
    nbformat.write(notebook, fresh)
    execute(fresh, done, cwd=source.parent, progress_bar=False)
    place = into / source.parent.name if into else source.parent
    product = place / f"{source.stem}.ipynb"
    text = nbformat.writes(_normalised(load_notebook_node(str(done)))) + "\n"
    files.write_atomically(product, text.encode())
    return product


def stale(path: Path) -> bool:
    """Whether the records that a made notebook shows have changed since it was made."""
    about = _metadata(path).get("dnnlib", {})
    return about.get("state") != records.state(about.get("reads", ()))


def _normalised(notebook):
    """Drop what differs between two runs, name cells by place and text, keep what was declared."""
    about = json.loads(notebook.cells.pop().outputs[0].text)
    notebook.metadata = type(notebook.metadata)(
        kernelspec=notebook.metadata.kernelspec, language_info={"name": "python"},
        dnnlib=about | {"state": records.state(about["reads"])})
    for i, cell in enumerate(notebook.cells):
        cell.metadata = type(cell.metadata)(
            {k: v for k, v in cell.metadata.items() if k in KEPT_METADATA and v})
        cell.id = f"{i:02d}-{files.digest(cell.source)[:8]}"
        for output in cell.get("outputs", ()):
            output.pop("transient", None)
            output.get("metadata", {}).clear()
    return notebook
