"""What a chapter can be asked: every parameter declared once, and the check of its values.

The table is ``parameters.toml``. :func:`check` is the one check there is: of ``dnnbook run``, of a
sweep, and of a chapter's first cell, so that papermill and JupyterLab say the same line.
"""

import math
import sys
import tomllib
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from numbers import Integral, Real
from pathlib import Path

from dnnbook import data, training
from dnnbook.chapters import between
from dnnbook.data import in_file, own, sources
from dnnbook.studies import perturbation
from dnnbook.training import faulty, networks, pollution
from dnnlib import checks, models, selection
from dnnlib.custom import options
from dnnlib.perturb import vulnerability

NAMES: dict[str, Callable[[], Collection[str]]] = {  # what `of` in the table speaks of
    "models": lambda: models.SPECS, "recipes": lambda: (*training.RECIPES, "pretrained"),
    "profiles": lambda: data.PROFILES, "patches": lambda: vulnerability.PATCHES,
    "pollution": lambda: pollution.PATCHES, "errors": lambda: faulty.ERRORS,
    "selectors": lambda: selection.SELECTORS, "fuzzers": lambda: options.METHODS,
}
OWN: dict[str, Callable[[str], str]] = {  # what may be one's own, and what records call it
    "models": networks.called, "patches": perturbation.called, "dataset": own.called,
    **dict.fromkeys(("selectors", "fuzzers"), lambda name: in_file.called(name, "beside")),
}
BORDERS = ("least", "above", "most", "count", "even", "whole", "choices", "of", "none")


@lru_cache(maxsize=1)
def table() -> dict[str, dict]:
    """The table as it is written: by name."""
    return tomllib.loads((Path(__file__).parent / "parameters.toml").read_text(encoding="utf-8"))


def entry(name: str, where: str) -> dict:
    """What the table says of a parameter in an experiment, or in a chapter without one.

    Empty if it says nothing. Another kind has no border of the first.

    >>> entry("trials", "nsatp/rq1")
    {'kind': 'whole', 'least': 1, 'help': 'M, patched copies of each image'}
    >>> entry("pixels", "deepsensor_sensitivity/13")["most"], entry("trails", "nsatp/rq1")
    (1, {})
    """
    found = dict(table().get(name, {}))
    at = found.pop("at", {})
    for place in (where.partition("/")[0], where):
        more = at.get(place, {})
        if "kind" in more:
            found = {key: value for key, value in found.items() if key not in BORDERS}
        found |= more
    return found if "kind" in found else {}


@lru_cache(maxsize=128)
def older(where: str) -> dict[str, str]:
    """The names that parameters had before in an experiment, with those that they have now.

    >>> older("nsatp/motivation")["examples"], "examples" in older("nsatp/rq1")
    ('inputs', False)
    """
    return {old: name for name in table() for old in entry(name, where).get("was", ())}


def stored(name: str, where: str) -> str:
    """The name under which the records of an experiment keep a parameter, also of an older name.

    >>> stored("inputs", "deepsensor_sensitivity/test_errors"), stored("inputs", "nsatp/rq2")
    ('seeds_count', 'first')
    """
    name = older(where).get(name, name)
    return entry(name, where).get("stored", name)


def kept(name: str, value, where: str):
    """What the records of an experiment keep of a parameter's value.

    >>> kept("model_name", "lenet5", "nss/diversity"), kept("seed", 3, "nss/diversity")
    ('lenet5', 3)
    """
    kind = own_kind(entry(name, where))
    return OWN[kind](value) if kind and value else value


def own_kind(found: Mapping) -> str:
    """Which of :data:`OWN` a parameter is, whose value may be 'FILE.py:FUNCTION'; '' for none.

    >>> own_kind(entry("patch", "nsatp/rq1")), own_kind(entry("seed", "nsatp/rq1"))
    ('patches', '')
    """
    kind = found.get("of") or found.get("kind", "")
    return kind if kind in OWN and found.get("kind") in ("name", "dataset") else ""


def choices(found: Mapping) -> Collection[str] | None:
    """The names that a parameter may have; None if it is no name."""
    return NAMES[found["of"]]() if "of" in found else found.get("choices")


def expected(found: Mapping) -> str:
    """What a parameter's value is, in words.

    >>> expected(entry("rates", "nss/repair")), expected(entry("alpha", "nss/repair"))
    ('numbers above 0 and of at most 100 with spaces or commas between them', \
'a whole number from 1 to 100')
    """
    kind = found["kind"]
    if kind in ("whole", "number", "numbers"):
        return _numeral(found)
    return {"flag": "True or False", "words": "words with spaces or commas between them",
            "text": "text", "name": "a name", "device": "cpu, cuda, mps or auto",
            "dataset": "a name of `dnnbook data`, a folder of images, torchvision:NAME or "
                       "FILE.py:FUNCTION"}[kind]


def _numeral(found: Mapping) -> str:
    least, above, most = (found.get(key) for key in ("least", "above", "most"))
    parity = "even " if found.get("even") else ""
    whole = found["kind"] == "whole" or found.get("whole")
    if least is not None and most is not None:
        border = f" from {least:g} to {most:.10g}"
    else:
        border = " and".join(text for text in (
            f" of at least {least:g}" if least is not None else "",
            f" above {above:g}" if above is not None else "",
            f" of at most {most:.10g}" if most is not None else "") if text)
    if found["kind"] == "numbers":
        many = f"{found['count']} " if "count" in found else ""
        what = "whole numbers" if whole else "numbers"
        return f"{many}{what}{border} with spaces or commas between them"
    return f"{'an' if parity else 'a'} {parity}{'whole ' if whole else ''}number{border}"


def value(name: str, given, found: Mapping):
    """A value that was checked alone, in the type of its kind; ``ValueError`` in one line.

    >>> value("trials", 0, entry("trials", "nsatp/rq1"))
    Traceback (most recent call last):
    ValueError: trials: expected a whole number of at least 1, got 0
    """
    kind = found["kind"]
    good = _GOOD[kind](given, found)
    if good is None:
        raise ValueError(f"{name}: expected {expected(found)}, got {given!r}")
    known = choices(found)
    if kind == "dataset" and known is None:
        known = None if sources.is_users(good) else sources.SOURCES
    if kind == "name" and own_kind(found) and in_file.is_own(good):
        known = None
    if known is not None:
        words = checks.words(good, name) if kind == "words" and good else (good,) if good else ()
        for word in words:
            checks.known(word, known, f"network in {name}" if name == "others" else name)
    return good


def _within(number, found: Mapping) -> bool:
    return (math.isfinite(number) and number >= found.get("least", -math.inf)
            and number > found.get("above", -math.inf) and number <= found.get("most", math.inf)
            and not (found.get("even") and number % 2))


def _whole(given, found: Mapping):
    if isinstance(given, bool) or not isinstance(given, Integral) or not _within(given, found):
        return None
    return int(given)


def _number(given, found: Mapping):
    if isinstance(given, bool) or not isinstance(given, Real) or not _within(given, found):
        return None
    return float(given)


def _numbers(given, found: Mapping):
    """The text of the list, as it was given; of one number its text."""
    if isinstance(given, bool) or not isinstance(given, str | Real):
        return None
    try:
        read = checks.numbers(given, "")
    except ValueError:
        return None
    good = all(_within(number, found) and (isinstance(number, int) or not found.get("whole"))
               for number in read)
    return str(given) if good and len(read) == found.get("count", len(read)) else None


def _text(given, found: Mapping):
    if found.get("none") and given == "":
        return given
    return given if isinstance(given, str) and given.strip() else None


_GOOD: dict[str, Callable] = {
    "whole": _whole, "number": _number, "numbers": _numbers, "name": _text, "text": _text,
    "words": _text, "dataset": _text, "device": _text,
    "flag": lambda given, found: given if isinstance(given, bool) else None}


def from_text(text: str, kind: str):
    """A value of the command line as its kind has it; the text if it is not of that kind.

    >>> from_text("1e3", "whole"), from_text("ten", "whole"), from_text("false", "flag")
    (1000, 'ten', False)
    """
    if kind == "flag":
        return {"true": True, "false": False}.get(text.lower(), text)
    try:
        number = float(text) if kind in ("whole", "number") else math.nan
    except ValueError:
        return text
    if kind == "whole" and number.is_integer():
        return int(text) if text.lstrip("+-").isdigit() else int(number)
    return number if kind == "number" and not math.isnan(number) else text


def alone(where: str, values: Mapping[str, object]) -> dict:
    """Values in the type of their kind, each checked by itself; unknown names as they are.

    >>> alone("nss/00", {"share": 0.1})
    Traceback (most recent call last):
    ValueError: share: expected a whole number from 1 to 100, got 0.1
    """
    good = {}
    for name, given in values.items():
        found = entry(name, where)
        good[name] = value(name, given, found) if found else given
    return good


def check(where: str, /, *, here: bool = True, **values) -> dict:
    """The values of all parameters of a chapter, checked before anything is computed.

    - ``where``: the experiment, or a chapter without one, as 'nss/00'.
    - ``here``: whether this machine runs it, and must have the dataset and the device.

    Returns the values in the type of their kind. Raises ``ValueError``, or
    :class:`sources.MissingData`, in one line: for a value alone, or for two that do not go
    together (:mod:`between`).

    >>> check("nss/00", dataset="digits", model_name="net1", seed=-1, share=10)
    Traceback (most recent call last):
    ValueError: seed: expected a whole number from 0 to 4000000000, got -1
    """
    if here:
        _as_a_notebook()
    good = alone(where, values)
    between.check(where, good, here=here, of=entry("beside", where).get("of", ""))
    return good


def _as_a_notebook() -> None:
    """Ends a chapter's source that plain Python runs: it has nothing to show tables with."""
    main = sys.modules["__main__"]
    source = Path(getattr(main, "__file__", None) or "none")
    if source.with_suffix(".ipynb").is_file() and not hasattr(main, "get_ipython"):
        chapter = f"{source.resolve().parent.name}/{source.stem}"
        raise SystemExit(f"{source.name} is a chapter: run it by `dnnbook run {chapter}`, "
                         "in JupyterLab, or by ipython")
