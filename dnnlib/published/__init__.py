"""What the papers print: their tables as CSV, their claims as TOML.

>>> table("nsatp", 4).query("model == 'net2' and dataset == 'mnist'")["value"].tolist()
[0.99, 0.99, 0.99]
"""

import re
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path

import pandas as pd

from dnnlib import checks

FOLDER = Path(__file__).parent
RULES = ("at_least", "above", "at_most", "below")


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, and the rule that decides it.

    In every cell (a value of each column in ``cells``), the records of ``experiment`` whose rows
    have this ``quantity`` and agree with ``where`` must lie on the side of ``threshold`` that
    ``rule`` names. ``expected`` is how many cells the paper has.
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


def tables() -> dict[str, list[int]]:
    """The papers, and the numbers of their tables that are here."""
    return {folder.name: sorted(int(p.stem.removeprefix("table_")) for p in folder.glob("table_*.csv"))
            for folder in sorted(FOLDER.iterdir()) if any(folder.glob("table_*.csv"))}


def _path(paper: str, number: int) -> Path:
    known = tables()
    numbers = known[checks.known(paper, known, "paper")]
    if number not in numbers:
        raise ValueError(f"{paper} has no table {number!r} here; it has {numbers}")
    return FOLDER / paper / f"table_{number}.csv"


def table(paper: str, number: int) -> pd.DataFrame:
    """Table ``number`` (arabic) of a paper, tidy, values as printed.

    Raises ``ValueError`` for a paper or table that is not here.
    """
    return pd.read_csv(_path(paper, number), comment="#")


def source(paper: str, number: int) -> str:
    """Where a table stands in its paper, and how its heads were read."""
    lines = _path(paper, number).read_text(encoding="utf-8").splitlines()
    return "\n".join(line.removeprefix("#").strip() for line in lines if line.startswith("#"))


def claims(paper: str | None = None, path: Path = FOLDER / "claims.toml") -> list[Claim]:
    """The claims of one paper, or of all.

    Raises ``ValueError`` naming the claim and the field that is wrong.
    """
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8")).get("claim", [])
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not TOML: {error}") from error
    found = [_claim(entry) for entry in entries]
    doubled = {c.id for c in found if sum(d.id == c.id for d in found) > 1}
    if doubled:
        raise ValueError(f"{path}: claims share the id {', '.join(sorted(doubled))}")
    if paper is not None:
        checks.known(paper, {c.paper for c in found}, "paper")
    return [c for c in found if paper in (None, c.paper)]


def _claim(entry: dict) -> Claim:
    name = entry.get("id", entry)
    optional = ("where", "note")
    missing = [f.name for f in fields(Claim) if f.name not in entry and f.name not in optional]
    unknown = sorted(set(entry) - {f.name for f in fields(Claim)})
    if missing or unknown:
        raise ValueError(f"claim {name}: missing {missing}, unknown {unknown}")
    claim = Claim(**entry)
    if claim.rule not in RULES:
        raise ValueError(f"claim {name}: rule {claim.rule!r} is none of {', '.join(RULES)}")
    if isinstance(claim.threshold, bool) or not isinstance(claim.threshold, (int, float)):
        raise ValueError(f"claim {name}: threshold {claim.threshold!r} is not a number")
    if not re.fullmatch(r"\w+/\w+", claim.experiment):
        raise ValueError(f"claim {name}: experiment {claim.experiment!r} is not paper/experiment")
    return claim
