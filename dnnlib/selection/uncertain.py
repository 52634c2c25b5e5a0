"""Selectors that read nothing but the softmax vector, and chance."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from dnnlib.inference import predict
from dnnlib.measures.uncertainty import indecision
from dnnlib.selection.protocol import Scored, candidates


class Uncertain(Scored):
    """The least decided softmax vectors first, by a measure of :mod:`measures.uncertainty`."""

    by: ClassVar[str]

    def score(self, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return indecision(predict(model, candidates(x), batch_size=self.batch_size), self.by)


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
class Random:
    """Any order, with the same probability: the baseline RS of NSS. It depends on ``seed`` and N.

    >>> sorted(Random(seed=3).order(None, torch.zeros(4, 1, 2, 2)).tolist())
    [0, 1, 2, 3]
    """

    seed: int = 0

    def order(self, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        generator = torch.Generator().manual_seed(self.seed)
        return torch.randperm(len(candidates(x)), generator=generator)
