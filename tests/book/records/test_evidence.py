"""Values of records by seed, and sentences on how they ran."""

import math

import pandas as pd
import pytest

from dnnbook.records import evidence, intervals, records


def test_differences_are_paired_over_the_seeds():
    rows = pd.DataFrame({"model": "a", "seed": [0, 1, 2] * 2, "swarm": ["x"] * 3 + ["y"] * 3,
                         "value": [10, 20, 60, 9, 18, 57]})
    x, y = (evidence.by_seed(rows, f"swarm == '{name}'", "model") for name in "xy")
    found = evidence.spread(x - y).loc["a"]
    assert found["mean"] == pytest.approx(2) and 0 > found["low"] > -1
    assert evidence.spread(x).loc["a", "low"] < -30  # the seeds differ more than the swarms


def test_one_seed_has_no_interval():
    rows = pd.DataFrame({"seed": [0], "value": [1.0]})
    assert math.isnan(evidence.spread(evidence.by_seed(rows, "value > 0")).loc[0, "low"])


def test_a_lead_that_chance_may_have_picked_does_not_stand_the_correction():
    leads = pd.DataFrame({"sure": [9.9, 10.0, 10.1], "fair": [1.0, 1.5, 2.0], "none": [-1.0, 1.0, 0.2]},
                         index=pd.Index([0, 1, 2], name="seed")).rename_axis(columns="choice")
    leads = leads.unstack().rename("value")
    alone = evidence.spread(leads)["low"]
    assert alone["fair"] > 0  # by itself
    assert evidence.corrected(leads).to_dict() == {"sure": pytest.approx(10)}
    assert evidence.corrected(leads.loc[["none"]]).empty


def test_a_verdict_in_a_reading():
    claim = "deepsensor-excitable-share"  # of VGG16 on CIFAR-10
    assert evidence.state(claim) == "not run"
    for seed, value in enumerate((0.88, 0.9, 0.91)):
        records.save(records.Record("deepsensor_excitable/thresholds", {
            "dataset": "mnist", "model": "lenet5", "seed": seed, "retrained": True}, [
            {"quantity": "excitable", "swarm": "excitable", "budget": "none", "iterations": 20,
             "varied": "lambda", "threshold": 0.5, "errors": "adversarial", "value": value}]))
    assert evidence.state(claim) == "not run"
    lenet5 = {"dataset": "mnist", "model": "lenet5"}
    assert evidence.state(claim, **lenet5) == "reproduced"
    assert len(evidence.cells_that("holds", claim, **lenet5)) == 1
    assert evidence.cells_that("fails", claim, **lenet5) == []


def test_the_cells_of_a_verdict_are_not_those_of_their_own_seeds():
    # By its three seeds alone the first cell is open; the others tell how little a cell varies.
    cells = [(dataset, model) for dataset in ("mnist", "fashion_mnist", "cifar10", "svhn")
             for model in ("lenet5_nss", "resnet20")]
    values = {cell: [9 - off, 9, 9 + off] for cell, off in zip(cells, [1.3] + [0.1] * 7)}
    assert evidence.cells_that("holds", "nss-fdr-gini") == []
    for (dataset, model), three in values.items():
        for seed, value in enumerate(three):
            records.save(records.Record("nss/fault_detection", {
                "dataset": dataset, "model": model, "seed": seed, "recipe": "nss", "candidates": "random"}, [
                {"quantity": "over_gini", "rate": 20, "pair": "remutated", "difference": "l1", "share": 10, "value": value}]))
    assert intervals.interval(values[cells[0]])[0] < 6.15
    assert cells[0] in evidence.cells_that("holds", "nss-fdr-gini")


def test_without_points_nothing_is_said_of_an_estimate():
    assert not evidence.estimator(pd.DataFrame({"points": [None]}))[1]


def test_the_spread_takes_each_cell_by_itself():
    index = pd.MultiIndex.from_product([["b", "a"], ["x"], range(3)], names=["data", "net", "seed"])
    found = evidence.spread(pd.Series([1, 2, 4, 5, 5, 5], index), "ratio")
    assert found.index.tolist() == [("b", "x"), ("a", "x")]
    assert found.loc[("b", "x"), ["low", "high"]].tolist() == pytest.approx(
        intervals.interval([1, 2, 4], "ratio"))
    assert found.loc[("a", "x")].tolist() == [5, 5, 5]
