"""Whose code it is: a library counts by its version, a person's own files by their bytes."""

import ast
import hashlib
import sys
from collections.abc import Iterable, Iterator
from importlib.util import resolve_name
from pathlib import Path
from types import ModuleType

import dnnlib

_INSTALLED = {"site-packages", "dist-packages"}  # wherever these lie
_LIBRARIES = tuple(Path(place).resolve() for place in (
    sys.prefix, sys.base_prefix, Path(dnnlib.__file__).parent))


def own(file: str | None) -> bool:
    """Whether a file of code is a person's own: not Python's, a library's or this package's.

    >>> own(hashlib.__file__), own("net.py"), own("<string>")
    (False, True, False)
    """
    if not file or file.startswith("<"):
        return False
    path = Path(file).resolve()
    return not (_INSTALLED & {*path.parts} or any(map(path.is_relative_to, _LIBRARIES)))


def own_files(things: Iterable) -> dict[str, str]:
    """The person's own files that classes, functions or modules come from, and what these import:
    12 digits of their bytes, by name.

    >>> own_files([Path, sys])
    {}
    """
    paths = {Path(str(module.__file__)) for module in _reached(things)
             if own(getattr(module, "__file__", None))}
    found: dict[str, list[bytes]] = {}
    for path in paths:
        if path.suffix == ".py" and path.is_file():
            found.setdefault(path.name, []).append(path.read_bytes())
    return {name: hashlib.sha256(b"".join(sorted(contents))).hexdigest()[:12]
            for name, contents in sorted(found.items())}


def versions(things: Iterable) -> dict[str, str]:
    """The libraries that classes or functions themselves come from.

    >>> import numpy
    >>> versions([numpy.linalg.norm]) == {"numpy": numpy.__version__}
    True
    """
    tops = {module.__name__.partition(".")[0] for module in map(_module_of, things)
            if module is not None and not own(getattr(module, "__file__", None))}
    found = {name: getattr(sys.modules.get(name), "__version__", None) for name in sorted(tops)}
    return {name: version for name, version in found.items()
            if isinstance(version, str) and name != "dnnlib"}


def _reached(things: Iterable) -> Iterator[ModuleType]:
    """The modules of ``things``, and all that are reached from a person's own ones, each once."""
    seen: set[int] = set()
    left = [module for thing in things if (module := _module_of(thing)) is not None]
    while left:
        module = left.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        yield module
        if own(getattr(module, "__file__", None)):
            left += [found for value in list(vars(module).values())
                     if (found := _module_of(value)) is not None]
            left += _imported(module)


def _imported(module: ModuleType) -> list[ModuleType]:
    """The modules that a person's own one names in its imports: a constant says not whose it is."""
    try:
        tree = ast.parse(Path(str(module.__file__)).read_bytes())
    except (OSError, SyntaxError, ValueError):  # gone, or no source
        return []
    names = [name for node in ast.walk(tree) for name in (
        [each.name for each in node.names] if isinstance(node, ast.Import) else
        ["." * node.level + (node.module or "")] if isinstance(node, ast.ImportFrom) else [])]
    package = module.__package__ or ""
    whole = [resolve_name(name, package) for name in names if package or not name.startswith(".")]
    return [sys.modules[name] for name in whole if name in sys.modules]


def _module_of(thing) -> ModuleType | None:
    if isinstance(thing, ModuleType):
        return thing
    name = getattr(thing, "__module__", None)
    return sys.modules.get(name) if isinstance(name, str) else None
