"""How decided a softmax vector is: six measures, and the one rule that ranks inputs by them.

PD, PV and PE are NSATP's (Eqs. 1-3). All raise ``ValueError`` on what is not a distribution.
"""

import math

import torch

from dnnlib import checks


def probability_difference(p) -> torch.Tensor:
    r"""PD, weighted gaps between neighbours of the sorted vector (NSATP Eq. 1, PEACEPACT Eq. 3).

    .. math:: \mathrm{PD} = \sum_{i=1}^{n-1} \frac{p'_i - p'_{i+1}}{i}

    ``p``: (N, n) softmax vectors, sorted in :math:`p'`, largest first. Returns (N,) float64 in
    [0, 1]; 1 for a one-hot vector, 0 for a uniform one. Raises ``ValueError`` on anything that is
    not a distribution.

    >>> probability_difference([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]]).tolist()
    [0.25, 1.0]
    """
    p = checks.probabilities(p).sort(dim=1, descending=True).values
    gaps = p[:, :-1] - p[:, 1:]
    return (gaps / torch.arange(1, p.shape[1], device=p.device)).sum(1)


def probability_variance(p) -> torch.Tensor:
    r"""PV, the spread of the probabilities about their mean (NSATP Eq. 2).

    .. math:: \mathrm{PV} = \sum_{i=1}^n (p_i - 1/n)^2

    ``p``: (N, n). Returns (N,) float64 in [0, 1 - 1/n]. It equals :math:`\sum p_i^2 - 1/n` where p
    sums to 1, so it orders inputs as DeepGini does; see :func:`indecision`.

    >>> probability_variance([[0.5, 0.5], [0.0, 1.0]]).tolist()
    [0.0, 0.5]
    """
    p = checks.probabilities(p)
    return (p - 1 / p.shape[1]).square().sum(1)


def probability_entropy(p) -> torch.Tensor:
    r"""PE in nats, with 0 ln 0 = 0 (NSATP Eq. 3).

    .. math:: \mathrm{PE} = -\sum_{i=1}^n p_i \ln p_i

    ``p``: (N, n). Returns (N,) float64 in [0, ln n]. It rises with indecision, against PD and PV.

    >>> probability_entropy([[0.5, 0.5], [0.0, 1.0]]).tolist()
    [0.6931471805599453, 0.0]
    """
    return torch.special.entr(checks.probabilities(p)).sum(1)


def certainty(p) -> torch.Tensor:
    """1 - PE / ln n: entropy turned round and scaled to [0, 1].

    NSATP prints *falling* exponentials of PE whose coefficients nearly equal those of PD, which
    raw entropy cannot give; this is the plainest transform that can.

    >>> certainty([[0.5, 0.5], [0.0, 1.0]]).tolist()
    [0.0, 1.0]
    """
    p = checks.probabilities(p)
    return 1 - torch.special.entr(p).sum(1) / math.log(p.shape[1])


def gini(p) -> torch.Tensor:
    r"""DeepGini, the impurity of the vector (Feng et al., ISSTA 2020).

    .. math:: 1 - \sum_{i=1}^n p_i^2

    ``p``: (N, n) softmax vectors. Returns (N,) float64 in [0, 1 - 1/n].

    >>> gini([[0.5, 0.5], [0.0, 1.0]]).tolist()
    [0.5, 0.0]
    """
    return 1 - checks.probabilities(p).square().sum(1)


def least_confidence(p) -> torch.Tensor:
    """1 - max p: float64 (N,) in [0, 1 - 1/n], of softmax vectors (N, n).

    >>> least_confidence([[0.5, 0.5], [0.25, 0.75]]).tolist()
    [0.5, 0.25]
    """
    return 1 - checks.probabilities(p).amax(1)


def margin(p) -> torch.Tensor:
    """The lead of the first class over the second: float64 (N,) in [0, 1], small where undecided.

    >>> margin([[0.5, 0.5, 0.0], [0.0, 0.75, 0.25]]).tolist()
    [0.0, 0.5]
    """
    first, second = checks.probabilities(p).topk(2).values.unbind(1)
    return first - second


SIGNED = {  # each measure, and 1 if a smaller value means a less decided vector, else -1
    "pd": (probability_difference, 1), "pv": (probability_variance, 1),
    "pe": (probability_entropy, -1), "gini": (gini, -1),
    "least_confidence": (least_confidence, -1), "margin": (margin, 1)}
MEASURES = {name: measure for name, (measure, _) in SIGNED.items()}
DISTANCES = {name: MEASURES[name] for name in ("pd", "pv", "pe")}  # NSATP's three


def indecision(p, by: str = "pd") -> torch.Tensor:
    """A measure of :data:`MEASURES`, turned so that the less decided vector has the larger value.

    ``p``: (N, n) softmax vectors. Returns (N,) float64. PV's is DeepGini's score, 1 - 1/n - PV: the
    sum of a float32 vector misses 1 by 1e-7, by which PV errs, and sure inputs differ in less.
    Raises ``ValueError`` for an unknown measure and on anything that is not a distribution.

    >>> indecision([[0.75, 0.25], [0.5, 0.5]], "margin").tolist()
    [-0.5, -0.0]
    """
    by = "gini" if checks.known(by, MEASURES, "measure") == "pv" else by
    measure, sign = SIGNED[by]
    return -sign * measure(p)
