"""The command ``dnnbook replay``, around an engine whose runs cost nothing."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dnnbook.chapters import replay
from dnnbook.cli.app import app
from dnnbook.records import records, signed
from dnnbook.records.records import Record


@pytest.fixture
def dnnbook(monkeypatch):
    """``dnnbook("replay", ...)``: exit code, what was printed, the exception if there was one."""
    def call(*arguments):
        done = CliRunner().invoke(app, list(map(str, arguments)))
        return done.exit_code, done.stdout, done.exception
    return call


@pytest.fixture
def toys(monkeypatch):
    """Three seeds; a replay gives each its own value, but seed 2 another and seed 1 none."""
    for seed in (0, 1, 2):
        records.save(Record("toy/x", {"seed": seed}, [{"quantity": "fdr", "value": 50.0 + seed}],
                            {"commit": "c+changes", "libraries": {"torch": "2"}}))

    def again(path, *, threads, cache, keep):
        record = records.read(path)
        if record.parameters["seed"] == 1:
            raise ValueError("no such data")
        value = record.rows[0]["value"] + 1000 * (record.parameters["seed"] == 2)
        made = Record("toy/x", record.parameters, [{"quantity": "fdr", "value": value}], {
            "threads": threads or 1, "capability": "AVX2", "libraries": {"torch": "2"},
            "commit": "c"})
        return replay.Replay(path, record, made, replay.compared(record, made, [record]))

    monkeypatch.setattr(replay, "replay", again)
    return replay.find([])


def test_several_are_listed_and_one_is_replayed(dnnbook, toys, folders):
    code, out, _ = dnnbook("replay", "toy/x")
    assert code == 0 and all(path.stem in out for path in toys) and "--sample 1" in out
    code, out, _ = dnnbook("replay", toys[0], "--threads", 2, "--note")
    assert code == 0 and "1 rows: 1 identical" in out and "threads 2" in out
    assert "toy/x/seed0" in (folders / "results" / "replayed.csv").read_text()


def test_a_replay_on_another_device_says_how_it_is_judged(dnnbook, toys):
    _, out, _ = dnnbook("replay", toys[0])
    assert "another device" not in out
    record = json.loads(toys[0].read_text())
    record["provenance"]["device"] = "cuda"
    toys[0].write_text(json.dumps(record))
    code, out, _ = dnnbook("replay", toys[0])
    assert code == 0 and "another device, cpu for cuda" in " ".join(out.split())


def test_a_row_that_differs_fails(dnnbook, toys):
    code, out, _ = dnnbook("replay", toys[2])
    assert code == 1 and "1 different" in out and "1052" in out


def test_one_that_cannot_be_replayed_fails_and_stops_no_other(dnnbook, toys):
    code, out, _ = dnnbook("replay", "toy", "--all")
    assert code == 1 and "cannot be replayed: no such data" in out
    assert out.index("no such data") < out.index("1 different")
    assert "1 of 3 records: every row is identical or within the spread" in out


def test_a_sample_needs_no_name_but_something_is_needed(dnnbook, toys):
    code, out, _ = dnnbook("replay", "--sample", 3)
    assert code == 1 and "1 of 3 records" in out
    _, _, error = dnnbook("replay")
    assert "expected the name of a record, --sample or --each" in str(error)
    _, _, error = dnnbook("replay", "toy/y")
    assert "unknown record 'toy/y'" in str(error)


def test_old_records_are_listed_and_flagged_but_fail_nothing(dnnbook, toys, monkeypatch):
    code, out, _ = dnnbook("replay", "--old")
    assert code == 0 and "3 of 3 records are old" in out and "edited files" in out
    monkeypatch.setattr("dnnbook.chapters.notebooks.stale", lambda path: False)
    monkeypatch.setattr("dnnbook.chapters.statements.check", lambda path: [])  # of the papers' records
    signed.sign()
    monkeypatch.setattr("dnnbook.records.origins.wrong", lambda paper: [])  # toys come from nowhere
    code, out, _ = dnnbook("scoreboard", "--check")
    assert code == 0 and "3 of 3 records should be made again" in out


def test_one_of_each_experiment_is_a_table_and_a_difference_fails(dnnbook, monkeypatch):
    """The outcomes are those of :mod:`budget`, which its own tests look at."""
    from dnnbook.chapters import budget

    def record(value):
        return Record("toy/x", {}, [{"quantity": "fdr", "value": value}], {
            "threads": 1, "capability": "AVX2", "libraries": {"torch": "2"}, "commit": "c"})

    def ended(value):
        done = replay.Replay(Path("a.json"), record(1.0), record(value),
                             replay.compared(record(1.0), record(value), []))
        return [budget.Ended("toy/x/a", "differs" if done.differs else "agrees", 0.1, done=done),
                budget.Ended("toy/y/b", "did not fit", 50.0)]

    for value, expected in ((1.0, 0), (2.0, 1)):
        monkeypatch.setattr(budget, "each", lambda paths, minutes: iter(ended(value)))
        code, out, _ = dnnbook("replay", "--each", "--minutes", 5)
        assert code == expected and "2 experiments" in out and "50.0" in out
        assert f"{1 - expected} agree, {expected} differ" in out and "1 did not fit" in out
    _, _, error = dnnbook("replay", "--each", "--cache")
    assert "--each: only with" in str(error)
