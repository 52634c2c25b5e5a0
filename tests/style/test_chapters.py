"""What chapters look like: rules of layout, checked by `make lint`."""

import json
import re
from collections import Counter

import jupytext
import pytest

from dnnbook.chapters import lab_cells, notebooks
from dnnbook.chapters.statements import TAG
from tests.book.committed import BOOK, SOURCES, code, pair, product, tags

MACHINE = ("/work/", "/tmp/", "/root/", "/home/")


def figures(source):
    """Name and caption of each cell that shows a picture."""
    return [cell.metadata.get("mystnb", {}).get("figure", {}) for cell in code(source)
            if any(mime.startswith("image/") for o in cell.outputs for mime in o.get("data", ()))
            and "run.verdicts(" not in cell.source]  # forest plots carry their claims as titles


@pair
def test_one_parameters_cell_and_none_injected(source):
    found = Counter(tag for cell in product(source).cells for tag in tags(cell))
    optional = source.parent.name == "synthesis" or source.name.startswith("00_")
    assert found["parameters"] in ((0, 1) if optional else (1,))
    assert "injected-parameters" not in found
    if found["parameters"]:
        known = notebooks.parameters(source.with_suffix(".ipynb"))
        assert known and all(p.help for p in known.values())


BOOKKEEPING = re.compile(r"rows\s*\+?=|records\.|run\.(add|save|beside|recorded|verdicts)"
                         r"|\.pivot|wide\("
                         r"|\.unstack|\.query\(|assign\(|DataFrame\(|\.merge\(|plt\.show"
                         r"|set_index|rename\(")


def visible(source) -> list[list[str]]:
    """The lines of code that a reader of the page sees, but parameters, cell by cell."""
    return [[line for line in cell.source.splitlines() if line.strip()]
            for cell in code(source) if not (lab_cells.FOLDED | {"parameters"}) & set(tags(cell))]


@pair
def test_what_a_reader_sees_of_the_code_is_the_method(source):
    cells = visible(source)
    assert max(map(len, cells), default=0) <= 15
    lines = [line for cell in cells for line in cell]
    kept = sum(bool(BOOKKEEPING.search(line)) for line in lines)
    assert kept <= len(lines) - kept


def test_chapters_stay_short():
    """Lines of code a chapter, which grew until experiments were declared in one place, and by six
    when the methods came to stand open.

    Prose is not counted, as plain sentences are longer than compressed ones, nor are statements,
    which are prose with the records behind it, nor imports. Exercises have a limit of their own.
    """
    run, asked = 0, 0
    for path in SOURCES:
        below = False
        for cell in jupytext.read(path).cells:
            lines = 2 + sum(not line.startswith(("from ", "import ")) for line in re.sub(
                r"(?m)^from \S+ import \([^)]*\)$", "import x", cell.source).splitlines())
            below = below or "## Exercises" in cell.source
            if below:
                asked += lines
            elif cell.cell_type == "code" and not {"statements", "records"} & set(
                    cell.metadata.get("tags", ())):
                run += lines
    assert run <= 125 * len(SOURCES) and asked <= 58 * len(SOURCES)


@pair
def test_no_heading_of_a_table_is_a_code(source):
    pages = ["".join(o.get("data", {}).get("text/html", "")) for c in code(source)
             for o in c.outputs]
    assert [heading for page in pages for heading in
            re.findall(r"<th[^>]*>\s*([^<]*\w_\w[^<]*?)\s*</th>", page)] == []


@pair
def test_lists_in_parameters_are_read_by_one_helper(source):
    """papermill reads ``-p bounds 1`` as a number, where the default is the text "1 2"."""
    lists = [p.name for p in notebooks.parameters(source.with_suffix(".ipynb")).values()
             if isinstance(p.default, str) and re.fullmatch(r"[\d., ]*\d[\d., ]*", p.default)]
    text = "\n".join(cell.source for cell in code(source))
    assert not [name for name in lists if re.search(rf"\b{name}\)?\.split\(", text)]


@pair
def test_figures_have_caption_and_name(source):
    for figure in figures(source):
        assert figure.get("caption", "").strip() and figure.get("name", "").startswith("fig-")
    announced = [c for c in code(source) if "figure" in c.metadata.get("mystnb", {})]
    assert len(announced) == len(figures(source))  # each caption has its picture


SHOWS_INPUTS = re.compile(r"plots\.(images|sheet|corner_sheet|magnified)\(|imshow\(")


@pair
def test_figures_of_inputs_say_so_and_are_not_turned_in_the_dark_theme(source):
    for cell in code(source):
        if SHOWS_INPUTS.search(cell.source) and (about := cell.metadata.get("mystnb")):
            assert about["figure"].get("classes") == "bitmap", about["figure"]["name"]


def test_figure_names_are_unique_over_the_book():
    names = Counter(f.get("name") for source in BOOK for f in figures(source))
    assert [name for name, n in names.items() if n > 1] == []


@pair
def test_outputs_name_no_folder_of_a_machine(source):
    texts = [json.dumps({k: v for k, v in o.get("data", {}).items() if not k.startswith("image/p")})
             + o.get("text", "") for cell in code(source) for o in cell.outputs]
    assert [t for t in texts if any(folder in t for folder in MACHINE)] == []


@pytest.mark.parametrize("source", sorted(notebooks.folder().glob("*/*.py")),
                         ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_cell_of_statements_is_short(source):
    """What it computes is a function of `studies.findings`, and it reads as its sentences do."""
    long = [cell.source for cell in jupytext.read(source).cells
            if TAG in cell.metadata.get("tags", ())
            and sum(bool(line.strip()) for line in cell.source.splitlines()) > 15]
    assert long == []
