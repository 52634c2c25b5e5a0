"""What the readers of datasets return."""

from typing import NamedTuple

import torch


class Raw(NamedTuple):
    """Pixels as uint8 (N, C, H, W), labels int64 (N,), class names, and the form they came in.

    ``paths``: relative ones of the files, if there are any.
    """

    images: torch.Tensor
    labels: torch.Tensor
    classes: tuple[str, ...]
    form: str
    paths: tuple[str, ...] = ()


class Readable(NamedTuple):
    """What can be read of a folder that nobody has checked.

    ``images``: uint8 (N, C, H, W); ``paths``: theirs, relative to the folder; ``skipped``: the
    reason for each image that could not be read, by relative path; ``others``: how many files
    have another ending.
    """

    images: torch.Tensor
    paths: tuple[str, ...]
    skipped: dict[str, str]
    others: int
