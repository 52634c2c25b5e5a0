import json
import math
import os
from dataclasses import replace
from importlib.metadata import version

import numpy as np
import pytest

import dnnlib
from dnnbook.records import records
from dnnbook.records.records import Record

MNIST = {"dataset": "mnist", "model": "net1", "seed": 0, "trials": 100}


def make(value=0.5, experiment="nsatp/x", **changes):
    return Record(experiment, MNIST | changes, [{"quantity": "b", "value": value}])


def test_there_and_back(folders):
    rows = [{"distance": "pd", "quantity": "b", "value": -3.5}, {"quantity": "n", "value": 7}]
    record = Record("nsatp/x", MNIST, rows, {"data": "idx-0", "seconds": 1.5})
    path = records.save(record)
    assert path.parent == folders / "results" / "nsatp" / "x"
    assert records.find("nsatp/x") == [record]


def test_same_parameters_replace(folders):
    path = records.save(make(1.0))
    assert records.save(make(2.0)) == path
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    assert records.find("nsatp/x")[0].rows[0]["value"] == 2


@pytest.mark.parametrize("change", [{"dataset": "digits"}, {"model": "net2"}, {"seed": 1},
                                    {"trials": 10}, {"patch": "random"}])
def test_other_parameters_stand_beside(change):
    assert records.save(make()) != records.save(make(**change))
    assert len(records.find("nsatp/x")) == 2


def test_interrupted_save_keeps_the_old_record(monkeypatch):
    path = records.save(make(1.0))

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            records.save(make(2.0))
    assert [r.rows[0]["value"] for r in records.find("nsatp/x")] == [1]
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("dataset", ["/a/folder of/images", "../images", "./images", "a/b"])
def test_a_folder_as_dataset_stays_below_the_results(folders, dataset):
    path = records.save(make(dataset=dataset))
    assert path.resolve().parent == (folders / "results" / "nsatp" / "x").resolve()
    assert records.find("nsatp/x", dataset=dataset)[0].parameters["dataset"] == dataset


def test_find_by_parameters():
    for dataset in ("mnist", "digits"):
        for seed in (0, 1):
            records.save(make(dataset=dataset, seed=seed))
    records.save(make(experiment="nsatp/y"))
    found = records.find("nsatp/x", dataset="digits")
    assert [(r.parameters["dataset"], r.parameters["seed"]) for r in found] == [
        ("digits", 0), ("digits", 1)]
    assert len(records.find("nsatp/x")) == 4 and len(records.find("nsatp/y")) == 1
    assert records.find("nsatp/x", seed=2) == records.find("nsatp/z") == []
    assert records.find("nsatp/x", epochs=20) == []  # a parameter they lack


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float32("nan"),
                                   np.float64("inf")])
def test_no_number_becomes_null(value):
    path = records.save(make(value))
    strict = json.loads(path.read_text(), parse_constant=lambda name: pytest.fail(name))
    assert strict["rows"][0]["value"] is None
    assert records.frame("nsatp/x")["value"].isna().all()


@pytest.mark.parametrize("value, kept", [
    (np.float32(0.25), 0.25), (np.int64(3), 3.0), (np.array(0.5), 0.5), (True, True), (3, 3),
    ("Best", "Best"), (None, None), (1 / 3, 0.3333333)])
def test_values_are_plain(value, kept):
    records.save(make(value))
    back = records.find("nsatp/x")[0].rows[0]["value"]
    assert back == kept and type(back) is type(kept)


@pytest.mark.parametrize("bad", [
    lambda: make({1, 2}), lambda: make(object()), lambda: make(1 + 2j),
    lambda: make(np.array([1.0, 2.0])), lambda: make([math.nan]),
    lambda: Record("nsatp/x", MNIST, [{"value": 1}], {"seconds": math.nan}),
    lambda: Record("nsatp/x", MNIST, [{"value": 1}], {"clock": records.Clock()}),
    lambda: Record("nsatp/x", MNIST, [])],
    ids=["set", "object", "complex", "array", "nan in a list", "nan", "clock", "no rows"])
def test_what_json_cannot_hold_leaves_the_old_file(bad):
    path = records.save(make())
    before = path.read_bytes()
    with pytest.raises(ValueError, match="^record nsatp/x: "):
        records.save(bad())
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("content", [
    b"", b"{", b"<html>", b"[]", b"7", b"\xff\xfe", b'{"experiment": "x"}',
    b'{"experiment": "x", "parameters": {}, "rows": [], "more": 1}',
    b'{"experiment": "x", "parameters": [], "rows": []}',
    b'{"experiment": "x", "parameters": {}, "rows": {}}'])
def test_damaged_record_is_named(content):
    path = records.save(make())
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"{path.name} is not a record"):
        records.find("nsatp/x", seed=0)


def test_provenance_says_what_made_it():
    clock = records.Clock()
    made = records.provenance(data="embedded-0123", clock=clock, note="x")
    assert made["dnnlib"] == dnnlib.__version__
    assert made["libraries"]["torch"] == version("torch")
    assert made["libraries"]["numpy"] == version("numpy")
    assert made["commit"] and made["python"].count(".") == 2
    assert made["data"] == "embedded-0123" and made["note"] == "x" and made["device"] == "cpu"
    assert 0 <= made["seconds"] <= clock.seconds()
    assert records.provenance(data="")["seconds"] is None
    json.dumps(made, allow_nan=False)


@pytest.mark.parametrize("answers, commit", [
    ({"status": "", "rev-parse": "0123456789ab\n"}, "0123456789ab"),
    ({"status": " M dnnlib/x.py\n", "rev-parse": "0123456789ab\n"}, "0123456789ab+changes"),
    ({}, "unknown")])
def test_commit_tells_changes_and_copes_without_git(monkeypatch, answers, commit):
    class Done:
        def __init__(self, stdout):
            self.stdout = stdout

    def run(command, **_):
        if not answers:
            raise FileNotFoundError("git")
        return Done(answers[command[3]])

    monkeypatch.setattr(records.subprocess, "run", run)
    assert records.provenance(data="")["commit"] == commit


def test_missing_library_is_said(monkeypatch):
    monkeypatch.setattr(records, "LIBRARIES", ("no-such-library",))
    assert records.provenance(data="")["libraries"] == {"no-such-library": "not installed"}


def test_frame_repeats_parameters():
    records.save(make(1.0))
    records.save(make(2.0, seed=1))
    frame = records.frame("nsatp/x")
    assert frame[["dataset", "seed", "value"]].values.tolist() == [["mnist", 0, 1], ["mnist", 1, 2]]
    assert len(records.frame("nsatp/x", seed=1)) == 1


def test_a_table_never_mixes_published_pictures_and_a_copy():
    copy, published = {"data": "jpeg-c3578a95941b"}, {"data": "815bee49b921"}
    for seed in range(2):
        records.save(replace(make(0.1, dataset="cifar10", seed=seed), provenance=copy))
        records.save(replace(make(0.2, dataset="mnist", seed=seed), provenance=copy))
    assert sorted(records.frame("nsatp/x")["value"]) == [0.1, 0.1, 0.2, 0.2]
    records.save(replace(make(0.5, dataset="cifar10", seed=1, recipe="new"), provenance=published))
    assert sorted(records.frame("nsatp/x")["value"]) == [0.2, 0.2, 0.5]
    records.save(replace(make(0.7, dataset="cifar10", seed=0, candidates="each"), provenance=copy))
    assert sorted(records.frame("nsatp/x")["value"]) == [0.2, 0.2, 0.5, 0.7]  # other tables


def test_of_several_values_that_count_the_copys_gives_way_to_the_published_pictures():
    """On CIFAR-10, both DeepSensors' own recipe instead of the one that the copy was run with."""
    copy, published = {"data": "jpeg-c3578a95941b"}, {"data": "815bee49b921"}

    def save(value, recipe, provenance):
        records.save(replace(make(value, "deepsensor_sensitivity/test_errors", dataset="cifar10",
                                  model="vgg16", recipe=recipe), provenance=provenance))

    def counting():
        return list(records.frame("deepsensor_sensitivity/test_errors")["value"])

    save(0.1, "nss", copy)
    save(0.2, "default", copy)
    assert counting() == [0.1]
    save(0.3, "default", published)  # a reading: it counts as little as before
    save(0.4, "deepsensor", published)
    assert counting() == [0.4]


def test_frame_of_no_records_can_be_asked():
    frame = records.frame("nsatp/none")
    assert frame.empty
    asked = "dataset == 'mnist' and model == 'net1' and seed == 0 and distance == 'pd' and " \
            "definition == 'samples' and fit == 'curve' and points == 'bins' and " \
            "quantity == 'b' and x > 0 and value > 0"
    assert frame.query(asked).empty


def test_records_that_must_exist():
    records.save(Record("toy/luck", {"seed": 1}, [{"value": 2}]))
    assert records.existing("toy/luck", seed=1)["value"].tolist() == [2]
    with pytest.raises(ValueError, match="no records of toy/luck, seed = 3; `dnnbook sweep"):
        records.existing("toy/luck", seed=3)
