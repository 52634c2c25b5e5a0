"""What a set of inputs covers together, and orders of inputs by it: CTM and CAM."""

import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from dnnlib import checks

FILLS = ("random", "ctm")
ROWS, CELLS = 4096, 2**22  # worked on at once: inputs, and bins


class Covered(NamedTuple):
    """What each input covers: ``bins`` (N, columns) of small integers, -1 where nothing.

    A bin is in 0 .. ``sections`` - 1; item number = column * sections + bin. Of rows of
    ``bins``, or several joined, a ``Covered`` is made as of all.
    """

    bins: torch.Tensor
    sections: int = 1

    @property
    def items(self) -> int:
        """How many items there are to cover."""
        return self.bins.shape[1] * self.sections

    @property
    def counts(self) -> torch.Tensor:
        """How many items each input covers by itself: int64 (N,)."""
        bins = self.bins.numpy(force=True)
        narrow = np.int16 if bins.shape[1] < 2**15 else np.int64  # adds up several times faster
        return torch.from_numpy(np.concatenate(
            [(bins[i:i + ROWS] >= 0).sum(1, dtype=narrow) for i in range(0, len(bins), ROWS)]
        )).long()


def coverage(covered: Covered) -> float:
    """The share of items that the inputs cover together, in [0, 1].

    >>> from dnnlib.coverage import nac
    >>> coverage(nac([[0.2, 0.7, 0.1], [0.6, 0.5, 0.1]]))
    0.6666666666666666
    """
    bins, seen = _bins(covered), np.zeros(covered.items, bool)
    for row in bins:
        seen[_items(row, covered.sections)] = True
    return int(seen.sum()) / covered.items


def ctm(covered: Covered) -> torch.Tensor:
    """Coverage-total order: by what each input covers by itself, most first; stable under ties.

    Returns int64 (N,), a permutation. Under KMNC and TKNC nearly all inputs cover the same
    number, so that little but the ties is left.

    >>> from dnnlib.coverage import nac
    >>> ctm(nac([[0.2, 0.7], [0.6, 0.9], [0.8, 0.8]])).tolist()
    [1, 2, 0]
    """
    _bins(covered)
    return (-covered.counts).argsort(stable=True)


def cam(covered: Covered, *, fill: str | None = "random",
        generator: torch.Generator | None = None, folder: Path | None = None) -> torch.Tensor:
    """Coverage-additional order: always the input that covers most of what is uncovered.

    Returns indices, int64 (N,); ties go to the lowest. When no input adds anything, the rest
    follows: ``fill`` 'random' (ATS; default, since NSS compares on ATS's subjects), 'ctm'
    (dnn-tip), or None, the order ends there (DeepGini), with fewer than N. The first covers most,
    as in dnn-tip; in DeepGini's and ATS's code it is any. A random fill needs a ``generator``.
    ``covered`` is left as it was. ``folder``: where to keep a file of 4 x N x columns bytes
    meanwhile, which is in memory without; bins may be of a mapped file too. Takes O(N x columns)
    updates in all, besides N comparisons a pick.

    >>> from dnnlib.coverage import nac
    >>> cam(nac([[.9, .9, 0, 0], [.9, .9, .9, 0], [0, 0, 0, .9]]), fill="ctm").tolist()
    [1, 2, 0]
    """
    if fill is not None:
        checks.known(fill, FILLS, "fill")
    if generator is None and fill == "random":
        raise ValueError("generator: expected a torch.Generator for random choices, got None")
    with tempfile.TemporaryDirectory(dir=folder) as place:
        picked = torch.from_numpy(_greedy(covered, place if folder else None))
    if fill is None:
        return picked
    left = torch.ones(len(covered.bins), dtype=torch.bool)
    left[picked] = False
    rest = ctm(covered) if fill == "ctm" else torch.randperm(len(left), generator=generator)
    return torch.cat([picked, rest[left[rest]]])


def _greedy(covered: Covered, folder: str | None) -> np.ndarray:
    """The inputs picked until none adds anything."""
    bins, sections = _bins(covered), covered.sections
    gain = covered.counts.numpy(force=True)
    inputs, first = _by_item(bins, sections, folder)
    is_covered, picked = np.zeros(covered.items, bool), []
    while gain[best := int(gain.argmax())]:
        picked.append(best)
        new = _items(bins[best], sections)
        new = new[~is_covered[new]]
        is_covered[new] = True
        # every input that covers a new item gains one less by it
        lengths = first[new + 1] - first[new]
        before = np.cumsum(lengths) - lengths
        places = np.repeat(first[new] - before, lengths) + np.arange(lengths.sum())
        gain -= np.bincount(inputs[places], minlength=len(gain))
    return np.array(picked, np.int64)


def _by_item(bins: np.ndarray, sections: int,
             folder: str | None) -> tuple[np.ndarray, np.ndarray]:
    """The inputs that cover an item, item by item, and where each item's begin."""
    n, columns = bins.shape
    first = np.zeros(columns * sections + 1, np.int64)
    total = sum(np.count_nonzero(bins[i:i + ROWS] >= 0) for i in range(0, n, ROWS))
    kind = np.int32 if n < 2**31 else np.int64
    inputs = (np.memmap(f"{folder}/inputs", kind, "w+", shape=max(total, 1)) if folder
              else np.empty(total, kind))
    end, step = 0, max(1, CELLS // n)
    for low in range(0, columns, step):  # whole columns at a time
        part = np.ascontiguousarray(bins[:, low:low + step].T)
        order = part.argsort(axis=1, kind="stable")
        for column, (row, sorted_) in enumerate(zip(part, order), low):
            held = sorted_[np.count_nonzero(row < 0):]
            counts = np.bincount(row[held], minlength=sections)
            first[column * sections + 1:(column + 1) * sections + 1] = counts
            inputs[end:end + len(held)] = held
            end += len(held)
    return inputs, np.cumsum(first, out=first)


def _items(row: np.ndarray, sections: int) -> np.ndarray:
    """The numbers of the items that one input covers."""
    columns = np.flatnonzero(row >= 0)
    return columns * sections + row[columns]


def _bins(covered: Covered) -> np.ndarray:
    if not isinstance(covered, Covered):
        raise TypeError("covered: expected a Covered, as nac and the other criteria give, got "
                        f"{type(covered).__name__}")
    bins, sections = covered.bins, checks.positive(covered.sections, "sections")
    if bins.ndim != 2 or 0 in bins.shape or bins.is_floating_point():
        raise ValueError("covered: expected integers (N, columns) for at least one input and "
                         f"column, got {bins.dtype} of shape {tuple(bins.shape)}")
    low, high = bins.aminmax()
    if low < -1 or high >= sections:
        raise ValueError(f"covered: expected bins of -1 to {sections - 1}, "
                         f"got {int(low)} to {int(high)}")
    return bins.numpy(force=True)
