"""The seven operators of NSS, Table III: what each does to images, and within which range.

The paper names parameters and ranges; it leaves open the signs, the kernel of the blur and what
its Fig. 3 calls the strength of a mutation. Two readings fill these in:

- ``paper``: values as printed, so shifts go right and down, rotations clockwise; the blur is a
  mean over 2, 3, 5 or 7 pixels a side, since only a mean has an even size, of the reflected
  image; strength s is the s-th fifth of each range, ordered from mild to strong.
- ``released``: the authors' code (issta207/NSS): shifts of either sign in whole pixels, always
  the same 3 x 3 Gaussian blur with zeros outside, and a list of ranges for each strength, some
  of which lie outside Table III.

Common to both: nearest neighbour and zero fill; contrast is a factor about the mean grey, and
brightness a factor too, since a bias of 0.5 to 1.5 would leave little but white.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional

from dnnlib.inference import doubles

READINGS = ("paper", "released")
STRENGTHS = (1, 2, 3, 4, 5)
BLUR_SIZES = (2, 3, 5, 7)


@dataclass(frozen=True)
class Operator:
    """``apply``: images and parameters float64 (N, 2) to images, in a reading.

    ``neutral``: the parameter that changes nothing. ``range``: Table III. ``levels``: the range
    at strengths 1 to 5 in the released code. ``two_sided``: mild is the middle of the range.
    """

    apply: Callable[[torch.Tensor, torch.Tensor, str], torch.Tensor]
    neutral: float
    range: tuple[float, float]
    levels: tuple[tuple[float, float], ...]
    two_sided: bool = False


def _warp(x: torch.Tensor, matrix: Sequence, shift: torch.Tensor | None = None) -> torch.Tensor:
    """Move pixels about the centre; row-major ``matrix`` leads from a new place to its old one.

    Elementwise where ``affine_grid`` multiplies matrices, whose last digit varies with the batch.
    """
    height, width = x.shape[2:]
    across = torch.arange(width, device=x.device) - (width - 1) / 2
    down = torch.arange(height, device=x.device)[:, None] - (height - 1) / 2
    if shift is not None:
        across = across - _each(shift[:, 0], x)[:, 0]
        down = down - _each(shift[:, 1], x)[:, 0]
    a, b, c, d = (_each(torch.as_tensor(m).expand(len(x)), x)[:, 0] for m in matrix)
    grid = torch.stack([(a * across + b * down) * (2 / width),
                        (c * across + d * down) * (2 / height)], dim=-1)
    return functional.grid_sample(x, grid, mode="nearest", padding_mode="zeros",
                                  align_corners=False)


def _each(value: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """(N,) as float32 (N, 1, 1, 1) beside ``x``."""
    return value.float().to(x.device).view(-1, 1, 1, 1)


def _shift(x: torch.Tensor, p: torch.Tensor, reading: str) -> torch.Tensor:
    pixels = p * torch.tensor([x.shape[3], x.shape[2]])
    return _warp(x, (1.0, 0.0, 0.0, 1.0), pixels.trunc() if reading == "released" else pixels)


def _rotation(x: torch.Tensor, p: torch.Tensor, reading: str) -> torch.Tensor:
    angle = p[:, 0].deg2rad()
    return _warp(x, (angle.cos(), angle.sin(), -angle.sin(), angle.cos()))


def _scale(x: torch.Tensor, p: torch.Tensor, reading: str) -> torch.Tensor:
    return _warp(x, (1 / p[:, 0], 0.0, 0.0, 1 / p[:, 0]))


def _shear(x: torch.Tensor, p: torch.Tensor, reading: str) -> torch.Tensor:
    return _warp(x, (1.0, p[:, 0].deg2rad().tan(), 0.0, 1.0))


def _contrast(x: torch.Tensor, p: torch.Tensor, reading: str) -> torch.Tensor:
    from torchvision.transforms.v2.functional import rgb_to_grayscale  # slow to import

    grey = x if x.shape[1] == 1 else rgb_to_grayscale(x)
    # in double: the order of a sum depends on the batch, its rounding to float does not
    mean = _each(grey.to(doubles(x.device)).mean((1, 2, 3), dtype=torch.float64), x)
    factor = _each(p[:, 0], x)
    return (x * factor + mean * (1 - factor)).clamp(0, 1)


def _brightness(x: torch.Tensor, p: torch.Tensor, reading: str) -> torch.Tensor:
    return (x * _each(p[:, 0], x)).clamp(0, 1)


KERNELS = {"paper": {k: (1 / k,) * k for k in (1, *BLUR_SIZES)},  # in one direction
           "released": {1: (1.0,), 2: (1.0,) * 2, 3: (0.25, 0.5, 0.25), 4: (1.0,) * 4}}


def _blur(x: torch.Tensor, p: torch.Tensor, reading: str) -> torch.Tensor:
    kernels, out = KERNELS[reading], torch.empty_like(x)
    for size in p[:, 0].unique().tolist():
        if size not in kernels:
            raise ValueError(f"parameter: expected a blur of {', '.join(map(str, kernels))} "
                             f"pixels in the reading {reading!r}, got {size:g}")
        rows = (p[:, 0] == size).nonzero().squeeze(1).to(x.device)
        out[rows] = _smooth(x[rows], kernels[size], "reflect" if reading == "paper" else "constant")
    return out


def _smooth(x: torch.Tensor, weights: Sequence[float], border: str) -> torch.Tensor:
    """A separable filter as shifted sums, whose rounding, unlike a convolution's, is fixed."""
    before, after = (len(weights) - 1) // 2, len(weights) // 2
    padded = functional.pad(x, (before, after, before, after), mode=border)
    for dim in (2, 3):
        side = x.shape[dim]
        padded = sum(w * padded.narrow(dim, i, side) for i, w in enumerate(weights))
    return padded.clamp(0, 1)


TABLE_III = ("shift", "rotation", "scale", "shear", "contrast", "brightness", "blur")  # NSS's own
OPERATORS: dict[str, Operator] = {  # these first, in their order
    "shift": Operator(_shift, 0.0, (0.05, 0.15),
                      ((0, 0.05), (0.05, 0.1), (0.1, 0.15), (0.15, 0.2), (0.2, 0.25))),
    "rotation": Operator(_rotation, 0.0, (5, 25), ((0, 5), (5, 10), (10, 15), (15, 20), (20, 25))),
    "scale": Operator(_scale, 1.0, (0.8, 1.2),
                      ((0.95, 1.05), (0.9, 1.1), (0.8, 1.2), (0.7, 1.3), (0.6, 1.4)), True),
    "shear": Operator(_shear, 0.0, (15, 30), ((0, 5), (5, 10), (10, 15), (15, 20), (20, 25))),
    "contrast": Operator(_contrast, 1.0, (0.5, 1.5),
                         ((0.9, 1.1), (0.7, 1.3), (0.5, 1.5), (0.4, 1.6), (0.3, 1.7)), True),
    "brightness": Operator(_brightness, 1.0, (0.5, 1.5),
                           ((0.9, 1.1), (0.7, 1.3), (0.5, 1.5), (0.4, 1.6), (0.3, 1.7)), True),
    "blur": Operator(_blur, 1.0, (2, 7), ((3, 3),) * 5),
}
