"""What the papers print: their tables as CSV, their claims as TOML.

>>> table("nsatp", 4).query("model == 'net2' and dataset == 'mnist'")["value"].tolist()
[0.99, 0.99, 0.99]
"""

import math
import re
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path

import pandas as pd

from dnnlib import checks

FOLDER = Path(__file__).parent
PAPERS = ("nsatp", "peacepact", "nss", "deepsensor_sensitivity", "deepsensor_excitable")
RULES = ("at_least", "above", "at_most", "below", "about")
SCALES = ("linear", "ratio", "share", "percent", "saving", "correlation")
BY = ("less", "over", "between", "above", "least")
TAKE = ("slope", "range")


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, and the rule that decides it.

    In every cell (a value of each column in ``cells``), the records of ``experiment`` whose rows
    have this ``quantity`` and agree with ``where`` (a list there means one of its values, an empty
    text a row without one) must lie on the side of ``threshold`` that ``rule`` names, or, for the
    rule 'about', within ``margin`` of it. ``expected``: how many cells the paper has. ``scale``:
    what the quantity is, and so the scale on which its interval is taken
    (:data:`dnnbook.records.intervals.SCALES`). ``ceiling``: counts of the same
    records, its 'quantity' and what replaces parts of ``where``: of inputs, or 'of' a number. Where
    they are all 0 or all as many as can be, whatever is done, nothing is left to compare, and the
    cell is open. ``out_of``: how many a share counts among: a number,
    a column, or 'rows', as many as there are. ``weak_baseline``: which cells hold because a
    baseline finds far less than in print.

    What is judged may follow from rows (:mod:`dnnbook.records.derived`). ``along``: a column whose
    values make one of what stands along it, ``take``: its 'slope' for a step, or its 'range'.
    ``against``: as ``where``, which it replaces in part, for the rows to compare with, ``by``:

    Its 'quantity' is the claim's unless named.

    - 'less': less the largest of them,
    - 'over': a multiple of their mean,
    - 'between': how far inside their range,
    - 'above', 'least': 1 if above all of them (below all), else 0.
    """

    id: str
    paper: str
    place: str
    statement: str
    experiment: str
    quantity: str
    cells: list[str]
    expected: int
    rule: str
    threshold: float
    where: dict = field(default_factory=dict)
    note: str = ""
    scale: str = "linear"
    margin: float = 0.0
    ceiling: dict = field(default_factory=dict)
    out_of: str | int = ""
    weak_baseline: str = ""
    along: str = ""
    take: str = ""
    against: dict = field(default_factory=dict)
    by: str = ""


@dataclass(frozen=True)
class Amendment:
    """A rule that changed after records existed: ``what`` it was and is, and the ``reason``.

    ``claims``: the ids of those it touches, or 'all'. ``date``: of the change, year-month-day.
    """

    id: str
    date: str
    claims: list[str] | str
    what: str
    reason: str


def tables() -> dict[str, list[int]]:
    """The papers, and the numbers of their tables that are here."""
    found: dict[str, list[int]] = {}
    for path in FOLDER.glob("*/table_*.csv"):
        found.setdefault(path.parent.name, []).append(int(path.stem.removeprefix("table_")))
    return {paper: sorted(numbers) for paper, numbers in sorted(found.items())}


def _path(paper: str, number: int) -> Path:
    known = tables()
    numbers = known[checks.known(paper, known, "paper")]
    if number not in numbers:
        raise ValueError(f"{paper} has no table {number!r} here; it has {numbers}")
    return FOLDER / paper / f"table_{number}.csv"


def table(paper: str, number: int) -> pd.DataFrame:
    """Table ``number`` (arabic) of a paper, tidy, values as printed.

    Beside a column 'value' stands 'printed', its text with every digit of the paper: a zero at the
    end says how exact a number is. Raises ``ValueError`` for a paper or table that is not here.

    >>> table("nss", 10)["printed"].head(2).tolist()
    ['56.65', '56.50']
    """
    path = _path(paper, number)
    found = pd.read_csv(path, comment="#")
    if "value" in found:
        found["printed"] = pd.read_csv(path, comment="#", dtype=str)["value"]
    return found


def source(paper: str, number: int) -> str:
    """Where a table stands in its paper, and how its heads were read."""
    lines = _path(paper, number).read_text(encoding="utf-8").splitlines()
    return "\n".join(line.removeprefix("#").strip() for line in lines if line.startswith("#"))


def claims(paper: str | None = None, path: Path | None = None) -> list[Claim]:
    """The claims of one paper, or of all, in the order of the papers; or those of a file ``path``.

    Raises ``ValueError`` naming the claim and the field that is wrong.
    """
    paths = [path] if path else [FOLDER / name / "claims.toml" for name in PAPERS]
    found = [_claim(entry) for file in paths for entry in _entries(file)]
    doubled = {c.id for c in found if sum(d.id == c.id for d in found) > 1}
    if doubled:
        raise ValueError(f"{path or FOLDER}: claims share the id {', '.join(sorted(doubled))}")
    if paper is not None:
        checks.known(paper, dict.fromkeys(c.paper for c in found), "paper")
    return [c for c in found if paper in (None, c.paper)]


def scales() -> dict[str, str]:
    """How large each experiment is in its paper, by its name, where the text says so.

    >>> scales()["deepsensor_sensitivity/test_errors"]
    '1,000 inputs, 20 iterations'
    """
    table = tomllib.loads((FOLDER / "scales.toml").read_text(encoding="utf-8"))
    return {f"{paper}/{name}": text for paper, named in table.items()
            for name, text in named.items()}


def amendments() -> list[Amendment]:
    """Every amendment: those of all papers, then those of each.

    Raises ``ValueError`` for one without a field, or that touches a claim that is not there.
    """
    paths = [FOLDER / "amendments.toml", *(FOLDER / name / "amendments.toml" for name in PAPERS)]
    found, known = [], {claim.id for claim in claims()}
    for entry in (entry for path in paths if path.exists()
                  for entry in _entries(path, "amendment")):
        names = {f.name for f in fields(Amendment)}
        if set(entry) != names:
            raise ValueError(f"amendment {entry.get('id', entry)}: expected {sorted(names)}, got "
                             f"{sorted(entry)}")
        if entry["claims"] != "all" and (unknown := set(entry["claims"]) - known):
            raise ValueError(f"amendment {entry['id']}: there is no claim {sorted(unknown)}")
        found.append(Amendment(**entry))
    return found


def _entries(path: Path, kind: str = "claim") -> list[dict]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8")).get(kind, [])
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not TOML: {error}") from error


def _claim(entry: dict) -> Claim:
    name = entry.get("id", entry)
    optional = ("where", "note", "scale", "margin", "ceiling", "out_of", "weak_baseline", "along",
                "take", "against", "by")
    missing = [f.name for f in fields(Claim) if f.name not in entry and f.name not in optional]
    unknown = sorted(set(entry) - {f.name for f in fields(Claim)})
    if missing or unknown:
        raise ValueError(f"claim {name}: missing {missing}, unknown {unknown}")
    claim = Claim(**entry)
    texts = [f.name for f in fields(Claim) if f.type is str]
    rules = {text: (_text(getattr(claim, text)), "is not a text") for text in texts}
    rules |= {
        "paper": (claim.paper in PAPERS, f"is none of {', '.join(PAPERS)}"),
        "rule": (claim.rule in RULES, f"is none of {', '.join(RULES)}"),
        "scale": (claim.scale in SCALES, f"is none of {', '.join(SCALES)}"),
        "threshold": (_number(claim.threshold), "is not a number"),
        "margin": (_number(claim.margin) and (claim.margin > 0) == (claim.rule == "about"),
                   "is not a number above 0, which the rule 'about' needs, and only that"),
        "experiment": (_text(claim.experiment) and re.fullmatch(r"\w+/\w+", claim.experiment),
                       "is not paper/experiment"),
        "cells": (isinstance(claim.cells, list) and claim.cells and all(map(_text, claim.cells)),
                  "is not a list of columns"),
        "expected": (isinstance(claim.expected, int) and _number(claim.expected)
                     and claim.expected >= 1, "is not a count from 1"),
        "where": (isinstance(claim.where, dict), "is not a table"),
        "ceiling": (isinstance(claim.ceiling, dict)
                    and (not claim.ceiling or _text(claim.ceiling.get("quantity"))),
                    "is not a table with a quantity"),
        "out_of": (not claim.out_of or claim.scale in ("share", "percent"),
                   "is of a claim about no share"),
        "against": (isinstance(claim.against, dict), "is not a table"),
        "by": (claim.by in BY if claim.against else claim.by == "",
               f"is none of {', '.join(BY)}, which 'against' needs, and only that"),
        "take": (claim.take in TAKE if claim.along else claim.take == "",
                 f"is none of {', '.join(TAKE)}, which 'along' needs, and only that"),
    }
    for key, (right, message) in rules.items():
        if not right:
            raise ValueError(f"claim {name}: {key} {getattr(claim, key)!r} {message}")
    return claim


def _text(value) -> bool:
    return isinstance(value, str)


def _number(value) -> bool:
    return (isinstance(value, (int, float)) and not isinstance(value, bool)
            and math.isfinite(value))
