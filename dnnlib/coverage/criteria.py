"""Coverage criteria of neurons (DeepXplore, DeepGauge): from activations to covered items."""

from collections.abc import Sequence

import numpy as np
import torch

from dnnlib import checks
from dnnlib.coverage.covered import Covered
from dnnlib.coverage.ranges import Boundaries, by_rows, matrix

EDGES = ("both", "low", "high")


def nac(values, threshold: float = 0.5, *, sigmoid: bool = False) -> Covered:
    """Neuron (activation) coverage, NC or NAC: neurons above a threshold (DeepXplore).

    ``values``: (N, neurons); DeepXplore's are scaled, ``activations.record(..., scale=True)``.
    ``sigmoid``: compare sigmoid(a), as DeepGini's and ATS's code do with raw activations, so
    that 0.5 means above zero; default off, since no paper says so. An item is a neuron.
    Raises ``ValueError`` for values that are not finite, or a threshold that no value, or every
    value, is above.

    >>> nac([[0.2, 0.7], [0.6, 0.5]]).bins.tolist()
    [[-1, 0], [0, -1]]
    """
    values = matrix(values)
    checks.finite(threshold, "threshold")
    if sigmoid and not 0 < threshold < 1:
        raise ValueError(f"threshold: expected a number in (0, 1), got {threshold!r}")
    if sigmoid:  # the threshold turned round: sigmoid(1e-8) is rounded to 0.5 in single precision
        threshold = float(np.log(threshold / (1 - threshold)))
    return Covered(_flags(values.numpy() > threshold))


def kmnc(values, seen: Boundaries, sections: int = 1000, *, edges: str = "both") -> Covered:
    r"""K-multisection coverage: which section of its range an activation is in (DeepGauge, 3.1).

    .. math:: i = \min\left(\left\lfloor k \, \frac{a - \mathrm{low}}{\mathrm{high} - \mathrm{low}}
              \right\rfloor, \ k - 1\right)

    ``values``: a, (N, neurons). i is one of k ``sections``, from 0; an item is a (neuron, section),
    and what is out of the range covers none.

    ``edges``: whether low and high belong to the first and last section, 'both' (DeepGauge's
    closed range; DeepHunter), 'low' only (dnn-tip) or 'high' only (NeuraL-Coverage, which rounds
    up). A neuron with low = high has no sections. DeepGini's and ATS's code also counts what is
    below and above the range, which is for :func:`nbc`.

    >>> from dnnlib.coverage import boundaries
    >>> kmnc([[0.0], [2.9], [4.0], [4.1]], boundaries([[0.0], [4.0]]), 4).bins[:, 0].tolist()
    [0, 2, 3, -1]
    """
    values = matrix(values, seen)
    checks.positive(sections, "sections")
    checks.known(edges, EDGES, "edges")
    low, high = seen.low, seen.high
    flat = low == high
    span = torch.where(flat, 1, high - low)
    kind = _integer(sections)

    def bins(a: torch.Tensor) -> torch.Tensor:
        # multiplied first: whole numbers then give exact sections
        place = (a - low).mul_(sections).div_(span)
        place = place.ceil_().sub_(1) if edges == "high" else place.floor_()
        place.clamp_(0, sections - 1)
        below = a <= low if edges == "high" else a < low
        above = a >= high if edges == "low" else a > high
        place.masked_fill_(flat | below | above, -1)
        return place.to(kind)

    return Covered(by_rows(bins, values), sections)


def snac(values, seen: Boundaries, *, strict: bool = True, steps: int = 1) -> Covered:
    """Strong neuron activation coverage: activations above the highest seen (DeepGauge).

    ``values``: (N, neurons). ``strict``: above, as in DeepGauge, DeepGini and DeepHunter; dnn-tip
    also counts equality, so that training extremes and dead neurons are covered at once.
    ``steps``: 1, an item is a neuron. With more, as DeepHunter's feedback (11), an item is a
    (neuron, step): the distance beyond the bound in steps of (high - low) / 1000, or 0.05 where
    low = high, the last one open.

    >>> from dnnlib.coverage import boundaries
    >>> snac([[1.0], [1.1]], boundaries([[0.0], [1.0]])).bins.tolist()
    [[-1], [0]]
    """
    values = matrix(values, seen)
    if checks.positive(steps, "steps") == 1:
        return Covered(_beyond(values, seen, strict, upper=True))
    span = seen.high - seen.low
    step = torch.where(span > 0, span / 1000, 0.05)
    kind = _integer(steps)

    def bins(a: torch.Tensor) -> torch.Tensor:
        over = a - seen.high
        beyond = over > 0 if strict else over >= 0
        return torch.where(beyond, (over / step).floor().clamp(max=steps - 1), -1).to(kind)

    return Covered(by_rows(bins, values), steps)


def nbc(values, seen: Boundaries, *, strict: bool = True) -> Covered:
    r"""Neuron boundary coverage: activations beyond those of training data (DeepGauge, 3.1).

    .. math:: a < \mathrm{low} \qquad \text{or} \qquad a > \mathrm{high}

    ``values``: a, (N, neurons). Columns are 2 x neurons, first the lower sides, then the upper;
    ``strict`` as in :func:`snac`.

    >>> from dnnlib.coverage import boundaries
    >>> seen = boundaries([[0.0, 0.0], [1.0, 0.0]])
    >>> nbc([[-1.0, 0.5]], seen).bins.tolist(), nbc([[1.0, 0.0]], seen, strict=False).bins.tolist()
    ([[0, -1, -1, 0]], [[-1, 0, 0, 0]])
    """
    values = matrix(values, seen)
    return Covered(torch.cat([_beyond(values, seen, strict, upper) for upper in (False, True)], 1))


def tknc(values, k: int = 1, *, offsets: Sequence[int] | None = None) -> Covered:
    """Top-k coverage: the k strongest neurons of every layer (DeepGauge).

    ``values``: (N, neurons); ``offsets``: the first column of every layer and, last, the number
    of columns, as of ``Activations``; default one layer. Among equals the lowest index comes
    first; a layer of fewer than k neurons counts whole. An item is a neuron.

    >>> tknc([[0.1, 0.3, 0.3, 0.9]], offsets=(0, 3, 4)).bins.tolist()
    [[-1, 0, -1, 0]]
    """
    values = matrix(values)
    checks.positive(k, "k")
    width = values.shape[1]
    ends = [0, width] if offsets is None else [int(end) for end in offsets]
    if ends[0] != 0 or ends[-1] != width or any(a >= b for a, b in zip(ends, ends[1:])):
        raise ValueError(f"offsets: expected to rise from 0 to {width} columns, got {ends}")
    layers = values.split([b - a for a, b in zip(ends, ends[1:])], 1)
    return Covered(torch.cat([_top(layer, min(k, layer.shape[1])) for layer in layers], 1))


def bknc(values, k: int = 1, *, offsets: Sequence[int] | None = None) -> Covered:
    """Bottom-k coverage: the k weakest neurons of every layer (DeepGauge); see :func:`tknc`."""
    return tknc(-matrix(values), k, offsets=offsets)


def _beyond(values: torch.Tensor, seen: Boundaries, strict: bool, upper: bool) -> torch.Tensor:
    """Bins of the upper side of a boundary, or of the lower one."""
    compare = {(True, True): np.greater, (True, False): np.greater_equal,
               (False, True): np.less, (False, False): np.less_equal}[upper, strict]
    bound = seen.high if upper else seen.low
    return _flags(compare(values.numpy(), _round(bound, values, upper != strict)))


def _round(bound: torch.Tensor, values: torch.Tensor, up: bool) -> np.ndarray:
    """``bound`` in the precision of ``values``, never to the side where a comparison errs.

    Comparing in double precision instead takes several times as long.
    """
    with np.errstate(over="ignore"):
        near = bound.numpy().astype(values.numpy().dtype)
    wrong = near < bound.numpy() if up else near > bound.numpy()
    return np.where(wrong, np.nextafter(near, near.dtype.type(np.inf if up else -np.inf)), near)


def _top(layer: torch.Tensor, k: int) -> torch.Tensor:
    """0 for the ``k`` largest of every row; -1 elsewhere."""
    least = layer.topk(k).values[:, -1:]
    chosen = layer >= least
    tied = (chosen.sum(1) > k).nonzero()[:, 0]
    if len(tied):  # topk may take any of the equals
        above, equal = layer[tied] > least[tied], layer[tied] == least[tied]
        chosen[tied] = above | (equal & (equal.cumsum(1) <= k - above.sum(1, keepdim=True)))
    return _flags(chosen.numpy())


def _flags(chosen: np.ndarray) -> torch.Tensor:
    """True -> 0, False -> -1, in place."""
    bins = chosen.view(np.int8)
    bins -= 1
    return torch.from_numpy(bins)


def _integer(bins: int) -> torch.dtype:
    """The smallest integer type that holds -1 .. bins - 1."""
    return next((kind for kind in (torch.int8, torch.int16)
                 if bins - 1 <= torch.iinfo(kind).max), torch.int32)
