"""What a chapter can be asked: its parameters, and values for them, checked before it runs."""

import ast
import json
import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from dnnlib import checks, data, inference, models, training
from dnnlib.data import sources
from dnnlib.perturb import vulnerability

OTHERS = {"others"}  # parameters that list networks by name
PLACES = {"seed_class"}  # places among the classes, which begin at 0
CHOICES = {"model_name": models.SPECS, "patch": vulnerability.PATCHES, "profile": data.PROFILES,
           "split": ("train", "test"), "recipe": (*training.RECIPES, "pretrained")}


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
    with checks.extra("book"):
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


def typed(path: Path, given: dict[str, str]) -> dict:
    """Values from the command line as the types of the notebook's defaults.

    Raises ``ValueError`` for a name that the notebook does not have (with the nearest), a value of
    another type, a count below one (or below a default that is less), a number below zero where
    the default is not, a seed beyond 32 bits, no other network in ``others`` than the one under
    test, or a dataset, network, patch, profile or split that does not exist: before anything is
    computed.
    """
    known = parameters(path)
    values = {}
    for name, text in given.items():
        if not known:
            raise ValueError(f"{path.name} has no parameters; got {name!r}")
        default = known[checks.known(name, known, f"parameter of {path.stem}")].default
        values[name] = _typed(name, text, default)
    if "dataset" in values:
        if sources.is_folder(values["dataset"]):  # the notebook runs in its own folder
            values["dataset"] = str(Path(values["dataset"]).expanduser().resolve())
        else:
            checks.known(values["dataset"], sources.SOURCES, "dataset")
    for name, choices in CHOICES.items():
        if name in values:
            checks.known(values[name], choices, name)
    under_test = values.get("model_name", known["model_name"].default if "model_name" in known
                            else None)
    for name in OTHERS & set(values):
        others = values[name].split()
        for other in others:
            checks.known(other, models.SPECS, f"network in {name}")
        if others and set(others) == {under_test}:  # which would make another method of it
            raise ValueError(f"{name}: {under_test} is the network under test; name another one, "
                             "or none, '', for the rival without other networks")
    for name, value in values.items():
        default = known[name].default
        if name == "seed":
            checks.seed(value)
        elif type(value) is int:
            checks.whole(value, name, least=0 if name in PLACES else min(1, default))
        elif type(value) is float:
            checks.finite(value, name, least=0 if default >= 0 else -math.inf)
        if _numbers(default) and not _numbers(value, min(*_numbers(default), 0)):
            raise ValueError(f"parameter {name}: expected numbers with spaces between, such as "
                             f"{default!r}, got {value!r}")
    return values


def check_here(path: Path, values: dict) -> None:
    """Whether this machine has the dataset and the device that a run asks for.

    Raises what :func:`sources.check` and :func:`inference.device` do, before a kernel starts.
    """
    known = {name: parameter.default for name, parameter in parameters(path).items()} | values
    if "dataset" in known:
        sources.check(known["dataset"])
    if "device" in known:
        inference.device(known["device"])


def _numbers(text, least: float = -math.inf) -> tuple[float, ...]:
    """The numbers of a list as text, "4 8 12", from ``least`` up; none if it is not such a list."""
    try:
        return checks.numbers(text, "text", least) if isinstance(text, str) else ()
    except ValueError:
        return ()


def _typed(name: str, text: str, default):
    kind = type(default)
    if kind is str:
        return text
    if kind is bool and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    raise ValueError(f"parameter {name}: expected {kind.__name__}, such as {default!r}, "
                     f"got {text!r}")
