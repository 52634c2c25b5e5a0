import json

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from torch import nn

from dnnbook.display import fragility_plots


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture
def plane():
    """5,000 inputs, with distance and Eff of each."""
    rng = np.random.default_rng(0)
    x = rng.random(5000) * 2.3
    return x, np.round(rng.random(5000) * np.exp(-x), 2)


def test_a_layer_is_a_bar_as_high_as_the_values_that_it_passes_on():
    network = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                            nn.Linear(27, 9))
    figure = fragility_plots.layers({"small": network, "one": nn.Sequential(network[0])}, (1, 8, 8))
    heights = [[bar.get_height() for bar in axis.patches] for axis in figure.axes]
    assert heights == [[3 * 6 * 6, 3 * 3 * 3, 9], [3 * 6 * 6]]
    assert [axis.get_title("left") for axis in figure.axes] == ["small: 3 layers", "one: 1 layers"]


def test_every_input_of_a_scatter_is_kept_at_its_place(plane):
    x, eff = plane
    row = fragility_plots.scatter(x, eff, distance="pe")
    assert (row["distance"], row["quantity"], row["value"]) == ("pe", "scatter", 5000)
    counts = fragility_plots.spread(json.loads(json.dumps(row)))  # as a record keeps it
    cells = fragility_plots.CELLS
    for low, high in ((0, 10), (10, 25), (25, cells)):
        inside = (x >= low * x.max() / cells) & (x < high * x.max() / cells)
        if high == cells:
            inside |= x == x.max()
        assert counts[low:high].sum() == inside.sum()
    assert counts[:, cells // 2:].sum() == (eff >= 0.5).sum()
    assert len(row["inputs"]) < 15_000  # three of them and the rest stay below 50 kB


def test_a_scatter_without_spread():
    row = fragility_plots.scatter(np.zeros(3), np.zeros(3))
    assert fragility_plots.spread(row)[0, 0] == 3


def record(dataset, seed, plane, scattered=True):
    x, eff = plane
    rows = [{"quantity": "bin", "x": 0.1, "value": 0.8}, {"quantity": "bin", "x": 2.0, "value": 0.1}]
    rows += [{"fit": "loglinear", "quantity": "a", "value": 0.5},
             {"fit": "loglinear", "quantity": "b", "value": -1.0 - seed}]
    rows += [fragility_plots.scatter(x, eff)] if scattered else []
    return pd.DataFrame(rows).assign(dataset=dataset, seed=seed, distance="pd")


def test_recorded_decays_have_inputs_means_and_a_curve_for_each_seed(plane):
    table = pd.concat([record("mnist", 0, plane), record("mnist", 1, plane),
                       record("cifar10", 0, plane, scattered=False)])
    figure = fragility_plots.recorded_decays(table)
    mnist, cifar = figure.axes
    assert [axis.get_title() for axis in figure.axes] == ["MNIST, PD", "CIFAR-10, PD"]
    assert len(mnist.get_lines()) == 4 and len(cifar.get_lines()) == 2
    assert len(mnist.collections) == 1 and not cifar.collections
    for seed, curve in enumerate(mnist.get_lines()[1::2]):
        assert curve.get_ydata()[[0, -1]] == pytest.approx([0.5, 0.5 * np.exp(-2 * (1 + seed))])


def test_recorded_decays_of_no_records():
    figure = fragility_plots.recorded_decays(pd.DataFrame(columns=["dataset", "distance"]))
    assert not any(axis.lines for axis in figure.axes)
