"""Images that a model fails on: found by themselves, so that the others of their pass are done."""

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import nn

from dnnlib.custom.own_code import reason, told
from dnnlib.custom.photos import Read
from dnnlib.data.folders import of_one, of_the_machine
from dnnlib.inference import device_of, fast_layout

_T = TypeVar("_T")


@torch.no_grad()
def unanswered(run: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> dict[int, str]:
    """Of images (N, C, H, W) those that ``run`` fails on alone, with the reason.

    ``run``: from images to what must be finite.

    >>> unanswered(lambda x: x.flatten(1).log(), torch.eye(2)[:, None, None] * 0 + 1)
    {}
    >>> unanswered(lambda x: 1 / x, torch.tensor([1.0, 0.0]).view(2, 1, 1, 1))
    {1: 'the model gives NaN or infinity'}
    """
    found = {}
    for i in range(len(x)):
        try:
            with of_one(lambda error: f"the model fails: {told(error)}"):
                finite = bool(run(x[i:i + 1]).isfinite().all())
        except ValueError as error:
            found[i] = str(error)
        else:
            if not finite:
                found[i] = "the model gives NaN or infinity"
    return found


def spared(model: nn.Module, read: Read, do: Callable[[Read], _T]) -> tuple[Read, _T | None]:
    """What ``do`` gives for a batch; if it fails, without the images that the model fails on alone.

    These are among the batch's ``skipped`` then; None if no image is left. ``ValueError`` for
    another failure.
    """
    if not len(read.x):
        return read, None
    try:
        return read, do(read)
    except Exception as error:  # whatever their code raises
        if of_the_machine(error):
            raise
        device = device_of(model)
        bad = unanswered(lambda x: model(fast_layout(x, device)).softmax(1), read.x)
        if not bad:
            raise ValueError(reason(error)) from error
    good = [i for i in range(len(read.x)) if i not in bad]
    read = Read(read.x[good], read.places[good],
                read.skipped | {int(read.places[i]): why for i, why in bad.items()})
    return spared(model, read, do)
