"""What the papers measure, as pure functions of arrays."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats

from dnnlib import checks


def eff(success) -> np.ndarray:
    """Eff, the share of an input's perturbed copies that change the prediction (NSATP IV.C.1).

    ``success``: bool (N, M). Returns (N,) in [0, 1].

    >>> eff([[True, False], [False, False]]).tolist()
    [0.5, 0.0]
    """
    return _success(success).mean(1)


def f_measure(success, *, unit: str = "samples") -> float:
    """How much of a ranked list is tried before the first success.

    ``success``: bool (N, M), inputs in the order tried. ``unit`` 'samples' counts perturbed
    copies (NSATP IV.C.2), 'examples' counts inputs, each with its M copies (PEACEPACT IV.C).
    Returns a count from 1; infinity if nothing succeeds.

    >>> tried = [[False, False], [False, True]]
    >>> f_measure(tried), f_measure(tried, unit="examples")
    (4.0, 2.0)
    """
    success = _success(success)
    if unit not in ("samples", "examples"):
        raise ValueError(f"unit: expected 'samples' or 'examples', got {unit!r}")
    hits = success.ravel() if unit == "samples" else success.any(1)
    return float(hits.argmax() + 1) if hits.any() else math.inf


def inc(baseline: float, ranked: float) -> float:
    """Inc in percent: how much of the baseline's F-measure a ranking saves (NSATP IV.C.2).

    Negative where the ranking is worse; NaN where the baseline never succeeds.

    >>> round(inc(144.82, 7.13), 2)
    95.08
    """
    if not baseline > 0 or not ranked > 0:
        raise ValueError(f"F-measures: expected counts above 0, got {baseline} and {ranked}")
    return math.nan if math.isinf(baseline) else (baseline - ranked) / baseline * 100


def savings(ranked, random) -> dict[str, float]:
    """Mean F-measures of a ranked and of a random order over repetitions, (R,) each, and their Inc.

    >>> savings([1.0, 3.0], [10.0, 30.0])
    {'f_measure_ranked': 2.0, 'f_measure_random': 20.0, 'inc': 90.0}
    """
    a, r = float(np.mean(ranked)), float(np.mean(random))
    return {"f_measure_ranked": a, "f_measure_random": r, "inc": inc(r, a)}


@dataclass(frozen=True)
class Fit:
    """``a * exp(b * x)``, the correlation of it with the points, and how many there were."""

    a: float
    b: float
    correlation: float
    points: int

    def __call__(self, x) -> np.ndarray:
        return _exponential(np.asarray(x, dtype=float), self.a, self.b)


METHODS = ("loglinear", "curve")


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


def _exponential(x, a: float, b: float):
    return a * np.exp(b * x)


def binned(x, y, *, bins: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Mean y in ``bins`` equal intervals of x: (centres of mass in x, means), empty ones left out.

    >>> binned([0, 0.1, 1], [1, 3, 5], bins=2)
    (array([0.05, 1.  ]), array([2., 5.]))
    """
    x, y = _points(x, y)
    checks.positive(bins, "bins")
    edges = np.linspace(x.min(), x.max(), bins + 1)
    index = np.clip(np.digitize(x, edges) - 1, 0, bins - 1)
    count = np.bincount(index, minlength=bins)
    full = count > 0
    means = [np.bincount(index, v, minlength=bins)[full] / count[full] for v in (x, y)]
    return means[0], means[1]


def fit_readings(x, y, **row) -> list[dict]:
    """Tidy rows of every reading of NSATP's fit: ``points`` x ``fit`` x (a, b, correlation).

    ``points`` are the 'examples' or the means of 'bins'; ``row`` holds columns to repeat. A last
    row gives Spearman's rank correlation of x and y, which needs no curve.

    >>> rows = fit_readings([0, 1, 2, 3], [1, 0.5, 0.25, 0.125], distance="pd")
    >>> rows[-1]
    {'distance': 'pd', 'quantity': 'spearman', 'value': -1.0}
    """
    rows = []
    for points, pair in (("examples", (x, y)), ("bins", binned(x, y))):
        for method in METHODS:
            fit = fit_exponential(*pair, method=method)
            rows += [row | {"points": points, "fit": method, "quantity": quantity,
                            "value": getattr(fit, quantity)}
                     for quantity in ("a", "b", "correlation")]
    rho = math.nan if np.ptp(x) == 0 or np.ptp(y) == 0 else float(stats.spearmanr(x, y).statistic)
    return [*rows, row | {"quantity": "spearman", "value": rho}]


def _points(x, y) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if x.ndim != 1 or x.shape != y.shape or len(x) == 0:
        raise ValueError(f"x, y: expected two non-empty vectors, got {x.shape} and {y.shape}")
    for value, name in ((x, "x"), (y, "y")):
        if not np.isfinite(value).all():
            raise ValueError(f"{name}: expected finite values, got NaN or infinity")
    return x, y


def _success(success) -> np.ndarray:
    success = np.asarray(success)
    if success.dtype != bool or success.ndim != 2 or 0 in success.shape:
        raise ValueError("success: expected a non-empty boolean matrix (N, M), "
                         f"got {success.dtype} of shape {success.shape}")
    return success
