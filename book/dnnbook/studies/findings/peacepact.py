"""Of PEACEPACT: what other candidates change, and what an order leaves to be saved."""

import pandas as pd


def by_split(rows: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """Means by dataset: a column for the 'test' and one for the 'train' images as candidates.

    Of the seeds that were run with both.
    """
    values = rows[rows["quantity"] == quantity].set_index(["dataset", "seed", "split"])["value"]
    return values.astype(float).unstack("split").dropna().groupby("dataset").mean()


def left_to_save(rows: pd.DataFrame) -> pd.Series:
    """By network, dataset and seed: the points that the best order saves beyond the ranking."""
    saved = rows[rows["quantity"].isin(["inc", "inc_bound"])].set_index(
        ["model", "dataset", "seed", "quantity"])["value"].astype(float).unstack("quantity")
    return saved["inc_bound"] - saved["inc"]
