"""Values of records by seed, and sentences on how they ran."""

import math

import pandas as pd
import pytest

from dnnbook.records import evidence, records


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


def test_a_verdict_in_a_reading():
    claim = "deepsensor-excitable-share"  # of VGG16 on CIFAR-10
    assert evidence.state(claim) == "not run"
    for seed, value in enumerate((0.88, 0.9, 0.91)):
        records.save(records.Record("deepsensor_excitable/thresholds", {
            "dataset": "mnist", "model": "lenet5", "seed": seed}, [
            {"quantity": "excitable", "swarm": "excitable", "budget": "none", "iterations": 20,
             "varied": "lambda", "threshold": 0.5, "errors": "adversarial", "value": value}]))
    assert evidence.state(claim) == "not run"
    assert evidence.state(claim, dataset="mnist", model="lenet5") == "reproduced"


def save_shares(experiment, model, shares, **row):
    records.save(records.Record(experiment, {"model": model, "seed": 0}, [
        {"quantity": "share", "gradients": count, "value": value} | row
        for count, value in shares.items()]))


def test_an_estimate_of_few_gradients_is_told_beside_one_of_many():
    nats = {"scale": "none", "swarm": "excitable"}
    save_shares("deepsensor_excitable/thresholds", "lenet5", {1: 0.1, 2: 0.9, 8: 1.0}, **nats)
    save_shares("deepsensor_excitable/thresholds", "vgg16", {1: 0.0, 2: 0.3, 8: 1.0}, **nats)
    save_shares("deepsensor_excitable/players", "lenet5", {2: 0.5, 4: 1.1, 16: 1.0},
                estimator="diagonal")
    small = pd.DataFrame({"model": ["lenet5"], "points": [2.0]})
    both = pd.concat([small, small.assign(model="vgg16")])
    assert len(evidence.estimator(small)) == 2
    *_, (said, held) = evidence.estimator(both)
    assert held and said == "In VGG16, two find 30 % as many as eight do."
