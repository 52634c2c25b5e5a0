"""Signatures of records: a change by hand is named by record, row, and both values."""

import json
import subprocess

import pytest

from dnnbook.records import records, signed
from dnnbook.records.records import Record
from tests.book import wrong_records

RESULTS = wrong_records.RESULTS
ROWS = [{"method": "gini", "quantity": "fdr", "value": 50.0},
        {"method": "nss", "quantity": "fdr", "value": 40.0}]


def make(root, seed=0, rows=ROWS, seconds=1.5, **parameters):
    return records.save(Record("toy/x", {"seed": seed} | parameters, rows,
                               {"commit": "abc", "seconds": seconds}), root)


@pytest.fixture
def root(tmp_path):
    """Two signed records in a repository."""
    root = tmp_path / "results"
    make(root), make(root, 1)
    signed.sign(root)
    commit(root)
    return root


def commit(root):
    for command in (["init", "-q"], ["add", "-A"],
                    ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", str(root), *command], check=True)


def edit(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def test_every_committed_record_is_as_it_was_signed():
    assert [str(one) for one in signed.changed(root=RESULTS)] == []


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    return wrong_records.copied(tmp_path_factory.mktemp("copy"))


@pytest.mark.parametrize("change, count", [
    (wrong_records.value, wrong_records.COUNT), (wrong_records.added, 3),
    (wrong_records.removed, 3), (wrong_records.parameter, 3), (wrong_records.origin, 3),
    (wrong_records.scrambled, 3)])
def test_each_wrong_record_is_named_by_record_and_row(copy, change, count):
    found = [*wrong_records.changed(copy, change, count)]
    assert len(found) == count
    assert [one for one in found if not (one.named and one.row)] == []


def test_an_edited_value_is_named_with_both_and_is_not_signed(root):
    path = sorted(root.glob("toy/x/*.json"))[0]
    edit(path, lambda c: c["rows"][1].update(value=45.0))
    (change,) = signed.changed(root=root)
    assert change.kind == "edited" and path.stem in change.record
    assert change.lines == ("method=nss quantity=fdr: 40.0 -> 45.0",)
    done, refused = signed.sign(root)
    assert not done and [one.record for one in refused] == [change.record]
    commit(root)  # the old value is still found, in the history
    assert signed.changed(root=root) == [change]


def test_a_value_that_moved_with_a_new_provenance_was_made_again(root):
    make(root, rows=[ROWS[0], ROWS[1] | {"value": 41.0}], seconds=2.5)
    (change,) = signed.changed(root=root)
    assert change.kind == "made again"
    assert change.lines == ("method=nss quantity=fdr: 40.0 -> 41.0", "seconds: 1.5 -> 2.5")
    assert signed.sign(root)[1] == [] and signed.changed(root=root) == []
    assert signed.since_commit(root) == [change]
    commit(root)
    assert signed.since_commit(root) == []


def test_an_edited_provenance_is_an_error(root):
    edit(sorted(root.glob("toy/x/*.json"))[0], lambda c: c["provenance"].update(commit="def"))
    (change,) = signed.changed(root=root)
    assert change.kind == "provenance edited" and change.lines == ("commit: abc -> def",)
    assert signed.sign(root)[1] == [change]


@pytest.mark.parametrize("labels, told", [(False, "from "), (True, "columns of its rows")])
def test_renamed_records_are_signed_when_their_values_are_the_same(root, labels, told):
    for path in sorted(root.glob("toy/x/*.json")):
        if labels:
            edit(path, lambda c: [row.update(method=row["method"].upper()) for row in c["rows"]])
        path.rename(path.with_name(f"renamed-{path.name}"))
    assert {one.kind for one in signed.changed(root=root)} == {"renamed"}
    done, refused = signed.sign(root)
    assert len(done) == 2 and not refused and all(told in one.lines[0] for one in done)
    assert signed.changed(root=root) == []


def test_a_deleted_and_a_new_record_are_named(root):
    sorted(root.glob("toy/x/*.json"))[0].unlink()
    make(root, 2, seconds=7.0)
    assert sorted(one.kind for one in signed.changed(root=root)) == ["gone", "not signed"]


def test_without_git_the_record_is_named_and_why_its_rows_are_not(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    path = make(tmp_path / "results")
    signed.sign(tmp_path / "results")
    edit(path, lambda c: c["rows"][0].update(value=1.0))
    (change,) = signed.changed(root=tmp_path / "results")
    assert change.kind == "edited" and "git has no version as it was signed" in change.lines[0]


def test_a_record_that_breaks_a_rule_is_not_signed(tmp_path):
    root = tmp_path / "results"
    path = make(root, rows=[ROWS[0] | {"value": 120.0}])
    name = path.relative_to(root).with_suffix("").as_posix()
    with pytest.raises(ValueError, match="kept, not signed.*120.0, expected 0 to 100"):
        signed.add(name, root)
    _, refused = signed.sign(root)
    assert [one.kind for one in refused] == ["breaks a rule"] and signed.read(root) == {}
