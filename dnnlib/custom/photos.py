"""A person's own images: a folder of them, as the model takes them."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from dnnlib import checks, models
from dnnlib.data import folders


@dataclass(frozen=True, eq=False)
class Photos:
    """``images``: float32 (N, C, H, W) in [0, 1]; ``paths``: theirs, relative to the folder.

    ``skipped``: the reason for each image that could not be read, by relative path; ``others``:
    how many files of the folder are no images by their ending.
    """

    images: torch.Tensor
    paths: tuple[str, ...]
    skipped: dict[str, str]
    others: int


def shortened(path: str) -> str:
    """The end of a path, at most 14 characters: a title below an image."""
    return path if len(path) <= 14 else "…" + path[-13:]


def read_photos(folder: str | Path, model: nn.Module, *, size: int | None = None,
                channels: int | None = None) -> Photos:
    """The images below ``folder``, in the order of their paths, as ``model`` takes them.

    ``size`` (pixels of the short side, then cropped at the centre) and ``channels`` (1 or 3)
    default to those of a network made by :func:`models.build`, else to the images' own. Raises
    ``FileNotFoundError`` for a folder without images, ``ValueError`` if none can be read or
    their sizes differ.
    """
    if channels not in (None, 1, 3):
        raise ValueError(f"channels: expected 1 or 3, got {channels!r}")
    if size is not None:
        checks.positive(size, "size")
    spec = models.spec_of(model)
    shape = spec.shape if spec else (None, None)
    found = folders.readable(Path(folder).expanduser(), size=size or shape[1],
                             channels=channels or shape[0])
    return Photos(found.images.float() / 255, found.paths, found.skipped, found.others)
