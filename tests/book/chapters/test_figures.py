import xml.etree.ElementTree as ET

import jupytext
import pytest
from PIL import Image

from dnnbook.chapters import figures, notebooks

CHAPTER = '''# %%
import matplotlib.pyplot as plt

# %% mystnb={"figure": {"caption": "Two points, and a line.", "name": "fig-toy"}}
plt.plot([0, 1])
plt.show()

# %%
plt.plot([1, 0])  # has no caption
plt.show()
'''


@pytest.fixture
def chapter(tmp_path):
    def write(text=CHAPTER):
        path = tmp_path / "toy" / "00_toy.ipynb"
        path.parent.mkdir(exist_ok=True)
        jupytext.write(jupytext.reads(text, fmt="py:percent"), path)
        return path
    return write


def test_captioned_figures_become_vectors_pixels_and_a_caption(chapter, tmp_path):
    written = figures.draw(chapter(), tmp_path / "out")
    assert sorted(p.name for p in written) == ["fig-toy.png", "fig-toy.svg", "fig-toy.txt"]
    assert ET.parse(tmp_path / "out" / "fig-toy.svg").getroot().tag.endswith("svg")
    with Image.open(tmp_path / "out" / "fig-toy.png") as image:
        assert min(image.size) > 100
    assert (tmp_path / "out" / "fig-toy.txt").read_text() == "Two points, and a line.\n"


def test_a_failed_cell_leaves_the_old_figures(chapter, tmp_path):
    figures.draw(chapter(), tmp_path / "out")
    before = (tmp_path / "out" / "fig-toy.png").read_bytes()
    with pytest.raises(notebooks.CellFailed, match="ZeroDivisionError"):
        figures.draw(chapter(CHAPTER + "\n# %%\n1 / 0\n"), tmp_path / "out")
    assert (tmp_path / "out" / "fig-toy.png").read_bytes() == before
