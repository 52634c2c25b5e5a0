"""What statements take from rows of records: values by seed, their intervals, the estimator."""

from dataclasses import replace

import pandas as pd

from dnnbook import published
from dnnbook.records import intervals, verdicts
from dnnbook.words import listed, rounded_down, shown, span


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

    What is compared on the same seeds is subtracted, or divided, before. The ends are those of
    :func:`intervals.estimate`; a cell of one seed has NaN. Without cells the one row is named 0.

    >>> leads = pd.Series([1.0, 2.0, 3.0], pd.MultiIndex.from_product(
    ...     [["mnist"], range(3)], names=["dataset", "seed"]))
    >>> spread(leads).round(2).loc["mnist"].tolist()
    [2.0, -0.48, 4.48]
    """
    cell = [name for name in values.index.names if name != "seed"]
    groups = (values.groupby(level=cell if len(cell) > 1 else cell[0], sort=False) if cell
              else [(0, values)])
    found = {key: intervals.estimate(group.to_numpy(), scale) for key, group in groups}
    return pd.DataFrame({key: {"mean": e.mean, "low": e.low, "high": e.high}
                         for key, e in found.items()}).T.rename_axis(cell or None)


def surely_above(found: pd.DataFrame) -> str:
    """The cells of a :func:`spread` whose interval lies above 0; in brackets, those undecided.

    >>> surely_above(pd.DataFrame({"low": [1.0, -1.0]}, index=["lenet1", "lenet5"]))
    'LeNet-1 (LeNet-5: not decided)'
    """
    sure = found["low"] > 0
    rest = f" ({listed(found.index[~sure])}: not decided)" if not sure.all() else ""
    return listed(found.index[sure]) + rest


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
            "[failed to train with it](../deepsensor_sensitivity/04_faulty_training). It is left "
            "out of the other networks too, where nothing failed."]


def corrected(values: pd.Series) -> pd.Series:
    """The means of those cells of :func:`by_seed` that differ from 0 after Holm's correction."""
    cell = [name for name in values.index.names if name != "seed"]
    found = {key: intervals.estimate(group.to_numpy())
             for key, group in values.groupby(level=cell if len(cell) > 1 else cell[0])}
    stands = intervals.holm([min(each.p(0)) for each in found.values()])
    return pd.Series({key: each.mean for (key, each), yes in zip(found.items(), stands) if yes},
                     dtype=float)


def reached(rows: pd.DataFrame) -> tuple[str, tuple[str, bool]]:
    """The accuracies on CIFAR and elsewhere, in words; a sentence on weak networks, if so.

    >>> rows = pd.DataFrame({"dataset": ["cifar10", "cifar10", "mnist"], "quantity": "accuracy",
    ...                      "value": [0.51, 0.5, 0.9]})
    >>> reached(rows)[0]
    '50 to 51 % on CIFAR-10 and at least 90 % on MNIST'
    >>> reached(pd.concat([rows, rows[:1].assign(dataset="cifar100", value=0.18)]))[1][0][:30]
    'On CIFAR-10 and CIFAR-100 this'
    """
    accuracies = rows[rows["quantity"] == "accuracy"].groupby("dataset")["value"]
    found = 100 * accuracies.agg(["min", "max"])
    cifar = found.filter(like="cifar", axis=0)
    rest = found.drop(index=cifar.index)
    each = [f"{span(both)} % on {shown(name)}" for name, *both in cifar.itertuples()]
    least = rounded_down(rest["min"].min())
    return (f"{', '.join(each)} and at least {least} % on {listed(rest.index)}",
            (f"On {listed(cifar.index)} this is far below what such images allow, so what we say "
             f"of {'them' if len(cifar) > 1 else 'it'} holds for weak networks.",
             cifar["max"].max() < 60))


def estimator(rows: pd.DataFrame) -> tuple[str, bool]:
    """From how many gradients the rows' Shapley values were estimated: a sentence.

    >>> estimator(pd.DataFrame({"points": [2.0, None]}))[0].split(".")[0]
    'Each Shapley value is estimated from 2 gradients'
    """
    points = sorted(rows["points"].dropna().astype(int).unique())
    return (f"Each Shapley value is estimated from {listed(points)} "
            f"gradient{'s' * (points != [1])}. How exact that is: [the first chapter]"
            "(00_players).", len(points) > 0)


def verdict(claim: str, **reading) -> verdicts.Verdict:
    """The verdict on the claim of an id.

    ``reading``: what replaces parts of its ``where``, such as ``model="lenet5"``.
    """
    found = {each.id: each for each in published.claims()}[claim]
    return verdicts.verdict(replace(found, where=found.where | reading))


def cells_that(outcome: str, claim: str, **reading) -> list[tuple]:
    """The cells of a :func:`verdict` with an ``outcome``: 'holds', 'fails' or 'open'."""
    found = verdict(claim, **reading)
    return [tuple(cell[name] for name in found.claim.cells)
            for cell in found.cells.to_dict("records") if cell["outcome"] == outcome]


def state(claim: str, **reading) -> str:
    """The :func:`verdict` on a claim, in the scoreboard's words."""
    return verdict(claim, **reading).state
