import math

import numpy as np
import pandas as pd
import pytest
from scipy import optimize

from dnnlib.measures import first_success, fragility


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def noisy(rng):
    """60 points about 0.6 exp(-3 x), the eighth of them without a success."""
    x = rng.uniform(0, 1, 60)
    y = 0.6 * np.exp(-3 * x) * rng.uniform(0.5, 1.5, 60)
    y[::8] = 0
    return x, y


# Eff


def test_eff_is_the_share_of_each_input():
    success = np.array([[1, 0, 0, 0], [1, 1, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]], dtype=bool)
    assert fragility.eff(success).tolist() == [0.25, 0.75, 0, 1]


@pytest.mark.parametrize("success", [
    [[0, 1]], [[0.5]], [True, False], np.zeros((0, 3), bool), np.zeros((3, 0), bool),
    np.zeros((1, 2, 3), bool), [[None]]])
@pytest.mark.parametrize("measure", [
    fragility.eff, first_success.f_measure, first_success.expected_f_measure])
def test_success_must_be_a_boolean_matrix(measure, success):
    with pytest.raises(ValueError, match="^success: expected a non-empty boolean matrix"):
        measure(success)


# Pairs of images


def test_agreement_counts_pairs_and_repetitions():
    undecided, decided = [[5, 2, 2], [9, 9, 9]], [[1, 2, 1], [4, 4, 4]]
    # at least as often: 3 and 1 of 3 for the first image, 3 and 3 for the second
    assert fragility.agreement(undecided, decided) == {
        "more_from_undecided": pytest.approx(10 / 12), "strictly_more": pytest.approx(9 / 12),
        "pairs_always": 3 / 4, "pairs_always_strictly": 2 / 4}


@pytest.mark.parametrize("shapes", [((2, 3), (2, 4)), ((3,), (3,)), ((0, 3), (2, 3))])
def test_counts_that_make_no_pairs(shapes):
    with pytest.raises(ValueError, match=r"undecided, decided: expected counts \(A, R\)"):
        fragility.agreement(*map(np.zeros, shapes))


# The exponential


@pytest.mark.parametrize("method", fragility.METHODS)
@pytest.mark.parametrize("a, b", [(0.27, -3.87), (0.49, -90.37), (0.43, -8.52), (1.5, 2.0)])
def test_noiseless_points_give_their_curve_back(method, a, b):  # a, b: cells of NSATP Table III
    x = np.linspace(0, 1, 30)
    fit = fragility.fit_exponential(x, a * np.exp(b * x), method=method)
    assert (fit.a, fit.b, fit.correlation) == pytest.approx((a, b, 1), rel=1e-6)
    assert fit.points == 30
    assert fit([0, 0.5]) == pytest.approx([a, a * math.exp(b / 2)], rel=1e-6)


def test_loglinear_is_a_line_through_the_logarithms(noisy):
    x, y = noisy
    slope, intercept = np.polyfit(x[y > 0], np.log(y[y > 0]), 1)
    fit = fragility.fit_exponential(x, y)
    assert (fit.a, fit.b) == pytest.approx((math.exp(intercept), slope))
    fitted = math.exp(intercept) * np.exp(slope * x[y > 0])
    assert fit.correlation == pytest.approx(np.corrcoef(fitted, y[y > 0])[0, 1])
    assert fit.points == (y > 0).sum() < len(y)


def test_loglinear_drops_zeros(noisy):
    x, y = noisy
    assert fragility.fit_exponential(x, y) == fragility.fit_exponential(x[y > 0], y[y > 0])


def test_curve_is_the_least_squares_of_scipy_from_elsewhere(noisy):
    x, y = noisy
    (a, b), _ = optimize.curve_fit(lambda x, a, b: a * np.exp(b * x), x, y, p0=(1, -1))
    fit = fragility.fit_exponential(x, y, method="curve")
    assert (fit.a, fit.b) == pytest.approx((a, b), rel=1e-4)
    assert fit.correlation == pytest.approx(np.corrcoef(a * np.exp(b * x), y)[0, 1])
    assert fit.points == len(x)
    assert fit.b != pytest.approx(fragility.fit_exponential(x, y).b, rel=1e-3)


@pytest.mark.parametrize("method", fragility.METHODS)
@pytest.mark.parametrize("x, y, points", [
    ([1], [1], 1), ([0, 1], [1, 0.5], 2), ([0, 1, 2, 3], [1, 0.5, 0, 0], 2),
    ([0, 1, 2], [0, 0, 0], 0), ([2, 2, 2, 2], [0.1, 0.2, 0.3, 0.4], 4),
    ([1, 2, 2, 2], [0, 0.2, 0.3, 0.4], 3),
    ([1, 1 + 1e-6, 1 + 2e-6], [0.9, 0.1, 0.01], 3)],  # a is about 10 to the 10^6
    ids=["one", "two", "two above 0", "none above 0", "one x", "one x above 0", "too steep"])
def test_what_has_no_fit_is_nan(method, x, y, points):
    fit = fragility.fit_exponential(x, y, method=method)
    assert np.isnan([fit.a, fit.b, fit.correlation]).all()
    assert fit.points == points


def test_a_flat_line_has_no_correlation():
    fit = fragility.fit_exponential([0, 1, 2], [0.5, 0.5, 0.5])
    assert (fit.a, fit.b) == (0.5, 0) and math.isnan(fit.correlation)


@pytest.mark.parametrize("x, y, words", [
    ([], [], "x, y: expected two non-empty"), ([1, 2], [1], "x, y: expected two"),
    ([[1]], [[1]], "x, y: expected two"), ([1, math.nan], [1, 1], "^x: expected finite"),
    ([1, 2], [1, math.inf], "^y: expected finite")])
@pytest.mark.parametrize("function", [fragility.fit_exponential, fragility.binned])
def test_points_that_are_none(function, x, y, words):
    with pytest.raises(ValueError, match=words):
        function(x, y)


def test_other_bad_arguments_are_named():
    with pytest.raises(ValueError, match="^y: expected values of at least 0, got -0.5"):
        fragility.fit_exponential([1, 2], [1, -0.5])
    with pytest.raises(ValueError, match="^method: expected one of .*, got 'cubic'"):
        fragility.fit_exponential([1, 2], [1, 1], method="cubic")


@pytest.mark.parametrize("bins", [0, -1, 2.0, True])
def test_bins_must_be_a_count(bins):
    with pytest.raises(ValueError, match="^bins: expected a whole number"):
        fragility.binned([1, 2], [1, 1], bins=bins)


# Bins and readings


@pytest.mark.parametrize("bins", [1, 7, 20])
def test_binned_is_what_pandas_cuts(rng, bins):
    x, y = rng.normal(size=200) ** 3, rng.random(200)  # heavy tails leave intervals empty
    parts = pd.DataFrame({"x": x, "y": y}).groupby(
        pd.cut(x, bins, right=False, labels=False)).mean()
    centres, means = fragility.binned(x, y, bins=bins)
    np.testing.assert_allclose(centres, parts["x"])
    np.testing.assert_allclose(means, parts["y"])


def test_binned_of_one_value():
    centres, means = fragility.binned([3, 3], [1, 2])
    assert (centres.tolist(), means.tolist()) == ([3], [1.5])


def test_readings_are_complete(noisy):
    x, y = noisy
    rows = pd.DataFrame(fragility.fit_readings(x, y, distance="pd"))
    assert (rows["distance"] == "pd").all() and rows["value"].notna().all()
    fits = rows.dropna(subset="fit").set_index(["points", "fit", "quantity"])["value"]
    assert sorted(fits.index) == sorted(
        (points, fit, quantity) for points in ("examples", "bins")
        for fit in ("loglinear", "curve", "line") for quantity in ("a", "b", "correlation"))
    for points, pair in (("examples", noisy), ("bins", fragility.binned(x, y))):
        for method in fragility.METHODS:
            fit = fragility.fit_exponential(*pair, method=method)
            assert fits.sort_index()[points, method].to_dict() == {
                "a": fit.a, "b": fit.b, "correlation": fit.correlation}
    rank = rows[rows["fit"].isna() & (rows["quantity"] != "beyond_line")]
    ranks = pd.Series(x).rank().corr(pd.Series(y).rank())
    assert rank["quantity"].tolist() == ["spearman"]
    assert rank["value"].item() == pytest.approx(ranks)


def test_readings_of_constants_are_nan():
    assert math.isnan(fragility.fit_readings([0, 1, 2], [0, 0, 0])[-1]["value"])
    assert math.isnan(fragility.fit_readings([1, 1, 1], [0, 1, 2])[-1]["value"])


# The line beside it, and the steps


def test_the_line_is_that_of_least_squares(noisy):
    x, y = noisy
    fit = fragility.fit_line(x, y)
    assert (fit.b, fit.a) == pytest.approx(tuple(np.polyfit(x, y, 1)))
    assert fit.correlation == pytest.approx(-np.corrcoef(x, y)[0, 1])  # it falls
    np.testing.assert_allclose(fit([0.0, 2.0]), [fit.a, fit.a + 2 * fit.b])


@pytest.mark.parametrize("x, y", [([1, 2], [1, 2]), ([1, 1, 1], [1, 2, 3])])
def test_no_line_through_too_few_points(x, y):
    fit = fragility.fit_line(x, y)
    assert math.isnan(fit.a) and math.isnan(fit.correlation)


@pytest.mark.parametrize("shape, beyond", [
    (lambda x: np.exp(-5 * x), True), (lambda x: 1 - x, False)])
def test_only_what_bends_is_beyond_a_line(shape, beyond):
    x = np.linspace(0, 1, 100)
    rows = pd.DataFrame(fragility.fit_readings(x, shape(x)))
    gain = rows[(rows["quantity"] == "beyond_line") & (rows["points"] == "examples")]["value"].item()
    assert (gain > 0) == beyond


@pytest.fixture
def stairs(rng):
    """Ten intervals of 200 noisy points each, falling from 0.9 to 0."""
    level = np.repeat(np.arange(10), 200)
    return level, 0.9 - 0.1 * level + rng.normal(0, 0.2, 2000)


def test_falling_stairs_have_no_rising_step(stairs):
    found = fragility.steps(*stairs, bins=10)
    assert found["rising_steps"] == found["rising_clearly"] == 0
    assert found["rank_correlation_means"] == pytest.approx(-1)


def test_a_rise_is_clear_only_beyond_chance(stairs):
    level, y = stairs
    y = np.where(level == 5, y + 0.3, y)  # above its left neighbour by 0.2, 14 standard errors
    assert fragility.steps(level, y, bins=10)["rising_clearly"] == pytest.approx(1 / 9)
    few = np.arange(0, len(y), 50)  # four points an interval: the same rises may be chance
    found = fragility.steps(level[few], y[few], bins=10)
    assert found["rising_steps"] > 0 and found["rising_clearly"] == 0


def test_each_interval_has_a_spread_of_its_own():
    """Welch's test: four scattered points do not borrow the certainty of 200 that agree."""
    low, high = np.tile([0.01, -0.01], 100), np.array([-0.1, 1.1, 0.2, 0.8])
    x, y = np.repeat([0, 1], [len(low), len(high)]), np.concatenate([low, high])
    found = fragility.steps(x, y, bins=2)
    assert found["rising_steps"] == 1 and found["rising_clearly"] == 0
    assert fragility.steps(x, np.where(x == 1, 0.5 + (y - 0.5) / 100, y), bins=2)["rising_clearly"]


def test_flat_stretches_seldom_rise_clearly(rng):
    x = np.repeat(np.arange(20), 100)
    clear = [fragility.steps(x, rng.random(2000))["rising_clearly"] > 0 for _ in range(200)]
    assert np.mean(clear) < 0.1  # 5 % of error in all, within what 200 draws can tell


@pytest.mark.parametrize("low", [[0.1] * 5, [0.1, 0.11, 0.1, 0.09, 0.1]])
def test_an_interval_without_spread_is_compared_without_a_warning(low, recwarn):
    x = [0] * 5 + [1] * 5
    found = fragility.steps(x, [*low, 0.8, 0.9, 0.85, 0.9, 0.8], bins=2)
    clearer = fragility.steps(x, [*low, 0.0, 0.9, 0.1, 0.0, 0.2], bins=2)
    assert (found["rising_clearly"], clearer["rising_clearly"]) == (1, 0)
    assert not recwarn.list


def test_no_steps_within_one_interval():
    assert all(math.isnan(value) for value in fragility.steps([1, 1], [0, 1]).values())


def test_a_single_point_is_no_clear_rise():
    assert fragility.steps([0, 0, 1], [0.1, 0.2, 0.9], bins=2)["rising_clearly"] == 0


def test_only_pairs_of_one_class_are_counted():
    undecided, decided = [[2, 2], [0, 0]], [[1, 1], [3, 3]]
    every = fragility.agreement(undecided, decided)
    assert every["strictly_more"] == 0.25
    alike = fragility.agreement(undecided, decided, classes=([4, 9], [4, 9]))
    assert alike["strictly_more"] == 0.5 and alike["pairs_always"] == 0.5
    none = fragility.agreement(undecided, decided, classes=([4, 4], [9, 9]))
    assert all(np.isnan(value) for value in none.values())
    with pytest.raises(ValueError, match=r"classes: expected \(2,\) and \(2,\), got \(1,\)"):
        fragility.agreement(undecided, decided, classes=([4], [9, 9]))
