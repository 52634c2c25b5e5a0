"""NSATP: fits of Eff by each distance, first successes, and what an order meets early."""

import pandas as pd

DISTANCES = ["pd", "pv", "pe"]
PAIR, CELL = ["model", "dataset"], ["model", "dataset", "distance"]


def fit(rows: pd.DataFrame, quantity: str, points: str = "examples", fitted: str = "loglinear"
        ) -> pd.DataFrame:
    """A quantity of the fits: a mean over the seeds for each pair, a column for each distance.

    ``points``: 'examples' (single images) or 'bins' (means of intervals); ``fitted``: 'loglinear',
    'curve' or 'line', as in :func:`dnnlib.measures.fragility.fit_readings`.
    """
    return by_seed(rows, quantity, points, fitted).groupby(CELL).mean().unstack("distance")


def by_seed(rows: pd.DataFrame, quantity: str, points: str, fitted: str = "loglinear") -> pd.Series:
    """The same quantity for each seed, by network, dataset, distance and seed."""
    found = rows[(rows["fit"] == fitted) & (rows["points"] == points)
                 & (rows["quantity"] == quantity) & rows["distance"].isin(DISTANCES)]
    return found.groupby([*CELL, "seed"])["value"].mean()


def rank_correlations(rows: pd.DataFrame) -> pd.DataFrame:
    """Of Eff with each distance, over all images: the largest of the seeds."""
    found = rows[(rows["quantity"] == "spearman") & rows["distance"].isin(DISTANCES)]
    return found.groupby(CELL)["value"].max().unstack("distance")


def accuracies(rows: pd.DataFrame) -> pd.DataFrame:
    """The test accuracy of each pair over its seeds: 'min', 'mean', 'max'."""
    return rows[rows["quantity"] == "accuracy"].groupby(PAIR)["value"].agg(["min", "mean", "max"])


def furthest_apart(values: pd.Series) -> tuple:
    """The cell of :func:`by_seed` whose seeds differ most."""
    cells = values.groupby(CELL)
    return (cells.max() - cells.min()).idxmax()


def beside_printed(slope: pd.Series, printed: pd.DataFrame) -> pd.DataFrame:
    """The slopes for PD by pair, beside those of Table III: 'ours', 'paper', 'ours / paper'."""
    paper = printed.query("quantity == 'b' and distance == 'pd'").set_index(PAIR)["value"]
    table = pd.DataFrame({"ours": slope, "paper": paper}).dropna(subset="ours")
    return table.assign(**{"ours / paper": table["ours"] / table["paper"]})


def savings(rows: pd.DataFrame, quantity: str, unit: str = "samples") -> pd.Series:
    """A quantity of RQ2 in 'samples' or 'examples': a mean over the seeds for each cell."""
    found = rows[(rows["definition"] == unit) & (rows["quantity"] == quantity)]
    return found.groupby(CELL)["value"].mean()


def by_distance(rows: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """A quantity of RQ3: a mean over the seeds for each pair, a column for each distance."""
    found = rows[(rows["quantity"] == quantity) & rows["distance"].notna()]
    return found.groupby(CELL)["value"].mean().unstack("distance")


def seeds_above_pd(rows: pd.DataFrame, quantity: str) -> pd.Series:
    """The share of each pair's seeds in which another distance has more of a quantity than PD."""
    found = rows[(rows["quantity"] == quantity) & rows["distance"].notna()]
    each = found.pivot_table("value", [*PAIR, "seed"], "distance")
    return (each.drop(columns="pd").max(axis=1) > each["pd"]).groupby(PAIR).mean()
