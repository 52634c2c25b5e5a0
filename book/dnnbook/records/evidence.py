"""What statements take from rows of records: values by seed, their intervals, the estimator."""

from dataclasses import replace

import pandas as pd

from dnnbook import published
from dnnbook.records import intervals, records, verdicts
from dnnbook.words import listed


def by_seed(rows: pd.DataFrame, where: str, *cell: str) -> pd.Series:
    """The values of the rows that a query picks, by the columns ``cell`` and the seed.

    Two of these, subtracted or divided, are paired over the seeds.

    >>> rows = pd.DataFrame({"model": ["a", "a"], "seed": [0, 1], "swarm": "x", "value": [1, 2]})
    >>> by_seed(rows, "swarm == 'x'", "model")["a"].tolist()
    [1.0, 2.0]
    """
    found = rows.query(where).astype({"value": float})
    return found.groupby([*cell, "seed"])["value"].mean()


def spread(values: pd.Series, scale: str = "linear") -> pd.DataFrame:
    """'mean', 'low' and 'high' over the seeds: a row for each cell of :func:`by_seed`.

    Without cells the one row is named 0; cells without a seed more than one have NaN.
    """
    cell = [name for name in values.index.names if name != "seed"]
    groups = values.groupby(level=cell if len(cell) > 1 else cell[0]) if cell else [(0, values)]
    found = {key: intervals.estimate(group.to_numpy(), scale) for key, group in groups}
    return pd.DataFrame({key: {"mean": e.mean, "low": e.low, "high": e.high}
                         for key, e in found.items()}).T.rename_axis(cell or None)


def left_out(rows: pd.DataFrame) -> list[str]:
    """A sentence that says that random seed 0 was left out, and why; none where it was not.

    >>> left_out(pd.DataFrame({"seed": [0, 1]}))
    []
    """
    if rows["seed"].eq(0).any():
        return []
    seeds = listed(map(str, sorted(rows["seed"].unique())))
    return [f"The records are those of random seeds {seeds}. Seed 0 was left out, since polluted "
            "networks with one patch for all "
            "[failed to train with it](../deepsensor_sensitivity/04_faulty_training); it is left "
            "out of the other networks too, where nothing failed."]


def reached(rows: pd.DataFrame) -> tuple[str, tuple[str, bool]]:
    """The accuracies on CIFAR-10 and elsewhere, in words; a sentence on weak networks, if so.

    >>> rows = pd.DataFrame({"dataset": ["cifar10", "cifar10", "mnist"], "quantity": "accuracy",
    ...                      "value": [0.51, 0.5, 0.9]})
    >>> reached(rows)[0]
    '50 to 51 % on CIFAR-10 and at least 90 % on MNIST'
    """
    found = rows[rows["quantity"] == "accuracy"].groupby("dataset")["value"].agg(["min", "max"])
    low, high = 100 * found.loc["cifar10"]
    rest = found["min"].drop("cifar10")
    return (f"{low:.0f} to {high:.0f} % on CIFAR-10 and at least {100 * rest.min():.0f} % on "
            f"{listed(rest.index)}",
            ("On CIFAR-10 this is far below what such images allow, so what we say of CIFAR-10 "
             "holds for weak networks.", found.loc["cifar10", "max"] < 0.6))


def estimator(rows: pd.DataFrame) -> list[tuple[str, bool]]:
    """How the rows' Shapley values were estimated, and what fewer points miss: sentences."""
    points = sorted(rows["points"].dropna().astype(int).unique())
    share = by_seed(records.frame("deepsensor_excitable/thresholds"),
                    "quantity == 'share' and scale == 'none' and swarm == 'excitable'",
                    "model", "gradients").groupby(["model", "gradients"]).mean()
    large, share = share.get("vgg16", share[:0]), share["lenet5"]
    some = [100 * share[n] / share[share.index.max()] for n in (1, 2)]
    corner = by_seed(records.frame("deepsensor_excitable/players"),
                     "model == 'lenet5' and quantity == 'share' and estimator == 'diagonal'",
                     "gradients")
    corner = corner.groupby("gradients").mean()
    two, four = (100 * corner[n] / corner.iloc[-1] for n in (2, 4))
    return [(f"The Shapley values are estimated by [the diagonal](00_players), each from "
             f"{listed(points)} gradient{'' if points == [1] else 's'}.", len(points) > 0),
            (f"In LeNet-5, for the swarm's examples and compared with eight gradients, "
             f"[one gradient finds {some[0]:.0f} % as many neurons above half a nat, and two find "
             f"{some[1]:.0f} %](09_thresholds). For [corner cases](00_players) and compared with "
             f"{corner.index.max():g} gradients, two find {two:.0f} % and four {four:.0f} %.",
             some[0] < 50 < some[1] and share.index.max() == 8
             and two < 75 < four),
            *([(f"In VGG16, two find {100 * large[2] / large[8]:.0f} % as many as eight do.",
                large[2] < large[8])] if (rows["model"] == "vgg16").any() and len(large) else [])]


def state(claim: str, **reading) -> str:
    """The verdict on the claim of an id, in the scoreboard's words.

    ``reading``: what replaces parts of its ``where``, such as ``model="lenet5"``.
    """
    found = {each.id: each for each in published.claims()}[claim]
    return verdicts.verdict(replace(found, where=found.where | reading)).state
