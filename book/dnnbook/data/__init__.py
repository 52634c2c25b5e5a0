"""Datasets as tensors: images (N, C, H, W) in [0, 1], labels, classes and a fingerprint.

>>> digits = load("digits")
>>> digits.images.shape, digits.form
(torch.Size([500, 1, 28, 28]), 'embedded')
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from dnnbook.data import known, sources
from dnnbook.data.sources import MissingData, Raw
from dnnlib import checks

__all__ = ["PROFILES", "Dataset", "MissingData", "load", "profile_limit"]

PROFILES = {"embedded": 1000, "paper": None}  # images of a test set that a notebook looks at


def profile_limit(profile: str) -> int | None:
    """How many test images a notebook's ``profile`` uses; None is all of them.

    >>> profile_limit("embedded")
    1000
    """
    return PROFILES[checks.known(profile, PROFILES, "profile")]


@dataclass(frozen=True, eq=False)
class Dataset:
    """``images``: float32 (N, C, H, W) in [0, 1]; ``labels``: int64 (N,), -1 where unknown.

    ``fingerprint``: 12 digits of the hash of its pixels and labels, whatever they came in: see
    :func:`known.known`. ``form``: what they came in, such as 'idx', 'parquet' or 'png'.
    """

    name: str
    split: str
    images: torch.Tensor
    labels: torch.Tensor
    classes: tuple[str, ...]
    fingerprint: str
    paths: tuple[str, ...] = ()
    form: str = ""

    def __len__(self) -> int:
        return len(self.images)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(C, H, W) of one image."""
        return tuple(self.images.shape[1:])

    def __repr__(self) -> str:
        return (f"Dataset({self.name!r}, {self.split!r}, {len(self)} images of {self.shape}, "
                f"{len(self.classes)} classes, {self.fingerprint})")


def load(name: str | Path, split: str = "test", *, size: int | None = None,
         channels: int | None = None, limit: int | None = None, download: bool = False) -> Dataset:
    """A dataset by name, or a folder of images by path (in it train, test or val, if there).

    Also 'torchvision:KMNIST', or a function of one's own, 'FILE.py:FUNCTION': :func:`own.read`.
    Speech comes as pictures of log-mel energies (:mod:`dnnlib.data.audio`), speakers as classes.
    ``size``: pixels a side (default: the dataset's own; 28 for digits, which are 8 x 8 scans);
    ``channels``: 1 or 3; ``limit``: only so many images, evenly spread over the set;
    ``download``: fetch what torchvision can fetch. Raises :class:`MissingData` saying where it
    looked and how to get the data, ``ValueError`` for an unknown name or a damaged file.
    """
    if channels not in (None, 1, 3):
        raise ValueError(f"channels: expected 1 or 3, got {channels!r}")
    for value, what in ((size, "size"), (limit, "limit")):
        if value is not None:
            checks.positive(value, what)
    if split not in ("train", "test"):
        raise ValueError(f"split: expected 'train' or 'test', got {split!r}")
    raw = sources.read(name, split, size=size, download=download)
    if not raw.paths:  # a folder's labels are made from its sub-folders
        checks.labels(raw.labels, len(raw.images), len(raw.classes), f"{name} ({split}) labels")
    fingerprint = _hash(raw)
    called = (known.known(fingerprint) or (name,))[0]
    if name in sources.SOURCES and called != name:
        raise ValueError(f"dataset {name!r} ({split}): expected its images, got those of "
                         f"{called!r}; move them to the folder {called}")
    if limit is not None and limit < len(raw.images):
        chosen = torch.linspace(0, len(raw.images) - 1, limit).long()
        raw = Raw(raw.images[chosen], raw.labels[chosen], raw.classes, raw.form,
                  tuple(raw.paths[i] for i in chosen) if raw.paths else ())
        fingerprint += f"[{limit}]"
    images = _shaped(raw.images, size or sources.default_size(name), channels)
    return Dataset(str(name), split, images, raw.labels, raw.classes, fingerprint, raw.paths,
                   raw.form)


def _hash(raw: Raw) -> str:
    sha = hashlib.sha256(str(tuple(raw.images.shape)).encode())
    sha.update(raw.images.contiguous().numpy())
    sha.update(raw.labels.contiguous().numpy())
    return sha.hexdigest()[:12]


def _shaped(images: torch.Tensor, size: int | None, channels: int | None) -> torch.Tensor:
    """uint8 (N, C, H, W) to float32 in [0, 1] of the wanted size and channels."""
    if channels == 3 and images.shape[1] == 1:
        images = images.expand(-1, 3, -1, -1)
    elif channels == 1 and images.shape[1] == 3:
        images = _functional().rgb_to_grayscale(images)
    images = images.float() / 255
    if size is not None and images.shape[-2:] != (size, size):
        images = _functional().resize(images, [size, size], antialias=True).clamp(0, 1)
    return images


def _functional() -> Any:
    from torchvision.transforms.v2 import functional  # slow to import

    return functional
