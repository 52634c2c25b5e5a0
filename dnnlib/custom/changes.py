"""Ordinary changes of images, each by strength: what light, a lens or a camera does to a picture.

All are torchvision's. What comes out is rounded to 8 bits, as a PNG file would hold it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as F

from dnnlib import checks

_Make = Callable[[torch.Tensor, float], torch.Tensor]


@dataclass(frozen=True)
class Ladder:
    """One change in one direction, from hardly seen to strong.

    ``change``: its name; ``direction``: '' if it has only one; ``unit``: of ``strengths``, in
    words. ``make``: from images (N, C, H, W) in [0, 1] and a strength to the changed ones.
    ``unchanged``: the strength that changes nothing, None if there is none. ``random``: draws from
    PyTorch's generator. ``sign``: of the strengths on an axis that both directions share.
    """

    change: str
    direction: str
    unit: str
    strengths: tuple[float, ...]
    make: _Make
    unchanged: float | None
    random: bool = False
    sign: int = 1

    @property
    def name(self) -> str:
        """As a column is called: 'rotation_left', or 'blur'."""
        return f"{self.change}_{self.direction}" if self.direction else self.change

    @property
    def words(self) -> str:
        """As a sentence calls it: 'rotation left', or 'blur'."""
        return self.name.replace("_", " ")

    def of(self, images: torch.Tensor, strength: float, seeds: Sequence[int]) -> torch.Tensor:
        """Images (N, C, H, W) changed; both uint8.

        ``seeds``: one for each image. What is random in a change comes from it alone, so that
        an image has the same noise in any batch, and at every strength the same, only stronger.

        >>> [darker] = [ladder for ladder in LADDERS if ladder.name == "brightness_darker"]
        >>> darker.of(torch.full((1, 1, 1, 2), 100, dtype=torch.uint8), 0.5, [0]).tolist()
        [[[[50, 50]]]]
        """
        x = images / 255
        if not self.random:
            return eight_bits(self.make(x, strength))
        made = []
        with torch.random.fork_rng(devices=[]):
            for image, seed in zip(x, seeds):
                torch.random.default_generator.manual_seed(seed)
                made.append(self.make(image, strength))
        return eight_bits(torch.stack(made))


def eight_bits(x: torch.Tensor) -> torch.Tensor:
    """Pixels in [0, 1] as uint8, rounded.

    >>> eight_bits(torch.tensor([0.0, 0.499 / 255, 0.501 / 255, 1.0])).tolist()
    [0, 0, 1, 255]
    """
    return (x * 255).round().clamp(0, 255).to(torch.uint8)


def parse_changes(by: str | Sequence[str] | None = None) -> tuple[Ladder, ...]:
    """The ladders of the changes in 'blur,noise', or in a list; None or 'all' for all there are.

    Raises ``ValueError`` for a name that is unknown or comes twice.

    >>> [ladder.name for ladder in parse_changes("rotation,blur")]
    ['rotation_left', 'rotation_right', 'blur']
    >>> parse_changes("blurr")
    Traceback (most recent call last):
    ValueError: unknown change 'blurr'; did you mean 'blur'? Known: blur, brightness, contrast, \
jpeg, noise, rotation, shift
    """
    if by is None or by == "all":
        return LADDERS
    chosen = checks.words(by if isinstance(by, str) else ",".join(by), "by", CHANGES, "change")
    return tuple(ladder for name in chosen for ladder in LADDERS if ladder.change == name)


def _blur(x: torch.Tensor, sigma: float) -> torch.Tensor:
    """The kernel reaches three sigma, or as far as the image, which is mirrored at its edges."""
    reach = [min(math.ceil(3 * sigma), side - 1) for side in (x.shape[-1], x.shape[-2])]
    return F.gaussian_blur(x, [2 * r + 1 for r in reach], [sigma, sigma])


def _jpeg(x: torch.Tensor, quality: float) -> torch.Tensor:
    return F.jpeg(eight_bits(x), int(quality)) / 255


def _rotated(sign: int) -> _Make:
    return lambda x, degrees: F.rotate(x, sign * degrees, InterpolationMode.BILINEAR)


def _shift(x: torch.Tensor, percent: float) -> torch.Tensor:
    """To the right, by whole pixels."""
    return F.affine(x, 0.0, [round(x.shape[-1] * percent / 100), 0], 1.0, [0.0, 0.0])


_ANGLES = (5, 10, 15, 20, 30, 45)
# what comes in from outside of an image, at a rotation or shift, is black, as torchvision has it
LADDERS = (
    Ladder("brightness", "darker", "factor", (0.9, 0.75, 0.6, 0.45, 0.3, 0.2),
           F.adjust_brightness, 1),
    Ladder("brightness", "brighter", "factor", (1.1, 1.3, 1.6, 2, 2.5, 3), F.adjust_brightness, 1),
    Ladder("contrast", "", "factor", (0.85, 0.7, 0.5, 0.35, 0.2, 0.1), F.adjust_contrast, 1),
    Ladder("blur", "", "sigma in pixels", (0.5, 1, 1.5, 2, 3, 4), _blur, 0),
    Ladder("noise", "", "sigma, of pixels from 0 to 1", (0.02, 0.05, 0.1, 0.15, 0.2, 0.3),
           lambda x, sigma: F.gaussian_noise(x, sigma=sigma), 0, random=True),
    Ladder("jpeg", "", "quality", (80, 60, 40, 25, 15, 10, 5), _jpeg, None),
    Ladder("rotation", "left", "degrees", _ANGLES, _rotated(1), 0, sign=-1),
    Ladder("rotation", "right", "degrees", _ANGLES, _rotated(-1), 0),
    Ladder("shift", "", "% of the width, to the right", (3, 6, 10, 15, 20, 30), _shift, 0))
CHANGES = tuple(dict.fromkeys(ladder.change for ladder in LADDERS))
