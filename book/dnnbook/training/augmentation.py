"""Crops at random after a border, and flips, of a whole batch by one gather."""

from typing import NamedTuple

import torch
from torch import nn


class Changes(NamedTuple):
    """What is done to each of N images: ``top`` and ``left``, int64 (N,), of the crop in the image
    with its border, and ``flip``, bool (N,), whether left and right change sides."""

    top: torch.Tensor
    left: torch.Tensor
    flip: torch.Tensor

    def of(self, some: torch.Tensor) -> "Changes":
        """Those of ``some`` images, int64 (n,)."""
        return Changes(*(each[some] for each in self))

    def to(self, device: torch.device) -> "Changes":
        return Changes(*(each.to(device) for each in self))


def border(shape: tuple[int, int, int]) -> int:
    """The pixels around images of ``shape`` (C, H, W): an eighth of their height, at least one.

    >>> border((3, 32, 32))
    4
    """
    return max(1, shape[1] // 8)


def drawn(count: int, shape: tuple[int, int, int]) -> Changes:
    """Changes of ``count`` images of ``shape`` (C, H, W), from the CPU's global generator.

    All offsets are equally likely, and one image in two is flipped. They are drawn on the CPU, so
    that training elsewhere draws the same.

    >>> with torch.random.fork_rng(devices=[]):
    ...     sorted(drawn(100, (1, 8, 8)).top.unique().tolist())
    [0, 1, 2]
    """
    least = 2 * border(shape) + 1
    return Changes(torch.randint(least, (count,)), torch.randint(least, (count,)),
                   torch.rand(count) < 0.5)


def changed(x: torch.Tensor, changes: Changes) -> torch.Tensor:
    """Images (N, C, H, W) in a border of zeros, cropped to their size and flipped, on their device.

    ``changes``: of the N images. Channels last, as the gather gives them.

    >>> still = Changes(torch.tensor([1]), torch.tensor([1]), torch.tensor([True]))
    >>> changed(torch.arange(4.0).view(1, 1, 2, 2), still).flatten().tolist()
    [1.0, 0.0, 3.0, 2.0]
    """
    count, _, height, width = x.shape
    top, left, flip = changes.to(x.device)
    around = nn.functional.pad(x, 4 * (border(x.shape[1:]),))
    row = top[:, None] + torch.arange(height, device=x.device)
    column = torch.arange(width, device=x.device).expand(count, width)
    column = left[:, None] + torch.where(flip[:, None], width - 1 - column, column)
    image = torch.arange(count, device=x.device)[:, None, None]
    return around[image, :, row[:, :, None], column[:, None, :]].permute(0, 3, 1, 2)
