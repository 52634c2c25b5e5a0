"""A device that needs no hardware: tensors on it refuse to meet those of the CPU, as a GPU's do.

Such a tensor holds an ordinary one. It says that its device is 'meta', which autograd serves, and
computes with what it holds. Where PyTorch would say of a GPU's tensor that all are expected on the
same device, ``Mixed`` is raised.
"""

from contextlib import ExitStack, contextmanager

import numpy as np
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

DEVICE = torch.device("meta")
# these copy from one device to another, or wait for a number
CROSSING = {"aten::_to_copy", "aten::copy_", "aten::_local_scalar_dense"}
INDEXING = {"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_",
            "aten::_unsafe_index"}


SINGLE = False  # whether it has no numbers in float64, as mps


class Mixed(RuntimeError):
    """Tensors of two devices in one operation."""


class Elsewhere(torch.Tensor):
    """``held``, as if it lay on another device."""

    @staticmethod
    def __new__(cls, held: torch.Tensor):
        return torch.Tensor._make_wrapper_subclass(
            cls, held.shape, strides=held.stride(), storage_offset=held.storage_offset(),
            dtype=held.dtype, layout=held.layout, device=DEVICE)

    def __init__(self, held: torch.Tensor):
        if SINGLE and held.dtype == torch.float64:
            raise TypeError("a tensor elsewhere: expected no float64, which mps does not have")
        self.held = held

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return computed(function, args, kwargs or {})

    def __deepcopy__(self, memo):
        copied = away(self.held)
        if isinstance(self, nn.Parameter):
            copied = nn.Parameter(copied, self.requires_grad)
        memo[id(self)] = copied
        return copied

    def numpy(self, *, force: bool = False) -> np.ndarray:
        if not force:
            raise Mixed("numpy: expected a tensor on the CPU; call .cpu() first")
        return self.held.detach().numpy()

    def tolist(self):
        return self.held.tolist()

    def __repr__(self, **options):
        return f"Elsewhere({self.held!r})"


def away(tensor: torch.Tensor) -> torch.Tensor:
    """A copy elsewhere."""
    with torch.no_grad():
        return Elsewhere(tensor.detach().clone())


def home(value):
    """``value``, the tensors in it on the CPU."""
    return tree_map(lambda t: t.held.detach() if isinstance(t, Elsewhere) else t, value)


def moved(model: nn.Module) -> nn.Module:
    """The model with its parameters and buffers elsewhere."""
    for module in model.modules():
        for name, p in module._parameters.items():
            if p is not None:
                module._parameters[name] = nn.Parameter(away(p), p.requires_grad)
        for name, b in module._buffers.items():
            if b is not None:
                module._buffers[name] = away(b)
    return model


def computed(function, args: tuple, kwargs: dict):
    """What an operation gives, elsewhere if its tensors are or if that is its ``device``."""
    name = function._schema.name
    given = [t for t in tree_flatten((args, kwargs))[0] if isinstance(t, torch.Tensor)]
    ours = [t for t in given if isinstance(t, Elsewhere)]
    wanted = kwargs.get("device")
    wanted = None if wanted is None else torch.device(wanted)
    if name not in CROSSING and ours:
        _refuse(name, args, [t for t in given if not isinstance(t, Elsewhere)])
    if wanted == DEVICE and kwargs.get("generator") is not None:
        raise Mixed(f"{name}: a generator on the CPU draws for a tensor elsewhere")
    args, kwargs = tree_map(lambda t: t.held if isinstance(t, Elsewhere) else t, (args, kwargs))
    if wanted == DEVICE:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    found = function(*args, **kwargs)
    there = bool(ours) if wanted is None else wanted == DEVICE
    if name in ("aten::_local_scalar_dense", "aten::equal") or not there:
        return found
    known = {id(t.held): t for t in ours}  # an operation in place gives back what it was given
    return tree_map(lambda t: known.get(id(t)) if id(t) in known else
                    Elsewhere(t) if isinstance(t, torch.Tensor) else t, found)


def _refuse(name: str, args: tuple, others: list[torch.Tensor]) -> None:
    """``Mixed`` for tensors of the CPU beside one elsewhere; a number and an index may be there."""
    if name in INDEXING:
        if not isinstance(args[0], Elsewhere):
            raise Mixed(f"{name}: a tensor on the CPU, its index elsewhere")
        others = [t for t in args[2:3] if isinstance(t, torch.Tensor)
                  and not isinstance(t, Elsewhere)]
    if shapes := [tuple(t.shape) for t in others if t.ndim]:
        raise Mixed(f"{name}: tensors of shapes {shapes} on the CPU, others elsewhere")


class _Dispatch(TorchDispatchMode):
    """For operations whose tensors are all on the CPU, and that move them or make one there."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return computed(function, args, kwargs or {})


class _Made(TorchFunctionMode):
    """``torch.tensor`` and ``as_tensor``: made on the CPU, and then moved."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if function not in (torch.tensor, torch.as_tensor):
            return function(*args, **kwargs)
        device, dtype = kwargs.pop("device", None), kwargs.get("dtype")
        made = args[0] if isinstance(args[0], torch.Tensor) else function(*args, **kwargs)
        return made.to(device=made.device if device is None else device, dtype=dtype)


@contextmanager
def another_device(monkeypatch):
    """Inside, tensors can be moved to :data:`DEVICE`, and computed with there."""
    # a tensor of our kind can be neither an inference tensor nor cast by autocast
    plain: list[torch.no_grad] = []

    def enter(self):
        plain.append(torch.no_grad() if self.mode else torch.enable_grad())
        plain[-1].__enter__()

    monkeypatch.setattr(torch.inference_mode, "__enter__", enter)
    monkeypatch.setattr(torch.inference_mode, "__exit__",
                        lambda self, *error: plain.pop().__exit__(*error))
    usual = torch.autocast
    monkeypatch.setattr(torch, "autocast", lambda kind, *args, **options: usual(
        "cpu" if kind == DEVICE.type else kind, *args, **options))
    with ExitStack() as stack:
        stack.enter_context(_Made())
        stack.enter_context(_Dispatch())
        yield
