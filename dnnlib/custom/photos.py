"""A person's own images: a folder of them, as the model takes them."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from dnnlib import models
from dnnlib.custom import preparation
from dnnlib.custom.classifier import Classifier
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


def read_photos(source: str | Path, model: nn.Module, *, size: int | None = None,
                channels: int | None = None) -> Photos:
    """The images of ``source``, a folder or a list of paths, as ``model`` takes them.

    See :func:`folders.readable`; those of a folder come in the order of their paths. They are
    scaled and cropped as :func:`prepare` or :func:`load_model` say of the model; with ``size``
    to that many pixels on the short side, then cropped at the centre. Without either, ``size`` and
    ``channels`` (1 or 3) default to those of a network made by :func:`models.build`, else to the
    images' own. Raises ``FileNotFoundError`` for a folder without images, ``ValueError`` if none
    can be read or their sizes differ.
    """
    if channels not in (None, 1, 3):
        raise ValueError(f"channels: expected 1 or 3, got {channels!r}")
    spec = models.spec_of(model)
    shape = spec.shape if spec else (None, None)
    given = preparation.of(model)
    if size is None and given.resize is given.crop is given.transform is None:
        size = shape[1]
    given = given.with_options(resize=size, crop=size)
    found = folders.readable(Path(source).expanduser(), fit=given.apply,
                             channels=channels or shape[0])
    return Photos(found.images.float() / 255, found.paths, found.skipped, found.others)


def prepare(model: nn.Module, **options) -> nn.Module:
    """The model with another :class:`Preparation`: its own, changed by those not None.

    ``options``: ``resize``, ``crop``, ``mean``, ``std``. Without any, the model as it is.

    >>> prepare(nn.Flatten(), mean=(0.5,), std=(0.1,))(torch.ones(1, 1, 1, 2)).tolist()
    [[5.0, 5.0]]
    """
    if all(value is None for value in options.values()):
        return model
    changed = preparation.of(model).with_options(**options)
    inner = model.model if isinstance(model, Classifier) else model
    return Classifier(inner, preparation=changed).eval()
