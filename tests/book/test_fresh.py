"""Marked cells show in freshly made notebooks what they show in the committed: `make strict`."""

import os
from pathlib import Path

import nbformat
import pytest

from dnnlib.book import notebooks

FRESH = Path(os.environ.get("DNNLIB_FRESH", "nowhere"))
MADE = sorted(FRESH.glob("*/*.ipynb"))


def marked(path):
    """Texts of the outputs that no machine may change; pixels may."""
    return [[(o.get("text"), {k: v for k, v in o.get("data", {}).items() if "image/" not in k})
             for o in cell.outputs] for cell in nbformat.read(path, 4).cells
            if "nbval-check-output" in cell.metadata.get("tags", ())]


@pytest.mark.parametrize("path", MADE, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_marked_cells_show_what_is_committed(path):
    assert marked(path) == marked(notebooks.folder() / path.relative_to(FRESH))
