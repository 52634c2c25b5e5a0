"""What was run of each paper is counted from the records."""

from pathlib import Path

import pytest

from dnnbook import published
from dnnbook.chapters import notebooks
from dnnbook.records import extent, records

README = Path(__file__).resolve().parents[3] / "README.md"


def measured(dataset, model, seeds=3):
    for seed in range(seeds):
        records.save(records.Record("nss/diversity", {"dataset": dataset, "model": model,
                                                      "seed": seed},
                                    [{"quantity": "area", "value": 1.0}]))


def state(item="Table VII"):
    found = extent.items().query("paper == 'nss'").set_index("item").loc[item]
    return found["run"], found["state"]


def test_a_table_is_blank_then_partial_then_whole():
    assert state() == (0, "blank")
    measured("mnist", "lenet1_nss", seeds=2)
    assert state() == (0, "blank")  # two seeds are no cell
    measured("mnist", "lenet1_nss")
    assert state() == (1, "partial")
    for i in range(7):
        measured("cifar10", f"net{i}")
    assert state() == (8, "whole")


def test_a_part_of_a_dataset_has_a_count_of_its_own():
    measured("svhn_part", "lenet5_nss")
    found = extent.items().query("paper == 'nss'").set_index("item").loc["Table VII"]
    assert found["by_part"] == 1 and state() == (0, "blank")
    measured("mnist", "lenet1_nss")
    assert state() == (1, "partial")
    assert extent.states().loc["nss", "by_part"] == 2  # Fig. 4 has the same cells


def test_what_a_table_lacks_is_named_a_whole_dataset_once():
    every = extent.lacking("nss", "Table VII")
    assert ("cifar10", "") in every and ("svhn", "") in every
    measured("mnist", "lenet1_nss")
    left = extent.lacking("nss", "Table VII")
    assert ("mnist", "lenet5_nss") in left and ("mnist", "lenet1_nss") not in left
    assert extent.lacking("nss", "Table II") == extent.lacking("nss", "Fig. 3") == []


def test_no_item_counts_more_cells_than_the_paper_has():
    items = extent.items(notebooks.folder().parent / "results")
    assert items["run"].sum() > 50  # the project's own records
    assert (items["run"] <= items["cells"]).all() and (items["possible"] <= items["cells"]).all()
    assert (items["by_part"] <= items["cells"] - items["possible"]).all()


def test_what_needs_data_that_is_not_here_is_counted_as_the_tables_print_it():
    """Of the tables whose copy names the datasets: their cells with SVHN and VCTK."""
    seen = 0
    for paper, entries in published.OUTLINE.items():
        for name, entry in entries.items():
            number = name.removeprefix("Table ")
            number = str(extent.ROMAN.index(number) + 1) if number in extent.ROMAN else number
            by = entry.get("by", extent.PAIR)
            if "experiment" not in entry or not number.isdigit() or "also" in entry:
                continue
            printed = published.table(paper, int(number))
            if set(by) <= set(printed):
                cells = printed[[*by]].dropna().drop_duplicates()
                for data in ("svhn", "vctk"):
                    found = int((cells["dataset"] == data).sum()) if "dataset" in cells else 0
                    assert entry.get("missing", {}).get(data, 0) == found, (paper, name)
                    seen += found
    assert seen > 20


def test_a_network_that_a_table_does_not_print_is_no_cell_of_it():
    """A chapter runs with more networks than its table has: LeNet-1 is not in Table III."""
    seen = 0
    for paper, items in published.OUTLINE.items():
        for name, entry in items.items():
            where = entry.get("where", {}).get("model")
            number = name.removeprefix("Table ")
            number = str(extent.ROMAN.index(number) + 1) if number in extent.ROMAN else number
            if where is None or not number.isdigit():
                continue
            printed = published.table(paper, int(number))
            if "model" in printed:
                seen += 1
                assert {where} == set(printed["model"]) if isinstance(where, str) else \
                    set(where) == set(printed["model"].dropna()), (paper, name)
    assert seen > 8


def test_what_code_alone_makes_is_whole_without_records():
    assert state("Table II") == (0, "whole")


def test_every_item_names_a_chapter_that_declares_its_experiment():
    names = {f"{p.parent.name}/{p.stem}" for p in notebooks.starting([], ".ipynb")}
    items = extent.items()
    assert all(any(name.startswith(chapter) for name in names) for chapter in items["chapter"])


def test_every_published_table_is_an_item():
    items = extent.items()
    roman = dict(zip(["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X"], range(1, 11)))
    for paper, numbers in published.tables().items():
        named = {item.removeprefix("Table ") for item in items.query("paper == @paper")["item"]
                 if item.startswith("Table ")}
        found = {int(roman.get(name, name)) for name in named}
        assert found >= {n for n in numbers if "text" not in published.source(paper, n).lower()}


def test_the_readme_shows_what_was_run(monkeypatch):
    """Made by `dnnbook scoreboard --readme README.md`."""
    monkeypatch.delenv("DNNLIB_BOOK")
    text = README.read_text("utf-8")
    assert extent.readme(text) == text
    monkeypatch.setenv("DNNLIB_BOOK", "/nowhere")
    assert extent.readme(text) != text


def test_a_readme_without_marks():
    with pytest.raises(ValueError, match="expected the marks"):
        extent.readme("# A project")
