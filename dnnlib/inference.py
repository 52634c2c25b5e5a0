"""Running a classifier over many images, in batches, wherever it lives."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import wraps
from itertools import chain
from typing import TypeVar

import numpy as np
import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from dnnlib import checks

# glibc keeps twice the largest block that was ever freed, up to blocks of 32 MiB. What is more it
# returns, to get it back page by page in the next pass, which can take as long as the pass itself.
torch.empty(2**25 - 2**16, dtype=torch.uint8)

SHARE = "DNNLIB_GPU_SHARE"  # the part of a GPU's memory that a process may take, of several there
NO_DOUBLES = ("mps",)  # kinds of devices without numbers in float64
_MOST = 65_536  # images in a pass: more gain nothing on the largest GPUs
_ELEMENTS = 2**31 - 1  # of a tensor that every GPU kernel takes
_F = TypeVar("_F", bound=Callable)


def device(name: str = "auto") -> torch.device:
    """The device 'cpu', 'cuda', 'cuda:1' or 'mps'; 'auto' is cuda, else mps, else cpu.

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
        return torch.device("cuda" if gpus else "mps" if torch.backends.mps.is_available()
                            else "cpu")
    if kind == "cuda" and not (number or "0").isdecimal():
        raise ValueError(f"device: expected a number behind cuda:, got {name!r}")
    if kind == "cuda" and int(number or 0) >= gpus:
        raise ValueError(f"device: {name} is not there; PyTorch {torch.__version__} sees "
                         f"{gpus} CUDA devices")
    if kind == "mps" and not torch.backends.mps.is_available():
        raise ValueError(f"device: mps is not there, as PyTorch {torch.__version__} sees it")
    return torch.device(name)


def doubles(device: torch.device | str) -> torch.device:
    """Where what lies on ``device`` is computed in float64: there, or on the CPU if not (mps).

    >>> doubles("cpu"), doubles("mps")
    (device(type='cpu'), device(type='cpu'))
    """
    found = torch.device(device)
    return torch.device("cpu") if found.type in NO_DOUBLES else found


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


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode for a while; then each module is in the mode that it was in.

    >>> model = nn.Sequential(nn.Dropout(), nn.BatchNorm2d(1).eval())
    >>> with evaluating(model):
    ...     print(model[0].training)
    False
    >>> [module.training for module in model]
    [True, False]
    """
    modes = [(module, module.training) for module in model.modules()]
    try:
        model.eval()
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def leaves_modes(function: _F) -> _F:
    """A function of a model, its first argument, that runs it :func:`evaluating`; with gradients
    for what follows them, also where a person has turned them off for all."""
    @wraps(function)
    def run(model, *args, **options):
        if not isinstance(model, nn.Module):  # the function says what it expects
            return function(model, *args, **options)
        with evaluating(model), torch.enable_grad():
            return function(model, *args, **options)

    return run  # type: ignore[return-value]


def fast_layout(x: torch.Tensor, device: torch.device) -> torch.Tensor:
    """``x`` on ``device``, channels last: the layout in which CPU convolutions are fast."""
    return x.to(device, memory_format=torch.channels_last)


def size_for(model: nn.Module, x: torch.Tensor, usual: int, *, rows: int | None = None,
             times: int = 1) -> int:
    """How many images to send through the model at once: what its device has room for.

    On a CPU ``usual``, as more leave its cache; elsewhere as many as a quarter of the free memory
    holds, at most 65,536. One image is tried, with all that the modules give out.

    - ``x``: images (N, C, H, W), of which the first is tried.
    - ``usual``: the size on a CPU, and where so few are sent or the free memory is unknown.
    - ``rows``: how many images will be sent; default N.
    - ``times``: how often a pass holds what the modules give out: 1, or about 4 with gradients.

    >>> size_for(nn.Flatten(), torch.rand(1000, 1, 2, 2), 128)
    128
    """
    device, rows = device_of(model), len(x) if rows is None else rows
    free = None if rows <= usual else free_memory(device)
    if free is None:
        return usual
    total, largest = outputs(model, fast_layout(x[:1], device))
    return max(1, min(rows, _MOST, free // 4 // (times * total), _ELEMENTS // largest))


def free_memory(device: torch.device) -> int | None:
    """Bytes that can be had on a GPU; None for a CPU, and where PyTorch cannot tell.

    Of several processes on one GPU each has its share, which a sweep tells its workers by the
    variable ``DNNLIB_GPU_SHARE``, from 0 to 1: else all would count on what is free before any has
    begun.
    """
    if device.type == "cuda":
        taken = torch.cuda.memory_allocated(device)
        free, total = torch.cuda.mem_get_info(device)
        share = checks.share(checks.numbers(os.environ.get(SHARE, "1"), SHARE)[0], SHARE)
        return max(0, min(free + torch.cuda.memory_reserved(device) - taken,
                          int(share * total) - taken))
    if device.type == "mps":
        return torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory()
    return None


@contextmanager
def hooked(*handles: RemovableHandle) -> Iterator[None]:
    """Within it hooks are called, also those on modules from ``torch.compile``; then they go."""
    compiled = "torch._dynamo" in sys.modules  # else nothing is; to import it takes seconds
    try:  # what was compiled before knows no hook
        with torch.compiler.set_stance("force_eager") if compiled else nullcontext():
            yield
    finally:
        for handle in handles:
            handle.remove()


@torch.no_grad()
def outputs(model: nn.Module, image: torch.Tensor) -> tuple[int, int]:
    """What a pass over images gives out: bytes in all, images with it; elements of the largest.

    >>> outputs(nn.Sequential(nn.Flatten(), nn.Linear(4, 2)), torch.rand(1, 1, 2, 2))
    (40, 4)
    """
    sizes = [(image.nbytes, image.numel())]

    def keep(module, given, out):
        sizes.extend((each.nbytes, each.numel()) for each in
                     (out if isinstance(out, tuple | list) else (out,))
                     if isinstance(each, torch.Tensor))

    with hooked(*(module.register_forward_hook(keep) for module in model.modules()
                  if not any(module.children()))):
        model.eval().forward(image)  # no pass that the model's own hooks count
    nbytes, elements = zip(*sizes)
    return sum(nbytes), max(elements)


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


def as_logits(outputs: torch.Tensor, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """What ``model`` gave for images ``x``, (N, n); ``ValueError`` if it gives softmax vectors.

    Unless it says by ``logits`` that they are, as :func:`custom.classifier` does if it is told.

    >>> model, x = nn.Sequential(nn.Flatten(), nn.Softmax(1)), torch.rand(1, 1, 1, 2)
    >>> as_logits(model(x), model, x)
    Traceback (most recent call last):
    ValueError: model: every output is non-negative and sums to 1, so that these are probabilities \
where logits are expected; dnnlib.custom.classifier(model, x, probabilities=True) makes them of it
    """
    if getattr(model, "logits", False) is True or not _summed(outputs):
        return outputs
    again = model(fast_layout((1 - x[:1]) / 2, device_of(model)))  # by chance they sum to 1 once
    if _summed(again) and (again != outputs[:1]).any():
        raise ValueError("model: every output is non-negative and sums to 1, so that these are "
                         "probabilities where logits are expected; dnnlib.custom.classifier(model, "
                         "x, probabilities=True) makes them of it")
    return outputs


def _summed(outputs: torch.Tensor) -> bool:
    return bool((outputs >= 0).all() and ((outputs.sum(1) - 1).abs() < 1e-5).all())  # of float32


def checked(logits) -> torch.Tensor:
    """What a model returned, if that is a tensor (N, n); else ``ValueError``."""
    if not isinstance(logits, torch.Tensor) or logits.ndim != 2:
        got = (f"shape {tuple(logits.shape)}" if isinstance(logits, torch.Tensor)
               else type(logits).__name__)
        raise ValueError(f"model: expected logits (N, classes), got {got}; dnnlib.custom."
                         "classifier takes them from a tuple, or by their name")
    return logits


@torch.no_grad()  # inference mode would mark tensors that a model keeps
def predict(model: nn.Module, x: torch.Tensor, *, batch_size: int = 128) -> torch.Tensor:
    """Softmax vectors of images.

    ``x``: (N, C, H, W) in [0, 1]. Returns (N, n) on the CPU. ``batch_size``: images in a pass on a
    CPU; elsewhere :func:`size_for` says how many. The model is put in evaluation mode. Raises
    ``ValueError`` if an output is not finite, and as :func:`ready` and :func:`checked` do.
    """
    checks.images(x)
    device = ready(model, x)
    outputs = torch.cat([checked(model(fast_layout(part, device)))
                         for part in x.split(size_for(model, x, batch_size))])
    p = as_logits(outputs, model, x).softmax(1).cpu()
    if not torch.isfinite(p).all():
        raise ValueError("model: expected finite outputs, got NaN or infinity")
    return p


def accuracy(model: nn.Module, x: torch.Tensor, y: torch.Tensor, *, batch_size: int = 128) -> float:
    """Share of images (N, C, H, W) whose most probable class is the label in ``y`` (N,)."""
    p = predict(model, x, batch_size=batch_size)
    y = checks.labels(y, len(p), p.shape[1], "y").cpu()
    return (p.argmax(1) == y).double().mean().item()


@contextmanager
def global_seed(seed: int) -> Iterator[None]:
    """Global generators, from which ART and its data loaders draw, seeded for a while."""
    state = np.random.get_state()
    np.random.seed(seed)
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        np.random.set_state(state)


def small_network() -> nn.Module:
    """Three classes of (N, 1, 8, 8), with weights that are always the same."""
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 8), nn.ReLU(),
                          nn.Linear(8, 3)).eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weights in model.parameters():
            weights.copy_(torch.randn(weights.shape, generator=generator) / 2)
    return model


def noise() -> torch.Tensor:
    """Forty images (40, 1, 8, 8) in [0, 1], always the same."""
    return torch.rand(40, 1, 8, 8, generator=torch.Generator().manual_seed(0))


def state_of(model: nn.Module) -> dict[str, object]:
    """What a method must leave alone: the mode, hooks, gradients and weights of a model."""
    modules = [*model.modules()]
    return {
        "mode": [each.training for each in modules],
        "hooks": [[*each._forward_hooks, *each._forward_pre_hooks] for each in modules],
        "gradients": [weights.grad is not None for weights in model.parameters()],
        "weights": [values.detach().double().sum().item() for values in model.state_dict().values()
                    if isinstance(values, torch.Tensor)]}


def unchanged(model: nn.Module, before: dict[str, object], name: str) -> None:
    """``ValueError`` naming the method, and what differs from :func:`state_of` before it ran."""
    now = state_of(model)
    for what, was in before.items():
        if now[what] != was:
            raise ValueError(f"{name}: expected to leave the model as it was, changed its {what}")
