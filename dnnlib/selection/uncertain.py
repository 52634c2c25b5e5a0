"""Selectors that read nothing but the softmax vector, and chance."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from dnnlib import checks
from dnnlib.inference import predict
from dnnlib.measures.uncertainty import (
    probability_difference,
    probability_entropy,
    probability_variance,
)
from dnnlib.selection.protocol import Scored, candidates


def gini(p) -> torch.Tensor:
    """DeepGini, 1 - sum p^2 (Feng et al., ISSTA 2020).

    ``p``: (N, n) softmax vectors. Returns (N,) float64 in [0, 1 - 1/n]. Raises ``ValueError`` on
    anything that is not a distribution.

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


class Uncertain(Scored):
    """Orders by ``sign`` times a ``measure`` of the softmax vector."""

    measure: ClassVar[Callable]
    sign: ClassVar[int] = 1

    def score(self, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        p = predict(model, candidates(x), batch_size=self.batch_size)
        return self.sign * type(self).measure(p)


class PD(Uncertain):
    """NSATP's probability difference, the smallest first."""

    measure, sign = staticmethod(probability_difference), -1


class PV(Uncertain):
    """NSATP's probability variance, the smallest first: the order of DeepGini."""

    measure, sign = staticmethod(probability_variance), -1


class PE(Uncertain):
    """NSATP's probability entropy, the largest first."""

    measure = staticmethod(probability_entropy)


class Gini(Uncertain):
    """DeepGini, the largest impurity first."""

    measure = staticmethod(gini)


class LeastConfidence(Uncertain):
    """The least probable winner first; ours to add, as a point of reference."""

    measure = staticmethod(least_confidence)


class Margin(Uncertain):
    """The smallest lead over the second class first; ours to add, as a point of reference."""

    measure, sign = staticmethod(margin), -1


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
