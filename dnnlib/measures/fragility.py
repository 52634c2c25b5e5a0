"""Eff, and how it goes with a distance: fits, means of intervals, steps between them."""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import optimize, stats

from dnnlib import checks


def eff(success) -> np.ndarray:
    """Eff, the share of an input's perturbed copies that change the prediction (NSATP IV.C.1).

    ``success``: bool (N, M). Returns (N,) in [0, 1].

    >>> eff([[True, False], [False, False]]).tolist()
    [0.5, 0.0]
    """
    return checked_success(success).mean(1)


def agreement(undecided, decided, *, classes=None) -> dict[str, float]:
    """How many pairs of images show what NSATP and PEACEPACT saw on one pair (both II.B).

    ``undecided``: (A, R), ``decided``: (B, R), label changes of A and B images in R repetitions.
    Every undecided image is paired with every decided one. ``classes``: (A,) and (B,), those that
    the images are given; then only pairs of one class count, as that of the papers is. All is NaN
    without a pair.

    - ``more_from_undecided``, ``strictly_more``: share of pairs and repetitions in which the
      undecided image changed at least as often, or more often.
    - ``pairs_always``, ``pairs_always_strictly``: share of pairs in which that was so in every
      repetition.

    >>> agreement([[3, 3]], [[3, 1], [0, 0]])["pairs_always_strictly"]
    0.5
    >>> agreement([[3, 3]], [[3, 1], [0, 0]], classes=([4], [9, 4]))["pairs_always_strictly"]
    1.0
    """
    first, second = checks.array(undecided), checks.array(decided)
    if not first.ndim == second.ndim == 2 or first.shape[1] != second.shape[1] or (
            0 in first.shape + second.shape):
        raise ValueError("undecided, decided: expected counts (A, R) and (B, R), "
                         f"got {first.shape} and {second.shape}")
    paired = np.ones((len(first), len(second)), dtype=bool)
    if classes is not None:
        given, other = map(np.asarray, classes)
        if (given.shape, other.shape) != (first.shape[:1], second.shape[:1]):
            raise ValueError(f"classes: expected {first.shape[:1]} and {second.shape[:1]}, "
                             f"got {given.shape} and {other.shape}")
        paired = given[:, None] == other[None]
    least, more = (rule(first[:, None], second[None])[paired]  # (pairs, R)
                   for rule in (np.greater_equal, np.greater))
    found = {"more_from_undecided": least, "strictly_more": more,
             "pairs_always": least.all(1), "pairs_always_strictly": more.all(1)}
    return {name: float(held.mean()) if paired.any() else math.nan for name, held in found.items()}


@dataclass(frozen=True)
class Fit:
    """``a * exp(b * x)``, the correlation of it with the points, and how many there were.

    ``line``: it is ``a + b * x`` instead.
    """

    a: float
    b: float
    correlation: float
    points: int
    line: bool = False

    def __call__(self, x) -> np.ndarray:
        x = checks.array(x, float)
        return self.a + self.b * x if self.line else _exponential(x, self.a, self.b)


METHODS = ("loglinear", "curve")
EVERY = 0.05  # the error allowed to all steps of a curve together


def fit_exponential(x, y, *, method: str = "loglinear") -> Fit:
    """Fit y = a exp(b x) and correlate it with the points (NSATP IV.D.1, Tables III and IV).

    ``method`` 'loglinear': least squares on z = ln y, the paper's change of variable; points with
    y = 0 have no logarithm and are left out. 'curve': least squares on y itself, all points.
    ``x``, ``y``: (N,), finite, y >= 0. The correlation is Pearson's between f(x) and y over the
    points used. With fewer than three of them, all at one x, no convergence, or a curve too steep
    for floating point, all is NaN.

    >>> fit = fit_exponential([0, 1, 2, 3], [1, 0.5, 0.25, 0.125])  # halves: b = -ln 2
    >>> round(fit.a, 3), round(fit.b, 3), round(fit.correlation, 3)
    (1.0, -0.693, 1.0)
    """
    x, y = _points(x, y)
    if (y < 0).any():
        raise ValueError(f"y: expected values of at least 0, got {y.min():g}")
    if method not in METHODS:
        raise ValueError(f"method: expected one of {METHODS}, got {method!r}")
    used = y > 0
    if used.sum() < 3 or np.ptp(x[used]) == 0:
        return Fit(math.nan, math.nan, math.nan, int(used.sum()))
    line = stats.linregress(x[used], np.log(y[used]))
    if line.intercept > math.log(np.finfo(float).max):
        return Fit(math.nan, math.nan, math.nan, int(used.sum()))
    a, b = math.exp(line.intercept), line.slope
    if method == "loglinear":
        x, y = x[used], y[used]
    else:
        try:
            a, b = optimize.curve_fit(_exponential, x, y, p0=(a, b), maxfev=10_000)[0]
        except RuntimeError:  # SciPy's word for no convergence
            return Fit(math.nan, math.nan, math.nan, len(x))
    fitted = _exponential(x, a, b)
    constant = np.ptp(fitted) == 0 or np.ptp(y) == 0
    correlation = math.nan if constant else float(stats.pearsonr(fitted, y).statistic)
    return Fit(float(a), float(b), correlation, len(x))


def fit_line(x, y) -> Fit:
    """The straight line through all points, with the correlation of line and points, from 0 to 1.

    What an exponential is compared with. ``x``, ``y``: (N,), finite. NaN where
    :func:`fit_exponential` has it.

    >>> fit = fit_line([0, 1, 2, 3], [3, 2, 1, 0])
    >>> round(fit.a, 3), round(fit.b, 3), round(fit.correlation, 3)
    (3.0, -1.0, 1.0)
    """
    x, y = _points(x, y)
    if len(x) < 3 or np.ptp(x) == 0:
        return Fit(math.nan, math.nan, math.nan, len(x), line=True)
    found = stats.linregress(x, y)
    correlation = math.nan if np.ptp(y) == 0 else abs(float(found.rvalue))
    return Fit(float(found.intercept), float(found.slope), correlation, len(x), line=True)


def _exponential(x, a: float, b: float):
    with np.errstate(over="ignore"):  # a step of the search too far, which it takes back
        return a * np.exp(b * x)


def binned(x, y, *, bins: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Mean y in ``bins`` equal intervals of x: (centres of mass in x, means), empty ones left out.

    >>> binned([0, 0.1, 1], [1, 3, 5], bins=2)
    (array([0.05, 1.  ]), array([2., 5.]))
    """
    x, y = _points(x, y)
    index = _interval(x, bins)
    count = np.bincount(index, minlength=bins)
    full = count > 0
    means = [np.bincount(index, v, minlength=bins)[full] / count[full] for v in (x, y)]
    return means[0], means[1]


def _interval(x: np.ndarray, bins: int) -> np.ndarray:
    """The number of the interval, 0 to ``bins`` - 1, that each x lies in."""
    edges = np.linspace(x.min(), x.max(), checks.positive(bins, "bins") + 1)
    return np.clip(np.digitize(x, edges) - 1, 0, bins - 1)


def steps(x, y, *, bins: int = 20) -> dict[str, float]:
    """Whether y falls from each interval of x to the next one that is not empty.

    - ``rising_steps``: share of the steps between means of :func:`binned` that go up.
    - ``rising_clearly``: share of those that go up by more than chance, by Welch's test of the
      points in the two intervals; 5 % of error are shared among all steps.
    - ``rank_correlation_means``: Spearman's, of the means with x; -1 where every step goes down.

    NaN where all x lie in one interval.

    >>> steps([0, 0, 1, 1, 2, 2], [5, 5, 3, 3, 4, 4], bins=3)["rising_steps"]
    0.5
    """
    x, y = _points(x, y)
    index = _interval(x, bins)
    groups = [y[index == i] for i in np.unique(index)]
    count = len(groups) - 1
    if count < 1:
        return dict.fromkeys(("rising_steps", "rising_clearly", "rank_correlation_means"), math.nan)
    means = np.array([group.mean() for group in groups])
    rising = np.diff(means) > 0
    clearly = [up and _less(*pair, EVERY / count) for up, pair in zip(rising, pairwise(groups))]
    return {"rising_steps": float(rising.mean()), "rising_clearly": float(np.mean(clearly)),
            "rank_correlation_means": rank_correlation(range(count + 1), means)}


def _less(low: np.ndarray, high: np.ndarray, error: float) -> bool:
    """Whether the mean of ``low`` lies below that of ``high`` by more than chance."""
    if min(len(low), len(high)) < 2:
        return False  # one point has no spread to compare with
    if np.ptp(low) == 0 and np.ptp(high) == 0:
        return bool(low[0] < high[0])
    moments = [number for y in (high, low) for number in (y.mean(), y.std(ddof=1), len(y))]
    found = stats.ttest_ind_from_stats(*moments, equal_var=False, alternative="greater")
    return bool(found.pvalue < error)  # ttest_ind itself warns where one of the two has no spread


def fit_readings(x, y, **row) -> list[dict]:
    """Tidy rows of every reading of NSATP's fit: ``points`` x ``fit`` x (a, b, correlation).

    ``points`` are the 'examples' or the means of 'bins'; ``row`` holds columns to repeat. Beside
    the two exponentials stands the straight 'line' a + b x through all points, and as
    'beyond_line' by how much the correlation of the exponential through the same points, the
    'curve', exceeds the line's. A last row gives Spearman's rank correlation of x and y, which
    needs no curve.

    >>> rows = fit_readings([0, 1, 2, 3], [1, 0.5, 0.25, 0.125], distance="pd")
    >>> rows[-1]
    {'distance': 'pd', 'quantity': 'spearman', 'value': -1.0}
    """
    x, y = _points(x, y)
    rows = []
    for points, pair in (("examples", (x, y)), ("bins", binned(x, y))):
        fits = {method: fit_exponential(*pair, method=method) for method in METHODS}
        fits["line"] = fit_line(*pair)
        rows += [row | {"points": points, "fit": name, "quantity": quantity,
                        "value": getattr(fit, quantity)}
                 for name, fit in fits.items() for quantity in ("a", "b", "correlation")]
        rows.append(row | {"points": points, "quantity": "beyond_line",
                           "value": fits["curve"].correlation - fits["line"].correlation})
    return [*rows, row | {"quantity": "spearman", "value": rank_correlation(x, y)}]


def rank_correlation(x, y) -> float:
    """Spearman's rank correlation of two lists (N,); NaN where one is the same throughout.

    >>> rank_correlation([1, 2, 3], [0.1, 0.2, 0.4]), rank_correlation([1, 2, 3], [0, 0, 0])
    (1.0, nan)
    """
    x, y = checks.array(x), checks.array(y)
    varies = np.ptp(x) > 0 and np.ptp(y) > 0
    return float(stats.spearmanr(x, y).statistic) if varies else math.nan


def _points(x, y) -> tuple[np.ndarray, np.ndarray]:
    x, y = checks.array(x, float), checks.array(y, float)
    if x.ndim != 1 or x.shape != y.shape or len(x) == 0:
        raise ValueError(f"x, y: expected two non-empty vectors, got {x.shape} and {y.shape}")
    for value, name in ((x, "x"), (y, "y")):
        if not np.isfinite(value).all():
            raise ValueError(f"{name}: expected finite values, got NaN or infinity")
    return x, y


def checked_success(success) -> np.ndarray:
    """``success`` as a boolean array (N, M); ``ValueError`` if it is none, or empty."""
    success = checks.array(success)
    if success.dtype != bool or success.ndim != 2 or 0 in success.shape:
        raise ValueError("success: expected a non-empty boolean matrix (N, M), "
                         f"got {success.dtype} of shape {success.shape}")
    return success
