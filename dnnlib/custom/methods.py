"""The selectors that a run is asked for: the package's by name, or a person's own in FILE.py."""

import hashlib
import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass

from dnnlib import checks, selection
from dnnlib.custom.loading import in_file, of_file
from dnnlib.custom.own_code import class_of, is_own
from dnnlib.models import sources
from dnnlib.models.fingerprints import described, of_class

_log = logging.getLogger(__name__)  # to stderr, as it is
Kind = type[selection.Selector] | selection.Selector  # a class, or an instance with its options
METHODS: tuple[str, ...] = (*selection.SELECTORS,)
FROM_OUTPUTS = tuple(sorted(name for name, kind in selection.SELECTORS.items() if kind.vectors))
Asked = selection.Method | Kind | Sequence[selection.Method | Kind] | Mapping[str, Kind]


def parse_methods(by: Asked, *, reference: bool,
                  layers: Sequence[str] | str | None = None) -> dict[str, Kind]:
    """The selectors in 'gini,nss' or in a list, by name, before all else.

    ``by``: names of :data:`selection.SELECTORS`; classes derived from :class:`selection.Selector`,
    also as 'FILE.py:CLASS', or instances with their options, which are called by the class's name
    in small letters. ``reference``: whether there are training images, which take the place of an
    instance's; ``layers``: which are asked for. Raises ``ValueError`` for a name that is unknown or
    comes twice, for a class that is no selector, for one that needs training
    images where there are none, and for layers that none of the selectors takes.

    >>> parse_methods("gini, dsa", reference=False)
    Traceback (most recent call last):
    ValueError: dsa: needs training images; give a folder of them (--reference)
    """
    found = kinds_of(by)
    for name, kind in found.items():
        if needs_reference(kind) and not reference:
            raise ValueError(f"{name}: needs training images; give a folder of them (--reference)")
    if layers and not any(map(takes_layers, found.values())):
        raise ValueError(f"layers: only with methods that take some (--layers), got "
                         f"{', '.join(found)}")
    return found


def kinds_of(by: Asked) -> dict[str, Kind]:
    """The same, whatever they need."""
    if isinstance(by, Mapping):
        return dict(by)
    if isinstance(by, str):  # a file's name may hold blanks
        by = [part.strip() for part in by.split(",")] if in_file(by) else by
    elif not isinstance(by, Sequence):
        by = [by]
    parts = [by] if isinstance(by, str) else [part for part in by if part]
    found: dict[str, Kind] = {}
    for part in parts:
        for name, kind in _named(part):
            if name in found:
                raise ValueError(f"methods: expected each once, got {name!r} twice")
            found[name] = kind
    if not found:
        raise ValueError(f"methods: expected words with spaces or commas between them, got {by!r}")
    return found


def _named(part) -> list[tuple[str, Kind]]:
    if isinstance(part, str) and not in_file(part):
        return [(name, selection.SELECTORS[name])
                for name in checks.words(part, "methods", selection.SELECTORS, "method")]
    given = of_file(part, "method") if isinstance(part, str) else part
    kind = class_of(given)
    if not (issubclass(kind, selection.Selector) and is_dataclass(kind)):
        raise ValueError(f"methods: expected a dataclass derived from dnnlib.selection.Selector or "
                         f"Scored, got {part!r}")
    name = next((name for name, known in selection.SELECTORS.items() if known is kind),
                kind.__name__.lower())
    if selection.SELECTORS.get(name, kind) is not kind:
        raise ValueError(f"methods: {part} would be called {name}, as one of the package is; give "
                         "the class another name")
    return [(name, given)]


def needs_reference(method: str | Kind) -> bool:
    """Whether a selector compares the candidates with training images.

    >>> [name for name in ("gini", "nss", "kmnc") if needs_reference(name)]
    ['kmnc']
    """
    kind = selection.SELECTORS[method] if isinstance(method, str) else method
    return any(f.name == "reference" and f.default is MISSING for f in fields(kind))


def tell_unused(methods: Mapping[str, Kind], reference,
                fuzzers: Mapping[str, bool] | None = None) -> None:
    """A line of the log, if there are training images and nothing that was asked for takes any.

    ``fuzzers``: by name, whether it does.
    """
    if reference is not None and not any((fuzzers or {}).values()) and not any(
            f.name == "reference" for kind in methods.values() for f in fields(kind)):
        _log.warning("reference: the training images are not used; none of %s takes any",
                     ", ".join([*methods, *(fuzzers or {})]))


def takes_layers(kind: Kind) -> bool:
    """Whether it can be told which layers a selector looks at."""
    return not {"layers", "layer"}.isdisjoint(f.name for f in fields(kind))


def said(name: str, given: object | None) -> str:
    """A name by which two runs are told apart: with a digest of one's own files that it comes from,
    and of an instance's options.
    """
    kind = class_of(given)
    if given is None or given is kind and not is_own(kind):
        return name
    code = str(sources.own_files(kind.__mro__)) + ("" if given is kind else str(described(given)))
    if not sources.own(getattr(sys.modules.get(kind.__module__), "__file__", None)):
        code += "".join(of_class(kind))  # written at a prompt or in a notebook
    return f"{name} {hashlib.sha256(code.encode()).hexdigest()[:8]}"
