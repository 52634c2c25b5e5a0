"""What every selector is, and what they share."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import nn

from dnnlib import checks


class Selector(Protocol):
    """A frozen dataclass that holds nothing but options.

    ``order``: a model and candidates (N, C, H, W) in [0, 1], N >= 2, to a permutation of
    range(N), int64, the most worth labelling first; equals keep the order in which they came.
    """

    def order(self, model: nn.Module, x: torch.Tensor) -> torch.Tensor: ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Scored:
    """A selector that orders by a score of every candidate, float64 (N,), the largest first."""

    batch_size: int = 128

    def __post_init__(self):
        checks.positive(self.batch_size, "batch_size")

    def score(self, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def order(self, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return by_score(self.score(model, x))


def candidates(x: torch.Tensor) -> torch.Tensor:
    """At least two images: there is nothing to order in one."""
    checks.images(x)
    if len(x) < 2:
        raise ValueError(f"x: expected at least two candidates to order, got {len(x)}")
    return x


def beside(other: torch.Tensor, x: torch.Tensor, name: str) -> torch.Tensor:
    """Images of the shape of those in ``x``, as many or as few as there may be."""
    checks.images(other, name)
    if other.shape[1:] != x.shape[1:]:
        raise ValueError(f"{name}: expected images of shape {tuple(x.shape[1:])} as in x, "
                         f"got {tuple(other.shape[1:])}")
    return other


def by_score(score) -> torch.Tensor:
    """Indices by falling score (N,), stable under ties. Raises ``ValueError`` on NaN.

    >>> by_score([0.5, 0.9, 0.5]).tolist()
    [1, 0, 2]
    """
    score = checks.tensor(score)
    if score.ndim != 1 or score.isnan().any():
        raise ValueError(f"score: expected numbers (N,) without NaN, got {int(score.isnan().sum())}"
                         f" of them in shape {tuple(score.shape)}")
    return score.argsort(descending=True, stable=True)


def top(order, rate: float) -> torch.Tensor:
    """The first share of an order (N,): what is labelled when ``rate`` of the candidates is.

    Raises ``ValueError`` for a rate outside (0, 1] or one that selects no candidate.

    >>> top(torch.tensor([3, 1, 0, 2]), 0.5).tolist()
    [3, 1]
    """
    order = checks.tensor(order)
    chosen = checks.count(len(order), rate)
    if not chosen:
        raise ValueError(f"rate: {rate:g} of {len(order)} candidates is none; take at least "
                         f"{1 / max(len(order), 1):.2g}")
    return order[:chosen]
