"""The book's chapters, as they are committed."""

import nbformat
import pytest

from dnnbook.chapters import notebooks

SOURCES = sorted(notebooks.folder().glob("*/*.py"))
BOOK = [p for p in SOURCES if p.with_suffix(".ipynb").exists()]


def pair(function):
    return pytest.mark.parametrize(
        "source", BOOK, ids=lambda p: f"{p.parent.name}/{p.stem}")(function)


def product(source):
    return nbformat.read(source.with_suffix(".ipynb"), 4)


def code(source):
    return [c for c in product(source).cells if c.cell_type == "code"]


def tags(cell):
    return cell.metadata.get("tags", [])
