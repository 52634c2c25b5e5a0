"""Shapley values of any cooperative game: exact, by sampled permutations, along the diagonal."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from dnnlib import checks

_MOST = 16  # players of an exact value: 65,536 coalitions
_HELD = 2**22  # gates, or marginal contributions, held at a time


class Cooperative(Protocol):
    """A game, or B games with the same players: all that the estimators ask for.

    ``value``: coalitions as gates (K, N) in [0, 1], bool or float, to finite worths (B, K), or (K,)
    of one game, as a tensor or array; for :func:`diagonal` also (B, K, N) to (B, K), as a tensor
    that can be differentiated, unless there is a method ``slopes`` that gives d value / d gate
    (B, K, N). Other worths are a ``ValueError``.

    >>> class Gloves:  # a pair of gloves is worth 1: player 0 has a left one, the others right ones
    ...     players = 3
    ...     def value(self, gates):
    ...         gates = torch.as_tensor(gates, dtype=torch.float64)
    ...         pair = gates[..., 0] * (1 - (1 - gates[..., 1]) * (1 - gates[..., 2]))
    ...         return pair.view(1, -1)
    >>> [round(psi, 3) for psi in exact(Gloves()).values[0].tolist()]
    [0.667, 0.167, 0.167]
    """

    players: int

    def value(self, coalitions: torch.Tensor) -> torch.Tensor: ...


@dataclass(frozen=True, eq=False)
class Shapley:
    """``values``: psi, float32 (B, N); ``error``: their standard errors (B, N), or None.

    ``total``: float32 (B,), what all players together are worth more than none. ``passes``:
    images sent through the model, two for each input and coalition, a gradient counting as two
    more; passes of a :class:`Game` that share their early layers are counted in full.
    """

    values: torch.Tensor
    error: torch.Tensor | None
    total: torch.Tensor
    passes: int

    @property
    def gap(self) -> torch.Tensor:
        """How far the values miss efficiency, their sum minus the total, float32 (B,)."""
        return (self.values.sum(1, dtype=torch.float64) - self.total).float()


def exact(game: Cooperative) -> Shapley:
    r"""Definition 2 (second DeepSensor, Eqs. 4 and 5), by all coalitions s of the players N.

    .. math:: \psi(n) = \sum_{s \ni n} \frac{(|s| - 1)! \, (|N| - |s|)!}{|N|!} \, m(n, s), \qquad
              m(n, s) = \varsigma(s) - \varsigma(s \setminus \{n\})

    with m the marginal contribution and :math:`\varsigma(s)` what s is worth. Raises
    ``ValueError`` for more than 16 players.
    """
    n = game.players
    if n > _MOST:
        raise ValueError(f"game: exact values take at most {_MOST} players, got {n}; use "
                         "permutation or diagonal, or name fewer layers")
    # player 0 is the slowest digit, so that neighbours agree in the early layers
    members = torch.cartesian_prod(*[torch.tensor([False, True])] * n).view(-1, n)
    worth = _worth(game, members)
    # (|s| - 1)! (N - |s|)! / N! of Eq. 5, by the number of others in s, |s| - 1
    weights = torch.tensor([1 / (n * math.comb(n - 1, others)) for others in range(n)],
                           dtype=torch.float64)
    size = members.sum(1)
    psi = [(worth[:, members[:, i]] - worth[:, ~members[:, i]]) @ weights[size[~members[:, i]]]
           for i in range(n)]
    return _shapley(torch.stack(psi, 1), None, worth[:, -1] - worth[:, 0], worth.numel())


def permutation(game: Cooperative, *, permutations: int = 10, antithetic: bool = True,
                generator: torch.Generator) -> Shapley:
    """The mean marginal contribution (Eq. 4) of players who join in a random order.

    Castro et al., Computers & Operations Research 36, 2009. ``antithetic``: every second order
    is the reverse of the one before (Mitchell et al., JMLR 23, 2022); ``permutations`` is then
    even. All inputs share the orders, so that the values of one do not depend on the others, but
    their errors are not independent. Efficiency holds for every order. The
    errors come from the spread of the pairs (of the orders, if not antithetic); None for one.

    >>> class Sum:
    ...     players = 3
    ...     def value(self, gates):
    ...         return (gates.double() @ torch.tensor([1., 2, 3]).double()).view(1, -1)
    >>> permutation(Sum(), generator=torch.Generator().manual_seed(0)).values.tolist()
    [[1.0, 2.0, 3.0]]
    """
    each, n = 1 + antithetic, game.players
    if checks.positive(permutations, "permutations") % each:
        raise ValueError("permutations: expected an even number with antithetic=True, got "
                         f"{permutations}")
    none, all_ = _ends(game)
    count, at_once = permutations // each, max(1, _HELD // (len(none) * each * n))
    mean = spread = torch.zeros(len(none), n, dtype=torch.float64)
    done = 0
    while done < count:
        size = min(at_once, count - done)
        orders = torch.rand(size, n, generator=generator).argsort(1)
        if antithetic:
            orders = torch.stack([orders, orders.flip(1)], 1).flatten(0, 1)
        psi = _marginals(game, orders, none, all_).unflatten(1, (size, each)).mean(2)
        # Chan et al., 1979: the mean and the sum of squares, group after group
        ahead = psi.mean(1) - mean
        spread = (spread + (psi - psi.mean(1, keepdim=True)).square().sum(1)
                  + ahead.square() * (done * size / (done + size)))
        done += size
        mean = mean + ahead * (size / done)
    error = (spread / (count - 1) / count).sqrt().float() if count > 1 else None
    return _shapley(mean, error, all_ - none, len(none) * (permutations * (n - 1) + 2))


def diagonal(game: Cooperative, *, points: int = 8) -> Shapley:
    """The integral of d value / d gate from all gates at 0 to all at 1, by Gauss and Legendre.

    Owen (Management Science 18, 1972): a Shapley value is that integral for the game's
    multilinear extension, the expected worth when each player joins with probability t. Here a
    gate *is* t, as if the network were linear in each gate. Where it is, the values are exact,
    with ``points`` of at least half its degree; else they are those of Aumann and Shapley, which
    share out the total too, but differ from Shapley's however many points there are. Dead and
    symmetric neurons get what they should. One point is the midpoint, t = 1/2.

    Raises ``TypeError`` for a game that is not differentiable.

    >>> class Pair:
    ...     players = 2
    ...     def value(self, gates):
    ...         return (3 * gates[..., 0] * gates[..., 1]).view(1, -1)
    >>> diagonal(Pair(), points=1).values.tolist()
    [[1.5, 1.5]]
    """
    none, all_ = _ends(game)
    at, weights = nodes(points)
    gates = at.float().unsqueeze(1).expand(-1, game.players)
    slopes = game.slopes(gates) if hasattr(game, "slopes") else _slopes(game, len(none), gates)
    psi = (slopes * weights.unsqueeze(1)).sum(1)
    return _shapley(psi, None, all_ - none, len(none) * (3 * points + 2))


def nodes(points: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Gauss-Legendre points in (0, 1) and their weights, which sum to 1: float64, (points,) each.

    >>> nodes(1)
    (tensor([0.5000], dtype=torch.float64), tensor([1.], dtype=torch.float64))
    """
    at, weights = np.polynomial.legendre.leggauss(checks.positive(points, "points"))
    return torch.from_numpy(at + 1) / 2, torch.from_numpy(weights) / 2


def leave_one_out(game: Cooperative) -> Shapley:
    """m(n, N) of Eq. 4: what is lost when one neuron of all is switched off.

    No Shapley value: the gap shows what neurons do together.
    """
    n = game.players
    worth = _worth(game, torch.cat([~torch.eye(n, dtype=torch.bool),
                                    torch.tensor([[True], [False]]).expand(2, n)]))
    all_, none = worth[:, n], worth[:, n + 1]
    return _shapley(all_.unsqueeze(1) - worth[:, :n], None, all_ - none, worth.numel())


def _shapley(values: torch.Tensor, error: torch.Tensor | None, total: torch.Tensor,
             evaluated: int) -> Shapley:
    return Shapley(values.float(), error, total.float(), 2 * evaluated)


def _ends(game: Cooperative) -> tuple[torch.Tensor, torch.Tensor]:
    """What nobody and what everybody is worth, float64 (B,)."""
    both = torch.tensor([[False], [True]]).expand(2, game.players)
    return _worth(game, both).unbind(1)


def _worth(game: Cooperative, coalitions: torch.Tensor) -> torch.Tensor:
    """The worths (B, K) of coalitions (K, N) or (B, K, N), float64, on the CPU."""
    worth, k = checks.tensor(game.value(coalitions)).cpu(), coalitions.shape[-2]
    worth = worth[None] if worth.shape == (k,) else worth
    if worth.ndim != 2 or worth.shape[1] != k:
        raise ValueError(f"game: expected worths (B, {k}), or ({k},) of one game, got shape "
                         f"{tuple(worth.shape)}")
    if not worth.isfinite().all():
        raise ValueError("game: expected finite worths, got NaN or infinity")
    return worth.double()


def _marginals(game: Cooperative, orders: torch.Tensor, none: torch.Tensor,
               all_: torch.Tensor) -> torch.Tensor:
    """What every player adds on joining in each of the orders (P, N): (B, P, N)."""
    p, n = orders.shape
    joins = orders.argsort(1)  # when a player joins
    worth = [none.view(-1, 1, 1).expand(-1, p, 1), all_.view(-1, 1, 1).expand(-1, p, 1)]
    if n > 1:
        rows = torch.arange(p * (n - 1)).split(max(1, _HELD // n))
        between = [_worth(game, joins[part // (n - 1)] <= (part % (n - 1)).unsqueeze(1))
                   for part in rows]
        worth.insert(1, torch.cat(between, 1).view(-1, p, n - 1))
    return torch.cat(worth, 2).diff(dim=2).gather(2, joins.expand(len(none), p, n))


def _slopes(game: Cooperative, inputs: int, gates: torch.Tensor) -> torch.Tensor:
    """d value / d gate (B, K, N) by automatic differentiation."""
    gates = gates.repeat(inputs, 1, 1).requires_grad_()
    why = ("game: diagonal needs a value that torch can differentiate by the gates, got one "
           "without gradient; use permutation or exact")
    with torch.enable_grad():
        try:
            worth = torch.as_tensor(game.value(gates))
        except RuntimeError as error:  # such as of a tensor with gradient as an array
            raise TypeError(f"{why}: {error}") from error
    if not worth.requires_grad:
        raise TypeError(why)
    if worth.numel() != inputs * gates.shape[1] or not worth.isfinite().all():
        raise ValueError(f"game: expected finite worths ({inputs}, {gates.shape[1]}), got "
                         f"{worth.numel()} of which {int((~worth.isfinite()).sum())} are NaN or "
                         "infinity")
    return torch.autograd.grad(worth, gates, torch.ones_like(worth))[0]
