"""Notebooks whose cells run once more below, the last one first: `make strict` gives them to nbval.

    python tests/book/again.py FOLDER NEW_FOLDER PAPER ...

A cell that says something else when a reader runs it again, alone, then fails there. Chapters of
other papers than those named are copied as they are, for want of time.
"""

import sys
from copy import deepcopy
from pathlib import Path

import nbformat


def again(notebook):
    """The notebook and, below, a copy of each cell of code, from the last to the first."""
    below = [deepcopy(cell) for cell in reversed(notebook.cells) if cell.cell_type == "code"]
    for number, cell in enumerate(below, 1):
        cell.id = f"again-{number}"
    notebook.cells += below
    return notebook


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:3])
    for path in sorted(source.glob("*/*.ipynb")):
        notebook = nbformat.read(path, 4)
        written = target / path.relative_to(source)
        written.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(again(notebook) if path.parent.name in sys.argv[3:] else notebook, written)
