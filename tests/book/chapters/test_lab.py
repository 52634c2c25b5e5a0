"""The folder for JupyterLab: what it shows of each chapter, and that a reader's copy stays."""

import json
import os
import re
from html import escape

import jupytext
import nbformat
import pytest
from markdown_it import MarkdownIt

from dnnbook import places
from dnnbook.chapters import lab, lab_cells, notebooks
from dnnbook.chapters.lab_markup import UnknownMarkup

ROOT = notebooks.folder().resolve().parent
TOC = """\
root: notebooks/one/00_welcome
parts:
  - caption: Opening
    chapters:
      - file: book/api
      - file: book/glossary
      - file: notebooks/one/01_first
"""
FIRST = """\
# A first chapter

A {term}`pass`, see [the start](00_welcome).

```{admonition} Solution
:class: dropdown
Yes.
```"""


def chapter(*sources):
    cells = [nbformat.v4.new_markdown_cell(source, id=f"m{i}") for i, source in enumerate(sources)]
    return nbformat.v4.new_notebook(cells=cells, metadata={
        "kernelspec": {"name": "python3", "display_name": "Python 3",
                       "language": "python"}})


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A small book: a page, two chapters; the second by ``first(text)``."""
    root = tmp_path / "checkout"
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    monkeypatch.setattr(notebooks, "folder", lambda: root / "notebooks")
    files = {"_toc.yml": TOC, "_config.yml": "repository: {url: '', branch: main}",
             "book/glossary.md": "# Words\n\n```{glossary}\npass\n    Once through.\n```",
             "sweeps/paper.toml": '[[grid]]\nnotebook = "one/01"\nminutes = 4\n'}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "notebooks" / "one").mkdir(parents=True)
    nbformat.write(chapter("# Welcome"), root / "notebooks" / "one" / "00_welcome.ipynb")

    def first(text=FIRST):
        nbformat.write(chapter(text), root / "notebooks" / "one" / "01_first.ipynb")

    first()
    return first


def names(paths):
    return [path.name for path in paths]


def test_the_folder_has_a_start_page_and_numbered_chapters(book, tmp_path):
    new, kept = lab.write(tmp_path / "checkout" / "runs" / "lab")
    assert names(new) == ["00_start.ipynb", "01_welcome.ipynb", "02_glossary.ipynb", "03_first.ipynb"]
    assert not kept and {p.name for p in new[0].parent.iterdir()} == {places.MADE, *names(new)}
    start = nbformat.read(new[0], 4).cells[0].source
    assert "| [03 A first chapter](03_first.ipynb) | one/01 | about 5 min to read, 10 for exercises; " \
           "at paper scale 4 min on one core |" in start
    first = nbformat.read(new[3], 4)
    assert '<abbr title="Once through.">pass</abbr>, see [the start](01_welcome.ipynb)' in first.cells[0].source
    assert first.cells[-1].source == "---\n\n[← Words](02_glossary.ipynb) · [Contents](00_start.ipynb)"
    assert first.cells[0].source.startswith("# A first chapter\n\n*`dnnbook run one/01`*\n")
    assert "Change a parameter, or any" in start and "dnnbook run" not in nbformat.read(new[2], 4).cells[0].source
    assert lab.write(tmp_path / "checkout" / "runs" / "lab") == ([], [])  # nothing is new


def test_a_chapter_leads_to_its_page_if_the_book_has_an_address(book, tmp_path, monkeypatch):
    monkeypatch.setenv("DNNLIB_REPOSITORY", "https://git.example.org/a/book.git")
    new, _ = lab.write(tmp_path / "lab")
    ways = {path.name: nbformat.read(path, 4).cells[-1].source for path in new}
    place = "https://git.example.org/a/book/blob/main"
    assert f"[In the book]({place}/notebooks/one/01_first.ipynb)" in ways["03_first.ipynb"]
    assert f"[In the book]({place}/book/glossary.md)" in ways["02_glossary.ipynb"]


def test_the_start_page_says_how_links_to_pages_come(book, tmp_path, monkeypatch):
    def start():
        lab.write(tmp_path / "lab")
        return nbformat.read(tmp_path / "lab" / lab.START, 4).cells[0].source

    assert "run `make html`" in start()
    welcome = tmp_path / "checkout" / "_build" / "html" / "notebooks" / "one" / "00_welcome.html"
    welcome.parent.mkdir(parents=True)
    welcome.write_text("<h1>Welcome</h1>")
    assert "make html" not in start()
    welcome.unlink()
    monkeypatch.setenv("DNNLIB_REPOSITORY", "https://git.example.org/a/book.git")
    assert "make html" not in start()


def test_a_chapter_leads_to_its_page_where_the_book_was_built(book, tmp_path):
    folder, root = tmp_path / "lab", tmp_path / "checkout"
    lab.write(folder)
    mine = folder / "02_glossary.ipynb"
    mine.write_text(mine.read_text().replace("Once", "Twice"))
    changed = mine.read_bytes()
    built = root / "_build" / "html" / "notebooks" / "one" / "01_first.html"
    built.parent.mkdir(parents=True)
    built.write_text("<h1>A first chapter</h1>")
    new, kept = lab.write(folder)
    assert names(new) == ["03_first.ipynb"] and kept == [mine] and mine.read_bytes() == changed
    leads = nbformat.read(new[0], 4).cells[-1].source
    assert leads.endswith("[Its page](/static/notebooks/one/01_first.html)")
    mine = new[0]
    mine.write_text(mine.read_text().replace("Yes.", "No!"))
    built.unlink()
    assert lab.write(folder)[0] == [] and not list(folder.glob("*new*"))  # a link is no new chapter


def test_what_a_reader_changed_is_never_overwritten(book, tmp_path):
    folder = tmp_path / "elsewhere"
    lab.write(folder)
    mine = folder / "03_first.ipynb"
    mine.write_text(mine.read_text().replace("Yes.", "No!"))
    changed = mine.read_bytes()
    assert lab.write(folder) == ([], [mine])  # the chapter is the one it was changed from
    book(FIRST.replace("Yes.", "Perhaps."))
    beside = folder / "03_first (new).ipynb"
    assert lab.write(folder) == ([beside], [mine])
    assert mine.read_bytes() == changed and "Perhaps." in beside.read_text()
    beside.write_text("{}")  # that one is changed too
    book(FIRST.replace("Yes.", "Never."))
    new, kept = lab.write(folder)
    assert names(new) == ["03_first (new) (new).ipynb"] and kept == [mine, beside]
    assert mine.read_bytes() == changed and beside.read_text() == "{}"


def test_an_unchanged_copy_follows_the_book_and_goes_with_its_chapter(book, tmp_path):
    folder = tmp_path / "elsewhere"
    lab.write(folder)
    (folder / "notes.txt").write_text("mine")
    book(FIRST.replace("Yes.", "Perhaps."))
    assert names(lab.write(folder)[0]) == ["03_first.ipynb"]
    (tmp_path / "checkout" / "_toc.yml").write_text(TOC.replace("      - file: book/glossary\n", ""))
    lab.write(folder)
    assert sorted(names(folder.iterdir())) == [
        ".made.json", "00_start.ipynb", "01_welcome.ipynb", "02_first.ipynb", "notes.txt"]


@pytest.mark.parametrize(("user", "asked"), [(0, True), (1000, False)])
def test_only_root_asks_to_be_let_in(book, tmp_path, monkeypatch, user, asked):
    monkeypatch.setattr(os, "geteuid", lambda: user, raising=False)
    started = []
    monkeypatch.setattr(lab.subprocess, "run", started.append)
    lab.show(tmp_path)
    assert ("--allow-root" in started[0]) is asked


@pytest.mark.parametrize("place", [".", "notebooks", "book/lab"])
def test_the_book_itself_is_no_folder_for_it(book, tmp_path, place):
    with pytest.raises(ValueError, match="expected a folder of your own, such as _build/lab, got"):
        lab.write(tmp_path / "checkout" / place)
    assert not (tmp_path / "checkout" / place / places.MADE).exists()


def test_unknown_markup_names_chapter_cell_and_line(book, tmp_path):
    book("# One\n\n{nod}`x`")
    with pytest.raises(UnknownMarkup, match=r"notebooks/one/01_first, cell 0, line 3: the role \{nod\}"):
        lab.write(tmp_path / "lab")
    assert not list((tmp_path / "lab").glob("*.ipynb"))


def test_captions_words_and_folding_are_those_of_the_book(book):
    code = nbformat.v4.new_code_cell("draw()", id="c", metadata={
        "tags": ["hide-input", "hide-output"],
        "mystnb": {"figure": {"caption": "A {term}`pass` in $x$.", "name": "fig-x"}}})
    code.outputs = [nbformat.v4.new_output("display_data", {"image/png": "iVBO\n", "text/plain": "<Figure>"}),
                    nbformat.v4.new_output("display_data", {"text/markdown": "[it](00_welcome)"}),
                    nbformat.v4.new_output("stream", name="stderr", text="\r50 %|###   |"),
                    nbformat.v4.new_output("display_data"),
                    nbformat.v4.new_output("stream", name="stderr", text="Warning: few\n")]
    forests = nbformat.v4.new_code_cell("run.verdicts()", id="f", outputs=[
        nbformat.v4.new_output("display_data", {"image/png": "iVBO"})])
    given = chapter()
    given.cells = [code, forests]
    before = json.dumps(given)
    page = lab_cells.page_of("notebooks/one/01_first", notebooks.folder().parent,
                             beside={"notebooks/one/00_welcome": "01_welcome.ipynb"})
    first, caption, second = lab_cells.readable(given, page).cells
    assert json.dumps(given) == before
    assert first.metadata["jupyter"] == {"source_hidden": True, "outputs_hidden": True}
    assert set(first.outputs[0].data) == {"text/html", "text/plain"}
    assert '<img alt="A pass in x."' in first.outputs[0].data["text/html"]
    assert 'src="data:image/png;base64,iVBO"' in first.outputs[0].data["text/html"]
    assert first.outputs[1].data["text/markdown"] == "[it](01_welcome.ipynb)"
    assert [output.text for output in first.outputs[2:]] == ["Warning: few\n"]
    assert caption.source == '*Figure.* A <abbr title="Once through.">pass</abbr> in $x$.'
    assert escape(lab_cells.FORESTS) in second.outputs[0].data["text/html"]


RUN = """\
# %% [markdown]
# # A chapter
#
# A {term}`pass` and a {term}`word of mine`; [it](00_welcome).

# %% tags=["parameters"]
seed = 0

# %% [markdown]
# ## What it says of the records

# %% tags=["statements"]
raise SystemError

# %% [markdown]
# ## Seen

# %% tags=["hide-input"] mystnb={"figure": {"caption": "One dot.", "name": "fig-x"}}
import matplotlib.pyplot as plt
plt.plot([0], [0])
plt.show()
print("done")

# %%
1 / seed
"""


def test_a_run_is_shown_so_too_and_as_a_page_of_its_own(book, tmp_path):
    source = notebooks.folder() / "one" / "01_first.ipynb"
    given = jupytext.reads(RUN, fmt="py:percent")
    given.metadata = chapter().metadata
    nbformat.write(given, source)
    ran = notebooks.run(source, {"seed": 2}, tmp_path / "run.ipynb", bar=False)
    cells = nbformat.read(ran, 4).cells
    assert '<abbr title="Once through.">pass</abbr> and a {term}`word of mine`; it.' in cells[0].source
    assert "## Seen" in [cell.source for cell in cells]
    assert not any("## What it says" in cell.source for cell in cells)  # nothing is below it
    figure = next(i for i, cell in enumerate(cells) if "hide-input" in cell.metadata.get("tags", ()))
    assert '<img alt="One dot."' in cells[figure].outputs[0].data["text/html"]
    assert cells[figure + 1].source == "*Figure.* One dot."
    page = notebooks.web_page(ran)
    assert 'alt="One dot."' in page and "0.5" in page
    assert "<script src=" not in page  # what draws its equations is part of it
    assert "plot" not in page.partition("<details><summary>Code</summary>")[0].partition("<body")[2]
    with pytest.raises(notebooks.CellFailed, match="ZeroDivisionError"):
        notebooks.run(source, {}, ran, bar=False)
    assert '<img alt="One dot."' in ran.read_text("utf-8").replace('\\"', '"')  # what ran is shown so


# The book

PARSER = MarkdownIt("commonmark", {"html": True}).enable("table")
RAW = re.compile(r"\{[a-z][\w:+-]*\}`|^ *(`{3,}|~{3,}|:{3,})\{|^:[\w-]+: |^\([\w-]+\)=$|:{3,}", re.M)


@pytest.fixture(scope="module")
def made():
    """The whole book as it is written for JupyterLab, by name."""
    return dict(lab._made(ROOT))


def test_the_start_page_leads_to_the_first_chapter_with_parameters(made):
    start = made[lab.START].cells[0].source
    asks = next(name for name in sorted(made) if any("parameters" in cell.metadata.get("tags", ()) for cell in made[name].cells))
    assert re.search(rf"Change a parameter \(the first chapter that has some is \[[^]]+\]\({asks}\)\),", start)


def prose(text):
    """What is read of a text: without code."""
    return "\n".join(token.content for token in PARSER.parse(text)
                     if token.type in ("inline", "html_block"))


def texts(notebook):
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            yield cell.source
        for output in cell.get("outputs", ()):
            yield output.get("data", {}).get("text/markdown", "")


def test_no_chapter_shows_raw_markup(made):
    assert len(made) > len(list(notebooks.folder().glob("*/*.ipynb")))
    for name, notebook in made.items():
        for text in texts(notebook):
            read = re.sub(r"(`+).+?\1", "", prose(text), flags=re.S)
            assert not RAW.search(read), f"{name}: {RAW.search(read)[0]} in {read[:200]}"


def test_every_solution_is_folded(made):
    asked = sum((ROOT / f"{page}.ipynb").read_text("utf-8").count("{admonition} Solution")
                for _, pages in lab.parts(ROOT) for page in pages if page.startswith("notebooks/"))
    folded = 0
    for name, notebook in made.items():
        for text in texts(notebook):
            outside = re.sub(r"<details>.*?</details>", "", text, flags=re.S)
            assert "Solution" not in outside and "details>" not in outside, name
            folded += text.count("<details><summary>Solution</summary>\n\n")
    assert folded >= asked > 100  # and those of the pages


def test_every_picture_has_words_and_every_caption_is_shown(made):
    for name, notebook in made.items():
        for number, cell in enumerate(notebook.cells):
            shown = [cell.source] if cell.cell_type == "markdown" else [
                output.data.get("text/html", "") for output in cell.outputs if "data" in output]
            assert not any("image/png" in output.get("data", {}) and "text/html" not in output.data
                           for output in cell.get("outputs", ())), f"{name}, cell {number}"
            for image in re.findall(r"<img\b[^>]*>", "".join(shown)):
                assert re.search(r'alt="[^"]+"', image), f"{name}, cell {number}: {image[:80]}"
    captions = [text for notebook in made.values() for text in texts(notebook)
                if text.startswith("*Figure.* ")]
    assert len(captions) == sum(
        bool(cell["metadata"].get("mystnb", {}).get("figure", {}).get("caption"))
        for path in notebooks.folder().glob("*/*.ipynb")
        for cell in json.loads(path.read_text("utf-8"))["cells"])


def test_every_link_leads_to_a_file_that_lies_there(made):
    for name, notebook in made.items():
        html = [output.data.get("text/html", "") for cell in notebook.cells
                for output in cell.get("outputs", ()) if "data" in output]
        targets = re.findall(r'<a\b[^>]*\bhref="([^"]*)"', "".join(html))
        targets += [token.attrs["href"] for text in texts(notebook) for block in PARSER.parse(text)
                    for token in block.children or () if token.type == "link_open"]
        lost = {target for target in targets if not re.match(r"https?://|#", target)
                and target.split("#")[0] not in made
                and not (ROOT / lab.BUILD / target.removeprefix("/static/")).is_file()}
        assert not lost, f"{name}: {lost}"


def test_a_check_that_runs_first_says_that_there_is_no_answer(capsys):
    check = "def is_right(answer):\n    lacking\n\n\nis_right(my_sum)"
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(check)])
    page = lab_cells.page_of("notebooks/nss/02_fault_detection", notebooks.folder().parent)
    source = lab_cells.readable(book, page).cells[0].source
    exec(source, {})
    assert capsys.readouterr().out == "No answer yet.\n"
    with pytest.raises(NameError, match="lacking"):  # an answer is looked at
        exec(source, {"my_sum": 0})
