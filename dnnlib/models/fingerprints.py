"""What tells two models, or two values, apart in the key of the cache: their code too.

Beside its bytecode, a function is what that refers to: defaults, closures and globals, as far as
these are plain values or functions. A library's functions count by their names; modules, classes
and objects that it uses do not count.
"""

import hashlib
import re
from dataclasses import fields, is_dataclass
from types import CodeType, FunctionType, MethodType

import numpy as np
import torch
from torch import nn

from dnnlib.models import parsed, sources

_VALUES = (bool, int, float, str, bytes, type(None), list, tuple, dict, torch.Tensor, np.ndarray)
_FUNCTIONS = (FunctionType, MethodType, classmethod, staticmethod, property)


def fingerprint(model: nn.Module) -> str:
    """16 hexadecimal digits that name a model's structure, its weights, and code of your own.

    Modules print alike whatever their ``forward`` does. So of every module that is neither
    torch's nor of :mod:`dnnlib.models`, the code and the attributes count too.
    """
    sha = hashlib.sha256(f"{layers(model)} {weights(model)}".encode())
    for name, module in model.named_modules():
        code = of_class(type(module))
        if code or "forward" in vars(module):
            attributes = {k: v for k, v in vars(module).items()
                          if not k.startswith("_") and k != "training"}
            sha.update(str([name, code, of(attributes)]).encode())
    return sha.hexdigest()[:16]


def layers(model: nn.Module) -> str:
    """16 digits of what a model prints: its layers, their names and their sizes.

    >>> layers(nn.Linear(2, 3)) == layers(nn.Linear(2, 3)) != layers(nn.Linear(2, 4))
    True
    """
    printed = re.sub(r" at 0x[0-9a-f]+", "", str(model))  # a place in memory
    return hashlib.sha256(printed.encode()).hexdigest()[:16]


def weights(model: nn.Module) -> str:
    """16 digits of the bytes of a model's state: parameters and buffers, also quantised or sparse.

    Single integers are left out: they count passes or batches, and an answer that depends on them
    is not of the image alone.

    >>> model = nn.BatchNorm2d(2)
    >>> before = weights(model)
    >>> _ = model.num_batches_tracked.add_(1)
    >>> weights(model) == before
    True
    """
    sha = hashlib.sha256()
    for name, value in model.state_dict().items():
        sha.update(name.encode())
        _add(sha, value)
    return sha.hexdigest()[:16]


def _add(sha, value) -> None:
    """The bytes of whatever a state holds."""
    if isinstance(value, np.ndarray):
        value = torch.from_numpy(np.ascontiguousarray(value))
    if isinstance(value, torch.Tensor):
        if value.ndim == 0 and not (value.is_floating_point() or value.is_complex()):
            return
        sha.update(f"{value.dtype} {tuple(value.shape)}".encode())
        sha.update(content(value))
    elif isinstance(value, dict):
        for key in value:
            sha.update(str(key).encode())
            _add(sha, value[key])
    elif isinstance(value, list | tuple):
        for entry in value:
            _add(sha, entry)
    else:
        sha.update(re.sub(r" at 0x[0-9a-f]+", "", repr(value)).encode())


def content(value: torch.Tensor) -> bytes | memoryview:
    """The bytes of a tensor's numbers, of any type and layout; of a quantised one its scales too.

    >>> content(torch.tensor([1.0, 2.0], dtype=torch.bfloat16)).hex()
    '803f0040'
    """
    if value.is_meta:
        return b""
    value = value.detach().cpu().resolve_conj().resolve_neg()
    if value.is_quantized:
        per_channel = value.qscheme() in (torch.per_channel_affine, torch.per_channel_symmetric)
        scales = ((value.q_per_channel_scales(), value.q_per_channel_zero_points()) if per_channel
                  else (torch.tensor(value.q_scale()), torch.tensor(value.q_zero_point())))
        return b"".join(content(part) for part in (value.int_repr(), *scales))
    if value.layout != torch.strided:
        value = value.to_dense()
    return value.contiguous().flatten().view(torch.uint8).numpy().data


def described(value):
    """``value``, as a key of the cache can hold it: JSON, with hashes for tensors and models.

    Dataclasses become their type, its code and their fields. The code of this library's, as of
    selectors and fuzzers, is its :func:`parsed.digest`, which renamed variables do not change.
    Raises ``TypeError`` for anything else.

    >>> described((1, "a", None))
    [1, 'a', None]
    """
    if isinstance(value, nn.Module):
        return fingerprint(value)
    if isinstance(value, torch.Tensor):
        return [list(value.shape), hashlib.sha256(content(value)).hexdigest()[:16]]
    if is_dataclass(value) and not isinstance(value, type):
        kind = type(value)
        ours = kind.__module__.startswith(parsed.OURS)
        return [f"{kind.__module__}.{kind.__qualname__}",
                parsed.digest(kind) if ours else of_class(kind),
                *([f.name, described(getattr(value, f.name))] for f in fields(value))]
    if isinstance(value, list | tuple):
        return [described(entry) for entry in value]
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"a {type(value).__name__} has no key in the cache: {value!r}")


def of_class(kind: type) -> list[str]:
    """The names of a class and its bases and the code of their methods; [] for torch's classes.

    Python's, torch's and the networks' in :mod:`dnnlib.models` are left out: their names suffice.

    >>> of_class(nn.Linear), len(of_class(type("A", (nn.Linear,), {"__module__": "a"})))
    ([], 1)
    """
    return [f"{base.__module__}.{base.__qualname__}: {of(methods)}"
            for base in kind.__mro__
            if not base.__module__.startswith(("torch.", "builtins", "typing", "dnnlib.models"))
            for methods in [{name: value for name, value in vars(base).items()
                             if not name.startswith("__") or name == "__call__"}]]


def of(value, seen: set[int] | None = None) -> str:
    """A plain value or a function as text; what is neither is left out, also of lists and dicts.

    A function is followed into those that it uses, each once, and a library's is its name.

    >>> of(lambda x: x + 1) == of(lambda x: x + 1), of(lambda x: x + 1) == of(lambda x: x + 2)
    (True, False)
    """
    seen = set() if seen is None else seen
    if isinstance(value, dict):
        return str([[name, of(value[name], seen)] for name in sorted(value, key=str)
                    if isinstance(value[name], _VALUES + _FUNCTIONS)])
    if isinstance(value, list | tuple):
        return str([of(entry, seen) for entry in value
                    if isinstance(entry, _VALUES + _FUNCTIONS)])
    if isinstance(value, torch.Tensor | np.ndarray):
        return str(described(torch.as_tensor(value)))
    if isinstance(value, property):
        value = value.fget
    function = getattr(value, "__func__", value)
    if not isinstance(function, FunctionType):
        return repr(value)
    code = function.__code__
    name = f"{function.__module__}.{function.__qualname__}"
    if id(function) in seen or _of_a_library(function):
        return name
    seen.add(id(function))
    closed = [cell.cell_contents for cell in function.__closure__ or ()]
    used = {name: function.__globals__[name] for name in _names(code)
            if name in function.__globals__}
    rest = [function.__defaults__, function.__kwdefaults__, closed, used]
    # a hash, as text within text within text doubles its quotes each time
    return hashlib.sha256(f"{_text(code)} {of(rest, seen)}".encode()).hexdigest()[:16]


def _of_a_library(function: FunctionType) -> bool:
    file = function.__code__.co_filename
    return not (file.startswith("<") or sources.own(file)
                or (function.__module__ or "").startswith(parsed.OURS))


def _text(code: CodeType) -> str:
    constants = [_text(c) if isinstance(c, CodeType)
                 else sorted(map(repr, c)) if isinstance(c, frozenset)  # of any order otherwise
                 else repr(c) for c in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {constants}"


def _names(code: CodeType) -> set[str]:
    """The names used by the code and by the functions in it."""
    return set(code.co_names).union(*(_names(c) for c in code.co_consts
                                      if isinstance(c, CodeType)))
