"""What a chapter can be asked: its parameters, and values for them, checked before it runs."""

import ast
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from dnnbook.chapters import declared
from dnnbook.data import in_file, sources
from dnnlib import checks


@dataclass(frozen=True)
class Parameter:
    """A line of a notebook's parameters cell."""

    name: str
    default: object
    help: str


def metadata(path: Path) -> dict:
    """The metadata of a notebook; ``ValueError`` for a file that is none."""
    return _metadata(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=512)  # a sweep asks for those of a few notebooks hundreds of times
def _metadata(path: Path, changed: int) -> dict:
    try:
        content = json.loads(path.read_bytes())
        return content["metadata"] | {"cells": len(content["cells"])}
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a notebook: {error}") from error


def parameters(path: Path) -> dict[str, Parameter]:
    """The parameters of a notebook with their defaults, in order; comments are their help."""
    return dict(_parameters(path, path.stat().st_mtime_ns))


@lru_cache(maxsize=512)
def _parameters(path: Path, changed: int) -> dict[str, Parameter]:
    import papermill
    if "kernelspec" not in metadata(path):
        raise ValueError(f"{path} does not say its kernel: expected a kernelspec for Python")
    found = {}
    for name, about in papermill.inspect_notebook(str(path)).items():
        try:
            found[name] = Parameter(name, ast.literal_eval(about["default"]), about["help"])
        except (SyntaxError, ValueError) as error:
            raise ValueError(f"{path}: the parameters cell holds more than plain values: "
                             f"{name} = {about['default']}") from error
    return found


def where(path: Path) -> str:
    """What the table of parameters calls a chapter: its experiment, else 'nss/00' or so."""
    return metadata(path).get("dnnlib", {}).get("experiment") or (
        f"{path.resolve().parent.name}/{path.stem.partition('_')[0]}")


def renamed(path: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """What is asked of a chapter, by the names that its parameters have now.

    Of each older name one line is logged, once in a process. Raises ``ValueError`` if both names
    of one parameter are given.
    """
    known, older, asked = parameters(path), declared.older(where(path)), dict(given)
    for old, name in older.items():
        if old not in asked or old in known or name not in known:
            continue
        if name in asked:
            raise ValueError(f"{old} is called {name} now: expected one of the two, got both")
        _told(old, name)
        asked = {name if key == old else key: value for key, value in asked.items()}
    return asked


@lru_cache
def _told(old: str, name: str) -> None:
    logging.getLogger(__name__).warning("%s is called %s now", old, name)  # to stderr, as it is


def typed(path: Path, given: dict[str, str], *, alone: bool = False) -> dict:
    """Values from the command line, in the type of their kind, checked before a cell runs.

    ``alone``: each by itself, without the rules between parameters. Raises ``ValueError`` for a
    name that the notebook does not have (with the nearest), and what :func:`declared.check` does.
    An older name of a parameter is taken: see :func:`renamed`.
    """
    known = parameters(path)
    values = {}
    for name, text in renamed(path, given).items():
        if not known:
            raise ValueError(f"{path.name} has no parameters; got {name!r}")
        default = known[checks.known(name, known, f"parameter of {path.stem}")].default
        found = declared.entry(name, where(path))
        values[name] = (declared.from_text(text, found["kind"]) if found
                        else _typed(name, text, default))
    values = declared.alone(where(path), values)
    if sources.is_folder(values.get("dataset", "")):  # the notebook runs in its own folder
        values["dataset"] = str(Path(values["dataset"]).expanduser().resolve())
    for name, value in values.items():
        if in_file.is_own(value) and declared.own_kind(declared.entry(name, where(path))):
            values[name] = in_file.absolute(value)
    if not alone:
        together(path, values, here=False)
    return values


def defaults(path: Path) -> dict[str, object]:
    """The values of a notebook's parameters that nobody changed."""
    return {name: parameter.default for name, parameter in parameters(path).items()}


def together(path: Path, values: dict, *, here: bool = True) -> None:
    """:func:`declared.check` of all values, before a kernel starts: by default for this machine."""
    declared.check(where(path), here=here, **defaults(path) | values)


def listed(path: Path) -> list[dict[str, str]]:
    """A line for each parameter of a notebook: its name, what it may be, its default, its meaning.

    The meaning is that of the table; of a name that the table does not have, the comment.
    """
    lines = []
    for parameter in parameters(path).values():
        found = declared.entry(parameter.name, where(path))
        known = declared.choices(found)
        lines.append({"parameter": parameter.name, "default": repr(parameter.default),
                      "may be": ", ".join(sorted(known)) + (
                          ", or FILE.py:FUNCTION" if declared.own_kind(found) else "") if known else
                      declared.expected(found) if found else type(parameter.default).__name__,
                      "meaning": found.get("help", parameter.help)})
    return lines


def _typed(name: str, text: str, default):
    """As the default is, of a parameter that the table does not have."""
    kind = type(default)
    if kind is str:
        return text
    if kind in (bool, int, float):
        name_of = {bool: "flag", int: "whole", float: "number"}[kind]
        value = declared.from_text(text, name_of)
        if type(value) is kind:
            return value
    raise ValueError(f"parameter {name}: expected {kind.__name__}, such as {default!r}, "
                     f"got {text!r}")
