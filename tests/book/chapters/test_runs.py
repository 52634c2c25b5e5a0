import re
from pathlib import Path

import pandas as pd
import pytest

from dnnbook.chapters import notebooks, runs, sweeps
from dnnbook.chapters.experiments import Experiment
from dnnbook.data import load


@pytest.fixture
def own(monkeypatch, tmp_path):
    """The folder of a reader's records of two settings, beside a record of the book's of one."""
    def saved(seed, trials, value):
        run = Experiment("nsatp/motivation", "paper", dataset="digits", model_name="lenet5",
                         seed=seed, trials=trials)
        run.add({"mean_eff": value})
        return run.save(load("digits", limit=2))

    saved(0, 50, 0.5)
    monkeypatch.setenv("DNNLIB_RESULTS", str(tmp_path / "mine"))
    for seed, trials, value in ((0, 5, 0.1), (1, 5, 0.3), (0, 20, 0.4)):
        saved(seed, trials, value)
    return tmp_path / "mine"


def test_only_seeds_are_averaged_and_the_books_record_stands_beside(own):
    table = runs.over(runs.gathered("nsatp/motivation", own), "mean_eff", "trials")
    assert table[["run", "trials", "mean", "least", "greatest", "seeds"]].values.tolist() == [
        ["yours", 5, 0.2, 0.1, 0.3, 2], ["yours", 20, 0.4, 0.4, 0.4, 1],
        ["the book's", 50, 0.5, 0.5, 0.5, 1]]


def test_what_else_differs_is_a_column_and_never_averaged():
    rows = pd.DataFrame({"run": "yours", "seed": 0, "trials": 5, "quantity": "eff",
                         "dataset": ["a", "b"], "value": [1.0, 3.0]})
    assert runs.over(rows, "eff", "trials")["mean"].tolist() == [1.0, 3.0]
    assert runs.over(rows, "eff", "trials", "dataset == 'b'")["mean"].tolist() == [3.0]


@pytest.mark.parametrize(("asked", "line"), [
    (("fee", "trials"), "fee"), (("eff", "trails"), "trails"),
    (("eff", "trials", "dataset == 'c'"), "no rows are left"),
    (("eff", "trials", "colour == 'c'"), "colour"), (("eff", "trials", "dataset =="), "--where")])
def test_what_there_is_not_is_named(asked, line):
    rows = pd.DataFrame({"run": ["yours"], "seed": 0, "trials": 5, "quantity": "eff",
                         "dataset": "a", "value": 1.0})
    with pytest.raises(ValueError, match=line):
        runs.over(rows, *asked)


def test_without_records_it_says_what_leaves_one(tmp_path):
    with pytest.raises(ValueError, match="no records of nsatp/motivation in .*profile paper"):
        runs.gathered("nsatp/motivation", tmp_path / "none")


@pytest.mark.parametrize("where", ["trials", "(", "value.foo", "lambda: 1", "True"])
def test_what_is_no_query_is_one_line(where):
    rows = pd.DataFrame({"run": ["yours"], "seed": 0, "trials": 5, "quantity": "eff", "value": 1.0})
    with pytest.raises(ValueError, match="--where .*: expected a query such as"):
        runs.over(rows, "eff", "trials", where)


def test_the_books_own_folder_is_the_books(own, folders):
    assert {*runs.gathered("nsatp/motivation", folders / "results")["run"]} == {runs.BOOK}


def test_the_figure_has_a_line_for_each_run(own):
    table = runs.over(runs.gathered("nsatp/motivation", own), "mean_eff", "trials")
    figure = runs.draw(table, "trials")
    axis = figure.axes[0]
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["yours", "the book's"]
    assert [list(lines[0].get_xdata()) for lines in axis.containers] == [[5, 20], [50]]


def test_the_page_shows_a_sweep_and_commands_that_there_are(tmp_path):
    page = (Path(__file__).resolve().parents[3] / "book" / "own_runs.md").read_text("utf-8")
    path = tmp_path / "patches.toml"
    path.write_text(re.search(r"```toml\n(.*?)```", page, re.DOTALL)[1], encoding="utf-8")
    cells, folder = sweeps.read(path)
    assert len(cells) == 3 * (3 + 4) and str(folder) == "runs/patches"
    for asked in re.findall(r"--over (\w+)|trials", page):
        assert not asked or asked in notebooks.parameters(cells[0].notebook)
