"""How decided a softmax vector is: PD, PV and PE (NSATP Eqs. 1-3), and rankings by them."""

import math

import torch

from dnnlib import checks


def probability_difference(p) -> torch.Tensor:
    """PD, the weighted gaps between neighbours of the sorted vector (NSATP Eq. 1, PEACEPACT Eq. 3).

    ``p``: (N, n) softmax vectors. Returns (N,) float64 in [0, 1]; 1 for a one-hot vector,
    0 for a uniform one. Raises ``ValueError`` on anything that is not a distribution.

    >>> probability_difference([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]]).tolist()
    [0.25, 1.0]
    """
    p = checks.probabilities(p).sort(dim=1, descending=True).values
    gaps = p[:, :-1] - p[:, 1:]
    return (gaps / torch.arange(1, p.shape[1], device=p.device)).sum(1)


def probability_variance(p) -> torch.Tensor:
    """PV, the squared deviations from the mean 1/n (NSATP Eq. 2).

    ``p``: (N, n). Returns (N,) float64 in [0, 1 - 1/n]. It equals sum p^2 - 1/n, so it
    orders inputs exactly as DeepGini does.

    >>> probability_variance([[0.5, 0.5], [0.0, 1.0]]).tolist()
    [0.0, 0.5]
    """
    p = checks.probabilities(p)
    return (p - 1 / p.shape[1]).square().sum(1)


def probability_entropy(p) -> torch.Tensor:
    """PE in nats, with 0 log 0 = 0 (NSATP Eq. 3).

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


DISTANCES = {
    "pd": probability_difference,
    "pv": probability_variance,
    "pe": probability_entropy,
}
SIGNS = {"pd": 1, "pv": 1, "pe": -1}  # -1: a larger value means a less decided vector


def rank(p, by: str = "pd") -> torch.Tensor:
    """Indices of the inputs, the least decided first; stable under ties.

    ``p``: (N, n) softmax vectors; ``by``: 'pd', 'pv' (ascending) or 'pe' (descending).

    >>> rank([[0.9, 0.1], [0.5, 0.5], [0.7, 0.3]]).tolist()
    [1, 2, 0]
    """
    score = DISTANCES[checks.known(by, DISTANCES, "distance")](p)
    return (SIGNS[by] * score).argsort(stable=True)
