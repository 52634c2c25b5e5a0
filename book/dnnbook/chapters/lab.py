"""A folder of the book for JupyterLab: a start page, then each chapter as one numbered notebook.

Readers change and run what lies there. What they changed is kept when the folder is made again.
"""

import json
import os
import platform
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from dnnbook import places
from dnnbook.chapters import lab_cells, notebooks, times
from dnnlib import checks, files

START = "00_start.ipynb"
BUILT = ("book/api", "book/architecture", "book/papers", "book/references",
         "book/replayed")  # drawn by the build
OURS = ("_build", "runs")  # folders of the checkout that git ignores
BUILD = "_build/html"
ITS_PAGE = re.compile(rb" \xc2\xb7 \[(?:Its page|In the book)\]\([^)]*\)")
KERNEL = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
LANGUAGE = {"name": "python", "version": platform.python_version(), "mimetype": "text/x-python",
            "codemirror_mode": {"name": "ipython", "version": 3}, "pygments_lexer": "ipython3",
            "nbconvert_exporter": "python", "file_extension": ".py"}  # as the kernel says: a
# notebook that only was opened stays as it was made
HOW = """\
Open a chapter and choose *Run*, then *Run All Cells*. Change a parameter{first}, or any line of
code, and run it again. Code that prepares or draws something is folded: the bar beside it opens it.
A solution opens below its question.

What you change here is yours. It does not change the book or its records, and it is never
overwritten. If a chapter that you changed is new in the book, the new one lies beside yours; its
name ends in *(new)*."""
UNBUILT = """
The chapters have no links to their pages yet, since the book was not built here: run `make html`,
which takes about a minute, and then `make lab` again."""


def write(folder: Path) -> tuple[list[Path], list[Path]]:
    """Write the book into ``folder``, which may hold an earlier one; what is new, and what is kept.

    A file that differs from what was written there is the reader's, and stays. If its chapter has
    changed since, the new one is written beside it as ``<name> (new).ipynb``. Files of chapters
    that are no more are removed unless they are changed. Raises ``ValueError`` for a folder in
    which git keeps files of the book.
    """
    import nbformat
    from nbformat.sign import NotebookNotary

    root = notebooks.folder().resolve().parent
    folder = folder.resolve()
    inside = folder.relative_to(root).parts if folder.is_relative_to(root) else OURS
    if not inside or inside[0] not in OURS:
        raise ValueError(f"expected a folder of your own, such as _build/lab, got {folder}, "
                         "in which the book itself lies")
    folder.mkdir(parents=True, exist_ok=True)
    notes = folder / places.MADE
    before: dict[str, str] = json.loads(notes.read_text("utf-8")) if notes.is_file() else {}
    after, new, kept = dict(before), [], []
    made, notary = dict(_made(root)), NotebookNotary()
    for name, notebook in made.items():
        content = (nbformat.writes(notebook) + "\n").encode()
        path, digest = folder / name, _digest(content)
        while path.exists() and _digest(path.read_bytes()) not in (digest, after.get(path.name)):
            kept.append(path)  # the reader's
            if after.get(path.name) == digest:  # and made from this very chapter
                break
            path = path.with_stem(f"{path.stem} (new)")
        else:
            if not path.exists() or path.read_bytes() != content:
                files.write_atomically(path, content)
                notary.sign(notebook)  # as the book has it: its scripts may draw
                new.append(path)
            after[path.name] = digest
    notary.store.close()
    for name in set(before) - {n for n in after if n.replace(" (new)", "") in made}:
        if (folder / name).is_file() and _digest((folder / name).read_bytes()) == before[name]:
            (folder / name).unlink()
        del after[name]
    files.write_atomically(notes, json.dumps(after, indent=1).encode())
    return new, kept


def default() -> Path:
    """Where ``make lab`` writes: ``_build/lab`` of the checkout, else here."""
    return notebooks.folder().resolve().parent / "_build" / "lab"


def show(folder: Path) -> None:
    """Open ``folder`` in JupyterLab at its start page, until it is stopped."""
    with checks.extra("lab", "book"):
        import jupyterlab  # noqa: F401

    subprocess.run([sys.executable, "-m", "jupyterlab", *options(folder)])


def options(folder: Path) -> list[str]:
    """What JupyterLab is told: the folder and its start page, and where the built pages lie.

    It serves them as they are below ``/static``; its own view of HTML has no styles and scripts.
    Root, as in a container, has to ask for it.
    """
    pages = notebooks.folder().resolve().parent / BUILD
    root = getattr(os, "geteuid", lambda: None)() == 0  # Windows has none
    return [*["--allow-root"] * root, f"--ServerApp.root_dir={folder.resolve()}",
            f"--ServerApp.extra_static_paths={pages}", f"--LabApp.default_url=/lab/tree/{START}"]


def parts(root: Path) -> Iterator[tuple[str, list[str]]]:
    """The parts of the book with their pages, in its order, without pages only the build can make.

    >>> next(parts(notebooks.folder().parent))[1][0]
    'notebooks/synthesis/00_welcome'
    """
    import yaml

    contents = yaml.safe_load((root / "_toc.yml").read_text("utf-8"))
    first = [contents["root"]]
    for part in contents["parts"]:
        pages = first + [chapter["file"] for chapter in part["chapters"]]
        yield part["caption"], [page for page in pages if not page.startswith(BUILT)]
        first = []


def named(pages: list[str]) -> dict[str, str]:
    """The file of each page, numbered in the order of the book.

    >>> named(["notebooks/synthesis/00_welcome", "book/neuron"])["book/neuron"]
    '02_neuron.ipynb'
    """
    return {page: f"{number:02d}_{re.sub(r'^[0-9]+_', '', Path(page).name)}.ipynb"
            for number, page in enumerate(pages, 1)}


def titles(root: Path) -> dict[str, str]:
    """The title of each page of the book, by its name.

    >>> titles(notebooks.folder().resolve().parent)["book/teaching"]
    'For teachers'
    """
    return {page: _title(_read(root, page)) for _, pages in parts(root) for page in pages}


def _made(root: Path) -> Iterator[tuple[str, object]]:
    """The name and the notebook of each file: the start page, then the pages of the book."""
    import nbformat

    book = dict(parts(root))
    beside = named([page for pages in book.values() for page in pages])
    read = {page: _read(root, page) for page in beside}
    titles = {page: _title(notebook) for page, notebook in read.items()}
    yield START, _page("start", _start(root, book, beside, titles, read))
    order = list(beside)
    for number, page in enumerate(order):
        place = lab_cells.page_of(page, root, beside=beside, titles=titles,
                                  elsewhere=notebooks.published)
        notebook = lab_cells.readable(read[page], place)
        if name := _called(page):
            first = next(cell for cell in notebook.cells if cell.cell_type == "markdown")
            title, _, rest = first.source.partition("\n")
            first.source = f"{title}\n\n*`dnnbook run {name}`*\n{rest}"
        back, on = order[:number][-1:], order[number + 1:][:1]
        ways = " · ".join([*(f"[← {titles[page]}]({beside[page]})" for page in back),
                           f"[Contents]({START})",
                           *(f"[{titles[page]} →]({beside[page]})" for page in on),
                           *_of_the_book(root, page)])
        notebook.cells.append(nbformat.v4.new_markdown_cell(f"---\n\n{ways}", id="ways"))
        notebook.metadata |= {"kernelspec": KERNEL, "language_info": LANGUAGE}
        yield beside[page], notebook


def _of_the_book(root: Path, page: str) -> Iterator[str]:
    """A link to the page as it was built; else to its file in the repository, if that is known."""
    if (root / BUILD / f"{page}.html").is_file():
        yield f"[Its page](/static/{page}.html)"  # as :func:`show` serves it
        return
    file = next(f"{page}{end}" for end in (".ipynb", ".md") if (root / f"{page}{end}").is_file())
    if address := notebooks.published(file):
        yield f"[In the book]({address})"


def _start(root: Path, book: Mapping, beside: Mapping, titles: Mapping, read: Mapping) -> str:
    grids = tomllib.loads((root / "sweeps" / "paper.toml").read_text("utf-8"))["grid"]
    asks = next((page for page, notebook in read.items() if any(
        "parameters" in cell.metadata.get("tags", ()) for cell in notebook.cells)), None)
    first = asks and f" (the first chapter that has some is [{titles[asks]}]({beside[asks]}))"
    lines = ["# Which inputs break a neural network?", "", HOW.format(first=first or "")]
    if not any(_of_the_book(root, next(iter(read)))):
        lines.append(UNBUILT)
    for part, pages in book.items():
        lines += ["", f"## {part}", "", "| | `dnnbook run` | |", "|---|---|---|"]
        for page in pages:
            chapter = page.removeprefix("notebooks/")
            words, exercises = _counted(read[page])
            scale = times.at_paper_scale(chapter, grids) if chapter != page else ""
            lines.append(f"| [{beside[page][:2]} {titles[page]}]({beside[page]}) "
                         f"| {_called(page)} | {times.worded(words, exercises, scale)} |")
    return "\n".join(lines) + "\n"


def _called(page: str) -> str:
    """What the commands call a chapter; '' for a page of prose.

    >>> _called("notebooks/nsatp/02_noise_sensitivity"), _called("book/neuron")
    ('nsatp/02', '')
    """
    found = re.match(r"notebooks/(\w+/\d+)_", page)
    return found[1] if found else ""


def _counted(notebook) -> tuple[int, int]:
    """The words of a chapter, with its code that can be opened, and its exercises."""
    texts = [cell.source for cell in notebook.cells
             if not {"remove-input", "remove-cell"} & set(cell.metadata.get("tags", ()))]
    return sum(len(text.split()) for text in texts), sum(
        text.count("{admonition} Solution") for text in texts)


def _read(root: Path, page: str):
    import nbformat

    chapter = root / f"{page}.ipynb"
    if chapter.is_file():
        return nbformat.read(chapter, as_version=4)
    return _page(Path(page).name, (root / f"{page}.md").read_text("utf-8"))


def _page(name: str, text: str):
    """A text as a notebook, which every viewer shows rendered."""
    import nbformat

    return nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_markdown_cell(text, id=name)],
        metadata={"kernelspec": KERNEL, "language_info": LANGUAGE})


def _title(notebook) -> str:
    """The first heading."""
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return re.search(r"^# (.+)$", text, re.M)[1]


def _digest(content: bytes) -> str:
    """Of a file without its link to the page in the book, which is there where the book was built.

    >>> _digest("[One](a) · [Its page](/static/b.html)".encode()) == _digest(b"[One](a)")
    True
    """
    return sha256(ITS_PAGE.sub(b"", content)).hexdigest()
