"""The page on scale shows what the benchmarks measured, and types no measurement of its own."""

import json
import re
from pathlib import Path

import pytest

from tests.style.test_prose import typed

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "scales.md").read_text("utf-8")
SETTINGS = ("four times as many channels", "four times as many weights", "a quarter of the free memory",
            "at most 65,536", "from 0 to 1")  # of the program, and of what was tried
GENERATED = re.compile(r"<!-- [a-zA-Z ]+ -->\n.*?<!-- end -->", re.S)


@pytest.fixture
def goals(benchmark_named):
    return benchmark_named("goals")


def test_the_tables_of_goals_are_those_of_what_was_measured(goals):
    blocks = goals.blocks()
    assert len(blocks) == 2 and all(block in PAGE for block in blocks.values())


def test_a_figure_that_misses_its_goal_says_no_and_one_without_a_goal_says_none(
        goals, tmp_path, monkeypatch):
    monkeypatch.setattr(goals, "KEPT", tmp_path / "measured.json")
    goals.keep("fast", 2.0, least=2)
    goals.keep("slow", 2.004, most=2)
    goals.keep("memory", 3.14159, unit="kB")
    goals.keep("elsewhere", 1.0, most=2, gpu="a GPU")
    assert goals.table().splitlines()[2:] == [
        "| fast | 2.00 times | at least 2 | yes |", "| slow | 2.00 times | at most 2 | no |",
        "| memory | 3.14 kB | none |  |"]
    assert set(json.loads(goals.KEPT.read_text())) == {"fast", "slow", "memory", "elsewhere"}


def test_no_measurement_is_typed():
    """What is calculated has a section of its own, which says so."""
    measured = GENERATED.sub("", re.sub(r"^## Where the next bounds lie.*?(?=^## )", "", PAGE,
                                        flags=re.M | re.S))
    measured = re.sub(r"(?<=\w)\n(?=\w)", " ", measured)  # lines of a sentence
    for setting in SETTINGS:
        assert setting in measured
        measured = measured.replace(setting, "")
    assert typed(measured) == []
