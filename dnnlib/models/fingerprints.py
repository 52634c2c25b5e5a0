"""What tells two models, or two values, apart in the key of the cache: their code too.

Beside its bytecode, a function is what that refers to: defaults, closures and globals, as far as
these are plain values or functions. Modules, classes and objects that it uses do not count.
"""

import hashlib
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from types import CodeType, FunctionType, MethodType

import torch
from torch import nn

from dnnlib.models import parsed

_VALUES = (bool, int, float, str, bytes, type(None), list, tuple, dict, torch.Tensor)
LIBRARIES = ("transformers",)  # whose functions refer to so many others that none is ever done
_FUNCTIONS = (FunctionType, MethodType, classmethod, staticmethod, property)


def fingerprint(model: nn.Module) -> str:
    """16 hexadecimal digits that name a model's structure, its weights, and code of your own.

    Modules print alike whatever their ``forward`` does. So of every module that is neither
    torch's nor of :mod:`dnnlib.models`, the code and the attributes count too.
    """
    sha = hashlib.sha256(str(model).encode())
    for value in model.state_dict().values():
        sha.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    for name, module in model.named_modules():
        code = of_class(type(module))
        if code or "forward" in vars(module):
            attributes = {k: v for k, v in vars(module).items()
                          if not k.startswith("_") and k != "training"}
            sha.update(str([name, code, of(attributes)]).encode())
    return sha.hexdigest()[:16]


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
        content = value.detach().cpu().contiguous().numpy()
        return [list(value.shape), hashlib.sha256(content).hexdigest()[:16]]
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
    Of a library in :data:`LIBRARIES` the version stands for the code.

    >>> of_class(nn.Linear), len(of_class(type("A", (nn.Linear,), {"__module__": "a"})))
    ([], 1)
    """
    return [f"{base.__module__}.{base.__qualname__}: {_version(base) or of(methods)}"
            for base in kind.__mro__
            if not base.__module__.startswith(("torch.", "builtins", "typing", "dnnlib.models"))
            for methods in [{name: value for name, value in vars(base).items()
                             if not name.startswith("__") or name == "__call__"}]]


def _version(kind: type) -> str:
    library = kind.__module__.partition(".")[0]
    return f"{library} {version(library)}" if library in LIBRARIES else ""


def of(value, within: tuple[CodeType, ...] = ()) -> str:
    """A plain value or a function as text; what is neither is left out, also of lists and dicts.

    >>> of(lambda x: x + 1) == of(lambda x: x + 1), of(lambda x: x + 1) == of(lambda x: x + 2)
    (True, False)
    """
    if isinstance(value, dict):
        return str([[name, of(value[name], within)] for name in sorted(value, key=str)
                    if isinstance(value[name], _VALUES + _FUNCTIONS)])
    if isinstance(value, list | tuple):
        return str([of(entry, within) for entry in value
                    if isinstance(entry, _VALUES + _FUNCTIONS)])
    if isinstance(value, torch.Tensor):
        return str(value.tolist())
    if isinstance(value, property):
        value = value.fget
    function = getattr(value, "__func__", value)
    if not isinstance(function, FunctionType):
        return repr(value)
    code = function.__code__
    if code in within:  # it calls itself
        return code.co_name
    closed = [cell.cell_contents for cell in function.__closure__ or ()]
    used = {name: function.__globals__[name] for name in _names(code)
            if name in function.__globals__}
    rest = [function.__defaults__, function.__kwdefaults__, closed, used]
    return f"{_text(code)} {of(rest, (*within, code))}"


def _text(code: CodeType) -> str:
    constants = [_text(c) if isinstance(c, CodeType)
                 else sorted(map(repr, c)) if isinstance(c, frozenset)  # of any order otherwise
                 else repr(c) for c in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {constants}"


def _names(code: CodeType) -> set[str]:
    """The names used by the code and by the functions in it."""
    return set(code.co_names).union(*(_names(c) for c in code.co_consts
                                      if isinstance(c, CodeType)))
