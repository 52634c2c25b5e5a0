"""Running a classifier over many images, in batches, wherever it lives."""

from itertools import chain

import torch
from torch import nn

from dnnlib import checks

# glibc keeps twice the largest block that was ever freed, up to blocks of 32 MiB. What is more it
# returns, to get it back page by page in the next pass, which can take as long as the pass itself.
torch.empty(2**25 - 2**16, dtype=torch.uint8)


def device(name: str = "auto") -> torch.device:
    """The device 'cpu', 'cuda', 'cuda:1' or 'mps'; 'auto' is cuda where there is one, else cpu.

    Raises ``ValueError`` for another name, and for a device that this machine, or this build of
    PyTorch, does not have.

    >>> device("cdua")
    Traceback (most recent call last):
    ValueError: unknown device 'cdua'; did you mean 'cuda'? Known: auto, cpu, cuda, mps
    """
    kind, _, number = name.partition(":")
    checks.known(kind, ("auto", "cpu", "cuda", "mps"), "device")
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if kind == "auto":
        return torch.device("cuda" if gpus else "cpu")
    if kind == "cuda" and not (number or "0").isdecimal():
        raise ValueError(f"device: expected a number behind cuda:, got {name!r}")
    if kind == "cuda" and int(number or 0) >= gpus:
        raise ValueError(f"device: {name} is not there; PyTorch {torch.__version__} sees "
                         f"{gpus} CUDA devices")
    if kind == "mps" and not torch.backends.mps.is_available():
        raise ValueError(f"device: mps is not there, as PyTorch {torch.__version__} sees it")
    return torch.device(name)


def device_of(model: nn.Module) -> torch.device:
    """The device that holds the model's parameters or buffers; the CPU if it has none."""
    held = next(chain(model.parameters(), model.buffers()), None)
    return torch.device("cpu") if held is None else held.device


def ready(model: nn.Module, x: torch.Tensor) -> torch.device:
    """Puts the model in evaluation mode; the device to send it images ``x`` to.

    Raises ``ValueError`` for parameters of another precision than theirs, unless the model says
    that it takes any (``casts``), as those of :func:`custom.classifier` do.

    >>> ready(nn.Linear(2, 2).half(), torch.rand(1, 2))
    Traceback (most recent call last):
    ValueError: model: expected parameters in float32, as the images are, got float16; \
dnnlib.custom.classifier makes one that takes them of a model in any precision
    """
    kinds = {p.dtype for p in model.parameters() if p.is_floating_point()} - {x.dtype}
    if kinds and not getattr(model, "casts", False):
        found, wanted = (" and ".join(sorted(str(kind).removeprefix("torch.") for kind in these))
                         for these in (kinds, {x.dtype}))
        raise ValueError(f"model: expected parameters in {wanted}, as the images are, got {found}; "
                         "dnnlib.custom.classifier makes one that takes them of a model in any "
                         "precision")
    return device_of(model.eval())


def fast_layout(x: torch.Tensor, device: torch.device) -> torch.Tensor:
    """``x`` on ``device``, channels last: the layout in which CPU convolutions are fast."""
    return x.to(device, memory_format=torch.channels_last)


def classes_of(logits) -> torch.Tensor:
    """The most probable class of each row of logits (N, n), int64 (N,).

    Raises ``ValueError`` for NaN, or infinity as the largest, and for anything else than such a
    tensor, as of a model that returns a tuple.

    >>> classes_of(torch.tensor([[1.0, 2.0], [3.0, 0.0]])).tolist()
    [1, 0]
    """
    checked(logits)
    if not logits.amax(1).isfinite().all():
        raise ValueError("model: expected finite outputs, got NaN or infinity")
    return logits.argmax(1)


def checked(logits) -> torch.Tensor:
    """What a model returned, if that is a tensor (N, n); else ``ValueError``."""
    if not isinstance(logits, torch.Tensor) or logits.ndim != 2:
        got = (f"shape {tuple(logits.shape)}" if isinstance(logits, torch.Tensor)
               else type(logits).__name__)
        raise ValueError(f"model: expected logits (N, classes), got {got}; dnnlib.custom."
                         "classifier takes them from a tuple, or by their name")
    return logits


@torch.inference_mode()
def predict(model: nn.Module, x: torch.Tensor, *, batch_size: int = 128) -> torch.Tensor:
    """Softmax vectors of images.

    ``x``: (N, C, H, W) in [0, 1]. Returns (N, n) on the CPU. The model is put in evaluation
    mode. Raises ``ValueError`` if an output is not finite, and as :func:`ready` and
    :func:`checked` do.
    """
    checks.images(x)
    device = ready(model, x)
    p = torch.cat([checked(model(fast_layout(part, device))).softmax(1).cpu()
                   for part in x.split(batch_size)])
    if not torch.isfinite(p).all():
        raise ValueError("model: expected finite outputs, got NaN or infinity")
    return p


def accuracy(model: nn.Module, x: torch.Tensor, y: torch.Tensor, *, batch_size: int = 128) -> float:
    """Share of images (N, C, H, W) whose most probable class is the label in ``y`` (N,)."""
    p = predict(model, x, batch_size=batch_size)
    y = checks.labels(y, len(p), p.shape[1], "y").cpu()
    return (p.argmax(1) == y).double().mean().item()
