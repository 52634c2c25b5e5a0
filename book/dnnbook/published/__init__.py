"""What the papers print: their tables as CSV, their claims as TOML.

>>> table("nsatp", 4).query("model == 'net2' and dataset == 'mnist'")["value"].tolist()
[0.99, 0.99, 0.99]
"""

import tomllib
from pathlib import Path
from typing import Annotated, Literal, TypeVar, get_args

import pandas as pd
from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    ValidationError,
    model_validator,
)
from pydantic.dataclasses import dataclass

from dnnlib import checks

FOLDER = Path(__file__).parent
PARTS = {"svhn_part": "svhn"}  # part of a dataset that is not here as a whole: counted apart
OUTLINE: dict[str, dict] = tomllib.loads((FOLDER / "outline.toml").read_text(encoding="utf-8"))
PAPERS: dict[str, str] = {name: items.pop("title") for name, items in OUTLINE.items()}
Paper = Annotated[str, AfterValidator(lambda name: checks.known(name, PAPERS, "paper"))]
Rule = Literal["at_least", "above", "at_most", "below", "about"]
Scale = Literal["linear", "ratio", "share", "percent", "saving", "correlation"]
Taken = Literal["slope", "range"]
Compared = Literal["less", "over", "between", "above", "least"]
RULES, TAKE, BY = map(get_args, (Rule, Taken, Compared))


STRICT = ConfigDict(strict=True, extra="forbid")  # each field of its type, and no other


@dataclass(frozen=True, config=STRICT)
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
    baseline finds far less than in print. ``printed``: the 'table' and 'quantity' in which the
    paper has what is compared, and 'how' it follows, a name of :data:`printed.HOW` and what that
    takes; ``unprinted``: why there is no such number.

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
    paper: Paper
    place: str
    statement: str
    experiment: Annotated[str, Field(pattern=r"^\w+/\w+$")]
    quantity: str
    cells: list[str]  # of what it is compared with, perhaps none
    expected: Annotated[int, Field(ge=1)]
    rule: Rule
    threshold: FiniteFloat
    where: dict = Field(default_factory=dict)
    note: str = ""
    scale: Scale = "linear"
    margin: FiniteFloat = 0.0
    ceiling: dict = Field(default_factory=dict)
    out_of: str | int = ""
    weak_baseline: str = ""
    printed: dict = Field(default_factory=dict)
    unprinted: str = ""
    along: str = ""
    take: Taken | Literal[""] = ""
    against: dict = Field(default_factory=dict)
    by: Compared | Literal[""] = ""

    @model_validator(mode="after")
    def _together(self):
        """What one field needs of another."""
        for wrong, why in (
                ((self.margin > 0) != (self.rule == "about"),
                 "margin: expected a number above 0 with the rule 'about', and only there"),
                (self.ceiling and not isinstance(self.ceiling.get("quantity"), str),
                 "ceiling: expected a quantity"),
                (self.printed and not {"table", "quantity"} <= {*self.printed}
                 <= {"table", "quantity", "how"},
                 "printed: expected a table, a quantity, and perhaps how"),
                (self.printed and self.unprinted, "unprinted: expected without 'printed'"),
                (self.out_of and self.scale not in ("share", "percent"),
                 "out_of: expected a claim about a share"),
                (bool(self.against) != bool(self.by),
                 "by: expected with 'against', and only there"),
                (bool(self.along) != bool(self.take),
                 "take: expected with 'along', and only there")):
            if wrong:
                raise ValueError(why)
        return self


@dataclass(frozen=True, config=STRICT)
class Amendment:
    """A rule that changed after records existed: ``what`` it was and is, and the ``reason``.

    ``claims``: the ids of those it touches, or 'all'. ``date``: of the change, year-month-day.
    """

    id: str
    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
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


def of_part(found: pd.DataFrame) -> pd.DataFrame:
    """A table's rows of a dataset of which a part is here, under the name of the part.

    >>> of_part(table("nss", 7))["model"].unique().tolist()
    ['lenet5_nss', 'vgg16']
    """
    parts = {whole: part for part, whole in PARTS.items()}
    return found[found["dataset"].isin(parts)].replace({"dataset": parts})


def source(paper: str, number: int) -> str:
    """Where a table stands in its paper, and how its heads were read."""
    lines = _path(paper, number).read_text(encoding="utf-8").splitlines()
    return "\n".join(line.removeprefix("#").strip() for line in lines if line.startswith("#"))


def papers(folder: Path) -> list[str]:
    """The papers of the outline, in its order; ``ValueError`` unless each has claims in ``folder``,
    and no other has."""
    there = {path.parent.name for path in folder.glob("*/claims.toml")}
    for name in PAPERS:
        if name not in there:
            raise ValueError(f"{folder / name / 'claims.toml'}: expected the claims of [{name}] in "
                             "outline.toml, got no file")
    if new := sorted(there - set(PAPERS)):
        raise ValueError(f"{folder / 'outline.toml'}: expected [{new[0]}], with its title, tables "
                         f"and figures, since there is {new[0]}/claims.toml")
    return [*PAPERS]


def claims(paper: str | None = None, path: Path | None = None) -> list[Claim]:
    """The claims of one paper, or of all, in the order of the papers; or those of a file ``path``.

    Raises ``ValueError`` naming the claim and the field that is wrong.
    """
    paths = [path] if path else [FOLDER / name / "claims.toml" for name in papers(FOLDER)]
    found = [claim for file in paths for claim in entries(file, "claim", Claim)]
    if bare := [claim.id for claim in found if not claim.cells]:
        raise ValueError(f"claim {bare[0]}: cells []: expected a column")
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
    found = [entry for path in paths if path.exists()
             for entry in entries(path, "amendment", Amendment)]
    known = {claim.id for claim in claims()}
    for entry in found:
        if entry.claims != "all" and (unknown := set(entry.claims) - known):
            raise ValueError(f"amendment {entry.id}: there is no claim {sorted(unknown)}")
    return found


E = TypeVar("E")


def entries(path: Path, kind: str, of: type[E]) -> list[E]:
    """The ``[[kind]]`` tables of a TOML file; ``ValueError`` naming one and what is wrong in it."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get(kind, [])
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not TOML: {error}") from error
    return [validated(of, entry, f"{kind} {entry.get('id', entry)}") for entry in tables]


def validated(of: type[E], entry: dict, name: str) -> E:
    """The entry as ``of``; ``ValueError`` of one line with its ``name`` and each field's problem.

    >>> validated(Amendment, {"id": "x", "date": 3} | dict.fromkeys(("claims", "what"), ""), "x")
    Traceback (most recent call last):
    ValueError: x: date 3: Input should be a valid string; reason: Field required
    """
    try:
        return of(**entry)
    except ValidationError as error:
        found = {}
        for wrong in error.errors():  # of a union's choices the first is named
            field = wrong["loc"][0] if wrong["loc"] else ""
            what = wrong["msg"].removeprefix("Value error, ")
            came = f"{field} {entry[field]!r}" if field in entry else field
            found.setdefault(field, f"{came}: {what}" if came else what)
        raise ValueError(f"{name}: {'; '.join(found.values())}") from error
