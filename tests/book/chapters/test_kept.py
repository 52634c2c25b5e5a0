"""Which record of the book a run with ``keep`` takes its rows from, and what is said where there is none."""

import pytest

from dnnbook.chapters import kept, notebooks, sweeps
from dnnbook.chapters.experiments import Experiment
from dnnbook.data import load

WHERE = "nss/fault_detection"
CELL = {"dataset": "digits", "model_name": "lenet1_nss", "recipe": "nss", "seed": 0, "candidates": "random",
        "references": 50, "beside": "margin"}


@pytest.fixture
def book():
    """The book has one record of the cell."""
    run = Experiment(WHERE, "paper", **CELL | {"beside": ""})
    run.add({"apfd": 12.5}, method="gini")
    run.save(load("digits"))
    return run


def test_the_rows_of_the_record_are_rows_of_the_run(book):
    run = Experiment(WHERE, "paper", **CELL, drawn={"keep": True})
    assert run.keep()["value"].tolist() == [12.5] and run.rows[0] == book.rows[0]
    assert run.rows[1]["quantity"] == "rows_kept" and run.rows[1]["value"] == 1


@pytest.mark.parametrize("other, said", [
    ({"seed": 3}, "no record with dataset digits, model lenet1_nss, seed 3, only with 0; leave"),
    ({"dataset": "mnist_small"}, "no record with dataset mnist_small, only with digits; leave"),
    ({"references": 60}, "record with dataset digits, model lenet1_nss, seed 0, has references 50 .here 60.; give"),
    ({"beside": ""}, "nothing is left to run"),
    ({"profile": "embedded"}, "expected it with keep .-p profile paper., got 'embedded'")])
def test_what_is_there_is_said_before_anything_is_computed(book, other, said):
    with pytest.raises(ValueError, match=f"keep: .*{said}"):
        Experiment(WHERE, **{"profile": "paper"} | CELL | other, drawn={"keep": True})


def test_a_record_of_other_images_is_none_to_take_from(book, monkeypatch):
    monkeypatch.setattr(kept.data, "load", lambda name: load("mnist_small"))
    with pytest.raises(ValueError, match="keep: the book's record was made on other images of digits"):
        Experiment(WHERE, "paper", **CELL, drawn={"keep": True})


def test_a_sweep_takes_it_and_says_what_is_missing(book, tmp_path):
    grid = ('[[grid]]\nnotebook = "nss/02"\nprofile = "paper"\nkeep = true\nbeside = ["margin", "pd"]\n'
            'dataset = "digits"\nreferences = {}\n')
    (tmp_path / "own.toml").write_text(grid.format(50))
    cells, _ = sweeps.read(tmp_path / "own.toml")
    assert [cell.values["beside"] for cell in cells] == ["margin", "pd"] and not any(map(sweeps.done, cells))
    assert "keep" not in notebooks.recorded(cells[0].notebook, cells[0].values)[1]
    (tmp_path / "own.toml").write_text(grid.format(60))
    with pytest.raises(ValueError, match="nothing was run\n.*keep: .* has references 50 .here 60."):
        sweeps.read(tmp_path / "own.toml")
