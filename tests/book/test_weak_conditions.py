"""Scrambled records name a condition that can hardly fail, and none that tests its sentence."""

import random

import pytest

from dnnbook.records import records
from dnnbook.records.records import Record
from tests.book import weak_conditions

CHAPTER = '''
# %%
from dnnbook.records import records
from dnnbook.chapters.statements import says

# %% tags=["hide-input", "statements"]
fdr = records.frame("toy/x").query("quantity == 'fdr'").groupby("method")["value"].mean()
says((f"Some method finds more than another, {fdr.max():.0f} %.", fdr.min() < fdr.max()),
     (f"DeepGini finds the most, {fdr['gini']:.0f} %.", fdr.idxmax() == "gini"),
     (f"NAC and random order are alike: {fdr['nac']:.0f} %.", abs(fdr["nac"] - fdr["random"]) < 1))
'''
MEANS = {"gini": 80.0, "nac": 20.0, "random": 20.3, "dsa": 60.0, "ats": 50.0}


@pytest.fixture
def chapter(folders):
    """A chapter in a folder of notebooks, and records of which all its sentences are true."""
    for seed in range(3):
        rows = [{"quantity": "fdr", "method": name, "value": value + 0.1 * seed}
                for name, value in MEANS.items()]
        records.save(Record("toy/x", {"seed": seed}, rows))
    path = folders / "toys" / "01_toy.py"
    path.parent.mkdir()
    path.write_text(CHAPTER)
    return path


def test_on_the_records_as_they_are_every_condition_holds(chapter):
    held = weak_conditions.conditions(chapter)
    assert len(held) == 3 and all(held.values())


def test_only_the_weak_condition_is_named(chapter, folders):
    found = weak_conditions.always([chapter], draws=4, source=folders / "results")
    assert found == {"toys/01_toy": ["Some method finds more than another,"]}


def test_the_records_are_read_again_afterwards(chapter, folders):
    before = records.frame("toy/x")
    weak_conditions.always([chapter], draws=1, source=folders / "results")
    assert records.frame("toy/x").equals(before)


@pytest.mark.parametrize("way", weak_conditions.WAYS)
def test_only_values_move_and_only_among_those_of_a_quantity(way):
    rows = [{"quantity": name, "rate": rate, "value": start + rate}
            for name, start in (("fdr", 0.0), ("seconds", 1000.0)) for rate in range(20)]
    mixed = weak_conditions.scramble({"rows": [*rows, {"quantity": "lost", "value": None}]}, way,
                                     random.Random(0))["rows"]
    assert [row | {"value": 0} for row in mixed[:-1]] == [row | {"value": 0} for row in rows]
    assert mixed[-1]["value"] is None
    assert [row["value"] for row in mixed[:-1]] != [row["value"] for row in rows]
    assert max(row["value"] for row in mixed[:20]) < 150 < min(row["value"] for row in mixed[20:40])
