import math

import numpy as np
import pandas as pd
import pytest
import torch

from dnnbook.studies import FuzzerKey, outcomes
from dnnlib import coverage
from dnnlib.fuzzing import Campaign
from dnnlib.neurons import activations


@pytest.fixture
def campaign(generator):
    """5 iterations of 12 inputs, 4 classes; the fuzzer shows its examples in any order."""
    g = generator(3)
    t, s = 5, 12
    return Campaign(
        labels=torch.randint(0, 3, (s,), generator=g),  # none of class 3, a target
        predicted=torch.randint(0, 4, (t, s), generator=g),
        origin=torch.stack([torch.randperm(s, generator=g) for _ in range(t)]),
        l2=4 * torch.rand(t, s, generator=g), linf=torch.rand(t, s, generator=g),
        images=torch.zeros(s, 1, 1, 1), passes=777, seconds=0.0)


def examples(campaign, last=False):
    """(seed, true class, given class, distance) of the examples, one by one."""
    start = len(campaign.predicted) - 1 if last else 0
    for t in range(start, len(campaign.predicted)):
        for i in range(campaign.predicted.shape[1]):
            seed = int(campaign.origin[t, i])
            yield (seed, int(campaign.labels[seed]), int(campaign.predicted[t, i]),
                   float(campaign.l2[t, i]))


def right(labels, classes):
    """A campaign of one iteration whose examples were given these classes."""
    n = len(labels)
    return Campaign(torch.tensor(labels), torch.tensor([classes]), torch.arange(n).view(1, n),
                    torch.ones(1, n), torch.ones(1, n), torch.zeros(n, 1, 1, 1), 10, 0.0)


def test_every_example_counts_as_a_loop_does(campaign):
    wrong = [(seed, given, l2) for seed, true, given, l2 in examples(campaign) if true != given]
    categories = len({(seed, given) for seed, given, _ in wrong})
    found = outcomes.every_example(campaign, near=1.5)
    assert found == pytest.approx({
        "test_errors": len(wrong), "error_rate": 100 * len(wrong) / 60,
        "error_categories": categories, "categories_per_seed": categories / 12,
        "l2": np.mean([l2 for *_, l2 in examples(campaign)]),
        "share_near": sum(l2 <= 1.5 for *_, l2 in wrong) / len(wrong), "passes": 777,
        "errors_per_1000_passes": 1000 * len(wrong) / 777})
    assert 0 < found["share_near"] < 1


def test_no_error_means_no_error_nearby():
    found = outcomes.every_example(right([0, 1], [0, 1]), near=9.0)
    assert (found["test_errors"], found["share_near"]) == (0, 0)


@pytest.mark.parametrize("target", [None, 3])
def test_last_examples_count_as_a_loop_does(campaign, target):
    def hit(true, given):
        return given != true if target is None else given == target

    last = list(examples(campaign, last=True))
    expected = {"test_errors": sum(hit(true, given) for _, true, given, _ in last),
                "test_errors_all_iterations": sum(
                    hit(true, given) for _, true, given, _ in examples(campaign)),
                "l2": torch.tensor([l2 for *_, l2 in last]).median().item()}
    if target is not None:
        expected["wrong"] = sum(true != given for _, true, given, _ in last)
    assert outcomes.last_examples(campaign, target=target) == pytest.approx(expected)


def test_given_the_target_is_less_than_wrong():
    found = outcomes.last_examples(right([0, 0, 1], [2, 1, 2]), target=2)
    assert (found["test_errors"], found["wrong"]) == (2, 3)


def test_a_seed_of_the_target_class_is_refused():
    with pytest.raises(ValueError, match="inputs of other classes than 2, got 1 of it among 3"):
        outcomes.hits(right([0, 2, 1], [2, 2, 2]), target=2)


def test_a_table_of_campaigns_becomes_rows_and_ratios():
    keys = [FuzzerKey("deepsensor", "paper"), FuzzerKey("dlfuzz")]
    found = {("near", key): right([0, 0, 1], predicted) for key, predicted in
             zip(keys, ([1, 1, 2], [1, 0, 1]), strict=True)}
    table = outcomes.table(found, outcomes.last_examples)
    assert table["test_errors"].to_dict() == {("near", keys[0]): 3, ("near", keys[1]): 1}
    rows = outcomes.tidy(table, {"near": 1.0})
    assert rows[0] == {"budget": "near", "bound": 1.0, "fuzzer": "deepsensor", "swarm": "paper",
                       "quantity": "test_errors", "value": 3.0}
    assert len(rows) == table.size
    ratios = outcomes.ratios(table["test_errors"], keys[:1], keys[1:], "errors_over", {"near": 1.0})
    assert [(row["baseline"], row["value"]) for row in ratios] == [("dlfuzz", 3.0), ("mean", 3.0)]


def test_rows_hold_their_columns_and_plain_numbers():
    found = outcomes.rows({"l2": torch.tensor(2.5), "passes": np.int64(4)}, fuzzer="noise")
    assert found == [{"fuzzer": "noise", "quantity": "l2", "value": 2.5},
                     {"fuzzer": "noise", "quantity": "passes", "value": 4.0}]
    assert {type(row["value"]) for row in found} == {float}


def test_ratios_of_the_printed_table():
    # LeNet-1 of Table 3, by hand: 18,747 over 17,528, 17,490 and 18,124, and over 17,714
    found = outcomes.over(18747, {"deepxplore": 17528, "dlfuzz": 17490, "deephunter": 18124})
    assert {name: round(ratio, 3) for name, ratio in found.items()} == {
        "deepxplore": 1.070, "dlfuzz": 1.072, "deephunter": 1.034, "mean": 1.058}


def test_a_rival_that_finds_nothing_counts_as_one():
    assert outcomes.over(7, {"a": 0, "b": 0, "c": 0}) == {"a": 7, "b": 7, "c": 7, "mean": 7}
    assert outcomes.over(0, {"a": 0}) == {"a": 0, "mean": 0}


def test_nothing_to_compare_with_is_refused():
    with pytest.raises(ValueError, match="others: expected at least one count"):
        outcomes.over(7, {})


def test_distance_needed_is_read_off_the_line():
    rates = {8.0: 90.0, 2.0: 10.0, 4.0: 50.0}
    assert outcomes.distance_needed(rates, 5.0) == 1.0  # half way from no distance to 2
    assert outcomes.distance_needed(rates, 50.0) == 4.0
    assert outcomes.distance_needed(rates, 80.0) == 7.0
    assert math.isnan(outcomes.distance_needed(rates, 90.1))


def test_a_rate_that_falls_again_does_not_hide_the_first_crossing():
    assert outcomes.distance_needed({1.0: 40.0, 2.0: 10.0, 3.0: 60.0}, 20.0) == 0.5


def test_distance_needed_wants_a_rate():
    with pytest.raises(ValueError, match="rates: expected the rate at one bound"):
        outcomes.distance_needed({}, 50.0)


def test_a_series_serves_as_a_mapping():
    rates = pd.Series([10.0, 50.0, 30.0], index=[2.0, 4.0, 8.0])
    assert outcomes.distance_needed(rates, 45.0) == 3.75
    assert outcomes.least_step(rates) == -20.0
    assert outcomes.over(20, rates) == {2.0: 2.0, 4.0: 0.4, 8.0: 20 / 30, "mean": 20 / 30}


def test_least_step_is_that_of_neighbours():
    counts = {0.3: 8, 0.1: 1, 0.2: 9, 0.4: 20}
    ordered = [counts[t] for t in sorted(counts)]
    assert outcomes.least_step(counts) == min(b - a for a, b in zip(ordered, ordered[1:])) == -1


def test_one_threshold_has_no_step():
    assert math.isnan(outcomes.least_step({0.5: 3}))


def test_a_criterion_of_ones_own_is_measured_and_is_none_of_the_six(tiny_model, tiny_data,
                                                                    monkeypatch):
    model, inputs, examples = tiny_model(), tiny_data.images[:20], tiny_data.images[20:]
    usual = coverage.boundaries(activations.record(model, inputs).values)

    def gain():
        return outcomes.covered(model, examples, usual, sections=10) - outcomes.covered(
            model, inputs, usual, sections=10)

    six = gain()
    others = six + pd.Series([-1, 1, -1, 1, -1, -1], index=six.index)
    assert tuple(six.index) == outcomes.FIG_3
    assert outcomes.criteria_led(six, others) == pytest.approx(4 / 6)
    monkeypatch.setitem(outcomes.CRITERIA, "mine",
                        lambda raw, scaled, usual, sections: coverage.nac(scaled.values, 0.9))
    seven = gain()
    assert [*seven.index] == [*outcomes.FIG_3, "mine"]
    assert outcomes.criteria_led(seven, pd.concat([others, seven[["mine"]] - 1])) == (
        pytest.approx(4 / 6))


@pytest.mark.parametrize("then, said", [
    ([99.08], "of the record, of accuracy 99.08 %, got one of 99.03 %: run it without keep"),
    ([], "a record with its network's accuracy, got none of it")])
def test_rows_of_another_network_are_not_gone_on_from(then, said):
    rows = [{"quantity": "l2", "value": 99.03}, *({"quantity": "accuracy", "value": value} for value in then)]
    with pytest.raises(ValueError, match=said):
        outcomes.same_network(rows, 99.03)
    outcomes.same_network([{"quantity": "accuracy", "value": 99.34}], 100 * 0.9934)  # in binary, another number
