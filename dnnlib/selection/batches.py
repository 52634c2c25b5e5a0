"""Batches of images that several selectors read after one pass, and what such a reader is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from dnnlib.neurons.activations import Want, record_all
from dnnlib.selection.protocol import Selector, by_score


@dataclass(frozen=True, eq=False)
class Batch:
    """Images ``x`` (B, C, H, W) with their ``places`` (B,) among all, and what a pass gave.

    ``p``: softmax vectors (B, classes), None without a pass; ``values``: activations (B, neurons),
    as wanted; ``classes``: predicted ones (B,), of the logits: softmax may make two entries equal.
    """

    model: nn.Module
    x: torch.Tensor
    places: torch.Tensor
    p: torch.Tensor | None
    values: Mapping[Want, torch.Tensor]
    classes: torch.Tensor | None = None

    def of(self, want: Want) -> torch.Tensor:
        """The activations wanted; ``ValueError`` if one is not finite."""
        values = self.values[want]
        if not values.isfinite().all():
            raise ValueError(f"layers {', '.join(want.layers[:3])}: expected finite activations, "
                             "got NaN or infinity")
        return values


def passed(model: nn.Module, x: torch.Tensor, places: torch.Tensor,
           readers: Sequence["Reader"]) -> Batch:
    """One pass over a batch, for all readers. ``ValueError`` for an output that is not finite."""
    wants = {want: None for reader in readers for want in reader.wants}
    logits, values = record_all(model, x, tuple(wants))
    p = logits.softmax(1)
    if not p.isfinite().all():
        raise ValueError("model: expected finite outputs, got NaN or infinity")
    return Batch(model, x, places, p, values, logits.argmax(1))


class Reader:
    """How a selector reads images in batches.

    ``wants``: activations that it needs of a pass. ``passes``: how many it makes over an image by
    itself, beside the one that is ``shared``, if it needs that; a backward pass counts as two.
    ``keeps``: names of what it keeps of training images, if it has to be shown some first.
    """

    wants: tuple[Want, ...] = ()
    keeps: tuple[str, ...] = ()
    passes, shared = 0, True

    def __init__(self, chosen: Selector, model: nn.Module, x: torch.Tensor):
        self.chosen = chosen

    def learn(self, batch: Batch) -> dict[str, torch.Tensor]:
        """What is kept of training images, by the names in ``keeps``, in rows (R, ...)."""
        return {}

    def learned(self, rows: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """What the rows of all batches come to; ``ValueError`` if that will not do."""
        return {}

    def read(self, batch: Batch, known: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """What is kept of each image (B, ...), given what was learned."""
        raise NotImplementedError

    def finish(self, rows: torch.Tensor, predicted: torch.Tensor, known: Mapping[str, torch.Tensor],
               folder: Path) -> tuple[torch.Tensor | None, torch.Tensor]:
        """Scores, if there are any, and the order, of the rows (N, ...) kept of all images.

        ``predicted``: their classes (N,); ``folder``: for files that are needed meanwhile.
        """
        return rows, by_score(rows)
