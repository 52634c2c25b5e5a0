"""Checks of arguments and of what is installed: what came, what was expected."""

import difflib
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch


def known(name: str, names: Iterable[str], what: str) -> str:
    """``name`` if it is one of ``names``; else ``ValueError`` with the nearest one.

    >>> known("mnits", ["mnist", "digits"], "dataset")
    Traceback (most recent call last):
    ValueError: unknown dataset 'mnits'; did you mean 'mnist'? Known: digits, mnist
    """
    names = sorted(names)
    if name in names:
        return name
    near = difflib.get_close_matches(str(name).lower(), names, n=1, cutoff=0.5)
    hint = f"; did you mean '{near[0]}'?" if near else ";"
    raise ValueError(f"unknown {what} {name!r}{hint} Known: {', '.join(names)}")


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Around imports of what the extra ``name`` of pyproject.toml installs.

    >>> with extra("book"):
    ...     import papermil
    Traceback (most recent call last):
    ModuleNotFoundError: this needs papermil; install it with: pip install 'dnnlib[book]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = str(error.name).partition(".")[0]
        raise ModuleNotFoundError(f"this needs {missing}; install it with: "
                                  f"pip install 'dnnlib[{name}]'", name=error.name) from error


def images(x: torch.Tensor, name: str = "x") -> torch.Tensor:
    """A non-empty floating tensor (N, C, H, W) without NaN, in [0, 1]."""
    if not isinstance(x, torch.Tensor) or not x.is_floating_point():
        kind = x.dtype if isinstance(x, torch.Tensor) else type(x).__name__
        raise TypeError(f"{name}: expected a floating-point tensor (N, C, H, W), got {kind}")
    if x.ndim != 4:
        raise ValueError(f"{name}: expected shape (N, C, H, W), got {tuple(x.shape)}")
    if x.shape[0] == 0:
        raise ValueError(f"{name}: expected at least one image, got none")
    low, high = x.min().item(), x.max().item()
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"{name}: expected finite values, got NaN or infinity")
    if low < 0 or high > 1:
        raise ValueError(f"{name}: expected values in [0, 1], got [{low:g}, {high:g}]")
    return x


def probabilities(p, name: str = "p") -> torch.Tensor:
    """Softmax vectors as a float64 tensor (N, n), n >= 2, each summing to one within 1e-3."""
    p = torch.as_tensor(p, dtype=torch.float64)
    if p.ndim != 2 or 0 in p.shape:
        raise ValueError(f"{name}: expected shape (N, n) with N >= 1, got {tuple(p.shape)}")
    if p.shape[1] < 2:
        raise ValueError(f"{name}: expected at least two classes, got {p.shape[1]}")
    if not torch.isfinite(p).all():
        raise ValueError(f"{name}: expected finite probabilities, got NaN or infinity")
    total = p.sum(1)
    if (p < 0).any() or ((total - 1).abs() > 1e-3).any():
        worst = int((total - 1).abs().argmax())
        least = p[worst].min().item()
        raise ValueError(f"{name}: expected non-negative rows that sum to 1; row {worst} sums to "
                         f"{total[worst].item():.4f} and its least value is {least:.4f}")
    return p


def labels(y, n: int, classes: int, name: str = "labels") -> torch.Tensor:
    """``n`` class indices in 0 .. classes - 1, as int64."""
    y = torch.as_tensor(y)
    if y.is_floating_point() or y.shape != (n,):
        raise ValueError(f"{name}: expected {n} integers, got {y.dtype} of shape {tuple(y.shape)}")
    if n and (y.min() < 0 or y.max() >= classes):
        raise ValueError(f"{name}: expected classes 0 to {classes - 1}, "
                         f"got {int(y.min())} to {int(y.max())}")
    return y.long()


def positive(value, name: str) -> int:
    """A whole number of at least one."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name}: expected a whole number of at least 1, got {value!r}")
    return value


def pair(values: tuple[float, float], name: str, least: float = -math.inf) -> None:
    """Two finite numbers of at least ``least``."""
    if len(values) != 2 or not all(math.isfinite(v) and v >= least for v in values):
        above = f" of at least {least:g}" if least > -math.inf else ""
        raise ValueError(f"{name}: expected two finite numbers{above}, got {values!r}")


def count(n: int, rate: float, name: str = "rate") -> int:
    """How many of ``n`` a share in (0, 1] is, rounded down, as ``int(share * n)`` should do.

    >>> int(0.29 * 100), count(100, 0.29)
    (28, 29)
    """
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate <= 1:
        raise ValueError(f"{name}: expected a share in (0, 1], got {rate!r}")
    return int(rate * n + 1e-9)
