"""Moderated variances, against limma's figures, the formulas written anew, and a simulation."""

import math

import numpy as np
import pytest
from scipy import optimize, special, stats

from dnnbook.records import intervals
from dnnbook.records.moderation import moderated, prior


def test_the_example_of_limma_s_squeezevar():
    """InMoose prints limma's figures for these: df.prior 2.830777, var.prior 1.676927."""
    d0, s0 = prior([0.5, 1.3, 7.8], [3, 3, 3])
    assert (d0, s0) == (pytest.approx(2.830777, abs=1e-6), pytest.approx(1.676927, abs=1e-6))


def by_moments(variances, d):
    """Smyth's two equations solved as they stand: mean and variance of log s^2 = log F + log s0^2."""
    logs = np.log(variances)
    if logs.var(ddof=1) <= special.polygamma(1, d / 2):
        return math.inf, math.exp(logs.mean() - special.digamma(d / 2) + math.log(d / 2))
    d0 = optimize.brentq(lambda x: special.polygamma(1, d / 2) + special.polygamma(1, x / 2)
                         - logs.var(ddof=1), 1e-6, 1e6)
    mean = special.digamma(d / 2) - math.log(d / 2) - special.digamma(d0 / 2) + math.log(d0 / 2)
    return d0, math.exp(logs.mean() - mean)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("spread", [0.0, 1.5])
def test_intervals_are_those_of_the_formulas(seed, spread):
    generator = np.random.default_rng(seed)
    values = [generator.normal(3, math.exp(spread * generator.normal()), 3) for _ in range(8)]
    found = moderated([intervals.estimate(v) for v in values])
    d0, s0 = by_moments([v.var(ddof=1) for v in values], 2)
    for v, e in zip(values, found):
        variance = s0 if math.isinf(d0) else (d0 * s0 + 2 * v.var(ddof=1)) / (d0 + 2)
        half = stats.t.ppf(0.975, min(d0 + 2, 16)) * math.sqrt(variance / 3)
        assert (e.low, e.high) == (pytest.approx(v.mean() - half), pytest.approx(v.mean() + half))
        assert e.p(e.low)[0] == pytest.approx(0.05)


def test_a_spread_of_zero_borrows_from_the_other_cells():
    values = [[1.0, 2.0, 3.0], [4.0, 4.5, 6.0], [5.0, 5.0, 5.0]]
    *others, alike = moderated([intervals.estimate(v) for v in values])
    assert alike.error > 0 and alike.low < 5 < alike.high
    same = moderated([intervals.estimate(v) for v in values[:2]])
    assert [e.low for e in same] == [e.low for e in others]  # it tells nothing of the others


@pytest.mark.parametrize("values", [[[2.0] * 3], [[2.0] * 3, [7.0] * 3], [[2.0] * 3, [1.0, 2.0, 4.0]]])
def test_with_nothing_to_borrow_from_it_is_unknown(values):
    first = moderated([intervals.estimate(v) for v in values])[0]
    assert first.mean == 2 and math.isnan(first.low) and first.p(-100) == (1, 1)


def test_a_cell_alone_keeps_its_spread():
    before = intervals.estimate([1.0, 2.0, 4.0], "ratio")
    assert moderated([before])[0].low == pytest.approx(before.low)


def test_a_share_of_nothing_has_the_spread_of_a_count():
    """0 of 1,000 with three seeds: the arcsine of the root is 0 within t / sqrt(4 * 1000 * 3)."""
    found, = moderated([intervals.estimate([0.0] * 3, "share")], [math.sqrt(1 / (4 * 1000 * 3))])
    half = stats.t.ppf(0.975, 2) / math.sqrt(12_000)
    assert (found.low, found.high) == (0, pytest.approx(math.sin(half) ** 2))
    few, = moderated([intervals.estimate([0.0] * 3, "share")], [math.sqrt(1 / (4 * 6 * 3))])
    assert few.high > 0.2  # none of six is not none of a thousand


@pytest.mark.parametrize("cells, spread", [(3, 0.0), (3, 1.0), (18, 0.0), (18, 1.0)])
def test_the_level_holds_for_cells_of_like_and_unlike_spread(cells, spread):
    """True means are 0: 5 % of the intervals should miss it; up to 7.5 % do, with few cells."""
    generator = np.random.default_rng(0)
    missed = 0
    for _ in range(2000 // cells):
        scales = np.exp(spread * generator.normal(size=cells))
        found = moderated([intervals.estimate(generator.normal(0, s, 3)) for s in scales])
        missed += sum(not e.low <= 0 <= e.high for e in found)
    assert 0.03 < missed / (2000 // cells * cells) < 0.09  # within 2.4 standard errors
