"""What the chapters on both DeepSensor papers ask of records: who finds more, with which seeds."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import pandas as pd

NAMES = ("fuzzer", "swarm", "optimiser", "guide", "choice", "method")  # columns that say who


def seeds_of(rows: pd.DataFrame, *cell: str, who: str | None = None, **where) -> pd.Series:
    """A quantity by the columns ``cell`` and the seed, of the rows with the values ``where``.

    ``who``: a fuzzer, or by its name a swarm, or what else has searched. ``KeyError`` if no row is
    left: of nothing, any condition would hold.

    >>> rows = pd.DataFrame({"fuzzer": "deepsensor", "swarm": ["paper", "constant"], "seed": 0,
    ...                      "value": [1, 2]})
    >>> seeds_of(rows, who="constant").tolist()
    [2.0]
    """
    if who is not None:
        rows = rows[rows[[name for name in NAMES if name in rows]].eq(who).any(axis=1)]
    for column, value in where.items():
        rows = rows[rows[column] == value]
    if rows.empty:
        raise KeyError(f"no rows of {who or 'anybody'} with {where}")
    return rows.astype({"value": float}).groupby([*cell, "seed"])["value"].mean()


def mean_of(rows: pd.DataFrame, *cell: str, who: str | None = None, **where) -> pd.Series:
    """The means over the seeds of :func:`seeds_of`, by ``cell``."""
    return seeds_of(rows, *cell, who=who, **where).groupby([*cell]).mean()


def table_of(rows: pd.DataFrame, names: Iterable[str], *cell: str, **where) -> pd.DataFrame:
    """:func:`seeds_of` each of some ``names``: a column for each."""
    return pd.DataFrame({name: seeds_of(rows, *cell, who=name, **where) for name in names})


def lead_of(rows: pd.DataFrame, who: str, over: str, *cell: str, **where) -> pd.Series:
    """By how much one is ahead of another of the same cell and seed."""
    return seeds_of(rows, *cell, who=who, **where) - seeds_of(rows, *cell, who=over, **where)


def rises(rows: pd.DataFrame, names: Iterable[str], *cell: str, **where) -> pd.DataFrame:
    """What retraining on the examples of each of some ``names`` has added: a column for each."""
    return table_of(rows, names, *cell, **where).sub(seeds_of(rows, *cell, who="before", **where),
                                                     axis=0)


def change_of(values: pd.Series, level: str, to: str, start: str) -> pd.Series:
    """From one value of a level of the index to another, paired by the others and the seed."""
    return values.xs(to, level=level) - values.xs(start, level=level)


def with_swarm(rows: pd.DataFrame, swarm: str) -> pd.DataFrame:
    """The rows of all fuzzers, of DeepSensor's swarms only those of one."""
    return rows[rows["swarm"].isna() | (rows["swarm"] == swarm)]


class Sides(NamedTuple):
    """Cells by where their interval lies: above 0, below it, or on both sides."""

    ahead: list
    behind: list
    undecided: list


def sides_of(found: pd.DataFrame) -> Sides:
    """Where the seeds decide: ``found`` has 'low' and 'high', a row for each cell.

    >>> sides_of(pd.DataFrame({"low": [1, -1], "high": [2, 1]}, index=["lenet1", "lenet5"]))
    Sides(ahead=['lenet1'], behind=[], undecided=['lenet5'])
    """
    return Sides([*found.index[found["low"] > 0]], [*found.index[found["high"] < 0]],
                 [*found.index[(found["low"] <= 0) & (found["high"] >= 0)]])


def always_most(found: Mapping[str, pd.Series] | pd.DataFrame, name: str) -> bool:
    """Whether one has more than each other with every seed, and a value wherever they have one.

    >>> always_most({"a": pd.Series([2, 3]), "b": pd.Series([1, 2]), "c": pd.Series([0, 4])}, "a")
    False
    """
    table = pd.DataFrame(found)
    return bool(table.drop(columns=name).lt(table[name], axis=0).all(axis=None))


def each_seed(table: pd.DataFrame, other: pd.Series) -> Sides:
    """Which columns have more than ``other`` with every seed, which have less, and the rest.

    >>> each_seed(pd.DataFrame({"a": [2, 3], "b": [0, 1], "c": [0, 4]}), pd.Series([1, 2]))
    Sides(ahead=['a'], behind=['b'], undecided=['c'])
    """
    ahead = [name for name in table if (table[name] > other).all()]
    behind = [name for name in table if (table[name] < other).all()]
    return Sides(ahead, behind, [name for name in table if name not in (*ahead, *behind)])


def ahead_of_one(table: pd.DataFrame, one: str, *but: str) -> pd.Series:
    """By how much each column is ahead of ``one``, of the same line; some columns left out."""
    return table.drop(columns=[one, *but]).sub(table[one], axis=0).stack()


def over_thresholds(shares: pd.DataFrame, kind: str) -> pd.Series:
    """The excitable swarm's lead over a constant fitness, by its first threshold and the seed.

    ``kind``: the cause of the errors, whose other swarm has no threshold.
    """
    guided = seeds_of(shares, "threshold", who="excitable", errors=kind, varied="lambda")
    return guided - seeds_of(shares, who="constant", errors=kind)


def firsts(table: pd.DataFrame) -> pd.Series:
    """Who, of the lines, has the most in each column; a column with a tie is left out.

    >>> firsts(pd.DataFrame({"nc": [1, 2], "kmnc": [3, 3]}, index=["noise", "dlfuzz"])).to_dict()
    {'nc': 'dlfuzz'}
    """
    return table.idxmax()[table.eq(table.max()).sum() == 1]


def written(found: pd.DataFrame) -> pd.Series:
    """Means and intervals for a table.

    >>> written(pd.DataFrame({"mean": [2.0], "low": [1.0], "high": [3.0]})).item()
    '2.0 (1.0 to 3.0)'
    """
    return found.apply(lambda line: f"{line['mean']:.1f} ({line['low']:.1f} to "
                                    f"{line['high']:.1f})", axis=1)


def printed_rates(table: pd.DataFrame, examples: int) -> pd.DataFrame:
    """The test errors of a printed table in percent of its ``examples``: networks by fuzzers."""
    errors = table[table["quantity"] == "test_errors"]
    return 100 * errors.pivot(index="model", columns="fuzzer", values="value") / examples


def same_numbers(table: pd.DataFrame, other: pd.DataFrame) -> bool:
    """Whether two printed tables agree on all that both print; not if they share nothing."""
    names = [name for name in table if name in other and name not in ("value", "printed")]
    both = table.merge(other, on=names, suffixes=("", " other"), validate="1:1")
    return len(both) > 0 and bool((both["value"] == both["value other"]).all())


def polluted_class(shares: pd.DataFrame, swarm: str, *cell: str) -> pd.DataFrame:
    """Who is given the polluted class, in percent of the last examples, by ``cell`` and seed.

    Of a ``swarm``, in the polluted and in the clean network, of the one with a constant fitness,
    and of the best of the rivals.
    """
    rivals = shares[shares["fuzzer"].isin(["deepxplore", "dlfuzz", "deephunter"])]
    return pd.DataFrame({
        "swarm": seeds_of(shares, *cell, who=swarm, network="polluted"),
        "constant": seeds_of(shares, *cell, who="constant", network="polluted"),
        "clean": seeds_of(shares, *cell, who=swarm, network="clean"),
        "rival": seeds_of(rivals, "fuzzer", *cell, network="polluted").groupby(
            [*cell, "seed"]).max()})


def of_the_most(counts: pd.Series) -> pd.Series:
    """Counts by a number, such as of gradients, in percent of the count with the largest number.

    >>> of_the_most(pd.Series({8: 20.0, 1: 5.0})).tolist()
    [100.0, 25.0]
    """
    return 100 * counts / counts[counts.index.max()]


def times_as_many(rows: pd.DataFrame, group: str, *cell: str, threshold: float = 0.5) -> pd.Series:
    """How many times as many neurons stand out in errors as in a ``group``, by cell and seed."""
    return seeds_of(rows, *cell, quantity=f"error_over_{group}", **{"lambda": threshold})


def of_estimators(rows: pd.DataFrame) -> pd.DataFrame:
    """How far estimated Shapley values are from the true ones, where all neurons are players.

    By estimator and its number of gradients or orders, rising: the means of 'error', 'gap', 'rank'.
    """
    rows = rows[rows["quantity"].isin(["error", "gap", "rank"])]
    return mean_of(rows, "by", "setting", "quantity", players="network").unstack("quantity")
