"""Provenance is part of a record's state: commits, data, machines."""

import pytest

from dnnbook.records import history, origins, records
from dnnbook.records.records import Record
from tests.book.wrong_records import RESULTS

GOOD = {"commit": "8dfad6576578", "data": "idx-4718853ea946[2000]", "seconds": 1.5, "threads": 1,
        "device": "cpu", "revisions": {}}
needs_history = pytest.mark.skipif(not history.whole(RESULTS), reason=origins.SHALLOW)


def why(experiment="nss/neurons", **changes):
    return [*origins.reasons(Record(experiment, {"dataset": "mnist"}, [], GOOD | changes), RESULTS)]


@needs_history
def test_the_committed_records_come_from_commits_that_have_their_chapter():
    assert origins.wrong(root=RESULTS) == []


@needs_history
def test_a_commit_must_exist_and_have_the_chapter():
    assert why() == []
    assert why(commit="0123456789ab") == ["commit: 0123456789ab, expected one of this repository"]
    assert why("nss/no_such") == ["commit: 8dfad6576578, which has no chapter of nss/no_such"]


@pytest.mark.parametrize("changes, expected", [
    ({"data": "idx-000000000000"}, "data: idx-000000000000, expected the fingerprint of mnist"),
    ({"commit": "8dfad6576578+changes"}, "expected one without changes"),
    ({"seconds": 0}, "seconds: 0, expected a number above 0"),
    ({"seconds": None}, "seconds: None"),
    ({"threads": 0}, "threads: 0"), ({"revisions": None}, "revisions: None"),
    ({"device": "tpu"}, "device: tpu, expected cpu, cuda or mps")])
def test_what_a_record_says_of_its_origin_is_checked(changes, expected):
    assert any(expected in line for line in why(**changes))


def test_a_checkout_without_history_says_so_and_fails_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    records.save(Record("nss/neurons", {"dataset": "mnist"}, [{"value": 1}],
                        GOOD | {"commit": "0123456789ab"}), tmp_path)
    assert origins.wrong(root=tmp_path) == []
    assert origins.summary(root=tmp_path) == origins.SHALLOW


def test_cells_whose_seeds_were_made_otherwise_are_listed(tmp_path):
    for seed, torch, processor in ((0, "2.14.1", "AVX2"), (1, "2.15.0", "AVX512 bf16"),
                                   (2, "2.15.0", "AVX512 bf16")):
        for model in ("lenet1", "lenet5"):
            version = "2.15.0" if model == "lenet5" else torch
            about = GOOD | {"libraries": {"torch": version}, "capability":
                            "AVX2" if model == "lenet5" else processor}
            records.save(Record("toy/x", {"model": model, "seed": seed}, [{"value": 1}], about),
                         tmp_path)
    found = origins.mixed(root=tmp_path)
    assert found[["model", "torch", "processor", "seeds"]].values.tolist() == [
        ["lenet1", "2.14.1", "AVX2", "0"], ["lenet1", "2.15.0", "AVX512", "1, 2"]]
    assert "or versions: 1" in origins.summary(root=tmp_path)
