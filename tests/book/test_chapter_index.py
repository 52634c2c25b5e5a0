"""Chapters have one number everywhere, and each item of the papers leads to its chapter."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import pytest
from docutils import nodes, utils

from dnnbook.chapters import notebooks
from dnnbook.chapters.numbers import numbered
from dnnbook.records import extent

EXTENSION = Path(__file__).resolve().parents[2] / "book" / "extensions" / "chapter_index.py"
spec = importlib.util.spec_from_file_location("chapter_index", EXTENSION)
chapter_index = importlib.util.module_from_spec(spec)
spec.loader.exec_module(chapter_index)


@pytest.mark.parametrize("page, title", [
    ("notebooks/nss/02_fault_detection", "NSS 2. Who?"), ("book/glossary", "Who?"),
    ("notebooks/synthesis/00_welcome", "Who?")])
def test_the_number_stands_in_the_title(page, title):
    document = utils.new_document("page")
    document += nodes.title("", "Who?")
    chapter_index.with_number(SimpleNamespace(env=SimpleNamespace(docname=page)), document)
    assert document.astext() == title


def test_no_two_chapters_have_one_number():
    pages = [f"notebooks/{path.parent.name}/{path.stem}" for path in notebooks.starting([], ".py")]
    found = [numbered(page) for page in pages if not page.endswith("synthesis/00_welcome")]
    assert all(found) and len(set(found)) == len(found)


def plain(line: str) -> str:
    return line.replace("\N{NO-BREAK SPACE}", " ")


def test_each_item_has_a_line_that_leads_to_its_chapter():
    rows = extent.items().query("paper == 'nss'")
    head, _, *lines = chapter_index.lines(rows)
    assert len(lines) == len(rows) and {line.count("|") for line in [head, *lines]} == {6}
    line, = (line for line in map(plain, lines) if line.startswith("| Table VII |"))
    assert "{doc}`NSS 4 </notebooks/nss/04_diversity>`" in line and "SVHN" in line
