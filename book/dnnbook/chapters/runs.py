"""Your own runs of a chapter beside the book's: a quantity over a parameter."""

from pathlib import Path
from tokenize import TokenError

import pandas as pd

from dnnbook import places
from dnnbook.records import records
from dnnbook.words import shown
from dnnlib import checks

MINE, BOOK = "yours", "the book's"
_NOT_TOLD = {"value", "seed", "quantity", "run"}


def gathered(experiment: str, own: Path) -> pd.DataFrame:
    """All rows of the records in the folder ``own``, then of the book's; the column 'run' says
    whose. Of the book's only those in the settings that count.

    Raises ``ValueError`` if ``own`` has none.
    """
    mine = records.find(experiment, own)
    if not mine:
        raise ValueError(f"no records of {experiment} in {own}; a run with -p profile paper, or a "
                         "sweep, leaves one")
    found = [records.frame(experiment).assign(run=BOOK)]
    if own.resolve() != places.results_dir().resolve():
        every = {name for record in mine for name in record.parameters}
        found.insert(0, records.frame(experiment, own, told=every).assign(run=MINE))
    return pd.concat([part for part in found if len(part)], ignore_index=True)


def over(rows: pd.DataFrame, quantity: str, name: str, where: str = "") -> pd.DataFrame:
    """A quantity over the column ``name``: of each run its mean, range and seeds.

    ``rows``: of :func:`gathered`. ``quantity``: a name, or a part of several. ``name``: a column,
    as that of a parameter (:func:`declared.stored`). ``where``: a query that says which rows are
    meant. All else in which rows differ but the seed is a column too: nothing but seeds is
    averaged. Raises ``ValueError`` for what there is not, with what there is.

    >>> rows = pd.DataFrame({"run": "yours", "seed": [0, 1, 0], "trials": [5, 5, 50],
    ...                      "quantity": "mean_eff", "value": [0.1, 0.3, 0.4]})
    >>> over(rows, "eff", "trials")[["trials", "mean", "least", "greatest"]].values.tolist()
    [[5.0, 0.2, 0.1, 0.3], [50.0, 0.4, 0.4, 0.4]]
    """
    known = sorted(rows["quantity"].dropna().unique())
    chosen = [quantity] if quantity in known else [each for each in known if quantity in each]
    if not chosen:
        checks.known(quantity, known, "quantity")
    checks.known(name, [each for each in rows if each not in _NOT_TOLD], "parameter")
    found = rows[rows["quantity"].isin(chosen)]
    try:
        found = found.query(where) if where else found
    except (SyntaxError, NameError, TypeError, ValueError, KeyError, AttributeError,
            NotImplementedError, TokenError) as error:
        raise ValueError(f"--where {where}: expected a query such as \"fuzzer == 'dlfuzz'\" of "
                         f"{', '.join(each for each in rows if each != 'run')}: {error}") from error
    if found.empty:
        raise ValueError(f"--where {where}: no rows are left")
    told = [each for each in found if each not in {*_NOT_TOLD, name}
            and found[each].nunique(dropna=False) > 1]
    keys = ["quantity", "run", *told, name]
    groups = found.astype({"value": float}).groupby(keys, dropna=False)
    table = groups["value"].agg([("mean", lambda v: v.mean(skipna=False)), ("least", "min"),
                                 ("greatest", "max")])
    table["seeds"] = groups["seed"].nunique() if "seed" in found else 1
    return table.round(10).reset_index().sort_values(["quantity", "run"], ascending=[True, False],
                                                     kind="stable", ignore_index=True)


def draw(table: pd.DataFrame, name: str):
    """The figure of a table of :func:`over`: a line for each run, the book's as diamonds."""
    import matplotlib.pyplot as plt

    from dnnbook.display import plots

    plots.style()
    figure, axis = plt.subplots(figsize=(6, 3.6))
    told = [each for each in table if each not in {name, "mean", "least", "greatest", "seeds"}]
    order = ["run", *(each for each in told if each != "run")]
    differ = [each for each in told if table[each].nunique(dropna=False) > 1]
    for (whose, *_), part in table.groupby(order, sort=False, dropna=False):
        x = part[name].astype(str) if part[name].dtype == object else part[name]
        axis.errorbar(x, part["mean"], [part["mean"] - part["least"],
                                        part["greatest"] - part["mean"]], capsize=2,
                      fmt="D--" if whose == BOOK else "o-",
                      label=", ".join(_told(each, part[each].iloc[0]) for each in differ))
    axis.set(xlabel=str(shown(name)), ylabel=", ".join(map(shown, table["quantity"].unique())))
    axis.legend(fontsize=7)
    return figure


def _told(name: str, value) -> str:
    """A value in a legend; a number, or True, says what it is of."""
    return str(shown(value)) if isinstance(value, str) else f"{shown(name)} {value}"
