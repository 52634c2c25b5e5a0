"""How much is tried until the first success: the F-measure, what it is on average, and Inc."""

import math

import numpy as np
from scipy import stats

from dnnlib import checks
from dnnlib.measures.fragility import checked_success

UNITS = ("samples", "examples")
ORDERS = ("given", "random")


def f_measure(success, *, unit: str = "samples") -> float:
    """How much of a ranked list is tried before the first success.

    ``success``: bool (N, M), inputs in the order tried. ``unit`` 'samples' counts perturbed
    copies (NSATP IV.C.2), 'examples' counts inputs, each with its M copies (PEACEPACT IV.C).
    Returns a count from 1; infinity if nothing succeeds.

    >>> tried = [[False, False], [False, True]]
    >>> f_measure(tried), f_measure(tried, unit="examples")
    (4.0, 2.0)
    """
    success = checked_success(success)
    checks.known(unit, UNITS, "unit")
    hits = success.ravel() if unit == "samples" else success.any(1)
    return float(hits.argmax() + 1) if hits.any() else math.inf


def expected_f_measure(success, *, unit: str = "samples", order: str = "given",
                       candidates: int | None = None) -> float:
    """The F-measure that repetitions with fresh orders come near to, without drawing any.

    ``success``: bool (N, M). ``unit``: as of :func:`f_measure`. What is averaged over:

    - the copies of each input, which are tried in random order;
    - with ``order`` 'random' also the order of the inputs; with 'given' they are tried as listed;
    - with ``candidates`` = n also the choice of n of the inputs, which are then tried in that
      order; default all.

    The average is over draws in which something succeeds; infinity if nothing can. Of N inputs
    in random order of which k are vulnerable, the first vulnerable one comes at (N + 1) / (k + 1)
    on average; and so does the first success among the M copies of one input.

    >>> tried = [[False, False], [False, True]]
    >>> expected_f_measure(tried), expected_f_measure(tried, order="random")
    (3.5, 2.5)
    >>> expected_f_measure(tried, unit="examples", order="random")
    1.5
    """
    success = checked_success(success)
    checks.known(unit, UNITS, "unit")
    checks.known(order, ORDERS, "order")
    inputs, copies = success.shape
    n = inputs if candidates is None else checks.positive(candidates, "candidates")
    if n > inputs:
        raise ValueError(f"candidates: expected at most {inputs}, the inputs there are, got {n}")
    vulnerable = success.any(1)
    if not vulnerable.any():
        return math.inf
    chance, before = (_in_random_order if order == "random" else _as_listed)(vulnerable, n)
    if unit == "examples":
        return float(chance @ before) + 1
    within = (copies + 1) / (success[vulnerable].sum(1) + 1)
    return float(chance @ (copies * before + within))


def _in_random_order(vulnerable: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """For each vulnerable input the chance that it is met first, and how many are met before it."""
    k = int(vulnerable.sum())
    drawn = np.arange(1, min(n, k) + 1)  # vulnerable ones among the candidates
    weights = stats.hypergeom.pmf(drawn, len(vulnerable), k, n)
    before = float(weights / weights.sum() @ ((n - drawn) / (drawn + 1)))
    return np.full(k, 1 / k), np.full(k, before)


def _as_listed(vulnerable: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """As :func:`_in_random_order`, for candidates that are tried in the order of the list.

    That the j-th of k vulnerable inputs (from 0) is the first one drawn has the chance
    C(N - 1 - j, n - 1) / C(N, n): it is drawn, and the j before it are not. Each other input that
    comes before it is then among the n - 1 drawn of the N - 1 - j left.
    """
    places = vulnerable.nonzero()[0]
    j = np.arange(len(places))
    left = len(vulnerable) - 1 - j
    possible = left >= n - 1
    # ratios of neighbours, since the binomials themselves are too large for floating point
    ratios = np.where(possible[1:], (left[:-1] - n + 1) / np.maximum(left[:-1], 1), 0)
    weights = np.cumprod(np.concatenate([[1.0], ratios]))
    before = (n - 1) * (places - j) / np.maximum(left, 1)
    return weights / weights.sum(), np.where(possible, before, 0)


def inc(baseline: float, ranked: float) -> float:
    """Inc in percent: how much of the baseline's F-measure a ranking saves (NSATP IV.C.2).

    Negative where the ranking is worse; NaN where the baseline never succeeds.

    >>> round(inc(144.82, 7.13), 2)
    95.08
    """
    if not baseline > 0 or not ranked > 0:
        raise ValueError(f"F-measures: expected counts above 0, got {baseline} and {ranked}")
    return math.nan if math.isinf(baseline) else (baseline - ranked) / baseline * 100


def savings(ranked: float, random: float) -> dict[str, float]:
    """The F-measures of a ranked and of a random order, and their Inc, by name.

    >>> savings(2.0, 20.0)
    {'f_measure_ranked': 2.0, 'f_measure_random': 20.0, 'inc': 90.0}
    """
    return {"f_measure_ranked": ranked, "f_measure_random": random, "inc": inc(random, ranked)}
