"""What a rule makes of a claim, by the records."""

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
    sample = pd.Series(values, dtype=float)
    if sample.isna().any() or len(sample) < 2:
        return math.nan, math.nan
    half = stats.t.ppf(0.975, len(sample) - 1) * sample.sem()
    return float(sample.mean() - half), float(sample.mean() + half)


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
