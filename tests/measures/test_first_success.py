import math
from itertools import permutations, product

import numpy as np
import pytest

from dnnlib.measures import first_success


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def first(success, unit):
    """F-measure by trying one patched copy after the other."""
    copies = 0
    for inputs, row in enumerate(success, 1):
        for hit in row:
            copies += 1
            if hit:
                return copies if unit == "samples" else inputs
    return math.inf


@pytest.mark.parametrize("unit", ["samples", "examples"])
@pytest.mark.parametrize("share", [0.005, 0.05, 0.9])
def test_f_measure_is_what_trying_one_by_one_counts(rng, unit, share):
    for _ in range(50):
        success = rng.random((rng.integers(1, 12), rng.integers(1, 9))) < share
        assert first_success.f_measure(success, unit=unit) == first(success, unit)


@pytest.mark.parametrize("place, samples, examples", [
    ((0, 0), 1, 1), ((0, 4), 5, 1), ((1, 0), 6, 2), ((3, 4), 20, 4)])
def test_f_measure_counts_from_one(place, samples, examples):
    success = np.zeros((4, 5), bool)
    success[place] = True
    assert first_success.f_measure(success) == samples
    assert first_success.f_measure(success, unit="examples") == examples


@pytest.mark.parametrize("unit", ["samples", "examples"])
def test_f_measure_without_success_is_infinite(unit):
    assert first_success.f_measure(np.zeros((4, 5), bool), unit=unit) == math.inf


def test_unknown_unit():
    with pytest.raises(ValueError, match="unknown unit 'inputs'"):
        first_success.f_measure([[True]], unit="inputs")


@pytest.mark.parametrize("random, ranked, printed", [
    (908.52, 9.99, 98.90), (918.60, 10.51, 98.86), (490.23, 2.18, 99.56), (626.15, 4.26, 99.32),
    (300.14, 20.43, 93.19), (42.32, 5.52, 86.96)])
def test_inc_is_what_nsatp_table_5_prints(random, ranked, printed):
    assert round(first_success.inc(random, ranked), 2) == printed


def test_inc_at_its_ends():
    assert first_success.inc(5, 5) == 0
    assert first_success.inc(5, 10) == -100  # twice as long
    assert first_success.inc(5, math.inf) == -math.inf
    assert math.isnan(first_success.inc(math.inf, 5)) and math.isnan(first_success.inc(math.inf, math.inf))


@pytest.mark.parametrize("pair", [(0, 1), (1, 0), (-1, 1), (1, -2), (math.nan, 1), (1, math.nan)])
def test_inc_of_no_count(pair):
    with pytest.raises(ValueError, match="F-measures: expected counts above 0"):
        first_success.inc(*pair)


# Expectations


def enumerated(success, unit, order, n):
    """The mean F-measure over every order of the copies, and of what else is drawn."""
    inputs, copies = success.shape
    found = []
    for listed in permutations(range(inputs), n):
        if order == "given" and list(listed) != sorted(listed):
            continue
        for shuffled in product(permutations(range(copies)), repeat=n):
            tried = np.array([success[i, list(places)] for i, places in zip(listed, shuffled)])
            found.append(first(tried, unit))
    finite = [count for count in found if count < math.inf]
    return np.mean(finite) if finite else math.inf


@pytest.mark.parametrize("unit", first_success.UNITS)
@pytest.mark.parametrize("order", first_success.ORDERS)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_expectation_is_the_mean_over_all_draws(rng, unit, order, n):
    for share in (0.05, 0.2, 0.5, 1):
        success = rng.random((4, 2)) < share
        assert first_success.expected_f_measure(
            success, unit=unit, order=order, candidates=n) == pytest.approx(
                enumerated(success, unit, order, n))


@pytest.mark.parametrize("order", first_success.ORDERS)
def test_the_expectation_with_more_copies(rng, order):
    success = rng.random((3, 3)) < 0.3
    assert first_success.expected_f_measure(success, order=order) == pytest.approx(
        enumerated(success, "samples", order, 3))


def test_the_first_of_k_among_n_comes_at_their_ratio():
    success = np.zeros((9, 4), bool)
    success[:4, 0] = True
    assert first_success.expected_f_measure(success, unit="examples", order="random") == (
        pytest.approx((9 + 1) / (4 + 1)))


def test_many_inputs_and_candidates_stay_finite_and_agree_with_draws(rng):
    success = rng.random((5000, 20)) < 0.001  # one input in fifty
    for order in first_success.ORDERS:
        drawn = []
        for _ in range(2000):
            pool = rng.permutation(5000)[:300]
            drawn.append(first(success[pool if order == "random" else np.sort(pool)], "examples"))
        drawn = [count for count in drawn if count < math.inf]
        expected = first_success.expected_f_measure(success, unit="examples", order=order,
                                                    candidates=300)
        assert abs(np.mean(drawn) - expected) < 4 * np.std(drawn) / math.sqrt(len(drawn))


@pytest.mark.parametrize("changes, message", [
    ({"unit": "inputs"}, "unknown unit 'inputs'"), ({"order": "sorted"}, "unknown order 'sorted'"),
    ({"candidates": 0}, "candidates: expected a whole number of at least 1, got 0"),
    ({"candidates": 3}, "candidates: expected at most 2, the inputs there are, got 3")])
def test_what_cannot_be_expected(changes, message):
    with pytest.raises(ValueError, match=message):
        first_success.expected_f_measure([[True], [False]], **changes)


def test_savings_name_both_and_what_is_saved():
    found = first_success.savings(7.13, 144.82)
    assert found["f_measure_ranked"] == 7.13 and found["f_measure_random"] == 144.82
    assert found["inc"] == first_success.inc(144.82, 7.13)
