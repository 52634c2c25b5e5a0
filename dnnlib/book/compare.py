"""The paper's numbers beside ours, and what a rule makes of a claim."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from scipy import stats

from dnnlib import published
from dnnlib.book import records

SEEDS = 3  # fewer runs of a cell decide nothing
RULES = {
    "at_least": lambda low, high, t: (low >= t, high < t),
    "above": lambda low, high, t: (low > t, high <= t),
    "at_most": lambda low, high, t: (high <= t, low > t),
    "below": lambda low, high, t: (high < t, low >= t),
}


def beside(paper: pd.DataFrame, ours: pd.DataFrame, *, on: Sequence[str], digits: int = 2,
           live: pd.DataFrame | None = None, where: str | None = None) -> pd.DataFrame:
    """One row for each cell: the paper's value, ours over the seeds, and the run at hand.

    ``paper``, ``ours`` and ``live`` are tidy: the columns ``on`` and 'value'; ``ours`` has a
    'seed' too. Ours reads "mean [least, greatest]"; a cell that nobody ran is blank. Cells
    the paper lacks, such as those of the embedded digits, come last. ``where``: a query that says
    which of our rows, in ``ours`` and ``live``, are meant.
    """
    on = list(on)
    if where is not None:
        ours, live = (table.query(where) if table is not None and len(table) else table
                      for table in (ours, live))
    for table, what, more in ((paper, "paper", []), (ours, "ours", ["seed"]), (live, "live", [])):
        needed = {*on, "value", *more}
        missing = needed - set(table) if table is not None and len(table) else set()
        if missing:
            raise ValueError(f"{what}: lacks the columns {sorted(missing)}")
    out = paper[on].copy()
    out["paper"] = [f"{float(v):.{digits}f}" if _number(v) else str(v) for v in paper["value"]]
    parts = {"ours": _spread(ours, on, digits), "seeds": _count(ours, on),
             "this run": _spread(live, on, digits)}
    for name, part in parts.items():
        if part.empty:
            out[name] = ""
        else:
            out = out.merge(part.rename(name).reset_index(), on=on, how="outer", sort=False)
    order = {tuple(key): i for i, key in enumerate(paper[on].itertuples(index=False, name=None))}
    out["_"] = [order.get(key, len(order)) for key in out[on].itertuples(index=False, name=None)]
    return out.sort_values(["_", *on], kind="stable").drop(columns="_").fillna("").set_index(on)


def _number(value) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _spread(table: pd.DataFrame | None, on: list[str], digits: int) -> pd.Series:
    if table is None or table.empty:
        return pd.Series(dtype=object)

    def text(values: pd.Series) -> str:
        if values.isna().any():
            return "undefined"
        mean = f"{values.mean():.{digits}f}"
        return mean if len(values) == 1 else (
            f"{mean} [{values.min():.{digits}f}, {values.max():.{digits}f}]")

    return table.groupby(on, sort=False)["value"].apply(lambda v: text(v.astype(float)))


def _count(table: pd.DataFrame, on: list[str]) -> pd.Series:
    if table.empty:
        return pd.Series(dtype=object)
    return table.groupby(on, sort=False)["seed"].nunique().astype(str)


@dataclass(frozen=True)
class Verdict:
    """What the records say of a claim: its ``state``, and how many cells hold, fail, were run.

    A cell holds when its whole 95 % interval over the seeds is on the claim's side, and fails
    when the whole interval is on the other.
    """

    claim: published.Claim
    state: str
    holds: int
    fails: int
    run: int
    cells: pd.DataFrame


def verdict(claim: published.Claim, root: Path | None = None) -> Verdict:
    """Apply a claim's rule to the records of its experiment.

    'reproduced': every cell that was run holds; 'partly': some do; 'undecided': none does, and
    none fails; 'not reproduced': none does, and some fail; 'not run': no cell has three seeds.
    """
    rows = records.frame(claim.experiment, root)
    where = {"quantity": claim.quantity, **claim.where}
    for column in [*where, *claim.cells, "seed"]:
        if column not in rows and len(rows):
            raise ValueError(f"claim {claim.id}: the records of {claim.experiment} have no "
                             f"column {column!r}, only {sorted(rows)}")
    for column, value in where.items():
        if len(rows):
            rows = rows[rows[column].isin(value if isinstance(value, list) else [value])]
    cells = []
    for key, group in rows.groupby(list(claim.cells)) if len(rows) else ():
        values = group.astype({"value": float}).groupby("seed")["value"].agg(
            lambda v: v.mean(skipna=False))
        if len(values) >= SEEDS:
            low, high = interval(values)
            holds, fails = RULES[claim.rule](low, high, claim.threshold)
            cells.append(dict(zip(claim.cells, key)) | {
                "mean": values.mean(), "low": low, "high": high, "seeds": len(values),
                "outcome": "holds" if holds else "fails" if fails else "open"})
    table = pd.DataFrame(cells)
    holds = sum(c["outcome"] == "holds" for c in cells)
    fails = sum(c["outcome"] == "fails" for c in cells)
    state = ("not run" if not cells else "reproduced" if holds == len(cells)
             else "partly" if holds else "not reproduced" if fails else "undecided")
    return Verdict(claim, state, holds, fails, len(cells), table)


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Student's 95 % interval of the mean; NaN if a value is.

    >>> low, high = interval([1.0, 2.0, 3.0])
    >>> round(low, 2), round(high, 2)
    (-0.48, 4.48)
    """
    values = pd.Series(values, dtype=float)
    if values.isna().any() or len(values) < 2:
        return math.nan, math.nan
    half = stats.t.ppf(0.975, len(values) - 1) * values.sem()
    return float(values.mean() - half), float(values.mean() + half)


def mean_and_interval(table: pd.DataFrame, *, index: Sequence[str], columns: Sequence[str] = (),
                      digits: int = 1) -> pd.DataFrame:
    """Records as a table of "mean ± half width of the 95 % interval over the seeds".

    ``table``: tidy, with the columns ``index``, ``columns``, 'seed' and 'value'. Two seeds or fewer
    have no interval worth the name and give the mean alone; what nobody ran is blank, and
    a mean of values of which one is missing is "undefined".

    >>> runs = pd.DataFrame({"method": "gini", "seed": [0, 1, 2], "value": [1.0, 2.0, 3.0]})
    >>> print(*mean_and_interval(runs, index=["method"]).loc["gini", "value"].split())
    2.0 ± 2.5
    """
    def text(values: pd.Series) -> str:
        if values.isna().any():
            return "undefined"
        low, high = interval(values)
        half = f"{(high - low) / 2:.{digits}f}"
        parts = [f"{values.mean():.{digits}f}", *(["±", half] if len(values) >= SEEDS else [])]
        return "\N{NO-BREAK SPACE}".join(parts)

    group = [*index, *columns]
    values = table.groupby([*group, "seed"], sort=False)["value"].agg(
        lambda v: v.astype(float).mean(skipna=False))
    texts = values.groupby(group, sort=False).agg(text)
    return (texts.unstack(list(columns), sort=False).fillna("") if columns
            else texts.to_frame("value"))


def scoreboard(paper: str | None = None, root: Path | None = None, *,
               experiment: str | None = None) -> pd.DataFrame:
    """Every claim (of one paper, of one experiment) with its verdict: the book's first table."""
    rows = []
    for claim in published.claims(paper):
        if experiment not in (None, claim.experiment):
            continue
        found = verdict(claim, root)
        rows.append({"paper": claim.paper, "claim": claim.statement, "place": claim.place,
                     "verdict": found.state, "cells (paper's)": _cells(found), "id": claim.id})
    return pd.DataFrame(rows).set_index("id")


def _cells(found: Verdict) -> str:
    """'1 of 3 hold, 2 open (21)'"""
    still = found.run - found.holds - found.fails
    text = f"{found.holds} of {found.run} hold" + (f", {still} open" if still else "")
    return f"{text} ({found.claim.expected})" if found.run else f"({found.claim.expected})"
