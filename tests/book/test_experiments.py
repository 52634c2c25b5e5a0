import json

import pandas as pd
import pytest

from dnnlib.book import experiments, records
from dnnlib.book.experiments import Experiment
from dnnlib.data import load


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


def test_the_declaration_names_what_was_declared_and_read(run, monkeypatch):
    monkeypatch.setattr(records, "asked", set())
    records.frame("nsatp/rq1")
    about = json.loads(experiments.declaration())
    assert about == {"experiment": "toy/luck", "reads": ["nsatp/rq1"], "parameters": {
        "dataset": "digits", "model_name": "lenet1", "seed": 0, "inputs": 5}}
