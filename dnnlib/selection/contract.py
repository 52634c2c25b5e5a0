"""What a selector must keep to, checked: for one that somebody writes, and for those of here."""

from collections.abc import Sequence
from dataclasses import is_dataclass

import torch
from torch import nn

from dnnlib.inference import noise, small_network, state_of, unchanged
from dnnlib.selection.protocol import Selector, ordered


def check_selector(chosen: Selector, model: nn.Module | None = None, x: torch.Tensor | None = None,
                   *, sizes: Sequence[int] = (1, 7)) -> None:
    """Raise ``ValueError``, in one line that says what came, unless a selector keeps its contract.

    - It is a frozen dataclass derived from :class:`Selector`.
    - Its order is a permutation of the candidates, int64 (N,).
    - The same call gives the same order: nothing is kept from one to the next.
    - Images that come in batches of other ``sizes`` get the same scores, or, without scores, the
      same order: files are read in batches.
    - The model is left as it was: weights, mode, hooks, gradients.

    ``x``: candidates (N, C, H, W) in [0, 1], default 40 images of noise, (40, 1, 8, 8). ``model``:
    default a small network for those. Both are needed by a selector whose ``reference`` is not of
    the default's shape.

    >>> from dnnlib.selection import Gini
    >>> check_selector(Gini())
    """
    name = type(chosen).__name__
    if not (isinstance(chosen, Selector) and is_dataclass(chosen)
            and chosen.__dataclass_params__.frozen):
        raise ValueError(f"{name}: expected a frozen dataclass derived from dnnlib.selection."
                         "Selector or Scored")
    model = small_network() if model is None else model
    x = noise() if x is None else x
    before = state_of(model)
    score, order = ordered(chosen, model, x)
    if order.dtype != torch.int64 or order.sort().values.tolist() != list(range(len(x))):
        raise ValueError(f"{name}: expected an order with each of {len(x)} candidates once, int64, "
                         f"got {order.dtype} of shape {tuple(order.shape)}")
    if not torch.equal(ordered(chosen, model, x)[1], order):
        raise ValueError(f"{name}: expected the same order from the same call, got another")
    for size in sizes:
        found, again = ordered(chosen, model, x, size)
        if score is None or found is None:
            if not torch.equal(again, order):
                raise ValueError(f"{name}: expected an order that does not depend on batches, got "
                                 f"another in batches of {size}")
            continue
        other = ~torch.isclose(found, score, rtol=1e-3, atol=1e-5)
        if other.any():
            i = int(other.nonzero()[0])
            raise ValueError(
                f"{name}: expected scores that do not depend on the batch, got {score[i]:.4g} for "
                f"image {i} and {found[i]:.4g} in batches of {size}; {int(other.sum())} of "
                f"{len(x)} are others")
    unchanged(model, before, name)
