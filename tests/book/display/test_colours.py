"""A method has the same colour wherever it is drawn."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from dnnbook.display import campaign_plots, plots, selection_plots
from dnnbook.display.colours import METHODS, colour, colours, palette
from dnnbook.studies import FuzzerKey
from dnnbook.words import shown
from dnnlib.fuzzing import FUZZERS
from dnnlib.selection import SELECTORS


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def lines(figure):
    """By label the colour of each line, and of each bar, of a figure."""
    found = {}
    for axis in figure.axes:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            found[label] = to_hex(handle.get_color() if hasattr(handle, "get_color")
                                      else handle.get_facecolor())
    return found


def test_methods_of_one_comparison_differ():
    for group in (FUZZERS, SELECTORS):
        found = [colour(name) for name in group]
        assert len(set(found)) == len(found), group


def test_a_new_method_of_the_package_has_a_colour_of_its_own(monkeypatch):
    monkeypatch.setitem(SELECTORS, "contrast", SELECTORS["random"])
    monkeypatch.setitem(FUZZERS, "fade", FUZZERS["noise"])
    found = {colour("contrast"), colour("fade, best")}
    assert len(found) == 2 and not found & set(METHODS.values())


def test_readings_of_one_colour_get_paler():
    found = colours(["NSS, original, l1", "NSS, original, squared", "NSS, remutated"])
    assert len(set(found.values())) == 3
    assert found["NSS, remutated"] == METHODS["NSS, fresh mutation"]


def test_what_is_no_method_has_no_colour():
    with pytest.raises(ValueError, match="no colour for 'gradient descent'"):
        colour("gradient descent")
    assert palette(["pd", "gradient descent"]) is None


@pytest.mark.parametrize("others", [["random"], ["dsa", "random", "kmnc"]])
def test_a_selector_keeps_its_colour_whatever_is_beside_it(others):
    rows = pd.DataFrame([{"dataset": "mnist", "model": "lenet1", "method": m, "rate": r,
                          "value": 1.0} for m in (*others, "gini") for r in (1, 2)])
    found = lines(selection_plots.curves(rows, xlabel="x", ylabel="y"))
    assert found["DeepGini"] == colour("gini") and found["random"] == colour("random")


@pytest.mark.parametrize("others", [["noise"], ["dlfuzz", "deephunter", "noise"]])
def test_a_fuzzer_keeps_its_colour_in_lines_and_bars(others):
    names = [*others, "deepxplore"]
    rows = pd.DataFrame([{"dataset": "mnist", "model": "lenet1", "fuzzer": name, "bound": bound,
                          "quantity": "error_rate", "value": 1.0, "budget": str(bound)}
                         for name in names for bound in (2.0, 4.0)])
    drawn = lines(campaign_plots.errors_against_distance(
        rows, [[FuzzerKey(name) for name in names]], goal=lambda model: 90.0))
    barred = lines(campaign_plots.fuzzer_bars(rows, group=["model"], ylabel="y"))
    for name in names:
        assert drawn[shown(name)] == barred[shown(name)] == colour(name)


def test_bars_of_methods_take_their_colours():
    rows = pd.DataFrame([{"model": "lenet1", "selector": name, "value": 1.0}
                         for name in ("DeepGini", "random")])
    figure = plots.bars(rows, group=["model"], hue="selector", ylabel="y")
    faces = {to_hex(patch.get_facecolor()) for patch in figure.axes[0].patches}
    assert {colour("random"), colour("gini")} <= faces
