"""Adaptive test selection (Gao et al., ICSE 2022): cover patterns of faults, class by class."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch

from dnnlib import checks
from dnnlib.selection.protocol import Selector

CELLS = 100_000  # interval ends have five decimals
ROWS = 4096  # softmax vectors looked at in double precision at once
MOST_CLASSES = 64  # pairs of the other classes, each with its cells: 200 MB


def intervals(p, label: int, *, upper: float = 0.99, ratio: float = 0.005,
              others: np.ndarray | None = None) -> np.ndarray:
    r"""The fault pattern of inputs predicted as ``label``: an interval for every pair of others.

    .. math:: \frac{x_a}{1 - x_l} \pm r \, (u - x_l), \qquad
              x_k = \tfrac13 \Bigl(2 p_k - \sum_{j \ne k} p_j + 1\Bigr), \quad k, j \in \{l, a, b\}

    For a pair (a, b), p is projected on the classes l, the ``label``, a and b, and seen from the
    corner of l on the edge opposite; r is ``ratio``, u is ``upper``. ``others``: the classes that
    are paired, default all but ``label``. ``p``: (N, n) softmax vectors, n >= 3. Returns
    int64 (N, (n-1)(n-2)/2, 2), ends in units of 1e-5 within [0, 1]; equal ends where it is empty.

    >>> intervals([[0.5, 0.3, 0.2]], 0).tolist()
    [[[59755, 60245]]]
    """
    p = checks.probabilities(p).numpy(force=True)
    others = np.delete(np.arange(p.shape[1]), label) if others is None else others
    first, second = np.array([*combinations(others, 2)]).T
    given, one, two = p[:, label, None], p[:, first], p[:, second]
    x_label, x_one = (2 * given - one - two + 1) / 3, (2 * one - given - two + 1) / 3
    room = upper - x_label
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = x_one / (1 - x_label)
    ends = np.stack([centre - ratio * room, centre + ratio * room], axis=-1)
    ends[~(room > 0)] = 0  # a centre is below 0 by rounding only, and then cut
    return np.rint(ends.clip(0, 1) * CELLS).astype(np.int64)


def pick(ends: np.ndarray, threshold: float = 0.001) -> tuple[np.ndarray, np.ndarray, int]:
    """Greedily the inputs that add most to the length covered, over all pairs.

    ``ends``: (N, pairs, 2), see :func:`intervals`. Returns ``order`` (N,), their ``gain`` (N,)
    in cells of 1e-5, and how many were ``picked``. What adds at most ``threshold`` is not picked:
    it follows by the gain it last had. Ties go to the lowest index. Lengths are exact unions.

    >>> order, gain, picked = pick(np.array([[[0, 300]], [[100, 600]], [[200, 320]]]))
    >>> order.tolist(), gain.tolist(), picked
    ([1, 0, 2], [500, 100, 0], 1)
    """
    n, pairs = ends.shape[:2]
    line = ends + CELLS * np.arange(pairs)[:, None]  # all pairs end to end, on one line
    low, high = (np.ascontiguousarray(line[..., side], np.int32) for side in (0, 1))
    uncovered = np.ones(pairs * CELLS, bool)
    gain = (high - low).sum(1, dtype=np.int64)
    last_gain = np.full(n, -1)  # at which an input was picked or given up
    picks = []
    while True:
        # score: what adds too little is given up
        poor = (gain <= threshold * CELLS + 1e-6) & (last_gain < 0)
        last_gain[poor] = gain[poor]
        high[poor] = 0  # meets nothing any more
        best = int(gain.argmax())
        if last_gain[best] >= 0:  # a picked one has gain 0
            break
        # remember: the best is picked, and its cells are covered
        picks.append(best)
        last_gain[best] = gain[best]
        start, stop = low[best].copy(), high[best].copy()
        gain[best] = high[best] = 0
        length = stop - start
        shift = length.cumsum() - stop  # from the line to the picked cells alone
        cells = np.arange(length.sum()) - shift.repeat(length)
        uncovered_before = np.concatenate([[0], uncovered[cells].cumsum()])
        uncovered[cells] = False
        # move: every other input loses what it shared with the newly covered cells
        who, pair = np.divmod(np.flatnonzero((low < stop) & (high > start)), pairs)
        overlap_start = np.maximum(low[who, pair], start[pair]) + shift[pair]
        overlap_stop = np.minimum(high[who, pair], stop[pair]) + shift[pair]
        lost = uncovered_before[overlap_stop] - uncovered_before[overlap_start]
        gain -= np.bincount(who, lost, n).astype(np.int64)
    rest = np.setdiff1d(np.arange(n), picks)
    rest = rest[(-last_gain[rest]).argsort(kind="stable")]
    order = np.concatenate([np.array(picks, np.int64), rest])
    return order, last_gain[order], len(picks)


@dataclass(frozen=True, kw_only=True, eq=False)
class ATS(Selector):
    """All greedy picks of all classes by gain, then what added too little, then the easy inputs.

    Easy are those with a probability above ``upper``; they are shuffled with ``seed``. The
    released code differs in four places: it drops inputs at ``upper`` exactly, here not easy; the
    inputs that added too little come in an arbitrary order, since it applies a permutation twice,
    here by gain; it mirrors the intervals, whose unions are as long; and where rounding puts a
    centre below 0 its interval is empty, here half. Defaults are that code's; Table IV of NSS has
    "None".

    All pairs of 1,000 classes would be half a million for each class. With more than 64, only the
    63 others are paired that are most probable for some input of the class (ours; the paper has ten
    classes at most). Raises ``ValueError`` for fewer than 3 classes.
    """

    upper: float = 0.99
    ratio: float = 0.005
    threshold: float = 0.001
    seed: int = 0
    batch_size: int = 128

    def __post_init__(self):
        for name in ("upper", "ratio"):
            checks.share(getattr(self, name), name)
        checks.finite(self.threshold, "threshold", least=0)
        checks.positive(self.batch_size, "batch_size")

    vectors = True

    def read(self, batch, known):
        return batch.p

    def finish(self, rows, classes, known, *, folder=None, device="cpu"):
        return None, self.arrange(rows)

    def arrange(self, p) -> torch.Tensor:
        """The order of softmax vectors (N, n): int64 (N,), a permutation.

        >>> ATS().arrange([[1.0, 0, 0], [0.5, 0.3, 0.2], [0.4, 0.35, 0.25]]).tolist()
        [2, 1, 0]
        """
        p = p if isinstance(p, torch.Tensor) else checks.tensor(p, torch.float64)
        best = [checks.probabilities(part).max(1) for part in p.split(ROWS)]
        if p.shape[1] < 3:
            raise ValueError("p: expected at least 3 classes, since ATS compares every pair of "
                             f"the others, got {p.shape[1]}")
        top, predicted = (torch.cat(part).numpy(force=True) for part in zip(*best))
        picks, others = [], []  # (index, gain)
        for label in range(p.shape[1]):
            mine = np.flatnonzero((predicted == label) & (top <= self.upper))
            if len(mine):
                ends = intervals(p[mine], label, upper=self.upper, ratio=self.ratio,
                                 others=_rivals(p[mine], label))
                order, gain, picked = pick(ends, self.threshold)
                pairs = np.stack([mine[order], gain], axis=1)
                picks.append(pairs[:picked])
                others.append(pairs[picked:])
        parts = [part[np.lexsort(part.T)][:, 0] for part in
                 (np.concatenate(group) * [1, -1] for group in (picks, others) if group)]
        easy = np.flatnonzero(top > self.upper)
        generator = torch.Generator().manual_seed(self.seed)
        parts.append(easy[torch.randperm(len(easy), generator=generator).numpy()])
        return torch.from_numpy(np.concatenate(parts).astype(np.int64))


def _rivals(p: torch.Tensor, label: int) -> np.ndarray:
    """At most 63 other classes, by their greatest probability, of equals the first; in order."""
    greatest = p.amax(0).numpy(force=True)
    greatest[label] = -1
    kept = (-greatest).argsort(kind="stable")[:min(len(greatest), MOST_CLASSES) - 1]
    return np.sort(kept)
