import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dnnlib import published
from dnnlib.book import compare, records

ON = ["dataset", "distance"]


def tidy(*rows, columns=(*ON, "value")):
    return pd.DataFrame(rows, columns=columns)


def seeds(*rows):
    return tidy(*rows, columns=(*ON, "seed", "value"))


PAPER = tidy(("mnist", "pd", 0.99), ("mnist", "pe", "0.98"), ("cifar10", "pd", 0.97),
             ("cifar10", "pe", "Best"))


# Tables beside each other


def test_cells_stand_as_published_and_extra_ones_last():
    ours = seeds(("digits", "pd", 0, 0.5), ("cifar10", "pe", 0, 0.4), ("mnist", "pd", 0, 0.3))
    table = compare.beside(PAPER, ours, on=ON)
    assert table.index.tolist() == [("mnist", "pd"), ("mnist", "pe"), ("cifar10", "pd"),
                                    ("cifar10", "pe"), ("digits", "pd")]
    assert table["paper"].tolist() == ["0.99", "0.98", "0.97", "Best", ""]
    assert table["ours"].tolist() == ["0.30", "", "", "0.40", "0.50"]
    assert table["seeds"].tolist() == ["1", "", "", "1", "1"]


def test_spread_over_seeds():
    ours = seeds(*(("mnist", "pd", s, v) for s, v in enumerate([0.1, 0.2, 0.6])),
                 *(("mnist", "pe", s, v) for s, v in enumerate([0.5, math.nan, 0.5])))
    table = compare.beside(PAPER, ours, on=ON, digits=1)
    assert table.loc[("mnist", "pd"), ["paper", "ours", "seeds"]].tolist() == [
        "1.0", "0.3 [0.1, 0.6]", "3"]
    assert table.loc[("mnist", "pe"), "ours"] == "undefined"


def test_live_column():
    live = tidy(("mnist", "pe", 0.25), ("digits", "pd", 0.75))
    table = compare.beside(PAPER, seeds(("mnist", "pd", 0, 0.3)), on=ON, live=live)
    assert table["this run"].tolist() == ["", "0.25", "", "", "0.75"]
    nobody = compare.beside(PAPER, seeds(), on=ON)
    assert (nobody[["ours", "seeds", "this run"]] == "").all(axis=None)


def test_where_says_which_of_our_rows_are_meant():
    ours = seeds(("mnist", "pd", 0, 0.3), ("mnist", "pe", 0, 0.4), ("mnist", "pd", 1, 9.0))
    live = tidy(("mnist", "pd", 0.2), ("mnist", "pe", 7.0))
    table = compare.beside(PAPER, ours, on=ON, live=live, where="value < 1")
    assert table.loc[("mnist", "pd"), ["ours", "seeds", "this run"]].tolist() == [
        "0.30", "1", "0.20"]
    assert table.loc[("mnist", "pe"), ["ours", "this run"]].tolist() == ["0.40", ""]
    nobody = compare.beside(PAPER, pd.DataFrame(), on=ON, where="no_such_column == 1")
    assert (nobody["ours"] == "").all()


def test_one_column_of_cells():
    paper, ours = tidy(("b", 1), ("a", 2), columns=("dataset", "value")), tidy(
        ("a", 0, 3.0), columns=("dataset", "seed", "value"))
    table = compare.beside(paper, ours, on=["dataset"], digits=0)
    assert table.index.tolist() == ["b", "a"] and table["ours"].tolist() == ["", "3"]


@pytest.mark.parametrize("which, column", [("paper", "distance"), ("ours", "value"),
                                           ("ours", "seed"), ("live", "dataset")])
def test_missing_columns_are_named(which, column):
    tables = {"paper": PAPER, "ours": seeds(("mnist", "pd", 0, 0.3)), "live": PAPER}
    tables[which] = tables[which].drop(columns=column)
    with pytest.raises(ValueError, match=rf"{which}: lacks the columns \['{column}'\]"):
        compare.beside(tables["paper"], tables["ours"], on=ON, live=tables["live"])


# Verdicts


def claim(rule="above", threshold=0.0, **changes):
    return published.Claim(**{
        "id": "nsatp-x", "paper": "nsatp", "place": "IV", "statement": "x",
        "experiment": "nsatp/x", "quantity": "q", "cells": ["dataset"], "expected": 4,
        "rule": rule, "threshold": threshold} | changes)


def save(values, dataset="mnist", seeds=None, experiment="nsatp/x", quantity="q", rows=(),
         **parameters):
    """One record for each value, with seeds 0, 1, 2, ..."""
    for seed, value in zip(seeds or range(len(values)), values):
        records.save(records.Record(experiment, {"dataset": dataset, "seed": seed, **parameters},
                                    [{"quantity": quantity, "value": value}, *rows]))


# 1, 2, 3 has mean 2 and the 95 % interval [-0.48, 4.48] (t = 4.303, error 1 / sqrt 3)
@pytest.mark.parametrize("rule, threshold, outcome", [
    ("above", -0.5, "holds"), ("above", 4.5, "fails"), ("above", 2, "open"),
    ("at_least", -0.5, "holds"), ("at_least", 4.5, "fails"), ("at_least", 2, "open"),
    ("below", 4.5, "holds"), ("below", -0.5, "fails"), ("below", 2, "open"),
    ("at_most", 4.5, "holds"), ("at_most", -0.5, "fails"), ("at_most", 2, "open")])
def test_rules_look_at_the_whole_interval(rule, threshold, outcome):
    save([1, 2, 3])
    found = compare.verdict(claim(rule, threshold))
    assert found.cells[["dataset", "mean", "seeds", "outcome"]].values.tolist() == [
        ["mnist", 2, 3, outcome]]
    assert (found.holds, found.fails, found.run) == (outcome == "holds", outcome == "fails", 1)
    assert found.state == {"holds": "reproduced", "fails": "not reproduced",
                           "open": "undecided"}[outcome]


@pytest.mark.parametrize("rule, outcome", [("above", "fails"), ("at_least", "holds"),
                                           ("below", "fails"), ("at_most", "holds")])
def test_rules_at_the_threshold(rule, outcome):
    save([0.5, 0.5, 0.5])  # an interval of one point
    assert compare.verdict(claim(rule, 0.5)).cells["outcome"].tolist() == [outcome]


@pytest.mark.parametrize("values, seeds", [([], []), ([1], [0]), ([1, 1], [0, 1])])
def test_fewer_than_three_seeds_decide_nothing(values, seeds):
    save(values, seeds=seeds)
    found = compare.verdict(claim())
    assert (found.state, found.run, found.holds) == ("not run", 0, 0) and found.cells.empty


def test_more_records_of_one_seed_are_not_more_seeds():
    for trials in (10, 20, 30):
        save([1, 1], trials=trials)
    assert compare.verdict(claim()).state == "not run"


def test_partly_and_not_reproduced():
    save([1, 1, 1], "mnist")
    save([-1, -1, -1], "digits")
    save([1, 1], "svhn")  # not counted
    found = compare.verdict(claim())
    assert (found.state, found.holds, found.fails, found.run) == ("partly", 1, 1, 2)
    assert compare.verdict(claim("at_most", -2)).state == "not reproduced"
    assert compare.verdict(claim("at_most", 1)).state == "reproduced"


def test_the_scoreboard_counts_what_is_open(monkeypatch):
    monkeypatch.setattr(compare.published, "claims", lambda paper: [claim()])
    for dataset, values in (("mnist", [1, 1, 1]), ("digits", [-1, 0, 1]), ("svhn", [-1, -1, -1])):
        save(values, dataset)
    board = compare.scoreboard()
    assert board["verdict"].tolist() == ["partly"]
    assert board["cells (paper's)"].str.startswith("1 of 3 hold, 1 open (").all()


def test_cells_of_two_columns():
    for model, value in (("net1", 1), ("net2", -1)):
        save([value] * 3, model=model)
    cells = compare.verdict(claim(cells=["dataset", "model"])).cells.set_index(["dataset", "model"])
    assert cells["outcome"].to_dict() == {("mnist", "net1"): "holds", ("mnist", "net2"): "fails"}


@pytest.mark.parametrize("where, means", [
    ({}, [1]), ({"trials": 100}, [2]), ({"trials": 10}, [0]), ({"trials": [10, 100]}, [1]),
    ({"trials": [100]}, [2]), ({"trials": 100, "patch": "random"}, [2]),
    ({"trials": 10, "patch": ["random"]}, []), ({"trials": [7]}, [])])
def test_where_filters_rows(where, means):
    save([2, 2, 2], trials=100, patch="random", rows=[{"quantity": "other", "value": 90}])
    save([0, 0, 0], trials=10, patch="invert")
    found = compare.verdict(claim(where=where))
    assert (found.cells["mean"].tolist() if means else found.run) == (means or 0)


def test_where_can_name_a_column_of_the_cells():
    for distance in ("pd", "certainty"):
        save([1, 1, 1], distance=distance)
    found = compare.verdict(claim(cells=["distance"], where={"distance": ["pd", "pe", "pv"]}))
    assert found.cells["distance"].tolist() == ["pd"]


@pytest.mark.parametrize("rule", compare.RULES)
@pytest.mark.parametrize("values", [[1, 1, math.nan], [math.nan] * 3])
def test_undefined_values_neither_hold_nor_fail(rule, values):
    save(values)
    found = compare.verdict(claim(rule))
    assert (found.state, found.holds, found.fails, found.run) == ("undecided", 0, 0, 1)


def test_an_undefined_row_is_not_averaged_away():
    save([1, 1, 1], rows=[{"quantity": "q", "value": None}])
    assert compare.verdict(claim()).cells["outcome"].tolist() == ["open"]


@pytest.mark.parametrize("changes, column", [
    ({"where": {"fit": "curve"}}, "fit"), ({"cells": ["dataset", "model"]}, "model")])
def test_records_without_a_column_of_the_claim(changes, column):
    save([1, 1, 1])
    words = f"claim nsatp-x: .* no column '{column}', only .*'dataset'"
    with pytest.raises(ValueError, match=words):
        compare.verdict(claim(**changes))


def test_a_table_of_means_and_intervals():
    runs = pd.DataFrame([("gini", "mnist", s, v) for s, v in enumerate([1.0, 2.0, 3.0])]
                        + [("gini", "cifar10", 0, 5.0), ("gini", "cifar10", 1, 6.0)]
                        + [("pd", "cifar10", s, v) for s, v in enumerate([1.0, math.nan, 3.0])],
                        columns=["method", "dataset", "seed", "value"])
    table = compare.mean_and_interval(runs, index=["method"], columns=["dataset"])
    half = stats.t.ppf(0.975, 2) / math.sqrt(3)
    assert table.loc["gini", "mnist"].split() == ["2.0", "±", f"{half:.1f}"]
    assert table.loc["gini", "cifar10"] == "5.5"  # two seeds: no interval
    assert table.loc["pd", "cifar10"] == "undefined" and table.loc["pd", "mnist"] == ""


def test_several_rows_of_a_seed_are_one_value_of_the_interval():
    runs = pd.DataFrame({"m": "a", "seed": [0, 0, 1, 1, 2, 2], "value": [0, 2, 1, 3, 2, 4]})
    merged = runs.groupby(["m", "seed"], as_index=False)["value"].mean()
    assert compare.mean_and_interval(runs, index=["m"]).equals(
        compare.mean_and_interval(merged, index=["m"]))


def test_interval_is_student_s():
    values = np.random.default_rng(0).normal(size=5)
    low, high = compare.interval(values)
    assert (low, high) == pytest.approx(stats.t.interval(
        0.95, df=4, loc=values.mean(), scale=values.std(ddof=1) / math.sqrt(5)))
    assert type(low) is type(high) is float


@pytest.mark.parametrize("values", [[], [1], [1, 2, math.nan], [1, None, 3]])
def test_interval_of_too_little(values):
    assert np.isnan(compare.interval(values)).all()


# The scoreboard


def test_scoreboard_lists_every_claim():
    board = compare.scoreboard()
    assert board.index.tolist() == [c.id for c in published.claims()]
    assert board["claim"].tolist() == [c.statement for c in published.claims()]
    assert set(board["verdict"]) == {"not run"} and all(c.startswith("(") for c in board["cells (paper's)"])
    assert set(compare.scoreboard("peacepact")["paper"]) == {"peacepact"}


def test_scoreboard_of_one_experiment_follows_its_records(tmp_path):
    board = compare.scoreboard(experiment="nsatp/rq3")
    assert board.index.tolist() == ["nsatp-rq3-pd-best"]
    common = dict(experiment="nsatp/rq3", quantity="pd_lead", trials=100, patch="random")
    save([1, 1, 1], model="net1", **common)
    save([-1, -1, -1], model="net2", **common)
    row = compare.scoreboard(experiment="nsatp/rq3").loc["nsatp-rq3-pd-best"]
    assert (row["verdict"], row["cells (paper's)"]) == ("partly", "1 of 2 hold (8)")
    elsewhere = compare.scoreboard("nsatp", tmp_path / "elsewhere", experiment="nsatp/rq3")
    assert elsewhere["verdict"].tolist() == ["not run"]


@pytest.mark.parametrize("where", [{"trials": 10}, {"patch": "invert"}, {"distance": "certainty"}])
def test_other_readings_do_not_decide_rq1(where):
    row = {"fit": "loglinear", "points": "examples", "model": "net1", "distance": "pd",
           "trials": 100, "patch": "random"}
    save([-1, -1, -1], experiment="nsatp/rq1", quantity="b", **row)
    save([9, 9, 9], experiment="nsatp/rq1", quantity="b", **row | where)
    board = compare.scoreboard(experiment="nsatp/rq1")
    assert board.loc["nsatp-rq1-falling", ["verdict", "cells (paper's)"]].tolist() == [
        "reproduced", "1 of 1 hold (24)"]


def test_unknown_paper():
    with pytest.raises(ValueError, match="unknown paper 'nsapt'; did you mean 'nsatp'"):
        compare.scoreboard("nsapt")
