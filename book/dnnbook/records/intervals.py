"""Intervals over seeds, each on the scale of what was measured, and Holm's correction.

A ratio is judged on logarithms, a share so that its interval stays in its range, a difference as it
is: Student's interval is that of the transformed values, transformed back.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

LEVEL = 0.05  # 1 - the confidence of every interval


@dataclass(frozen=True)
class Scale:
    """A rising function ``forward`` to where spreads are alike, its inverse, a ``range``."""

    forward: Callable
    back: Callable
    range: tuple[float, float] = (-math.inf, math.inf)


def _share(whole: float) -> Scale:
    """The arcsine of the root: it evens out the spread of counts, and knows 0 and 1."""
    return Scale(lambda v: np.arcsin(np.sqrt(np.clip(v, 0, whole) / whole)),
                 lambda a: whole * np.sin(np.clip(a, 0, math.pi / 2)) ** 2, (0, whole))


SCALES = {
    "linear": Scale(np.asarray, np.asarray),
    "ratio": Scale(np.log, np.exp, (0, math.inf)),  # times something
    "share": _share(1),
    "percent": _share(100),
    "saving": Scale(lambda v: -np.log(1 - np.asarray(v) / 100),  # 100 % less a ratio
                    lambda a: 100 * (1 - np.exp(-np.asarray(a))), (-math.inf, 100)),
    "correlation": Scale(np.arctanh, np.tanh, (-1, 1)),  # Fisher's z
}


@dataclass(frozen=True)
class Estimate:
    """The mean over the seeds and its 95 % interval, ``low`` to ``high``.

    NaN where a value is, or lies outside its scale, such as a ratio of a gain and a loss.

    ``middle`` and ``error`` are the mean and its standard error on the scale ``on``, which is
    'linear' where a value lies at the end of the ``scale`` asked for, such as a ratio of 0. The
    error is 0 where all values are the same: then nothing is known of their spread, and a verdict
    asks the other cells of its claim: :mod:`dnnbook.records.moderation`.
    """

    mean: float
    low: float
    high: float
    middle: float
    error: float
    degrees: float
    on: str
    scale: str = "linear"  # the one asked for
    seeds: int = 0

    def p(self, threshold: float) -> tuple[float, float]:
        """The two-sided p-values of lying above and below ``threshold``; (1, 1) on it."""
        if math.isnan(self.error):
            return 1.0, 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            away = self.middle - float(SCALES[self.on].forward(threshold))
        if self.error == 0:
            return float(away <= 0), float(away >= 0)
        above = stats.t.sf(away / self.error, self.degrees)
        return min(1.0, 2 * above), min(1.0, 2 * (1 - above))


def estimate(values: Sequence[float], scale: str = "linear") -> Estimate:
    """The mean of one value for each seed, with Student's 95 % interval on a ``scale``.

    >>> found = estimate([1.0, 2.0, 4.0], "ratio")
    >>> round(found.mean, 2), round(found.low, 2), round(found.high, 2)
    (2.0, 0.36, 11.19)
    >>> round(estimate([0.0, 1.0, 1.0], "share").high, 2)
    1.0
    """
    sample = np.asarray(values, dtype=float)
    bottom, top = SCALES[scale].range
    if np.isnan(sample).any() or len(sample) < 2 or sample.min() < bottom or sample.max() > top:
        nan = math.nan
        return Estimate(nan, nan, nan, nan, nan, len(sample) - 1, scale, scale, len(sample))
    with np.errstate(divide="ignore", invalid="ignore"):
        on = scale if np.isfinite(SCALES[scale].forward(sample)).all() else "linear"
    moved = SCALES[on].forward(sample)
    same = bool((sample == sample[0]).all())  # free of the rounding of a mean
    middle = float(moved[0] if same else moved.mean())
    error = 0.0 if same else float(stats.sem(moved))
    half = stats.t.ppf(1 - LEVEL / 2, len(sample) - 1) * error
    low, high = (float(SCALES[on].back(middle + side * half)) for side in (-1, 1))
    mean = float(sample[0]) if same else float(SCALES[on].back(middle))
    if same:
        low = high = mean
    return Estimate(mean, max(low, bottom), min(high, top), middle, error, len(sample) - 1, on,
                    scale, len(sample))


def interval(values: Sequence[float], scale: str = "linear") -> tuple[float, float]:
    """The ends of the 95 % interval of :func:`estimate`; NaN if a value is.

    >>> low, high = interval([1.0, 2.0, 3.0])
    >>> round(low, 2), round(high, 2)
    (-0.48, 4.48)
    """
    found = estimate(values, scale)
    return found.low, found.high


def simes(p: Sequence[float]) -> bool:
    """Whether some of several tests stand: the k-th smallest p is at most k / n of the level.

    R. J. Simes, Biometrika 73(3), 1986: the level holds for independent tests, and for those that
    depend positively, as cells of the same seeds do.

    >>> simes([0.03, 0.04, 0.045]), simes([0.03, 0.3, 0.6]), simes([])
    (True, False, False)
    """
    return any(value <= LEVEL * rank / len(p) for rank, value in enumerate(sorted(p), start=1))


def holm(p: Sequence[float]) -> list[bool]:
    """Which of several tests stand after Holm's correction for having chosen among them.

    >>> holm([0.01, 0.04, 0.03])
    [True, False, False]
    """
    found, order = [False] * len(p), np.argsort(p, kind="stable")
    for rank, place in enumerate(order):
        if p[place] > LEVEL / (len(p) - rank):
            break
        found[place] = True
    return found
