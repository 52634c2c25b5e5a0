"""What is found over all papers, on tables small enough to see it."""

import math

import pandas as pd
import pytest

from dnnbook.studies.findings import synthesis


def test_selectors_by_network_are_means_over_the_seeds():
    rows = pd.DataFrame([("gini", "lenet1", 0, 60), ("gini", "lenet1", 1, 80), ("gini", "vgg16", 0, 10)],
                        columns=["selector", "model", "seed", "value"]).assign(dataset="mnist")
    assert synthesis.selectors_by_network(rows).loc["gini"].to_dict() == {("mnist", "lenet1"): 70, ("mnist", "vgg16"): 10}


FUZZED = pd.DataFrame([
    ("dlfuzz", None, "paper", 40), ("dlfuzz", None, "best", 90), ("noise", None, "other", 2), ("deepsensor", "paper", None, 10),
    ("deepsensor", "constant", None, 30)], columns=["fuzzer", "swarm", "setting", "value"])


def test_as_published_leaves_out_other_settings_of_rivals():
    found = synthesis.as_published(FUZZED).set_index("who")["value"]
    assert found.to_dict() == {"dlfuzz": 40, "noise": 2, "deepsensor, paper": 10, "deepsensor, constant": 30}


def test_of_each_paper_there_is_one_swarm():
    assert synthesis.of_each_paper(FUZZED).to_dict() == {"dlfuzz": 40, "noise": 2, "deepsensor": 10}


def runs(*lines):
    """Rows of fuzzers at a bound of 8 with LeNet-1: fuzzer, reading, seed, value."""
    return pd.DataFrame(lines, columns=["fuzzer", "reading", "seed", "value"]).assign(dataset="mnist", model="lenet1", bound=8)


def test_a_rival_counts_in_its_best_setting_and_never_alone():
    found = synthesis.by_fuzzer(runs(("dlfuzz", None, 0, 40), ("dlfuzz, best", None, 0, 90), ("deepxplore", "joint", 0, 5),
                                     ("deepxplore, single", "single", 0, 70), ("deepsensor, constant", None, 0, 30)))
    assert found.loc[("mnist", "lenet1", 8, 0)].to_dict() == {"dlfuzz": 90, "deepxplore": 5, "deepsensor, constant": 30}


@pytest.mark.parametrize("seeds", [2, 3])
def test_a_lead_is_paired_by_seed_and_needs_three(seeds):
    table = synthesis.by_fuzzer(runs(*(line for seed in range(seeds) for line in (
        ("dlfuzz", None, seed, 40 + 10 * seed), ("noise", None, seed, 10 * seed)))))
    assert synthesis.lead(table, "dlfuzz", "noise", "bound == 8").tolist() == [40] * seeds * (seeds == 3)
    assert synthesis.lead(table, "dlfuzz", "noise", "bound == 2").empty


def test_of_two_readings_the_first_is_the_one_that_was_judged():
    rows = pd.DataFrame([("a", "pair", "not reproduced", 0, 4, 0.0), ("a", "pair", "mostly", 3, 4, 0.75),
                         ("b", "pair", "mostly", 3, 4, 0.75), ("b", "pair", "mostly", 3, 5, 0.6), ("a", "swarm", "mostly", 1, 1, 1)],
                        columns=["id", "column", "verdict", "holds", "run", "share"])
    assert synthesis.in_two_readings(rows, "pair").to_dict("index") == {
        "a": {"judged": 0, "otherwise": 0.75, "holds": 0, "run": 4, "depends": True},
        "b": {"judged": 0.75, "otherwise": 0.6, "holds": 3, "run": 4, "depends": False}}


def test_a_mean_over_the_seeds_is_missing_where_one_is():
    rows = pd.DataFrame([("gini", "wrong", 0, 0.8), ("gini", "wrong", 1, 0.6), ("nss", "wrong", 0, 0.5), ("nss", "wrong", 1, None)],
                        columns=["method", "other", "seed", "value"]).assign(quantity="auc", dataset="mnist", model="lenet1")
    found = synthesis.over_networks(rows)["auc"].loc[("mnist", "lenet1")]
    assert found["gini", "wrong"] == pytest.approx(0.7) and math.isnan(found["nss", "wrong"])
