"""Code as text that a hash can be taken of, the same in every process: what a function does.

Beside its bytecode, a function is what that refers to: defaults, closures and globals, as far as
these are plain values or functions. Modules, classes and objects that it uses do not count.
"""

from types import CodeType, FunctionType, MethodType

import torch

_VALUES = (bool, int, float, str, bytes, type(None), list, tuple, dict, torch.Tensor)
_FUNCTIONS = (FunctionType, MethodType, classmethod, staticmethod, property)


def of_class(kind: type) -> list[str]:
    """The names of a class and its bases and the code of their methods; [] for torch's classes.

    Python's, torch's and the networks' in :mod:`dnnlib.models` are left out: their names suffice.

    >>> of_class(torch.nn.Linear), len(of_class(type("Mine", (torch.nn.Linear,), {})))
    ([], 1)
    """
    return [f"{base.__module__}.{base.__qualname__}: {of(methods)}"
            for base in kind.__mro__
            if not base.__module__.startswith(("torch.", "builtins", "typing", "dnnlib.models"))
            for methods in [{name: value for name, value in vars(base).items()
                             if not name.startswith("__") or name == "__call__"}]]


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
