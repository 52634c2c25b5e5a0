"""The pictures of prose pages are drawn from records and a network, and say what one sees there."""

import importlib.util
import re
from pathlib import Path

import matplotlib.style
import pytest

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("prose_pictures", ROOT / "book/extensions/prose_pictures.py")
prose_pictures = importlib.util.module_from_spec(spec)
spec.loader.exec_module(prose_pictures)


def words(path: Path) -> str:
    return " ".join(re.findall(r"<!-- (.*?) -->", path.read_text("utf-8")))


def test_an_arrow_leads_to_each_kind_of_cell(tmp_path, monkeypatch):
    monkeypatch.delenv("DNNLIB_BOOK")  # the project's own records
    prose_pictures.annotated_forest(tmp_path / "forest.svg")
    said = words(tmp_path / "forest.svg")
    for part in ("it holds", "both sides: open", "it fails", "the mean over the seeds", "not run", "claim needs"):
        assert part in said


def test_channels_have_their_means(tmp_path):
    prose_pictures.channel_and_position(tmp_path / "channel.svg")
    said = words(tmp_path / "channel.svg")
    assert said.count("channel: 1 neuron") == 4 and said.count("positions: 784 neurons") == 4
    assert len(re.findall(r"its mean \d\.\d\d", said)) == 4


def numbers(path: Path) -> list[float]:
    """The coordinates of all lines, in points."""
    lines = re.findall(r' d="(M [^"]*)"', path.read_text("utf-8"))
    return [float(one) for line in lines for one in re.findall(r"-?\d+\.\d+|-?\d+", line)]


@pytest.mark.parametrize("theme", ["default", "seaborn-v0_8-talk"])
@pytest.mark.parametrize("name", prose_pictures.PICTURES)
def test_the_committed_picture_is_what_would_be_drawn_in_any_theme(name, theme, tmp_path, monkeypatch):
    monkeypatch.delenv("DNNLIB_BOOK")
    with matplotlib.style.context(theme):
        prose_pictures.draw(name, tmp_path / name)
    assert words(tmp_path / name) == words(prose_pictures.ASSETS / name)
    assert numbers(tmp_path / name) == pytest.approx(numbers(prose_pictures.ASSETS / name), abs=2)


@pytest.mark.parametrize("name", prose_pictures.PICTURES)
def test_a_page_shows_each_of_them(name):
    pages = [path for path in (ROOT / "book").glob("*.md") if f"assets/{name}" in path.read_text("utf-8")]
    assert len(pages) == 1
