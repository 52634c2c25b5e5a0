"""What a rule makes of a claim, by the records."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from dnnbook import published
from dnnbook.published import cells as published_cells
from dnnbook.records import derived, intervals, records
from dnnbook.records.intervals import Estimate
from dnnbook.records.moderation import moderated

SEEDS = 3  # fewer runs of a cell decide nothing
ENOUGH = 5  # runs of every cell, fixed beforehand: with fewer a verdict is provisional
MOST = 0.5  # of the paper's cells: more than this share must have been run for "reproduced"
STATES = ("reproduced", "reproduced where run", "mostly", "partly, some fail", "not reproduced",
          "too few runs", "nothing to compare", "not run")

# By rule: the p-values of a cell that holds and of one that fails, and what being on the threshold
# exactly, with every seed, counts as.
Rule = Callable[[Estimate, published.Claim], tuple[float, float]]


def _side(which: int, tie: tuple[float, float]) -> Rule:
    def p(found: Estimate, claim: published.Claim) -> tuple[float, float]:
        above, below = found.p(claim.threshold)
        if found.error == 0 and above == below:
            return tie
        return (above, below) if which > 0 else (below, above)
    return p


def _about(found: Estimate, claim: published.Claim) -> tuple[float, float]:
    """Within the margin: above its lower end and below its upper one; it fails beyond either."""
    above_low, below_low = found.p(claim.threshold - claim.margin)
    above_high, below_high = found.p(claim.threshold + claim.margin)
    return max(above_low, below_high), min(below_low, above_high)


RULES: dict[str, Rule] = {"at_least": _side(1, (0, 1)), "above": _side(1, (1, 0)),
                          "at_most": _side(-1, (0, 1)), "below": _side(-1, (1, 0)),
                          "about": _about}


@dataclass(frozen=True)
class Verdict:
    """What the records say of a claim: its ``state``, and how many cells hold, fail, were run.

    ``cells``: a row for each cell with its mean, interval, seeds and outcome, 'holds', 'fails' or
    'open': whether the 95 % interval over the seeds is on the claim's side, on the other, or
    neither; 'deciding' is :func:`seeds_to_decide`. ``sure_holds`` and ``sure_fails``: how many
    stand after Holm's correction. ``provisional``: some cell has fewer seeds than ``ENOUGH``.
    """

    claim: published.Claim
    state: str
    holds: int
    fails: int
    run: int
    sure_holds: int
    sure_fails: int
    cells: pd.DataFrame
    scale: str  # of the runs: inputs, population, iterations, seeds
    provisional: bool = False


def verdict(claim: published.Claim, root: Path | None = None) -> Verdict:
    """Apply a claim's rule to the records of its experiment.

    What some or no cells do is asked of all together, by Simes's test:

    - 'reproduced': every cell that was run holds, and most of the paper's were run; 'reproduced
      where run': every one holds, of fewer,
    - 'mostly': more than half of those that can tell hold, and none is known to fail,
    - 'partly, some fail': some hold and some fail,
    - 'not reproduced': some fail, and none is known to hold,
    - 'too few runs': none is known to fail, and half or fewer hold; more seeds may decide,
    - 'nothing to compare': the same, and no open cell can tell anything,
    - 'not run': no cell has three seeds.
    """
    seen = [(key, values.iloc[:ENOUGH]) for key, values in cells(claim, root)
            if len(values) >= SEEDS]
    found = moderated([intervals.estimate(values, claim.scale) for _, values in seen],
                      _floors(claim, seen, root))
    p = [RULES[claim.rule](estimate, claim) for estimate in found
         if not math.isnan(estimate.error)]  # without one, nothing is tested
    judged = [dict(zip(claim.cells, key)) | {"mean": e.mean, "low": e.low, "high": e.high,
                                             "seeds": len(values), "outcome": outcome(claim, e),
                                             "deciding": seeds_to_decide(claim, e)}
              for (key, values), e in zip(seen, found)]
    holds = sum(cell["outcome"] == "holds" for cell in judged)
    fails = sum(cell["outcome"] == "fails" for cell in judged)
    sure_holds, sure_fails = (sum(intervals.holm([pair[side] for pair in p])) for side in (0, 1))
    telling = sum(not math.isnan(e.mean) for e in found)
    return Verdict(claim, _state(claim, p, len(judged), holds, telling), holds, fails, len(judged),
                   sure_holds, sure_fails, pd.DataFrame(judged),
                   scale(rows(claim, root), (cell["seeds"] for cell in judged)) if judged else "",
                   any(cell["seeds"] < ENOUGH for cell in judged))


def _state(claim: published.Claim, p: list[tuple[float, float]], run: int, holds: int,
           telling: int) -> str:
    if not run:
        return "not run"
    if holds == run:  # an intersection of tests needs no correction
        return "reproduced" if run > MOST * claim.expected else "reproduced where run"
    some_hold, some_fail = (intervals.simes([pair[side] for pair in p]) for side in (0, 1))
    if some_fail:
        return "partly, some fail" if some_hold else "not reproduced"
    if some_hold and 2 * holds > telling:
        return "mostly"
    return "too few runs" if telling else "nothing to compare"


def _floors(claim: published.Claim, seen: list[tuple[tuple, pd.Series]],
            root: Path | None) -> list[float]:
    """The standard error of each cell's mean if its share of n is all that varies, on the arcsine.

    There the variance of a binomial share is 1 / (4 n) whatever it is, so that 0 of n has one too.
    """
    if not (claim.out_of and seen):
        return []
    found, of_cell = rows(claim, root), list(claim.cells)
    if claim.out_of == "rows":
        count = found.groupby([*of_cell, "seed"]).size().groupby(of_cell).min()
    else:
        count = found.assign(n=found.get(claim.out_of, claim.out_of)).groupby(of_cell)["n"].min()
    return [math.sqrt(1 / (4 * count.loc[key if len(key) > 1 else key[0]] * len(values)))
            for key, values in seen]


def outcome(claim: published.Claim, found: Estimate) -> str:
    """'holds', 'fails' or 'open': where the whole interval of a cell lies."""
    hold, fail = RULES[claim.rule](found, claim)
    return ("holds" if hold <= intervals.LEVEL else "fails" if fail <= intervals.LEVEL
            else "open")


def seeds_to_decide(claim: published.Claim, found: Estimate) -> float:
    """How many seeds would decide a cell if its mean and its spread stayed as they are.

    Infinity if 30 would not, as where a value is undefined.
    """
    seeds = found.seeds
    for more in range(seeds, 31):
        later = replace(found, error=found.error * math.sqrt(seeds / more),
                        degrees=found.degrees + more - seeds)
        if min(RULES[claim.rule](later, claim)) <= intervals.LEVEL:
            return more
    return math.inf


def rows(claim: published.Claim, root: Path | None = None) -> pd.DataFrame:
    """The rows of the records that a claim is about, of cells that its paper has, as they count.

    Raises ``ValueError`` for a column that those of its quantity lack, and for rows of one cell and
    seed that differ in what the claim does not name, with the names of their records.
    """
    found = _rows(claim, root)
    one = [name for name in dict.fromkeys((*claim.cells, "seed", "dataset", "model"))
           if name in found]
    if found.empty or not found.duplicated(one, keep=False).any():
        return found.drop(columns="record", errors="ignore")
    several = found[found.duplicated(one, keep=False)]
    told = {*claim.where, claim.along, "value", *one}
    cells_of = several.groupby(one, dropna=False)
    differ = cells_of[[name for name in several if name not in told]].nunique(dropna=False) > 1
    if differ.any(axis=None):
        cell = differ.any(axis=1).to_numpy().argmax()
        columns = [name for name in differ if differ[name].iloc[cell] and name != "record"]
        of = several["record"][cells_of.ngroup() == cell].unique()[:2]
        raise ValueError(f"claim {claim.id}: rows of one cell and seed differ in "
                         f"{', '.join(columns)}, which neither the claim nor counted.toml names: "
                         f"{' and '.join(of)}")
    return found.drop(columns="record")


def _rows(claim: published.Claim, root: Path | None) -> pd.DataFrame:
    found = records.frame(claim.experiment, root, told=claim.where, named=True)
    found = found[found["quantity"] == claim.quantity] if len(found) else found
    if found.empty:
        return found
    for column in [*claim.where, *claim.cells, "seed"]:
        if column not in found:
            raise ValueError(f"claim {claim.id}: the records of {claim.experiment} have no "
                             f"column {column!r}, only {sorted(set(found) - {'record'})}")
    for column, value in claim.where.items():
        values = value if isinstance(value, list) else [value]
        found = found[found[column].isin(values) | (found[column].isna() & ("" in values))]
    return published_cells.within(claim, found)


def cells(claim: published.Claim, root: Path | None = None) -> list[tuple[tuple, pd.Series]]:
    """The cells of a claim: of each its key, and the value of each seed.

    A cell that pools networks or datasets has only the seeds that all of them were run with. A
    seed whose counts cannot tell anything apart, by the claim's ceiling, has NaN.
    """
    found = derived.values(claim, lambda part: rows(part, root))
    if found.empty:
        return []
    pooled = [name for name in ("dataset", "model") if name in found and name not in claim.cells]
    if pooled:
        by_seed = [*claim.cells, "seed"]
        parts = found[[*by_seed, *pooled]].drop_duplicates().groupby(by_seed).size()
        whole = parts == parts.groupby(claim.cells).transform("max")
        found = found[pd.MultiIndex.from_frame(found[by_seed]).isin(whole.index[whole])]
    found = found[[*claim.cells, "seed", "value"]].astype({"value": float})
    if claim.ceiling:
        full = _at_ceiling(claim, root)
        found = found.merge(full, how="left", on=[*full.columns[:-1]])
        found["value"] = found["value"].mask(found["full"].eq(True))
    return [(key, group.groupby("seed")["value"].agg(lambda v: v.to_numpy().mean()))
            for key, group in found.groupby(list(claim.cells))]


def _at_ceiling(claim: published.Claim, root: Path | None) -> pd.DataFrame:
    """'full' for each cell and seed: whether its counts are all 0, or all as many as can be."""
    where = dict(claim.ceiling)
    quantity, whole = where.pop("quantity"), where.pop("of", None)
    keys = [key for key in claim.cells if key not in where]
    counts = _rows(replace(claim, quantity=quantity, where=claim.where | where, cells=keys),
                   root)
    if counts.empty:
        raise ValueError(f"claim {claim.id}: its records have no ceiling {claim.ceiling!r}")
    values = counts["value"].astype(float)
    of_cell = [counts[name] for name in (*keys, "seed")]
    ends = [(values == end).groupby(of_cell).all()
            for end in (0, counts["seeds_count"] if whole is None else whole)]
    return (ends[0] | ends[1]).rename("full").reset_index()


def scale(runs: pd.DataFrame, seeds: Iterable[int]) -> str:
    """How large the runs behind some rows were: '50 to 1,000 inputs, population 100, 3 seeds'."""
    parts = []
    for column, words in (("seeds_count", "{} inputs"), ("population", "population {}"),
                          ("iterations", "{} iterations"), ("width", "width {}")):
        if column in runs and (values := runs[column].dropna()).size:
            parts.append(words.format(_range(values)))
    return ", ".join([*parts, f"{_range(pd.Series(list(seeds)))} seeds"])


def _range(values: pd.Series) -> str:
    return " to ".join(dict.fromkeys(f"{v:,g}" for v in (values.min(), values.max())))


def scoreboard(paper: str | None = None, root: Path | None = None, *,
               experiment: str | None = None) -> pd.DataFrame:
    """Every claim (of one paper, of one experiment) with its verdict: the book's first table."""
    rows = []
    for claim in published.claims(paper):
        if experiment not in (None, claim.experiment):
            continue
        found = verdict(claim, root)
        rows.append({"paper": claim.paper, "claim": claim.statement, "place": claim.place,
                     "verdict": found.state, "cells (paper's)": counted(found),
                     "runs": found.scale, "id": claim.id})
    return pd.DataFrame(rows).set_index("id")


def with_readings(board: pd.DataFrame, readings: Mapping[str, Mapping]) -> pd.DataFrame:
    """A :func:`scoreboard` with the verdicts of other readings, a column for each.

    ``readings``: by the heading what replaces parts of a claim's ``where``, such as
    ``{"had the original been known": {"pair": "original"}}``. A claim whose ``where`` lacks one
    of these columns is not concerned, and blank.
    """
    claims = {claim.id: claim for claim in published.claims()}
    texts = {heading: [_in_reading(claims[id], where) for id in board.index]
             for heading, where in readings.items()}
    return board.assign(**texts)


def _in_reading(claim: published.Claim, where: Mapping) -> str:
    if not where.keys() <= claim.where.keys():
        return ""
    found = verdict(replace(claim, where=claim.where | where))
    return f"{found.state}: {counted(found)}"


def counted(found: Verdict) -> str:
    """'2 of 6 hold (1 corrected), 1 fails, 3 open (8)': Holm's counts where they differ."""
    if not found.run:
        return f"({found.claim.expected})"
    still = found.run - found.holds - found.fails
    parts = [f"{found.holds} of {found.run} hold{_corrected(found.holds, found.sure_holds)}"]
    if found.fails:
        word = "fails" if found.fails == 1 else "fail"
        parts.append(f"{found.fails} {word}{_corrected(found.fails, found.sure_fails)}")
    parts += [f"{still} open"] * bool(still)
    return f"{', '.join(parts)} ({found.claim.expected})"


def _corrected(count: int, sure: int) -> str:
    return f" ({sure} corrected)" if count != sure else ""


def told(found: Verdict) -> str:
    """What :func:`counted` counts, as a part of a sentence.

    '2 of the 6 cells that were run hold, 1 fails and 3 are open; after Holm's correction, none
    holds and none fails'
    """
    def some(count: int, verb: str, verbs: str) -> str:
        return f"{count or 'none'} {verbs if count > 1 else verb}"

    still = found.run - found.holds - found.fails
    first = (f"{found.holds or 'none'} of the {found.run} cells that were run "
             f"{'hold' if found.holds > 1 else 'holds'}")
    parts = [first] + [some(found.fails, "fails", "fail")] * bool(found.fails) + [
        some(still, "is open", "are open")] * bool(still)
    corrected = "" if (found.holds, found.fails) == (found.sure_holds, found.sure_fails) else (
        f"; after Holm's correction, {some(found.sure_holds, 'holds', 'hold')} and "
        f"{some(found.sure_fails, 'fails', 'fail')}")
    return f"{', '.join(parts[:-1])} and {parts[-1]}{corrected}" if len(parts) > 1 else (
        f"{first}{corrected}")
