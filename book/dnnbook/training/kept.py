"""Whether a kept network is what its code, and that of the loop that trained it, would give."""

import sys
from pathlib import Path

import torch
from torch import nn
from tqdm import tqdm

from dnnlib import files
from dnnlib.inference import device_of, fast_layout

IMAGES = 8  # the first of the training set, on which a network answers when it is kept
TOLERANCE = 1e-3  # of the largest answer: other processors and an equal sum differ by less
ANSWERS = "answers"  # under this name beside the weights, which have names with dots


def save(path: Path, model: nn.Module, images: torch.Tensor, *, key: dict, code: str) -> None:
    """Keep a network's weights, its answers on some ``images``, and its training's ``code``."""
    files.save_tensors(path, model.state_dict() | {ANSWERS: answers(model, images)}, key=key,
                       code=code)


@torch.no_grad()
def answers(model: nn.Module, images: torch.Tensor) -> torch.Tensor:
    """Logits (8, n) of the first of ``images`` (N, C, H, W), on the CPU; in evaluation mode.

    >>> answers(nn.Flatten(), torch.zeros(20, 1, 2, 2)).shape
    torch.Size([8, 4])
    """
    return model.eval()(fast_layout(images[:IMAGES], device_of(model))).float().cpu()


def load(path: Path, model: nn.Module, images: torch.Tensor, *, code: str) -> str:
    """Puts the kept weights into ``model``, and says why they cannot be relied on; '' if they can.

    - Other weights than the network has: its code builds another one.
    - Other ``code``: the loop that trained it has changed (:mod:`dnnlib.models.parsed`).
    - No answers: it was kept before networks brought them, and nothing tells what it was.
    - Other answers: the network computes something else from the same weights.
    """
    tensors, metadata = files.load_tensors(path)
    kept = tensors.pop(ANSWERS, None)
    if kept is None:
        return "it was kept without answers to compare"
    if metadata["code"] != code:
        return "the code of the training has changed"
    if ({name: value.shape for name, value in tensors.items()}
            != {name: value.shape for name, value in model.state_dict().items()}):
        return "its code builds a network of other weights"
    model.load_state_dict(tensors)
    now = answers(model, images)
    if now.shape != kept.shape or (now - kept).abs().max() > TOLERANCE * kept.abs().max():
        return "its code gives other answers than when it was kept"
    return ""


def tell(what: str, why: str) -> None:
    """One line, also beneath a progress bar."""
    tqdm.write(f"{what} is trained again: {why}", file=sys.stderr)
