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
