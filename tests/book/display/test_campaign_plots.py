import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch

from dnnbook.display import campaign_plots
from dnnbook.studies import FuzzerKey
from dnnlib import fuzzing

GUIDED, NOISE = FuzzerKey("deepsensor", "paper"), FuzzerKey("noise")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture
def rates():
    """Error rates of two fuzzers at two bounds, of two seeds, in one network."""
    return pd.DataFrame([
        {"dataset": "mnist", "model": "lenet5", "seed": seed, "quantity": "error_rate",
         "bound": bound, "value": value + seed} | key.columns
        for key, value in ((GUIDED, 10.0), (NOISE, 20.0)) for bound in (2.0, 8.0)
        for seed in (0, 2)])


def test_errors_within_a_distance_are_counted_from_the_input():
    campaign = fuzzing.Campaign(
        labels=torch.tensor([0, 0, 0]), predicted=torch.tensor([[0, 0, 0], [1, 0, 2]]),
        origin=torch.tensor([[0, 1, 2]] * 2), l2=torch.tensor([[1.0, 1.0, 1.0], [5.0, 10.0, 3.0]]),
        linf=torch.zeros(2, 3), images=torch.zeros(3, 1, 1, 1), passes=6, seconds=0.0)
    figure = campaign_plots.errors_within_distance(
        {("lenet5", GUIDED): campaign, ("lenet5", NOISE): campaign}, thick=GUIDED)
    axis, = figure.axes
    line, thin = axis.get_lines()
    assert line.get_xdata().tolist() == [0, 3, 5, 10]  # of the last iteration's errors alone, as far as any example
    assert line.get_ydata().tolist() == [0, 1, 2, 2]
    assert line.get_linewidth() > thin.get_linewidth()
    assert axis.get_title() == "LeNet-5"
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["DeepSensor, paper", "noise"]


def test_rates_against_distance_are_means_beside_the_paper_s_lines(rates):
    figure = campaign_plots.errors_against_distance(
        rates.assign(near=4.0), [[NOISE, FuzzerKey("dlfuzz")], [GUIDED, NOISE]],
        goal={"lenet5": 50}.get, near=True)
    left, right = figure.axes
    line, goal, near = left.get_lines()
    assert line.get_xdata().tolist() == [2, 8] and line.get_ydata().tolist() == [21, 21]
    assert set(goal.get_ydata()) == {50} and set(near.get_xdata()) == {4}
    assert [line.get_label() for line in right.get_lines()[:2]] == ["DeepSensor, paper", "noise"]
    assert [t.get_text() for t in left.get_xticklabels()] == ["2", "8"]


def test_each_network_has_its_own_bound_and_the_legend_has_all_lines(rates):
    few = rates[rates["fuzzer"] == NOISE.fuzzer].assign(model="lenet1", near=2.0)
    figure = campaign_plots.errors_against_distance(
        pd.concat([few, rates.assign(near=4.0)]), [[NOISE, GUIDED]], goal=lambda name: 50,
        near=True)
    assert [set(axis.get_lines()[-1].get_xdata()) for axis in figure.axes] == [{2}, {4}]
    named = [t.get_text() for t in figure.axes[0].get_legend().get_texts()]
    assert named == ["noise", "DeepSensor, paper"]


def test_without_records_a_figure_says_so(rates):
    figure = campaign_plots.errors_against_distance(rates[:0], [[NOISE]], goal={}.get)
    assert figure.axes[0].texts[0].get_text() == "no records yet"


def test_seconds_lie_on_the_line_where_a_pass_costs_alike():
    cost = pd.DataFrame({"passes": [100.0, 1000.0], "seconds": [1.0, 20.0]}, index=[GUIDED, NOISE])
    _, axis = plt.subplots()
    campaign_plots.seconds_against_passes(axis, cost, alike=GUIDED)
    *points, line = axis.get_lines()
    assert [point.get_label() for point in points] == ["DeepSensor, paper", "noise"]
    assert line.get_ydata().tolist() == [1.0, 10.0]  # noise costs twice as much a pass


def test_rows_without_a_fuzzer_have_no_method(rates):
    rows = pd.concat([rates, pd.DataFrame([{"quantity": "accuracy", "value": 97.0}])])
    assert set(campaign_plots.methods(rows)["method"]) == {"DeepSensor, paper", "noise"}


def test_two_clusters_have_a_silhouette_near_one_and_mixed_groups_none():
    draws = np.random.default_rng(0).normal(size=(3, 50, 2))
    places = {"home": draws[0], "there": draws[1] + 30, "among": draws[2]}
    assert campaign_plots.silhouette(places, "home", "there") > 0.9
    assert abs(campaign_plots.silhouette(places, "home", "among")) < 0.1
