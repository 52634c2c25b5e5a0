"""Intervals against SciPy's, on each scale."""

import math

import numpy as np
import pytest
from scipy import stats

from dnnbook.records import intervals


def test_interval_is_student_s():
    values = np.random.default_rng(0).normal(size=5)
    low, high = intervals.interval(values)
    assert (low, high) == pytest.approx(stats.t.interval(
        0.95, df=4, loc=values.mean(), scale=values.std(ddof=1) / math.sqrt(5)))
    assert type(low) is type(high) is float


@pytest.mark.parametrize("values", [[], [1], [1, 2, math.nan], [1, None, 3]])
def test_interval_of_too_little(values):
    assert np.isnan(intervals.interval(values)).all()


def test_ratios_are_judged_on_logarithms():
    values = [0.5, 1.0, 4.0]
    low, high = intervals.interval(values, "ratio")
    inside = stats.t.interval(0.95, df=2, loc=np.log(values).mean(), scale=stats.sem(np.log(values)))
    assert (math.log(low), math.log(high)) == pytest.approx(inside)
    turned = intervals.interval([1 / v for v in values], "ratio")
    assert turned == pytest.approx((1 / high, 1 / low))  # the same, whichever is divided by which


def test_a_ratio_of_nothing_falls_back_on_the_values_and_stays_above_0():
    low, high = intervals.interval([0.0, 1.0, 2.0], "ratio")
    assert low == 0 and high == pytest.approx(intervals.interval([0.0, 1.0, 2.0])[1])


@pytest.mark.parametrize("scale, values, bottom, top", [
    ("share", [0.9, 1.0, 1.0], 0, 1), ("percent", [1.0, 0.0, 4.0], 0, 100),
    ("saving", [50.0, 99.0, 99.9], -math.inf, 100), ("correlation", [0.5, 0.99, 0.999], -1, 1)])
def test_intervals_stay_in_their_range(scale, values, bottom, top):
    low, high = intervals.interval(values, scale)
    assert bottom <= low < np.median(values) <= high <= top
    wide = intervals.interval(values)
    assert wide[1] > top or wide[0] < bottom or math.isinf(bottom)


@pytest.mark.parametrize("scale", intervals.SCALES)
def test_scales_rise_and_turn_back(scale):
    inside = np.linspace(0.05, 0.95, 7)
    moved = intervals.SCALES[scale].forward(inside)
    assert (np.diff(moved) > 0).all()
    assert intervals.SCALES[scale].back(moved) == pytest.approx(inside)


@pytest.mark.parametrize("scale", intervals.SCALES)
def test_p_says_what_the_interval_says(scale):
    values = [0.3, 0.5, 0.62]
    found = intervals.estimate(values, scale)
    above, below = found.p(found.low)
    assert above == pytest.approx(0.05) and below == 1.0
    assert found.p(found.high)[1] == pytest.approx(0.05)


def test_equal_values_leave_no_doubt():
    found = intervals.estimate([0.3] * 3, "share")
    assert found.low == found.high == 0.3
    assert found.p(0.2) == (0, 1) and found.p(0.4) == (1, 0) and found.p(0.3) == (1, 1)


def test_holm_against_its_definition():
    rng = np.random.default_rng(1)
    for _ in range(50):
        p = rng.uniform(0, 0.06, size=6)
        adjusted = np.maximum.accumulate(np.sort(p) * np.arange(6, 0, -1))
        assert intervals.holm(p) == (adjusted[stats.rankdata(p).astype(int) - 1] <= 0.05).tolist()


def test_a_ratio_of_a_gain_and_a_loss_is_undefined():
    found = intervals.estimate([0.9, -850.0, 1.3], "ratio")
    assert math.isnan(found.mean) and found.p(2) == (1, 1)
    assert intervals.estimate([0.9, -850.0, 1.3]).high > 0  # a difference has no ends
    assert intervals.estimate([0.0, 0.5, 6.0], "ratio").low == 0  # no ratio of counts is below
