"""The pages on your own model say what the engine does."""

import importlib.util
import re
from pathlib import Path

import nbformat
import torch
from PIL import Image
from torch import nn

from dnnbook.chapters import notebooks, statements
from dnnlib import custom
from dnnlib.custom.changes import CHANGES, LADDERS

ROOT = Path(__file__).resolve().parents[2]
PAGE = "".join((ROOT / "book" / name).read_text(encoding="utf-8") for name in ("own_model.md", "own_results.md"))
CHANGED = PAGE[PAGE.index("## Ordinary changes by strength"):]
spec = importlib.util.spec_from_file_location(
    "own_model_pictures", ROOT / "book/extensions/own_model_pictures.py")
pictures = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pictures)


def test_the_page_has_the_strengths_of_every_change():
    for change in CHANGES:
        [cells] = re.findall(rf"^\| `{change}` \| ([^|]*) \|", CHANGED, re.M)
        said = {*map(float, re.findall(r"\d+(?:\.\d+)?", cells))}
        assert said == {strength for ladder in LADDERS if ladder.change == change
                        for strength in (ladder.strengths[0], ladder.strengths[-1])}
    passes = sum(len(ladder.strengths) for ladder in LADDERS)
    assert f"one pass over an image, {passes} for all changes" in PAGE


def test_the_picture_is_that_of_the_page(tmp_path):
    """Drawn again it has the same panels, and the same bytes from the same numbers."""
    torch.manual_seed(0)
    found = custom.stress(nn.Sequential(nn.Flatten(), nn.Linear(36, 3)), torch.rand(12, 1, 6, 6))
    drawn = []
    for name in ("a.svg", "b.svg"):
        pictures.draw_stress(found, tmp_path / name)
        drawn.append((tmp_path / name).read_text("utf-8"))
    committed = pictures.STRESS.read_text("utf-8")
    assert drawn[0] == drawn[1]
    titles = [re.findall(r"<!-- (\w+) -->", text) for text in (drawn[0], committed)]
    wanted = [{"jpeg": "JPEG"}.get(change, change) for change in CHANGES]
    assert all([text for text in found if text in wanted] == wanted for found in titles)


def test_the_other_pictures_are_made_as_the_page_says(tmp_path):
    """The photograph is torchvision's to the level; the test fails for every file that it names."""
    assert pictures.draw_prepared(tmp_path / "prepared.png") == 0
    pictures.draw_failures(tmp_path / "failures.png")
    pictures.tell_test(tmp_path / "test.txt")
    made, committed = ((path.read_text("utf-8")) for path in (tmp_path / "test.txt", pictures.KEPT))
    for text in (made, committed):
        named = re.findall(r'^    "(\S+\.png)": \d', text, re.M)
        assert named and f"# {len(named)} failed in a moment" in text
    for name in ("failures.png", "prepared.png"):
        with Image.open(tmp_path / name) as mine, Image.open(pictures.ASSETS / name) as kept:
            assert mine.size == kept.size
    for path in (pictures.STRESS, pictures.FAILURES, pictures.PREPARED, pictures.KEPT):
        assert f"assets/{path.name}" in PAGE


def test_the_default_fuzzer_is_the_one_that_the_records_name():
    """The chapter's sentence stands beside its condition: other records would take it away."""
    cells = nbformat.read(notebooks.folder() / "synthesis" / "02_fuzzers.ipynb", 4).cells
    said = " ".join(output.data.get(statements.MIME, "") for cell in cells
                    if statements.TAG in cell.metadata.get("tags", ()) for output in cell.outputs)
    assert "Near an input, DLFuzz finds by far the most errors" in said
    assert custom.Options(l2=1.0).by == "dlfuzz"
    assert "The default is `dlfuzz`. Of the papers' fuzzers it found by far the most errors" in " ".join(PAGE.split())
