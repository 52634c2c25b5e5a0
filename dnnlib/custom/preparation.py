"""From a picture to what a model takes: scaled, cropped, and normalised."""

import copy
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import FunctionType, MethodType

import numpy as np
import torch
from PIL import Image
from torch import nn
from torchvision import transforms as v1
from torchvision.transforms import InterpolationMode, v2
from torchvision.transforms._presets import ImageClassification
from torchvision.transforms.v2 import functional as F
from torchvision.transforms.v2.functional import pil_to_tensor

from dnnlib import checks

_log = logging.getLogger(__name__)  # to stderr, as it is
MOST = 8192  # pixels a side: a batch of 64 such images in colour takes 50 GB
LEVEL = 1e-3  # of a gray level: a float nearer to a whole one is this


@dataclass(frozen=True, eq=False)
class Preparation:
    """What is done to a picture, in this order; None leaves it as it is.

    - ``resize``: pixels of the short side that it is scaled to, by ``interpolation``, as
      torchvision calls it.
    - ``crop``: pixels of the square that is cut from its centre; at most the short side. Both are
      done by torchvision's functions, to the pixel.
    - ``transform``: a function of one's own instead of these two, from a PIL image to a tensor
      (C, H, W) in [0, 1]; floats that are no whole gray levels stay as they are. If both are there
      too, they say what it does: of a published one.
    - ``mean``, ``std``: a number for each channel, or for all: (x - mean) / std, inside of the
      model, so that images stay in [0, 1]. A mean above 1 is one of pixels from 0 to 255: both are
      then divided by 255, which is told.

    Raises ``ValueError`` naming the option.

    >>> Preparation(resize=32, crop=48)
    Traceback (most recent call last):
    ValueError: crop: expected at most resize, 32, got 48
    """

    resize: int | None = None
    crop: int | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    transform: Callable | None = None
    interpolation: str = "bilinear"

    def __post_init__(self):
        for name in ("resize", "crop"):
            value = getattr(self, name)
            if value is not None and checks.positive(value, name) > MOST:
                raise ValueError(f"{name}: expected at most {MOST} pixels a side (--size, "
                                 f"--{name}), got {value}")
        if self.resize and self.crop and self.crop > self.resize:
            raise ValueError(f"crop: expected at most resize, {self.resize}, got {self.crop}")
        if (self.mean is None) != (self.std is None):
            raise ValueError("mean, std: expected both or neither")
        if self.mean is not None:
            for value in self.mean:
                checks.finite(value, "mean")
            for value in self.std:
                checks.finite(value, "std", above=0)
            if any(abs(value) > 1 for value in self.mean):
                if min(self.std) < 1:
                    raise ValueError("mean, std: expected both as of pixels in [0, 1], got "
                                     f"{max(self.mean):g} and {min(self.std):g}")
                _log.warning("mean: pixels are in [0, 1], and %g is that of pixels from 0 to 255; "
                             "mean and std are divided by 255", self.mean[0])
                for name in ("mean", "std"):
                    object.__setattr__(self, name, tuple(v / 255 for v in getattr(self, name)))
            if any(value > 1 for value in self.std):
                raise ValueError("std: expected numbers up to 1, as pixels in [0, 1] have them, "
                                 f"got {max(self.std):g}; of pixels from 0 to 255, divide by 255")
            if not {len(self.mean), len(self.std)} <= {1, 3}:
                raise ValueError("mean, std: expected 1 or 3 numbers, got "
                                 f"{len(self.mean)} and {len(self.std)}")

    def with_options(self, **options) -> "Preparation":
        """The same with those ``options`` that are not None; a size replaces a transform.

        >>> Preparation(resize=256, crop=224).with_options(crop=64, mean=None).resize
        256
        """
        given = {k: v for k, v in options.items() if v is not None}
        if ("mean" in given) != ("std" in given) and self.mean is None:
            raise ValueError("mean, std: expected both or neither")
        if given.keys() & {"resize", "crop"}:
            given["transform"] = None
            if "resize" not in given and self.resize and self.resize < given["crop"]:
                given["resize"] = given["crop"]
            if "crop" not in given and self.crop and self.crop > given["resize"]:
                given["crop"] = given["resize"]
        return replace(self, **given)

    def fitted(self, size: tuple[int, int]) -> tuple[int, int] | None:
        """The width and height that a picture of that ``size`` will have; None: nobody knows.

        Raises ``ValueError`` for one smaller than the crop.
        """
        if self.transform is not None:
            return (self.crop, self.crop) if self.resize and self.crop else None
        width, height = self._scaled(size)
        if self.crop is None:
            return width, height
        if min(width, height) < self.crop:
            raise ValueError(f"is {width} x {height}, smaller than the crop of {self.crop}")
        return self.crop, self.crop

    def _scaled(self, size: tuple[int, int]) -> tuple[int, int]:
        if self.resize is None or min(size) == self.resize:
            return size
        long = int(self.resize * max(size) / min(size))  # cut off, as by torchvision
        return (self.resize, long) if size[0] < size[1] else (long, self.resize)

    def apply(self, image: Image.Image) -> np.ndarray:
        """A picture (H, W) or (H, W, 3), uint8; float32 in [0, 1] if a transform's floats are not
        whole gray levels."""
        if self.transform is not None:
            return _own(self.transform, image)
        self.fitted(image.size)
        if self.resize is not None:
            image = F.resize(image, [self.resize], InterpolationMode(self.interpolation))
        return np.asarray(image if self.crop is None else F.center_crop(image, [self.crop]))

    @property
    def described(self) -> str:
        """What is done, in words.

        >>> Preparation(resize=256, crop=224, mean=(0.5,), std=(0.5,)).described
        'scaled to 256 (bilinear), cropped to 224, normalised by mean 0.5, std 0.5'
        """
        parts = [f"scaled to {self.resize} ({self.interpolation})"] if self.resize else []
        parts += [f"cropped to {self.crop}"] if self.crop else []
        if self.transform and not (self.resize and self.crop):
            parts = [getattr(self.transform, "described", "by the transform given")]
        if self.mean is not None:
            mean, std = (", ".join(f"{v:g}" for v in values) for values in (self.mean, self.std))
            parts.append(f"normalised by mean {mean}, std {std}")
        return ", ".join(parts)


@dataclass(frozen=True)
class Steps:
    """Transforms one after the other: to be sent to a process that reads, if each of them can be.

    >>> Steps((abs, str))(-3)
    '3'
    """

    steps: tuple[Callable, ...]

    def __call__(self, image):
        for step in self.steps:
            image = step(image)
        return image


def steps_of(preparation: Preparation) -> list:
    """The classes and functions of a transform and of its steps: whose code it is."""
    left, found = [preparation.transform] if preparation.transform else [], []
    while left:
        step = left.pop()
        found.append(step if isinstance(step, FunctionType | MethodType | type) else type(step))
        left += [*getattr(step, "steps", ()), *(getattr(step, "transforms", None) or ())]
    return found


def prepared(transform) -> Preparation:
    """A transform, such as torchvision's or timm's, as a preparation.

    A ``Normalize`` at its end, or in torchvision's presets, becomes ``mean`` and ``std``: so
    images stay in [0, 1], where distances and mutations have a meaning. One of another library, or
    of one's own, counts if it does (x - mean) / std to a few images. The rest is done by the
    transform itself. Raises ``TypeError`` for what cannot be called.

    >>> from torchvision.models import EfficientNet_B0_Weights
    >>> prepared(EfficientNet_B0_Weights.DEFAULT.transforms()).described[:39]
    'scaled to 256 (bicubic), cropped to 224'
    """
    if not callable(transform):
        raise TypeError("transform: expected a function of an image, got "
                        f"{type(transform).__name__}")
    if type(transform) is ImageClassification:
        plain = copy.copy(transform)
        plain.mean, plain.std = [0.0] * len(plain.mean), [1.0] * len(plain.std)
        return Preparation(_side(transform.resize_size), _side(transform.crop_size),
                           tuple(transform.mean), tuple(transform.std), Steps((plain,)),
                           transform.interpolation.value)
    steps = [transform]
    while steps and type(steps[-1]) in (v1.Compose, v2.Compose, nn.Sequential):
        last = steps.pop()
        steps += getattr(last, "transforms", last)
    if steps and (found := _normalises(steps[-1])):
        mean, std = found
        return Preparation(mean=mean, std=std, transform=Steps(tuple(steps[:-1])))
    return Preparation(transform=transform)


def _normalises(step: Callable) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """The mean and std of a step called ``Normalize``; None if that is not what it does.

    torchvision's own say them. Any other is asked with images in gray and in colour.
    """
    if isinstance(step, v1.Normalize | v2.Normalize) and type(step) in (
            v1.Normalize, v2.Normalize):  # none of a class with another formula
        mean, std = (tuple(torch.as_tensor(values).flatten().tolist())
                     for values in (step.mean, step.std))
        return mean, std
    if type(step).__name__ != "Normalize":
        return None
    known = []
    for depth in (1, 3):
        noise = torch.rand((depth, 9, 8), generator=torch.Generator().manual_seed(0))
        images = [torch.zeros_like(noise), torch.ones_like(noise), noise, noise / 2, noise * 255]
        try:
            with torch.no_grad():
                made = [torch.as_tensor(step(x.clone())).double() for x in images]
        except Exception:  # whatever their code raises: not for images of so many channels
            continue
        if any(x.shape != noise.shape for x in made):
            continue
        shift = made[0][:, :1, :1]
        slope = made[1][:, :1, :1] - shift
        if all(torch.allclose(y, x * slope + shift, rtol=1e-4, atol=1e-5)
               for x, y in zip(images, made)) and (slope > 0).all():
            mean, std = (tuple(float(f"{value:.6g}") for value in values.flatten().tolist())
                         for values in (0 - shift / slope, 1 / slope))
            if max(std) <= 1 or max(mean) > 1 <= min(std):
                known.append((mean, std))
    alike = len(known) == 2 and all({*one} == {*other} for one, other in zip(*known))
    return known[0 if alike else -1] if known else None


def _side(sizes: Sequence[int]) -> int | None:
    """Of a square, or of the short side."""
    return sizes[0] if len({*sizes}) == 1 else None


def _own(transform: Callable, image: Image.Image) -> np.ndarray:
    found = transform(image)
    if isinstance(found, Image.Image):
        found = pil_to_tensor(found)
    if not isinstance(found, torch.Tensor) or found.ndim != 3 or len(found) not in (1, 3):
        came = tuple(found.shape) if isinstance(found, torch.Tensor) else type(found).__name__
        raise ValueError(f"transform: expected a tensor (C, H, W) of 1 or 3 channels, got {came}")
    if found.dtype != torch.uint8:
        low, high = found.min().item(), found.max().item()
        if not (low >= -1e-6 and high <= 1 + 1e-6):
            raise ValueError("transform: expected values in [0, 1], got "
                             f"[{low:g}, {high:g}]; end it with torchvision's Normalize, which is "
                             "then applied inside of the model, or give mean and std")
        levels = (found.float() * 255).clamp(0, 255)
        whole = (levels - levels.round()).abs().max() < LEVEL
        found = levels.round().to(torch.uint8) if whole else found.float().clamp(0, 1)
    return (found[0] if len(found) == 1 else found.permute(1, 2, 0)).numpy()


def of(model: nn.Module) -> Preparation:
    """The preparation that a model came with, if it came with one."""
    found = getattr(model, "preparation", None)
    return found if isinstance(found, Preparation) else Preparation()
