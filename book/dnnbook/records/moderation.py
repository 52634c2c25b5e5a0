"""What the cells of a claim say of each other's spread: moderated variances, as in limma.

G. K. Smyth, Linear models and empirical Bayes methods for assessing differential expression in
microarray experiments, Statistical Applications in Genetics and Molecular Biology 3(1), 2004,
Sections 4 and 6.2. Assumed: values of a cell are normal on the claim's scale, and the true
variances of the cells are draws of one scaled inverse chi-squared distribution, whatever their
means.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import optimize, special, stats

from dnnbook.records.intervals import LEVEL, SCALES, Estimate


def prior(variances: Sequence[float], degrees: Sequence[int]) -> tuple[float, float]:
    """d0 and s0^2, by the first two moments of log s^2 (Smyth 2004, Section 6.2).

    ``variances``: at least two, above 0, of ``degrees`` each. d0 is infinite where they differ no
    more than their degrees let them.

    >>> [round(found, 4) for found in prior([0.5, 1.3, 7.8], [3, 3, 3])]
    [2.8308, 1.6769]
    """
    half = np.asarray(degrees, dtype=float) / 2
    e = np.log(variances) - special.digamma(half) + np.log(half)
    beyond = e.var(ddof=1) - special.polygamma(1, half).mean()
    if beyond <= 0:
        return math.inf, math.exp(e.mean())
    half = optimize.brentq(lambda x: special.polygamma(1, x) - beyond, 1e-9, 1e9, xtol=1e-12)
    return 2 * half, math.exp(e.mean() + special.digamma(half) - math.log(half))


def moderated(found: Sequence[Estimate], floors: Sequence[float] = ()) -> list[Estimate]:
    """The estimates of a claim's cells, their variances moderated; one without a spread is unknown.

    Each variance becomes (d0 s0^2 + d s^2) / (d0 + d), with d0 + d degrees, at most those of all
    cells together, as in limma. A variance of 0 has no logarithm and tells nothing of d0 and s0^2;
    it is moderated by them. Where fewer than two cells have a spread, there is nothing to borrow:
    the others keep theirs, and one of 0 becomes NaN, so that its cell is open. ``floors``: the
    least standard error of each that has none, on its scale.
    """
    result = list(found)
    for on in {e.on for e in found}:
        cells = [i for i, e in enumerate(found) if e.on == on and not math.isnan(e.error)]
        spread = [i for i in cells if found[i].error > 0]
        d0, s0 = prior(*zip(*((_variance(found[i]), found[i].degrees) for i in spread))) if (
            len(spread) > 1) else (0.0, 0.0)
        most = sum(found[i].degrees for i in spread)
        for i in cells:
            result[i] = _with(found[i], d0, s0, most, floors[i] if floors else 0.0)
    return result


def _variance(found: Estimate) -> float:
    return found.error ** 2 * (found.degrees + 1)


def _with(found: Estimate, d0: float, s0: float, most: int, floor: float) -> Estimate:
    d, variance = found.degrees, _variance(found)
    if d0:
        variance = s0 if math.isinf(d0) else (d0 * s0 + d * variance) / (d0 + d)
    error = max(math.sqrt(variance / (d + 1)), floor if found.error == 0 else 0.0)
    if error == 0:  # alike with all seeds, and nothing says how much they would differ
        return replace(found, low=math.nan, high=math.nan, error=math.nan)
    degrees = min(d0 + d, most) if d0 else d
    half, scale = stats.t.ppf(1 - LEVEL / 2, degrees) * error, SCALES[found.on]
    bottom, top = SCALES[found.scale].range
    low, high = (float(scale.back(found.middle + side * half)) for side in (-1, 1))
    return replace(found, low=max(low, bottom), high=min(high, top), error=error, degrees=degrees)
