"""Making the book's notebooks from their sources, and running them with other parameters."""

import json
import os
import re
import subprocess
import sys
from itertools import zip_longest
from pathlib import Path

from dnnbook import places
from dnnbook.chapters import declared, defaults, statements
from dnnbook.chapters.experiments import undeclared
from dnnbook.chapters.lab_cells import folded, page_of, readable
from dnnbook.chapters.lab_markup import Page
from dnnbook.chapters.parameters import Parameter, listed, metadata, parameters, together, typed
from dnnbook.chapters.yours import MAKING
from dnnbook.records import records
from dnnlib import checks, files

__all__ = ["CellFailed", "Parameter", "called", "dealt", "declaring", "execute", "find", "folder",
           "kept", "listed", "make", "parameters", "recorded", "run", "solutions", "stale",
           "starting", "together", "typed"]

LONGEST = 200  # bytes of a file's name; file systems take 255, and a run beside it has more
KEPT_METADATA = ("tags", "mystnb")
FETCH = """\
import importlib.util

if importlib.util.find_spec("dnnbook") is None:  # opened alone, as on Colab: fetch the book
    import subprocess
    import sys
    from pathlib import Path

    book = Path("book").resolve()
    if not book.exists():  # a kernel that starts again finds it there
        subprocess.run(["git", "clone", "-q", "{url}", book], check=True)
        subprocess.run(["git", "-C", book, "checkout", "-q", "{commit}"], check=True)
        pip = [sys.executable, "-m", "pip", "install", "-q"]
        subprocess.run([*pip, "-e", f"{{book}}[attacks,plots]"], check=True)
    sys.path[:0] = [str(book), str(book / "book")]"""
PAGE = """\
{% extends 'lab/index.html.j2' %}
{% block html_head_js_requirejs %}
{% if "widgets" in nb.metadata %}{{ super() }}{% endif %}
{% endblock %}
{% block html_head_js_mathjax %}
<script>MathJax = {tex: {processEscapes: true,
                         inlineMath: [["$", "$"], ["\\\\(", "\\\\)"]]}}</script>
<script>{{ resources.equations }}</script>
{% endblock %}
{% block input_group %}{% set how = cell.metadata.get('jupyter', {}) %}
{% if how.source_hidden %}<details><summary>Code</summary>{% endif %}
{{ super() }}
{% if how.source_hidden %}</details>{% endif %}
{% endblock %}
{% block output_group %}{% set how = cell.metadata.get('jupyter', {}) %}
{% if how.outputs_hidden %}<details><summary>Output</summary>{% endif %}
{{ super() }}
{% if how.outputs_hidden %}</details>{% endif %}
{% endblock %}
"""
READ = """\
import json

from dnnbook.records import records

print(json.dumps(sorted(records.asked)))"""
OWN = "**A run of your own**"  # how the cell below the title of a run begins


class CellFailed(RuntimeError):
    """A cell of a notebook raised an error; what ran before it is in ``ran``.

    Of a run in a temporary folder, which is gone when the error is told, nothing is said of that.
    """

    def __init__(self, said: str, ran: Path | str = ""):
        super().__init__(said, str(ran))

    def __str__(self) -> str:
        said, ran = self.args
        return said + (f" (what ran is in {ran})" if Path(ran).is_file() else "")


def folder() -> Path:
    """The checkout's ``notebooks`` folder, else the one here."""
    return places.checkout() / "notebooks"


def find(name: str) -> Path:
    """A notebook by path, or by the start of its name below the notebooks folder.

    'nsatp/02' finds ``notebooks/nsatp/02_noise_sensitivity.ipynb``. Raises ``ValueError`` with
    the names there are if none or several match.
    """
    if name.endswith((".ipynb", ".py")) or Path(name).exists():
        path = Path(name)
        if path.suffix == ".py" and path.with_suffix(".ipynb").is_file():  # a chapter's source
            return path.with_suffix(".ipynb")
        if not path.is_file() or path.suffix != ".ipynb":
            raise ValueError(f"{name} is not a notebook (.ipynb)")
        return path
    known = {p.relative_to(folder()).with_suffix("").as_posix(): p
             for p in sorted(folder().glob("*/*.ipynb"))
             if ".nbconvert" not in p.suffixes}  # what `jupyter nbconvert --execute` leaves
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


def dealt(sources: list[Path], jobs: int) -> list[Path]:
    """The sources in an order in which ``jobs`` at a time are far apart: neighbours train alike.

    >>> dealt([Path(name) for name in "abcde"], jobs=2) == [Path(name) for name in "adbec"]
    True
    """
    size = -(-len(sources) // jobs)
    parts = [sources[start:start + size] for start in range(0, len(sources), size)]
    return [source for row in zip_longest(*parts) for source in row if source is not None]


def recorded(path: Path, values: dict) -> tuple[str, dict] | None:
    """The experiment and the parameters of the record that a run with ``values`` saves.

    As the chapter declared them (:class:`experiments.Experiment`) when it was made; None if it
    declares no experiment.

    >>> recorded(find("nss/04"), {"seed": 2})[0]
    'nss/diversity'
    """
    about = metadata(path).get("dnnlib", {})
    if "experiment" not in about:
        return None
    given = {name: p.default for name, p in parameters(path).items()} | values
    where = about["experiment"]
    return where, {declared.stored(name, where): declared.kept(name, given.get(name, value), where)
                   for name, value in about["parameters"].items()}


def run(path: Path, values: dict, output: Path, *, bar: bool = True) -> Path:
    """Execute a notebook with ``values`` into ``output``, with a progress bar.

    The cells' own bars and warnings go to the terminal. If a cell fails, what ran is in
    ``output``, and :class:`CellFailed` is raised. Cells of statements are left out, with headings
    that have nothing else below them: they speak of the book's records and of its own run. Below
    its title it says what is of this run and what is the book's. The book's markup becomes what
    any viewer shows (:func:`lab_cells.readable`). Raises what :func:`parameters.together` does
    before a cell runs.
    """
    import nbformat

    together(path, values)
    notebook = nbformat.read(path, as_version=4)
    every, notebook.cells = notebook.cells, _without_statements(notebook.cells)
    title = next((i for i, cell in enumerate(notebook.cells) if cell.cell_type == "markdown"), -1)
    left = [cell.source.strip("# \n") for cell in every
            if cell.cell_type == "markdown" and cell not in notebook.cells]
    notebook.cells.insert(title + 1, nbformat.v4.new_markdown_cell(_whose(values, left)))
    output.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, output)
    try:
        execute(output, output, parameters=values, cwd=path.parent, progress_bar=bar,
                stderr_file=sys.stderr)
    finally:
        ran = nbformat.read(output, as_version=4)
        nbformat.write(readable(ran, _handed_on(path)), output)
    return output


def web_page(path: Path) -> str:
    """A notebook that :func:`run` wrote as one page of HTML, folded where the book folds it.

    It holds what draws its equations too, so it needs no network.
    """
    from importlib import resources

    from jinja2 import DictLoader
    from nbconvert import HTMLExporter
    from traitlets.config import Config

    options = {"enabled": True, "remove_input_tags": {"remove-input", "remove-cell"}}
    exporter = HTMLExporter(config=Config(TagRemovePreprocessor=options), template_file="run.html",
                            extra_loaders=[DictLoader({"run.html": PAGE})])
    mathjax = resources.files("sphinx-mathjax-offline") / "static" / "mathjax" / "tex-svg.js"
    page, _ = exporter.from_filename(str(path), {"equations": mathjax.read_text("utf-8")})
    return page


def called(path: Path, values: dict) -> str:
    """The name of a run of a notebook with ``values``, which any file system can hold.

    >>> called(Path("01_motivation.ipynb"), {"dataset": "/me/fruit.py:ripe", "seed": 1})
    '01_motivation-dataset-_me_fruit.py_ripe-seed-1.ipynb'
    """
    tail = re.sub(r"[^\w.=-]", "_", "".join(f"-{name}-{value}" for name, value in values.items()))
    if len((path.stem + tail).encode()) > LONGEST:
        tail = f"-{files.digest(values)[:8]}"
    return f"{path.stem}{tail}.ipynb"


def _without_statements(cells: list) -> list:
    """The cells but those of statements, and but headings that had nothing else below them."""
    def level(cell) -> int:  # of a heading that stands alone; 7 is below all
        alone = cell.cell_type == "markdown" and re.fullmatch(r"(#+) .*", cell.source.strip())
        return len(alone[1]) if alone else 7

    kept: list = []
    for cell in reversed(cells):
        if statements.TAG in cell.metadata.get("tags", ()):
            continue
        below = kept[-1] if kept else None
        ended = below is None or (below.cell_type == "markdown" and re.match(
            rf"#{{1,{level(cell)}}} ", below.source))
        if level(cell) == 7 or not ended:
            kept.append(cell)
    return kept[::-1]


def _handed_on(path: Path) -> Page:
    """The page of a notebook that may be read anywhere: unknown markup in it stays as it is."""
    root = folder().resolve().parent
    name = path.resolve().with_suffix("")
    name = name.relative_to(root) if name.is_relative_to(root) else Path(name.name)
    return page_of(name.as_posix(), root, elsewhere=published, strict=False)


def _whose(values: dict, left: list[str]) -> str:
    headings = f", and so are their headings: {', '.join(f'*{each}*' for each in left)}"
    asked = ", ".join(f"`{name} = {value!r}`" for name, value in values.items())
    return (f"{OWN}, with {asked or 'the defaults'}. Numbers and figures are of "
            "this run. Only what says so is of the book's records: the column *ours* and its "
            "seeds, verdicts, and figures and tables *from the records*. They are as in the book. "
            f"Sentences about these records are left out{headings if left else ''}.")


def execute(path: Path, output: Path, **options) -> None:
    """papermill's ``execute_notebook``; raises :class:`CellFailed` if a cell does."""
    import papermill

    for name in ("DNNLIB_DATA", "DNNLIB_CACHE", "DNNLIB_RESULTS", "DNNLIB_BOOK"):
        if os.environ.get(name):  # the kernel runs in the notebook's folder
            os.environ[name] = str(Path(os.environ[name]).expanduser().resolve())
    for again in (True, True, False):
        try:
            papermill.execute_notebook(  # quiet: a kernel calls an interrupted shutdown an error
                path, output, kernel_name="python3", language="python",
                extra_arguments=["--log-level=CRITICAL"], **options)
            return
        except papermill.PapermillExecutionError as error:
            raise CellFailed(f"cell {error.exec_count} of {path.name}: {error.ename}: "
                             f"{error.evalue}", output) from error
        except RuntimeError as error:  # another kernel took its port while it started
            if not again or "before replying" not in str(error):
                raise


def repository() -> str:
    """The book's own address: ``$DNNLIB_REPOSITORY``, else that in ``_config.yml``; '' for none."""
    if url := os.environ.get("DNNLIB_REPOSITORY"):
        return url
    import yaml

    return yaml.safe_load((folder().parent / "_config.yml").read_text("utf-8"))["repository"]["url"]


def published(file: str) -> str:
    """The address of a file of the repository, if the book has one; ''."""
    import yaml

    config = folder().parent / "_config.yml"
    if not config.is_file() or not (url := repository()):
        return ""
    branch = yaml.safe_load(config.read_text("utf-8"))["repository"]["branch"]
    return f"{url.removesuffix('.git')}/blob/{branch}/{file}"


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
    import jupytext
    import nbformat
    from papermill.iorw import load_notebook_node

    about = defaults.declared(source)
    if about and (forgotten := undeclared(about, defaults.asked(source))):
        raise ValueError(f"{source}: its Experiment does not name {', '.join(forgotten)}, so that "
                         "runs with other values would replace each other's records")
    os.environ["TQDM_DISABLE"] = "1"  # read by the kernel: bars do not belong in a page
    os.environ["PYTHONHASHSEED"] = "0"
    work = files.cache_dir() / "notebooks" / source.parent.name
    work.mkdir(parents=True, exist_ok=True)
    fresh, done = work / f"{source.stem}.in.ipynb", work / f"{source.stem}.ipynb"
    notebook = jupytext.read(source)
    if fetch := fetching():
        cell = nbformat.v4.new_code_cell(fetch, metadata={"tags": ["remove-cell"]})
        notebook.cells.insert(0, cell)
    extra = [READ, *solutions(notebook)]  # run behind the chapter, and not kept
    notebook.cells += [nbformat.v4.new_code_cell(code) for code in extra]
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3",
                                    "language": "python"}
    nbformat.write(notebook, fresh)
    os.environ[MAKING] = "1"
    try:
        execute(fresh, done, cwd=source.parent, progress_bar=False)
    finally:
        del os.environ[MAKING]
    place = into / source.parent.name if into else source.parent
    product = place / f"{source.stem}.ipynb"
    ran = load_notebook_node(str(done))
    said = ran.cells[-len(extra)].outputs[0].text
    del ran.cells[-len(extra):]
    about["reads"] = json.loads(said)
    text = nbformat.writes(_normalised(ran, about)) + "\n"
    files.write_atomically(product, text.encode())
    return product


def declaring() -> dict[str, Path]:
    """The first notebook that declares each experiment, as they were made.

    >>> declaring()["nsatp/rq1"].name
    '02_noise_sensitivity.ipynb'
    """
    found: dict[str, Path] = {}
    for path in starting([], ".ipynb"):
        if (about := recorded(path, {})) is not None:
            found.setdefault(about[0], path)
    return found


def solutions(notebook) -> list[str]:
    """The Python that solutions of exercises give as code, in the order of the chapter."""
    from markdown_it import MarkdownIt

    def fences(text: str) -> list:
        return [token for token in MarkdownIt().parse(text) if token.type == "fence"]

    return [inner.content for cell in notebook.cells if cell.cell_type == "markdown"
            for outer in fences(cell.source) if outer.info.startswith("{admonition} Solution")
            for inner in fences(outer.content) if inner.info == "python"]


def kept(given: dict) -> dict:
    """What a made notebook keeps of a cell's metadata: its tags, its caption, and its folding.

    The book reads a tag where JupyterLab reads an entry of its own, and so it is written too.

    >>> kept({"tags": ["hide-input"], "papermill": {}})
    {'tags': ['hide-input'], 'jupyter': {'source_hidden': True}}
    """
    found = {name: given[name] for name in KEPT_METADATA if given.get(name)}
    if folded(set(given.get("tags", ()))):
        found["jupyter"] = {"source_hidden": True}
    return found


def stale(path: Path) -> bool:
    """Whether the records that a made notebook shows have changed since it was made."""
    about = metadata(path).get("dnnlib", {})
    return about.get("state") != records.state(about.get("reads", ()))


def _normalised(notebook, about: dict):
    """Drop what differs between two runs, name cells by place and text, keep what was declared."""
    notebook.metadata = type(notebook.metadata)(
        kernelspec=notebook.metadata.kernelspec, language_info={"name": "python"},
        dnnlib=about | {"state": records.state(about["reads"])})
    for i, cell in enumerate(notebook.cells):
        cell.metadata = type(cell.metadata)(kept(cell.metadata))
        cell.id = f"{i:02d}-{files.digest(cell.source)[:8]}"
        for output in cell.get("outputs", ()):
            output.pop("transient", None)
            output.get("metadata", {}).clear()
    return notebook
