"""Records made again: a toy chapter in a real kernel, and rows compared by hand."""

import json
from datetime import date

import jupytext
import pandas as pd
import pytest

from dnnbook.chapters import replay, sweeps
from dnnbook.records import records
from dnnbook.records.records import Record

TOY = '''
# %%
import os
import torch
from dnnlib import files
from dnnbook.chapters.experiments import Experiment
from dnnbook.data import load

# %% tags=["parameters"]
dataset = "digits"
seed = 0
profile = "embedded"

# %%
run = Experiment("toy/luck", profile, dataset=dataset, seed=seed)
run.add({"value_of_seed": 7 * seed + 0.5, "threads": torch.get_num_threads(), "seconds": os.getpid(),
         "cached": len(list(files.cache_dir().glob("*")))})
run.save(load(dataset))
'''


@pytest.fixture
def toy(tmp_path):
    """A notebook as it is made: with what it declared."""
    path = tmp_path / "toys" / "01_toy.ipynb"
    path.parent.mkdir()
    notebook = jupytext.reads(TOY, "py:percent")
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3",
                                    "language": "python"}
    notebook.metadata["dnnlib"] = {"experiment": "toy/luck", "reads": [],
                                   "parameters": {"dataset": "digits", "seed": 0}}
    jupytext.write(notebook, path)
    return path


@pytest.fixture
def record(toy, folders):
    """The path of the toy's record, as a run left it among the results."""
    made, _ = sweeps.work(str(toy), {"seed": 3, "profile": "paper"})
    (name,) = [name for name in made if name.endswith(".json")]
    path = folders / "results" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(made[name])
    return path


def states(done) -> dict[str, str]:
    return {row.split("quantity=")[1].split()[0]: state
            for row, state in zip(done.rows["row"], done.rows["state"])}


def test_a_record_comes_out_identical_and_one_digit_is_seen(toy, record, folders):
    (folders / "cache").mkdir(exist_ok=True)
    before = record.read_bytes()
    done = replay.replay(record, among=[toy], keep=folders / "kept")
    assert states(done) == {"value_of_seed": "identical", "threads": "identical",
                            "seconds": "timed", "cached": "identical"}
    assert not done.differs and record.read_bytes() == before
    assert {p.name for p in (folders / "kept").rglob("*.*")} == {record.name, "run.ipynb"}

    record.write_text(before.decode().replace("21.5", "21.6"))
    (folders / "cache" / "filled").touch()  # the replay has an empty one of its own
    again = replay.replay(record, among=[toy], threads=2)
    assert states(again) == {"value_of_seed": "different", "threads": "different",
                             "seconds": "timed", "cached": "identical"}
    assert again.differs and again.made.provenance["threads"] == 2


def test_threads_are_those_of_the_record(toy, record):
    content = json.loads(record.read_text())
    assert content["provenance"]["threads"] == 1
    content["provenance"]["threads"] = 2
    record.write_text(json.dumps(content))
    assert replay.replay(record, among=[toy]).made.provenance["threads"] == 2


def test_a_chapter_that_changed_is_named(toy):
    toy_of_kind = toy.with_name("02_kind.ipynb")
    toy_of_kind.write_text(toy.read_text().replace('"seed": 0\n', '"seed": 0,\n"kind": "even"\n'))
    with pytest.raises(ValueError, match="no chapter makes a record with the parameters.*kind"):
        replay.chapter(Record("toy/luck", {"seed": 3, "kind": "odd"}, []), [toy_of_kind])
    path, values = replay.chapter(Record("toy/luck", {"dataset": "digits", "seed": 3}, []), [toy])
    assert path == toy and values == {"dataset": "digits", "seed": 3, "profile": "paper"}


def one(value, seed=0, **more) -> Record:
    return Record("toy/x", {"seed": seed}, [{"quantity": "fdr", "value": value, **more}])


@pytest.mark.parametrize("again, state", [
    (50.0, "identical"), (50.0000001, "within"), (51.0, "within"), (90.0, "different"),
    (None, "different")])
def test_the_seeds_say_how_far_a_value_may_move(again, state):
    recorded = [one(50.0), one(52.0, 1), one(51.0, 2)]
    assert list(replay.compared(recorded[0], one(again), recorded)["state"]) == [state]


def test_the_interval_is_that_of_one_more_value():
    """Of 2,000 draws beside five others, about 95 in 100 lie inside."""
    import numpy as np

    drawn = np.random.default_rng(0).normal(size=(2000, 6))
    inside = []
    for *five, further in drawn.tolist():
        low, high = replay._interval(five)
        inside.append(low <= further <= high)
    assert abs(np.mean(inside) - 0.95) < 0.02


def test_without_other_seeds_and_without_spread_nothing_is_within():
    assert list(replay.compared(one(1.0), one(1.5), [one(1.0)])["state"]) == ["different"]
    same = [one(1.0), one(1.0, 1), one(1.0, 2)]
    assert list(replay.compared(same[0], one(1.5), same)["state"]) == ["different"]


def test_rows_are_found_by_what_names_them():
    first = Record("toy/x", {}, [
        {"quantity": "fdr", "rate": 5, "value": 1}, {"quantity": "fdr", "rate": 10, "value": 2},
        {"quantity": "bin", "x": 0.25, "value": 3}, {"quantity": "bin", "x": 0.5, "value": 4},
        {"quantity": "lost", "value": None}, {"quantity": "void", "value": None}])
    second = Record("toy/x", {}, [
        {"quantity": "fdr", "rate": 10, "value": 2}, {"quantity": "fdr", "rate": 5, "value": 1},
        {"quantity": "bin", "x": 0.25, "value": 3}, {"quantity": "bin", "x": 0.51, "value": 4},
        {"quantity": "void", "value": None}, {"quantity": "more", "value": 5}])
    found = replay.compared(first, second, [first])
    assert dict(zip(found["row"], found["state"])) == {
        "quantity=fdr rate=5": "identical", "quantity=fdr rate=10": "identical",
        "quantity=bin": "identical", "quantity=bin #2": "different", "quantity=lost": "gone",
        "quantity=void": "identical", "quantity=more": "new"}


def test_the_spread_is_over_seeds_alone(folders):
    for seed in (0, 1, 2):
        records.save(Record("toy/x", {"seed": seed, "kind": "a"}, [{"value": seed}]))
    records.save(Record("toy/x", {"seed": 0, "kind": "b"}, [{"value": 9}]))
    paths = replay.find(["toy/x"])
    assert len(paths) == 4
    mine = next(p for p in paths if records.read(p).parameters == {"seed": 1, "kind": "a"})
    beside = replay.seeds(records.read(mine), mine)
    assert sorted(record.rows[0]["value"] for record in beside) == [0, 1, 2]


def test_a_sample_is_drawn_from_the_seed(folders):
    for seed in range(20):
        records.save(Record("toy/x", {"seed": seed}, [{"value": seed}]))
    paths = replay.find([])
    assert replay.sample(paths, 5, 1) == replay.sample(paths, 5, 1) != replay.sample(paths, 5, 2)
    with pytest.raises(ValueError, match="at most the 20 records there are, got 21"):
        replay.sample(paths, 21)
    with pytest.raises(ValueError, match="unknown record 'toy/y'.*toy/x"):
        replay.find(["toy/y"])


def test_a_line_is_kept_for_each_record_and_threads(folders):
    def done(threads: int, value: float) -> replay.Replay:
        made = Record("toy/x", {}, [{"quantity": "fdr", "value": value}], {
            "threads": threads, "capability": "AVX2", "libraries": {"torch": "2"}, "commit": "c"})
        return replay.Replay(folders / "a.json", one(1.0), made,
                             replay.compared(one(1.0), made, [one(1.0)]))

    for threads, value in ((1, 1.0), (2, 1.0), (2, 1.5)):
        path = replay.note(done(threads, value), day=date(2026, 1, 2))
    lines = pd.read_csv(path)
    assert lines[["record", "threads", "rows", "identical", "different"]].values.tolist() == [
        ["toy/x/a", 1, 1, 1, 0], ["toy/x/a", 2, 1, 0, 1]]
    assert set(lines["date"]) == {"2026-01-02"} and set(lines["recorded with"]) == {"unknown"}


def test_what_was_copied_into_a_record_is_not_gone():
    made = Record("toy/x", {}, [{"quantity": "fdr", "value": 50}])
    before = Record("toy/x", {}, [*made.rows, {"quantity": "rows_kept", "value": 7}])
    assert replay.compared(before, made, [before])["state"].tolist() == ["identical"]
