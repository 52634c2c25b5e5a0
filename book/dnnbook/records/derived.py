"""What a claim compares, from the raw rows of its records: a trend, a range, a lead, a ratio.

So a claim needs no row of its own in a record where those that it follows from are there.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd

from dnnbook.published import Claim

# By how a value is compared with the other rows of its cell: their most, least and mean.
BY: dict[str, Callable] = {
    "less": lambda v, o: v - o["max"],
    "over": lambda v, o: v / o["mean"],
    "between": lambda v, o: np.minimum(v - o["min"], o["max"] - v),
    "above": lambda v, o: (v > o["max"]).astype(float),
    "least": lambda v, o: (v < o["min"]).astype(float),
}


def _slope(values: pd.Series) -> float:
    """The slope of a least squares line through values in the order of a grid, a step."""
    return float(np.polyfit(np.arange(len(values)), values, 1)[0]) if len(values) > 1 else 0.0


TAKE: dict[str, Callable] = {"slope": _slope, "range": np.ptp}


def values(claim: Claim, rows: Callable[[Claim], pd.DataFrame]) -> pd.DataFrame:
    """What a claim judges, by its cells and the seed: what its rows are, or what follows from them.

    ``rows``: those of a claim, by its ``where``. A claim without ``along`` and ``against`` has its
    rows as they are.
    """
    ours = _taken(claim, rows(claim))
    if not claim.against or ours.empty:
        return ours
    where = {**claim.where, **claim.against}
    others = rows(replace(claim, quantity=where.pop("quantity", claim.quantity), where=where,
                          cells=[key for key in claim.cells if key not in claim.against]))
    if others.empty:
        return ours[:0]
    others = _taken(claim, others)
    keys = [key for key in _keys(claim, ours) if key not in claim.against]
    others = others.astype({"value": float}).groupby(keys, dropna=False)["value"].agg(
        ["min", "max", lambda v: v.to_numpy().mean()]).set_axis(["min", "max", "mean"], axis=1)
    both = ours.merge(others.reset_index(), on=keys)
    with np.errstate(divide="ignore", invalid="ignore"):
        return both.assign(value=BY[claim.by](both["value"].astype(float), both))


def _keys(claim: Claim, rows: pd.DataFrame) -> list[str]:
    """The columns that tell a claim's values apart: its cells, the seed, what a cell pools."""
    found = [*claim.cells, "seed", "dataset", "model"]
    return [key for key in dict.fromkeys(found) if key in rows]


def _taken(claim: Claim, rows: pd.DataFrame) -> pd.DataFrame:
    if not claim.along or rows.empty:
        return rows
    ordered = rows.sort_values(claim.along, kind="stable").astype({"value": float})
    grids = ordered.groupby(_keys(claim, rows), dropna=False)["value"]
    return grids.agg(TAKE[claim.take])[grids.size() > 1].reset_index()  # one alone is no grid
