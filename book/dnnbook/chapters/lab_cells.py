"""A chapter as a notebook for JupyterLab, VS Code and Colab, in place of one for the book."""

import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from functools import cache
from html import escape
from pathlib import Path

from dnnbook.chapters.lab_markup import Page, html, markdown, plain, terms

__all__ = ["FOLDED", "FORESTS", "folded", "page_of", "readable"]

CHECKED = re.compile(r"^(?:if answered\(.*\): )?is_right\((\w+)\)$", re.M)  # a check's last line
ANSWERED = r"""from dnnbook.chapters.answers import answered

if answered(globals().get("\1")): is_right(\1)"""
FOLDED = {"hide-input", "hide-cell", "remove-input", "remove-cell"}  # tags: not open in the book
SHUT = {"hide-output", "hide-cell", "remove-output", "remove-cell"}
FORESTS = ("Forest plots of this chapter's claims: a line for each cell with its interval, beside "
           "the threshold and the paper's value. The table below has the verdicts.")
STYLED = ('class="cards"', 'class="board"', "dataframe map")  # HTML that is nothing without a style
PLACES = {"doi": "https://doi.org/{}", "eprint": "https://arxiv.org/abs/{}", "url": "{}"}
COLOURS = ("border: var(--jp-border-color1, #ccc)", "surface: var(--jp-layout-color1, #fff)",
           "text-base: var(--jp-content-font-color1, #222)",
           "text-muted: var(--jp-content-font-color2, #666)")  # the book's theme, by JupyterLab's


def page_of(name: str, root: Path, **options) -> Page:
    """The page ``name`` of the book at ``root``, with its glossary and its references.

    ``options``: of :class:`lab_markup.Page`.
    """
    return Page(name, root, terms=_glossary(root / "book" / "glossary.md"),
                works=_works(root / "book" / "references.bib"), **options)


def readable(notebook, page: Page):
    """A copy of a notebook that any viewer shows as the book would show it.

    Its text is plain Markdown (:func:`lab_markup.markdown`); captions stand as text below their
    figures and describe them for those who do not see them; folded code is folded; what progress
    bars left is gone; a check that runs before its answer says so.
    Raises :class:`lab_markup.UnknownMarkup` if the page is strict.
    """
    import nbformat

    made = deepcopy(notebook)
    cells, made.cells = made.cells, []
    for number, cell in enumerate(cells):
        here = replace(page, part=f"cell {number}")
        made.cells.append(cell)
        if cell.cell_type == "markdown":
            cell.source = markdown(cell.source, here)
            continue
        if cell.cell_type != "code":
            continue
        cell.source = CHECKED.sub(ANSWERED, cell.source)
        caption = _unbooked(cell)
        cell.outputs = [output for output in cell.outputs if not _is_a_bar(output)]
        seen = plain(caption, here) or (FORESTS if ".verdicts(" in cell.source else "")
        for output in cell.outputs:
            _show(output, seen, here)
        if caption:
            made.cells.append(nbformat.v4.new_markdown_cell(
                f"*Figure.* {markdown(caption, here)}", id=f"{cell.get('id', number)}-text"[-64:]))
    if any(mark in output.get("data", {}).get("text/html", "") for mark in STYLED
           for cell in cells for output in cell.get("outputs", ())):
        made.cells.insert(1, _style(page.root / "book" / "assets" / "book.css"))
    return made


def folded(tags: set[str]) -> bool:
    """Whether JupyterLab folds the code of a cell; parameters are open there, to be changed.

    >>> folded({"hide-input"}), folded({"hide-input", "parameters"})
    (True, False)
    """
    return bool(FOLDED & tags) and "parameters" not in tags


def _is_a_bar(output) -> bool:
    """Whether a progress bar left this: ours leaves no data, others a line written over again."""
    return output.get("data") == {} or output.get("name") == "stderr" and "\r" in output["text"]


def _unbooked(cell) -> str:
    """Take what only the book reads from a cell, and say it as JupyterLab does; the caption."""
    tags, folding = set(cell.metadata.get("tags", ())), {}
    if folded(tags):
        folding["source_hidden"] = True
    if SHUT & tags:
        folding["outputs_hidden"] = True
    if folding:
        cell.metadata["jupyter"] = cell.metadata.get("jupyter", {}) | folding
    return cell.metadata.pop("mystnb", {}).get("figure", {}).get("caption", "")


def _show(output, seen: str, page: Page) -> None:
    """An output with links that lead, and with words for who does not see its picture."""
    data = output.get("data", {})
    for kind, converted in (("text/markdown", markdown), ("text/html", html)):
        if kind in data:
            data[kind] = converted(data[kind], page)
    if "image/png" in data and "text/html" not in data and seen:  # a PNG alone shows no words
        source = "".join(data.pop("image/png").split())
        data["text/html"] = (f'<img alt="{escape(seen)}" style="background: white; max-width: 100%"'
                             f' src="data:image/png;base64,{source}">')


def _style(sheet: Path):
    """A folded cell that brings the book's style sheet, also when all cells run again."""
    import nbformat

    rules = sheet.read_text("utf-8").replace(".bd-article ", "")
    names = "".join(f"\n  --pst-color-{colour};" for colour in COLOURS)
    text = f"<style>\n:root {{{names}\n}}\n{rules}</style>"
    return nbformat.v4.new_code_cell(
        f"%%html\n{text}", id="style", metadata={"jupyter": {"source_hidden": True}},
        outputs=[nbformat.v4.new_output("display_data", {"text/html": text})])


@cache
def _glossary(path: Path) -> Mapping[str, str]:
    return terms(path.read_text("utf-8")) if path.is_file() else {}


@cache
def _works(path: Path) -> Mapping[str, tuple[str, str]]:
    """What is cited, by key: the authors and the year, and where to find it."""
    if not path.is_file():
        return {}
    from pybtex.database import parse_file

    found = {}
    for key, entry in parse_file(str(path)).entries.items():
        names = [" ".join(person.last_names) for person in entry.persons.get("author", ())]
        who = " and ".join(names) if len(names) < 3 else f"{names[0]} et al."
        said = ", ".join(filter(None, [who or entry.fields.get("title", key),
                                       entry.fields.get("year", "")]))
        address = next((place.format(entry.fields[name]) for name, place in PLACES.items()
                        if name in entry.fields), "")
        found[key] = (said.translate(str.maketrans("", "", "{}")), address)
    return found

