"""Running a classifier over many images, in batches, wherever it lives."""

import torch
from torch import nn

from dnnlib import checks


def device(name: str = "auto") -> torch.device:
    """The device 'cpu', 'cuda', 'cuda:1' or 'mps'; 'auto' is cuda where there is one, else cpu.

    Raises ``ValueError`` for another name, and for a device that this machine, or this build of
    PyTorch, lacks.

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
    """The device that holds the model's parameters."""
    return next(model.parameters()).device


def fast_layout(x: torch.Tensor, device: torch.device) -> torch.Tensor:
    """``x`` on ``device``, channels last: the layout in which CPU convolutions are fast."""
    return x.to(device, memory_format=torch.channels_last)


@torch.inference_mode()
def predict(model: nn.Module, x: torch.Tensor, *, batch_size: int = 128) -> torch.Tensor:
    """Softmax vectors of images.

    ``x``: (N, C, H, W) in [0, 1]. Returns (N, n) on the CPU. The model is put in evaluation
    mode. Raises ``ValueError`` if an output is not finite.
    """
    checks.images(x)
    device = device_of(model)
    model.eval()
    p = torch.cat([model(fast_layout(part, device)).softmax(1).cpu()
                   for part in x.split(batch_size)])
    if not torch.isfinite(p).all():
        raise ValueError("model: expected finite outputs, got NaN or infinity")
    return p


def accuracy(model: nn.Module, x: torch.Tensor, y: torch.Tensor, *, batch_size: int = 128) -> float:
    """Share of images (N, C, H, W) whose most probable class is the label in ``y`` (N,)."""
    p = predict(model, x, batch_size=batch_size)
    y = checks.labels(y, len(p), p.shape[1], "y")
    return (p.argmax(1) == y).double().mean().item()
