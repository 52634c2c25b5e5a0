"""Selectors that read nothing but the softmax vector, and chance."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from dnnlib.measures.uncertainty import indecision
from dnnlib.selection.protocol import Scored, Selector


class Uncertain(Scored):
    """The least decided softmax vectors first, by a measure of :mod:`measures.uncertainty`."""

    by: ClassVar[str]
    vectors = True

    def read(self, batch, known):
        return indecision(batch.p, self.by)


class PD(Uncertain):
    """NSATP's probability difference, the smallest first."""

    by = "pd"


class PV(Uncertain):
    """NSATP's probability variance, the smallest first: the order of DeepGini."""

    by = "pv"


class PE(Uncertain):
    """NSATP's probability entropy, the largest first."""

    by = "pe"


class Gini(Uncertain):
    """DeepGini, the largest impurity first."""

    by = "gini"


class LeastConfidence(Uncertain):
    """The least probable winner first; ours to add, as a point of reference."""

    by = "least_confidence"


class Margin(Uncertain):
    """The smallest lead over the second class first; ours to add, as a point of reference."""

    by = "margin"


@dataclass(frozen=True, kw_only=True, eq=False)
class Random(Selector):
    """Any order, with the same probability: the baseline RS of NSS. It depends on ``seed`` and N.

    >>> sorted(Random(seed=3).order(None, torch.zeros(4, 1, 2, 2)).tolist())
    [0, 1, 2, 3]
    """

    seed: int = 0

    shared, vectors = False, True

    def read(self, batch, known):
        return torch.zeros(len(batch.places), dtype=torch.int8)

    def finish(self, rows, classes, known, *, folder=None, device="cpu"):
        generator = torch.Generator().manual_seed(self.seed)
        return None, torch.randperm(len(rows), generator=generator)
