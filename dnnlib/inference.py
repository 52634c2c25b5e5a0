"""Running a classifier over many images, in batches, wherever it lives."""

import hashlib
from dataclasses import fields, is_dataclass

import torch
from torch import nn

from dnnlib import bytecode, checks


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


def fingerprint(model: nn.Module) -> str:
    """16 hexadecimal digits that name a model's structure, its weights, and code of your own.

    Modules print alike whatever their ``forward`` does. So of every module that is neither
    torch's nor of :mod:`dnnlib.models`, the code and the attributes count too.
    """
    sha = hashlib.sha256(str(model).encode())
    for value in model.state_dict().values():
        sha.update(value.detach().cpu().contiguous().numpy())
    for name, module in model.named_modules():
        code = bytecode.of_class(type(module))
        if code or "forward" in vars(module):
            attributes = {k: v for k, v in vars(module).items()
                          if not k.startswith("_") and k != "training"}
            sha.update(str([name, code, bytecode.of(attributes)]).encode())
    return sha.hexdigest()[:16]


def described(value):
    """``value``, as a key of the cache can hold it: JSON, with hashes for tensors and models.

    Dataclasses become their type, its code where it is not this library's, and their fields.
    Raises ``TypeError`` for anything else.

    >>> described((1, "a", None))
    [1, 'a', None]
    """
    if isinstance(value, nn.Module):
        return fingerprint(value)
    if isinstance(value, torch.Tensor):
        content = value.detach().cpu().contiguous().numpy()
        return [list(value.shape), hashlib.sha256(content).hexdigest()[:16]]
    if is_dataclass(value) and not isinstance(value, type):
        kind = type(value)
        ours = kind.__module__.startswith("dnnlib.")  # a revision says when their code changes
        return [f"{kind.__module__}.{kind.__qualname__}", [] if ours else bytecode.of_class(kind),
                *([f.name, described(getattr(value, f.name))] for f in fields(value))]
    if isinstance(value, list | tuple):
        return [described(entry) for entry in value]
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"a {type(value).__name__} has no key in the cache: {value!r}")
