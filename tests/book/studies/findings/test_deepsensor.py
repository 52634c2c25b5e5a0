"""On tables made by hand: each finding is that of the definition, and falls if a row moves."""

import pandas as pd
import pytest

from dnnbook.studies.findings import deepsensor


def frame(lines):
    """Rows by fuzzer, swarm and network, with one value for each seed."""
    return pd.DataFrame([
        {"fuzzer": fuzzer, "swarm": swarm, "model": model, "seed": seed, "value": value, **where}
        for fuzzer, swarm, model, values, where in lines for seed, value in enumerate(values)])


RATES = frame([
    ("deepsensor", "paper", "lenet1", [5, 7], {"budget": "none"}),
    ("deepsensor", "paper", "lenet5", [1, 2], {"budget": "none"}),
    ("deepsensor", "paper", "lenet1", [0, 0], {"budget": "near"}),
    ("deepsensor", "constant", "lenet1", [4, 9], {"budget": "none"}),
    ("deepsensor", "constant", "lenet5", [0, 0], {"budget": "none"}),
    ("dlfuzz", None, "lenet1", [8, 8], {"budget": "none"}),
    ("dlfuzz", None, "lenet5", [8, 6], {"budget": "none"})])


def test_a_fuzzer_and_a_swarm_are_found_by_their_names():
    assert deepsensor.seeds_of(RATES, "model", who="paper", budget="none").to_dict() == {
        ("lenet1", 0): 5, ("lenet1", 1): 7, ("lenet5", 0): 1, ("lenet5", 1): 2}
    assert deepsensor.seeds_of(RATES, who="dlfuzz", model="lenet5").tolist() == [8, 6]
    other = pd.DataFrame({"optimiser": ["swarm", "ant colony"], "seed": 0, "value": [1, 2]})
    assert deepsensor.seeds_of(other, who="ant colony").tolist() == [2]


def test_rows_of_one_cell_and_seed_count_once():
    rows = frame([("dlfuzz", None, "lenet1", [2, 8], {}), ("dlfuzz", None, "lenet5", [4, 8], {})])
    assert deepsensor.seeds_of(rows, who="dlfuzz").tolist() == [3, 8]
    assert deepsensor.mean_of(rows, "model").to_dict() == {"lenet1": 5, "lenet5": 6}


@pytest.mark.parametrize("where", [{"who": "deephunter"}, {"who": "paper", "budget": "far"}])
def test_of_no_rows_nothing_is_found(where):
    with pytest.raises(KeyError, match="no rows"):
        deepsensor.seeds_of(RATES, **where)


def test_a_lead_is_paired_by_cell_and_seed():
    shuffled = RATES.sample(frac=1, random_state=1)
    found = deepsensor.lead_of(shuffled, "paper", "constant", "model", budget="none")
    assert found.to_dict() == {("lenet1", 0): 1, ("lenet1", 1): -2, ("lenet5", 0): 1,
                               ("lenet5", 1): 2}


def test_names_stand_side_by_side():
    found = deepsensor.table_of(RATES, ["paper", "dlfuzz"], model="lenet1", budget="none")
    assert found.loc[1].to_dict() == {"paper": 7, "dlfuzz": 8} and [*found] == ["paper", "dlfuzz"]


def test_retraining_is_measured_from_the_network_before_it():
    rows = frame([("before", None, "lenet1", [50, 90], {}), ("pgd_at", None, "lenet1", [60, 70], {})])
    assert deepsensor.rises(rows, ["pgd_at"])["pgd_at"].tolist() == [10, -20]


def test_a_change_is_paired_by_the_other_levels():
    values = deepsensor.seeds_of(RATES, "swarm", "model", budget="none")
    found = deepsensor.change_of(values, "model", "lenet1", "lenet5")
    assert found["paper"].tolist() == [4, 5] and found["constant"].tolist() == [4, 9]


def test_other_swarms_are_left_out_and_rivals_stay():
    found = deepsensor.with_swarm(RATES, "paper")
    assert {*found["fuzzer"]} == {"deepsensor", "dlfuzz"}
    assert {*found["swarm"].dropna()} == {"paper"}


def test_an_end_at_zero_leaves_a_cell_undecided():
    found = pd.DataFrame({"low": [0, 1, -3, -2, float("nan")], "high": [4, 2, -1, 0, float("nan")]},
                         index=["from zero", "above", "below", "to zero", "one seed"])
    assert deepsensor.sides_of(found) == (["above"], ["below"], ["from zero", "to zero"])


@pytest.mark.parametrize("best, yes", [([3, 5], True), ([3, 4], False), ([9, 2], False),
                                       ([9, float("nan")], False)])
def test_always_most_is_more_than_all_others_with_each_seed(best, yes):
    others = {"a": pd.Series([2, 4]), "b": pd.Series([1, 1])}
    assert deepsensor.always_most({**others, "best": pd.Series(best)}, "best") is yes


def test_with_each_seed_counts_ties_for_nobody():
    table = pd.DataFrame({"up": [2, 3], "tie": [2, 2], "down": [0, 1]})
    assert deepsensor.each_seed(table, pd.Series([1, 2])) == (["up"], ["down"], ["tie"])


def test_columns_are_compared_with_one_of_the_same_line():
    table = pd.DataFrame({"text": [1, 2], "ten": [4, 3], "none": [0, 0]},
                         index=pd.Index([0, 1], name="seed")).rename_axis(columns="choice")
    found = deepsensor.ahead_of_one(table, "text", "none")
    assert found.to_dict() == {(0, "ten"): 3, (1, "ten"): 1}


def test_thresholds_are_compared_with_the_swarm_that_has_none():
    shares = pd.DataFrame([
        {"swarm": swarm, "errors": kind, "varied": varied, "threshold": threshold, "seed": 0,
         "value": value}
        for swarm, kind, varied, threshold, value in [
            ("excitable", "polluted", "lambda", 0.1, 30), ("excitable", "polluted", "lambda", 0.5, 20),
            ("excitable", "polluted", "epsilon", 0.5, 99), ("excitable", "overfitted", "lambda", 0.5, 99),
            ("constant", "polluted", None, None, 25), ("constant", "overfitted", None, None, 0)]])
    assert deepsensor.over_thresholds(shares, "polluted").droplevel("seed").to_dict() == {
        0.1: 5, 0.5: -5}


def test_who_leads_each_column():
    table = pd.DataFrame({"nc": [1, 2, 0], "kmnc": [3, 0, 3], "nbc": [5, 4, 1]}, index=["a", "b", "c"])
    assert deepsensor.firsts(table).to_dict() == {"nc": "b", "nbc": "a"}


def test_printed_counts_are_shares_of_the_examples():
    table = pd.DataFrame({"model": "lenet1", "fuzzer": ["dlfuzz", "dlfuzz"],
                          "quantity": ["test_errors", "error_categories"], "value": [5, 400]})
    assert deepsensor.printed_rates(table, 200).loc["lenet1", "dlfuzz"] == 2.5


@pytest.mark.parametrize("models, values, yes", [
    (["lenet1", "vgg16"], [5, 9], True),  # the second is printed in one of them only
    (["lenet1", "lenet5"], [5, 6], False), (["vgg16", "resnet20"], [5, 6], False)])
def test_tables_agree_on_what_both_print(models, values, yes):
    one = pd.DataFrame({"model": ["lenet1", "lenet5"], "value": [5, 7], "printed": ["5", "7"]})
    other = pd.DataFrame({"model": models, "value": values, "printed": ["5.0", "?"]})
    assert deepsensor.same_numbers(one, other) is yes


def test_the_polluted_class_beside_its_controls():
    rows = frame([
        ("deepsensor", "paper", "lenet5", [60], {"network": "polluted"}),
        ("deepsensor", "paper", "lenet5", [4], {"network": "clean"}),
        ("deepsensor", "constant", "lenet5", [70], {"network": "polluted"}),
        ("deepsensor", "constant", "lenet5", [9], {"network": "clean"}),
        ("dlfuzz", None, "lenet5", [20], {"network": "polluted"}),
        ("deephunter", None, "lenet5", [30], {"network": "polluted"}),
        ("noise", None, "lenet5", [99], {"network": "polluted"})])  # a control, and no rival
    found, = deepsensor.polluted_class(rows, "paper", "model").to_dict("records")
    assert found == {"swarm": 60, "constant": 70, "clean": 4, "rival": 30}


def test_counts_are_set_against_that_of_the_largest_number():
    assert deepsensor.of_the_most(pd.Series({8: 40, 1: 50, 2: 10})).to_dict() == {8: 100, 1: 125, 2: 25}


def test_neurons_of_errors_at_one_threshold():
    rows = pd.DataFrame({"quantity": ["error_over_noise"] * 2 + ["error_over_right"],
                         "lambda": [0.5, 0.1, 0.5], "scale": "none", "seed": 0, "value": [3, 9, 7]})
    assert deepsensor.times_as_many(rows, "noise", "scale").tolist() == [3]
    assert deepsensor.times_as_many(rows, "noise", "scale", threshold=0.1).tolist() == [9]


def test_estimators_are_judged_where_all_neurons_play():
    rows = pd.DataFrame([
        {"players": players, "by": "diagonal", "setting": setting, "quantity": quantity, "seed": seed,
         "value": value}
        for players, setting, quantity, seed, value in [
            ("network", 4.0, "error", 0, 0.2), ("network", 4.0, "error", 1, 0.4),
            ("network", 1.0, "error", 0, 0.9), ("network", 4.0, "passes", 0, 28.0),
            ("layer", 4.0, "error", 0, 9.0)]])
    found = deepsensor.of_estimators(rows).loc["diagonal", "error"]
    assert found.round(6).to_dict() == {1.0: 0.9, 4.0: 0.3} and [*found.index] == [1.0, 4.0]
