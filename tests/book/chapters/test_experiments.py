from pathlib import Path

import pandas as pd
import pytest

from dnnbook.chapters import declared as table
from dnnbook.chapters import defaults, experiments
from dnnbook.chapters.experiments import Experiment
from dnnbook.data import load
from dnnbook.records import records


@pytest.fixture
def run():
    """An experiment at paper scale, with two rows."""
    run = Experiment("toy/luck", "paper", dataset="digits", model_name="lenet1", seed=0, inputs=5)
    run.add({"error_rate": 12.5}, fuzzer="noise")
    run.add(({"quantity": "bin", "x": x, "value": x} for x in (1,)), fuzzer="dlfuzz")
    return run


def test_rows_have_the_parameters_as_columns(run):
    assert run.rows == [{"fuzzer": "noise", "quantity": "error_rate", "value": 12.5},
                        {"fuzzer": "dlfuzz", "quantity": "bin", "x": 1, "value": 1}]
    columns = ["dataset", "model", "seed", "seeds_count"]
    assert run.live[columns].drop_duplicates().values.tolist() == [["digits", "lenet1", 0, 5]]


def test_what_is_saved_is_found_again(run):
    path = run.save(load("digits"))
    kept = records.read(path)
    assert kept.parameters == {"dataset": "digits", "model": "lenet1", "seed": 0, "seeds_count": 5}
    assert kept.provenance["data"] == load("digits").fingerprint and path.parent.name == "luck"
    found = run.recorded("fuzzer == 'noise'", seed=0)
    assert found[["model", "value"]].values.tolist() == [["lenet1", 12.5]]
    assert run.recorded(seed=1).empty


def test_a_look_leaves_no_record(run):
    look = Experiment("toy/luck", "embedded", seed=0)
    look.add({"error_rate": 1})
    assert look.save(load("digits")) is None and not records.find("toy/luck")


def test_a_table_without_records_can_be_asked_all_the_same(run):
    empty = run.recorded("fuzzer == 'noise' and x > 0")
    assert empty.empty and set(run.live) <= set(empty)


def test_beside_the_paper_stand_the_records_and_this_run(run):
    run.save(load("digits"))
    paper = pd.DataFrame({"model": ["lenet1", "lenet5"], "value": [10, 20]})
    table = run.beside(paper, "quantity == 'error_rate'", on=["model"], digits=1)
    assert table.loc["LeNet-1", ["paper", "ours", "seeds", "this run"]].tolist() == [
        "10.0", "12.5", "1", "12.5"]
    assert table.loc["LeNet-5", "ours"] == ""


def test_a_run_in_other_settings_stands_apart_from_the_records(run):
    run.save(load("digits"))
    paper = pd.DataFrame({"model": ["lenet1"], "value": [10]})
    look = Experiment("toy/luck", "embedded", dataset="digits", model_name="lenet1", seed=3,
                      inputs=2)
    look.add({"error_rate": 50.0}, fuzzer="noise")
    for take in (None, lambda rows: rows[rows["quantity"] == "error_rate"]):
        table = look.beside(paper, "quantity == 'error_rate'", on=["model"], digits=1, take=take)
        assert table["this run"].to_dict() == {("LeNet-1", ""): "", (
            "LeNet-1", "inputs 2 (5), profile embedded (paper)"): "50.0"}


# ---- what a record is named by

SOURCES = sorted(Path(__file__).parents[3].glob("notebooks/*/*.py"))


@pytest.mark.parametrize("source", [path for path in SOURCES if defaults.declared(path)],
                         ids=lambda path: f"{path.parent.name}/{path.stem[:2]}")
def test_another_value_of_a_parameter_is_another_record(source):
    asked, about = defaults.asked(source), defaults.declared(source)
    names, drawn, experiment = about["parameters"], about["drawn"], about["experiment"]
    assert set(drawn) <= set(asked)
    assert not experiments.undeclared(about, asked)
    stored = {table.stored(name, experiment): value for name, value in asked.items()
              if name in names}
    for name in set(asked) - set(drawn) - experiments.PROVENANCE:
        key = table.stored(name, experiment)
        other = stored | {key: f"{stored[key]} or another"}
        assert records.name(experiment, other) != records.name(experiment, stored), name


def test_a_cell_that_runs_again_replaces_its_rows(run):
    run.add({"error_rate": 20.0}, fuzzer="noise")
    assert [row["value"] for row in run.rows] == [20.0, 1]
    with pytest.raises(ValueError, match="toy/luck: two rows are alike in all but their value"):
        run.add([{"quantity": "b", "value": 1.0}, {"quantity": "b", "value": 2.0}])


def test_a_row_read_from_a_table_with_gaps_replaces_itself(run):
    run.add({"ratio": 1.0}, strength=1)
    read = run.live.query("quantity == 'ratio'")["strength"].item()  # a float: other rows have none
    run.add({"ratio": 2.0}, strength=read)
    assert [row["value"] for row in run.rows if row["quantity"] == "ratio"] == [2.0]


def test_a_new_parameter_leaves_older_records_theirs(run, monkeypatch, folders):
    before = run.save(load("digits"))
    monkeypatch.setattr(records, "OLDER", {"toy/luck": {"size": 8}})
    assert run.recorded("fuzzer == 'noise'")["size"].tolist() == [8]
    for size, same in ((8, True), (4, False)):
        again = Experiment("toy/luck", "paper", dataset="digits", model_name="lenet1", seed=0,
                           inputs=5, size=size)
        again.add({"error_rate": 12.5}, fuzzer="noise")
        assert (again.save(load("digits")) == before) == same


def test_the_records_have_the_names_that_follow_from_their_parameters():
    root = Path(__file__).parents[3] / "results"
    for path in [*root.glob("*/*/*.json"), *root.glob("unfinished/*/*/*.json")]:
        record = records.read(path)
        assert path.as_posix().endswith(records.name(record.experiment, record.parameters))


def test_a_record_of_ones_own_lies_apart_from_the_books(run, monkeypatch, tmp_path):
    run.save(load("digits"))  # as the book's
    monkeypatch.setenv("DNNLIB_RESULTS", str(tmp_path / "mine"))
    own = Experiment("toy/luck", "paper", **run.parameters | {"seed": 1})
    own.add({"error_rate": 50.0}, fuzzer="noise")
    assert own.save(load("digits")).is_relative_to(tmp_path / "mine")
    table = own.beside(pd.DataFrame({"model": ["lenet1"], "value": [10]}),
                       "quantity == 'error_rate'", on=["model"], digits=1)
    assert table.loc["LeNet-1", ["ours", "seeds", "this run"]].tolist() == ["12.5", "1", "50.0"]


def test_a_run_refuses_the_books_folder_before_it_computes(monkeypatch):
    monkeypatch.setenv("DNNLIB_RESULTS", str(Path(__file__).resolve().parents[3] / "results"))
    with pytest.raises(ValueError, match="DNNLIB_RESULTS: expected a folder of your own"):
        Experiment("toy/luck", "paper", seed=0)


def test_a_run_that_has_measured_nothing_says_what_to_run():
    run = Experiment("toy/luck", "embedded", seed=0)
    for ask in (lambda: run.live, lambda: run.beside(pd.DataFrame(), "value > 0", on=["seed"])):
        with pytest.raises(ValueError, match="toy/luck: this run has measured nothing yet; run the cells above"):
            ask()
    run.add({"slope": -4.0})
    assert run.live["value"].tolist() == [-4.0]
