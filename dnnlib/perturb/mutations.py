"""The benign mutations of NSS, Table III: a change that should leave an image's class alone.

The paper leaves much of it open: see :mod:`dnnlib.perturb.operators` for the two readings.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from dnnlib import checks
from dnnlib.perturb.operators import (
    BLUR_SIZES,
    OPERATORS,
    READINGS,
    STRENGTHS,
    TABLE_III,
    Operator,
)

__all__ = ["OPERATORS", "READINGS", "STRENGTHS", "Mutated", "Operator", "apply", "mutate"]

SMALLEST = 4  # pixels a side, for the reflected border of the widest blur
DRAWS = 5  # numbers in [0, 1) that every example owns: operator, two parameters, two signs


@dataclass(frozen=True, eq=False)
class Mutated:
    """``images``: float32 (N, C, H, W) in [0, 1], on the device of what was mutated.

    ``operator``: int64 (N,), a position in :data:`OPERATORS`. ``parameter``: float64 (N,), in the
    units of Table III; shifts have a second one, ``vertical``, a share of the height (NaN for the
    other operators). All but the images are on the CPU.
    """

    images: torch.Tensor
    operator: torch.Tensor
    parameter: torch.Tensor
    vertical: torch.Tensor


def mutate(x: torch.Tensor, operator: str = "random", *, seed: int, strength: int | None = None,
           index: Sequence[int] | torch.Tensor | None = None, reading: str = "paper") -> Mutated:
    """Change every image by one operator, or by one of the seven at random (NSS IV.A).

    ``x``: (N, C, H, W) in [0, 1], C 1 or 3; it is not modified. ``strength``: 1 to 5 (Fig. 3), or
    None for all of Table III. ``index``: whole numbers (N,) that tell the images apart, by default
    0 to N - 1. What becomes of an image depends on ``seed`` and its index alone: not on the batch
    it is in, and its operator not on the strength. A second, independent mutation needs another
    seed. Raises ``ValueError`` on an unknown operator or reading, a strength outside 1 to 5,
    images that are not, and ``TypeError`` on what is not a floating-point tensor.

    >>> x = torch.rand(6, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    >>> both = mutate(x, seed=7)
    >>> late = mutate(x[4:], seed=7, index=[4, 5])
    >>> torch.equal(late.images, both.images[4:]), late.parameter.shape
    (True, torch.Size([2]))
    """
    x = _images(x)
    checks.known(reading, READINGS, "reading")
    if operator != "random":
        checks.known(operator, [*OPERATORS, "random"], "operator")
    if strength is not None and (type(strength) is not int or strength not in STRENGTHS):
        raise ValueError(f"strength: expected a whole number from 1 to 5 or None, got {strength!r}")
    u = _uniform(seed, _index(index, len(x)))
    names = list(OPERATORS)
    kind = (u[:, 0] * len(TABLE_III)).long() if operator == "random" else torch.full(
        (len(x),), names.index(operator))
    values = torch.empty(len(x), 2, dtype=torch.float64)
    images = torch.empty_like(x)
    for number, name in enumerate(names):
        rows = (kind == number).nonzero().squeeze(1)
        if len(rows):
            values[rows] = _draw(name, u[rows], strength, reading)
            there = rows.to(x.device)
            images[there] = OPERATORS[name].apply(x[there], values[rows], reading)
    vertical = values[:, 1].masked_fill(kind != names.index("shift"), torch.nan)
    return Mutated(images, kind, values[:, 0].clone(), vertical)


def apply(x: torch.Tensor, operator: str, parameter: float | Sequence | torch.Tensor, *,
          reading: str = "paper") -> torch.Tensor:
    """Change every image by one operator with given parameters (NSS, Table VI).

    ``x``: (N, C, H, W) in [0, 1]. ``parameter``: one for all, or (N,), or for shifts (N, 2) with
    the shares of width and height; in the units of Table III, but of any range. Returns float32
    (N, C, H, W). In the released reading a blur has a size up to 4; even ones sum the pixels, as
    that code does not divide them (here they are then cut at 1), which brightens.

    >>> apply(torch.eye(4).view(1, 1, 4, 4), "shift", [[0.25, 0.0]])[0, 0, 0].tolist()
    [0.0, 1.0, 0.0, 0.0]
    """
    x = _images(x)
    checks.known(operator, OPERATORS, "operator")
    checks.known(reading, READINGS, "reading")
    values = torch.as_tensor(parameter, dtype=torch.float64, device="cpu")
    wanted = [(), (len(x),), *([(len(x), 2)] if operator == "shift" else [])]
    if tuple(values.shape) not in wanted or not torch.isfinite(values).all():
        raise ValueError(f"parameter: expected finite values of shape "
                         f"{' or '.join(map(str, wanted))}, got {tuple(values.shape)}")
    if operator in ("scale", "contrast", "brightness") and (
            values.min() < 0 or operator == "scale" and values.min() == 0):
        raise ValueError(f"parameter: expected positive factors for {operator}, "
                         f"got {values.min().item():g}")
    if values.ndim < 2:
        values = values.expand(len(x))[:, None].expand(-1, 2)
    return OPERATORS[operator].apply(x, values, reading)


def _images(x) -> torch.Tensor:
    checks.images(x)
    if x.shape[1] not in (1, 3) or min(x.shape[2:]) < SMALLEST:
        raise ValueError(f"x: expected 1 or 3 channels and at least {SMALLEST} x {SMALLEST} "
                         f"pixels, got shape {tuple(x.shape)}")
    return x.float()


def _index(index, n: int) -> torch.Tensor:
    found = torch.arange(n) if index is None else torch.as_tensor(index, device="cpu")
    whole = not (found.is_floating_point() or found.is_complex() or found.dtype == torch.bool)
    if found.shape != (n,) or not whole or found.min() < 0:
        raise ValueError(f"index: expected {n} whole numbers from 0, got {found.dtype} of shape "
                         f"{tuple(found.shape)}")
    return found.long()


def _uniform(seed: int, index: torch.Tensor) -> torch.Tensor:
    """(N, DRAWS) float64 in [0, 1): the rows ``index`` of one endless table for each seed."""
    checks.seed(seed)
    low, high = (int(end) for end in index.aminmax())
    bits = np.random.PCG64(seed)  # as of default_rng
    bits.advance(low * DRAWS)  # past the rows of those before
    table = np.random.Generator(bits).random((high + 1 - low, DRAWS))
    return torch.from_numpy(table)[index - low]


def _draw(name: str, u: torch.Tensor, strength: int | None, reading: str) -> torch.Tensor:
    """Parameters (N, 2) of an operator; the second is used by shifts only."""
    operator, t = OPERATORS[name], u[:, 1:3]
    sign = torch.where(u[:, 3:5] < 0.5, -1.0, 1.0).double()
    low, high = operator.range
    if reading == "released":
        if strength is not None or name == "blur":  # one kernel at every strength
            low, high = operator.levels[(strength or 1) - 1]
        value = low + (high - low) * t
        return value * sign if name == "shift" else value
    if strength is not None:
        t = (strength - 1 + t) / len(STRENGTHS)
    if name == "blur":
        return torch.tensor(BLUR_SIZES, dtype=torch.float64)[(t * len(BLUR_SIZES)).long()]
    if operator.two_sided:
        return (low + high) / 2 + sign * t * (high - low) / 2
    return low + (high - low) * t
