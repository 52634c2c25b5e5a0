import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from dnnbook.display import plots
from dnnlib.measures import fragility


@pytest.fixture(autouse=True)
def closed():
    with plt.rc_context():
        yield
    plt.close("all")


@pytest.fixture
def axis():
    return plt.subplots()[1]


def labelled(axis):
    return {line.get_label(): line for line in axis.get_lines()}


def shows_nothing(figure):
    axis, = figure.axes
    return [t.get_text() for t in axis.texts] == ["no records yet"] and not axis.get_lines()


def test_style_gives_a_white_ground():
    plots.style()
    assert plt.figure().get_facecolor() == (1, 1, 1, 1)


@pytest.mark.parametrize("n, columns, grid", [(1, 8, (1, 1)), (5, 2, (3, 2)), (8, 8, (1, 8))])
def test_images_are_drawn_with_their_titles(n, columns, grid):
    x = np.random.default_rng(0).random((n, 1, 4, 4))
    titles = [f"no. {i}" for i in range(n)]
    axes = plots.images(x, titles, columns=columns).axes
    assert len(axes) == grid[0] * grid[1]
    shown = [a for a in axes if a.get_images()]
    assert [a.get_title() for a in shown] == titles
    for axis, picture in zip(shown, x):
        image, = axis.get_images()
        np.testing.assert_array_equal(image.get_array(), picture[0])
        assert image.get_clim() == (0, 1)  # not stretched to the image's own range


def test_colours_come_last():
    x = np.random.default_rng(0).random((2, 3, 4, 4))
    image = plots.images(x).axes[1].get_images()[0]
    np.testing.assert_array_equal(np.asarray(image.get_array())[..., 2], x[1, 2])


@pytest.mark.parametrize("shape", [(4, 4), (3, 4, 4), (0, 1, 4, 4)])
def test_images_of_no_image(shape):
    with pytest.raises(ValueError, match="^x: expected images"):
        plots.images(np.zeros(shape))


def test_decay_draws_points_bins_and_fits(axis):
    x = np.linspace(0, 1, 40)
    y = 0.5 * np.exp(-2 * x)
    undefined = fragility.Fit(np.nan, np.nan, np.nan, 0)
    plots.decay(axis, x, y, {"good": fragility.fit_exponential(x, y), "none": undefined}, bins=4)
    np.testing.assert_array_equal(axis.collections[0].get_offsets(), np.column_stack([x, y]))
    lines = labelled(axis)
    assert set(lines) == {"mean of a bin", "good"}
    np.testing.assert_allclose(lines["mean of a bin"].get_ydata(), y.reshape(4, 10).mean(1))
    grid = lines["good"].get_xdata()
    np.testing.assert_allclose(lines["good"].get_ydata(), 0.5 * np.exp(-2 * grid))
    assert (grid[0], grid[-1]) == (0, 1)


def test_order_curves_rise_to_one(axis):
    plots.order_curve(axis, [0.1, 0, 0.3, 0.6], {"PD": np.array([2, 3, 0, 1])})
    lines = labelled(axis)
    assert set(lines) == {"PD", "best possible", "random, expected"}
    assert lines["PD"].get_xdata() == pytest.approx([0.25, 0.5, 0.75, 1])
    assert lines["PD"].get_ydata() == pytest.approx([0.3, 0.9, 1, 1])
    assert lines["best possible"].get_ydata() == pytest.approx([0.6, 0.9, 1, 1])
    assert {t.get_text() for t in axis.get_legend().get_texts()} == set(lines)


def test_order_curve_without_any_change_is_flat(axis):
    plots.order_curve(axis, np.zeros(3), {"PD": [0, 1, 2]})
    assert labelled(axis)["PD"].get_ydata().tolist() == [0, 0, 0]


TABLE = pd.DataFrame([
    {"model": model, "dataset": "mnist", "distance": distance, "seed": seed, "x": x,
     "value": x + seed + 10 * (distance == "pe")}
    for model in ("net2", "net1") for distance in ("pd", "pe") for seed in (0, 1)
    for x in (0.1, 0.2, 0.3)])


def test_bars_are_means_and_lines_their_range():
    table = TABLE[TABLE["x"] == 0.1]  # two seeds: v and v + 1
    figure = plots.bars(table, group=["dataset", "model"], hue="distance", ylabel="share", line=0.1)
    axis, = figure.axes
    assert [t.get_text() for t in axis.get_xticklabels()] == [
        "MNIST\nNet-2", "MNIST\nNet-1"]
    assert [t.get_text() for t in axis.get_legend().get_texts()] == ["PD", "PE"]
    heights = [[bar.get_height() for bar in bars] for bars in axis.containers]
    assert heights == [pytest.approx([0.6, 0.6]), pytest.approx([10.6, 10.6])]  # pd, pe
    ranges = [line.get_ydata() for line in axis.get_lines()]
    assert sum(np.allclose(r, [0.1, 1.1]) for r in ranges) == 2
    assert sum(np.allclose(r, [10.1, 11.1]) for r in ranges) == 2
    assert sum(np.allclose(r, [0.1, 0.1]) for r in ranges) == 1  # the line asked for
    assert axis.get_ylabel() == "share"


def test_no_records_are_said():
    empty = TABLE.iloc[:0]
    assert shows_nothing(plots.bars(empty, group=["model"], hue="distance", ylabel=""))


def test_dots_show_means_ranges_and_the_papers_values():
    table = pd.DataFrame([("a", "m", 1.0), ("a", "m", 3.0), ("b", "m", 5.0), ("b", "n", 7.0)],
                         columns=["method", "cell", "value"])
    paper = pd.DataFrame([("b", "m", 9.0), ("c", "m", 9.0)], columns=["method", "cell", "value"])
    figure = plots.dots(table, row="method", panel=["cell"], xlabel="x", paper=paper)
    first, second = figure.axes
    means, crosses = first.lines
    assert means.get_xdata().tolist() == [2.0, 5.0]
    assert [c.get_segments()[0][:, 0].tolist() for c in first.collections] == [[1.0, 3.0]]
    assert crosses.get_xdata().tolist() == [9.0] and crosses.get_ydata().tolist() == [1]
    assert second.get_title() == "n" and len(second.lines[1].get_xdata()) == 0


def test_more_than_four_panels_stand_in_rows_of_three():
    figure, axes = plots.panels(7, width=2, height=1, margin=1)
    assert len(axes) == len(figure.axes) == 7  # the two empty places are gone
    assert [axis.get_subplotspec().rowspan.start for axis in axes] == [0, 0, 0, 1, 1, 1, 2]
    assert tuple(figure.get_size_inches()) == (7, 3)
    assert plots.panels(4, width=2, height=1)[0].get_size_inches()[1] == 1
    assert tuple(plots.panels(4, width=2, height=1, most=3)[0].get_size_inches()) == (4, 2)
