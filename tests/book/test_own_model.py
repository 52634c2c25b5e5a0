"""The page on your own model says what the engine does."""

import importlib.util
import re
from pathlib import Path

import torch
from torch import nn

from dnnlib import custom
from dnnlib.custom.changes import CHANGES, LADDERS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "own_model.md").read_text(encoding="utf-8")
CHANGED = PAGE[PAGE.index("## Ordinary changes by strength"):]
spec = importlib.util.spec_from_file_location(
    "stress_picture", ROOT / "book/extensions/stress_picture.py")
stress_picture = importlib.util.module_from_spec(spec)
spec.loader.exec_module(stress_picture)


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
        stress_picture.draw(found, tmp_path / name)
        drawn.append((tmp_path / name).read_text("utf-8"))
    committed = stress_picture.TARGET.read_text("utf-8")
    assert drawn[0] == drawn[1] and f"assets/{stress_picture.TARGET.name}" in PAGE
    titles = [re.findall(r"<!-- (\w+) -->", text) for text in (drawn[0], committed)]
    wanted = [{"jpeg": "JPEG"}.get(change, change) for change in CHANGES]
    assert all([text for text in found if text in wanted] == wanted for found in titles)
