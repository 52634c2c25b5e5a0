"""What an order or a score finds: fault detection rate, kinds of fault, APFD, ROC area."""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from dnnlib import checks


def fault_detection_rate(wrong, order, rate: float) -> float:
    """FDR: the share of misclassified inputs among the first ``rate`` of an order (NSS IV.C.1).

    ``wrong``: bool (N,), whether each input is misclassified. ``order``: a permutation of
    range(N). ``rate`` in (0, 1]. Returns a share in [0, 1].

    >>> fault_detection_rate([True, False, False, True], [3, 1, 0, 2], 0.5)
    0.5
    """
    wrong, order = _ordered(wrong, order)
    return float(wrong[order[:_taken(len(order), rate)]].mean())


def detection_table(wrong, orders: Mapping[Hashable, Sequence[int]],
                    rates: Sequence[float]) -> pd.DataFrame:
    """FDR in percent: a line for each of the ``orders``, by its key, a column for each rate in %.

    >>> detection_table([True, False, False, True], {"gini": [3, 1, 0, 2]}, [25, 50])
             25    50
    gini  100.0  50.0
    """
    return pd.DataFrame.from_dict(
        {key: {rate: 100 * fault_detection_rate(wrong, order, rate / 100) for rate in rates}
         for key, order in orders.items()}, orient="index")


def best_rate(wrong, rate: float) -> float:
    """The FDR of the best order there is: all faults first. Random order expects ``mean(wrong)``.

    >>> best_rate([True, False, False, False], 0.5)
    0.5
    """
    wrong = _wrong(wrong)
    return min(1.0, int(wrong.sum()) / _taken(len(wrong), rate))


def apfd(wrong, order) -> float:
    r"""Average percentage of faults detected (Rothermel et al., TSE 2001), each input one fault.

    .. math:: \mathrm{APFD} = 1 - \frac{T_1 + \dots + T_m}{N m} + \frac{1}{2 N}

    with :math:`T_i` the position, from 1 to N, of fault i of m. Returns a share: near 1 if all
    faults come first, 0.5 in random order; NaN without faults.

    >>> apfd([True, False, False, True], [3, 0, 1, 2])
    0.75
    """
    wrong, order = _ordered(wrong, order)
    places = np.flatnonzero(wrong[order]) + 1
    if not len(places):
        return float("nan")
    return float(1 - places.sum() / (len(order) * len(places)) + 1 / (2 * len(order)))


def roc_area(wrong, score) -> float:
    """Area under the ROC curve: the chance that a fault scores higher than an input that is none.

    ``wrong``: bool (N,). ``score``: (N,), higher is more suspect; ties count half. Returns a share:
    1 if all faults score highest, 0.5 by chance; NaN without faults or with nothing else.

    >>> roc_area([True, False, False, True], [0.9, 0.1, 0.5, 0.5])
    0.875
    """
    wrong, score = _wrong(wrong), checks.array(score, float)
    if score.shape != wrong.shape or np.isnan(score).any():
        raise ValueError(f"score: expected {len(wrong)} numbers, got shape {score.shape}, "
                         f"{np.isnan(score).sum()} of them NaN")
    if wrong.all() or not wrong.any():
        return float("nan")
    u = stats.mannwhitneyu(score[wrong], score[~wrong]).statistic
    return float(u / (wrong.sum() * (~wrong).sum()))


def fault_types(labels, predicted, classes: int) -> np.ndarray:
    """The kind of fault, (true class, predicted class), as one number; -1 where there is none.

    ``labels``, ``predicted``: (N,) in 0 .. ``classes`` - 1. Returns int64 (N,) (NSS IV.C.2).

    >>> fault_types([0, 1, 1], [0, 0, 2], 3).tolist()
    [-1, 3, 5]
    """
    labels = checks.labels(labels, len(labels), classes).numpy(force=True)
    predicted = checks.labels(predicted, len(labels), classes, "predicted").numpy(force=True)
    return np.where(labels == predicted, -1, labels * classes + predicted)


def fault_type_coverage(types, order, rates) -> np.ndarray:
    """FTCR: the share of all kinds of fault that the first part of an order shows (NSS IV.C.2).

    ``types``: (N,), from :func:`fault_types`. ``rates``: shares in (0, 1]. Returns one share in
    [0, 1] for each; the whole is what all N inputs show, not all classes x (classes - 1). NaN
    without faults.

    >>> fault_type_coverage([-1, 3, 5, 3], [1, 3, 2, 0], [0.5, 0.75]).tolist()
    [0.5, 1.0]
    """
    types = checks.array(types)
    faulty, order = _ordered(types >= 0, order)
    ranked = types[order]
    kinds, first = np.unique(ranked, return_index=True)
    first = first[kinds >= 0]
    taken = np.array([_taken(len(order), rate) for rate in rates])
    if not len(first):
        return np.full(len(taken), np.nan)
    return (first[:, None] < taken).mean(0)


def expected_coverage(types, rates) -> np.ndarray:
    r"""The FTCR that a random order has on average at each of the ``rates``.

    .. math:: \frac{1}{|K|} \sum_{k \in K} 1 - \binom{N - n_k}{t} \Big/ \binom{N}{t}

    with :math:`n_k` faults of kind :math:`k` among N inputs, and t inputs taken: a kind is missed
    if none of its faults is among them. Types, rates and result are those of
    :func:`fault_type_coverage`.

    >>> expected_coverage([-1, 3, 5, 3], [0.25, 0.5, 1.0]).round(3).tolist()
    [0.375, 0.667, 1.0]
    """
    types = checks.array(types)
    faulty = _wrong(types >= 0)
    taken = np.array([_taken(len(types), rate) for rate in rates])
    if not faulty.any():
        return np.full(len(taken), np.nan)
    _, faults = np.unique(types[faulty], return_counts=True)
    return 1 - stats.hypergeom.pmf(0, len(types), faults[:, None], taken).mean(0)


def diversity_table(types, orders: Mapping[Hashable, Sequence[int]],
                    rates: Sequence[float]) -> pd.DataFrame:
    """FTCR in percent: a line for each of the ``orders``, by its key, a column for each rate in %.

    >>> diversity_table([-1, 3, 5, 3], {"gini": [1, 3, 2, 0]}, [50, 75]).loc["gini"].tolist()
    [50.0, 100.0]
    """
    return pd.DataFrame.from_dict(
        {key: 100 * fault_type_coverage(types, order, [rate / 100 for rate in rates])
         for key, order in orders.items()}, orient="index", columns=list(rates))


def _wrong(wrong) -> np.ndarray:
    wrong = checks.array(wrong)
    if wrong.dtype != bool or wrong.ndim != 1 or not len(wrong):
        raise ValueError(f"wrong: expected booleans (N,) of at least one input, got {wrong.dtype} "
                         f"of shape {wrong.shape}")
    return wrong


def _ordered(wrong, order) -> tuple[np.ndarray, np.ndarray]:
    wrong, order = _wrong(wrong), checks.array(order)
    if order.shape != wrong.shape or not np.array_equal(np.sort(order), np.arange(len(wrong))):
        raise ValueError(f"order: expected a permutation of range({len(wrong)}), "
                         f"got shape {order.shape}")
    return wrong, order


def _taken(n: int, rate: float) -> int:
    """How many of ``n`` inputs are taken; ``ValueError`` for none."""
    taken = checks.count(n, rate)
    if not taken:
        raise ValueError(f"rate: {rate:g} of {n} inputs is none")
    return taken
