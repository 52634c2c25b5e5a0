"""Records that are older than the code they rest on."""

import pytest

from dnnbook import reproducible
from dnnbook.records import ages, records
from dnnbook.records.records import Record


@pytest.fixture
def revisions(monkeypatch):
    monkeypatch.setattr(reproducible, "REVISIONS",
                        {"training": ("a", "b"), "success": ("a",), "orders": ("a",)})


@pytest.mark.parametrize("provenance, expected", [
    ({"revisions": {"training": 2, "success": 1}}, ()),
    ({"revisions": {"training": 1, "success": 1}}, ("training",)),
    ({"revisions": {"success": 1}}, ()),  # it trains nothing
    ({"revisions": {"training": 2}, "commit": "c+changes"}, ("edited files",)),
    ({"revisions": {"training": 1}, "commit": "c+changes"}, ("training", "edited files")),
    ({"revisions": {"training": 2}, "data": "jpeg-c3578a95941b[2000]"}, ("JPEG copy",)),
    ({"revisions": {"training": 2}, "data": "815bee49b921"}, ())])
def test_why_a_record_is_old(revisions, provenance, expected):
    assert ages.reasons(Record("toy/x", {}, [], provenance)) == expected


def test_the_summary_counts_by_reason(revisions, folders):
    assert ages.summary() == ""
    for seed, revision in enumerate((1, 1, 2)):
        records.save(Record("toy/x", {"seed": seed}, [{"value": 1}],
                            {"commit": "c", "threads": 1, "revisions": {"training": revision}}))
    records.save(Record("other/x", {}, [{"value": 1}], {"commit": "c+changes", "threads": 1, "revisions": {}}))
    assert ages.summary().startswith("3 of 4 records should be made again "
                                     "(edited files 1, training 2)")
    assert ages.summary("toy").startswith("2 of 3 records")
    assert [one.reasons for one in ages.old("other")[0]] == [("edited files",)]


def test_a_record_of_today_is_not_old(folders):
    reproducible.note("training")
    records.save(Record("toy/x", {}, [{"value": 1}],
                        records.provenance(data="d") | {"commit": "c"}))
    assert ages.summary() == ""


@pytest.mark.parametrize("asked, named, expected", [
    ({"recipe": "nss", "dataset": "cifar10", "model": "vgg16"}, {}, ("augmentation",)),
    ({"dataset": "cifar10", "model": "resnet20"}, {}, ("augmentation",)),  # a chapter of NSS
    ({"recipe": "nss", "dataset": "cifar10", "model": "vgg16"}, {"augmentation": 2}, ()),
    ({"recipe": "nss", "dataset": "mnist", "model": "lenet5"}, {}, ()),
    ({"recipe": "pretrained", "dataset": "imagenet", "model": "mobilenet"}, {}, ())])
def test_a_network_of_images_changed_as_before_is_old(asked, named, expected):
    now = {"training": reproducible.revision("training")} | named
    record = Record("nss/x", asked, [], {"commit": "c", "threads": 1, "revisions": now})
    assert ages.reasons(record) == expected
