"""Marked cells show in freshly made notebooks what they show in the committed: `make strict`."""

import os
from pathlib import Path

import nbformat
import pytest

from dnnbook.chapters import notebooks

FRESH = Path(os.environ.get("DNNLIB_FRESH", "nowhere"))
MADE = sorted(FRESH.glob("*/*.ipynb"))


def marked(path):
    """What no machine may change of marked cells: all that was printed, and data but for pixels."""
    cells = [cell.outputs for cell in nbformat.read(path, 4).cells
             if "nbval-check-output" in cell.metadata.get("tags", ())]
    return [("".join(o.get("text", "") for o in outputs),  # it comes in pieces of any length
             [{k: v for k, v in o.data.items() if "image/" not in k} for o in outputs if "data" in o])
            for outputs in cells]


@pytest.mark.parametrize("path", MADE, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_marked_cells_show_what_is_committed(path):
    assert marked(path) == marked(notebooks.folder() / path.relative_to(FRESH))
