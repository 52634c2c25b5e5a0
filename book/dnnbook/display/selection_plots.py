"""Rows of selectors with names to read, and their figures."""

from collections.abc import Collection

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from dnnbook.display.colours import colours
from dnnbook.display.plots import nothing, panels
from dnnbook.studies.ordering import keys
from dnnbook.words import shown


def named(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that have a method, with a column 'selector': words for it and its reading.

    >>> named(pd.DataFrame([{"method": "nss", "pair": "original"}]))["selector"].tolist()
    ['NSS, known original']
    """
    rows = rows[rows["method"].notna()]
    return rows.assign(selector=keys(rows).map(lambda key: shown(str(key))))


def curves(rows: pd.DataFrame, *, xlabel: str, ylabel: str, x: str = "rate", log: bool = False,
           dashed: Collection[str] = ()) -> Figure:
    """Values against ``x``, means over the seeds: a panel a network, a line a selector, NSS thick.

    ``rows``: tidy, of one quantity. ``log``: both axes; ``dashed``: methods that are not selectors.
    """
    if rows.empty:
        return nothing()
    networks = list(named(rows).groupby(["dataset", "model"], sort=False))
    figure, axes = panels(len(networks), width=max(2.6, 6 / len(networks)), height=3.4,
                          margin=1.6, most=3, sharey=True)
    for axis, (network, group) in zip(axes, networks):
        shades = colours(group["selector"])
        for (method, name), line in group.groupby(["method", "selector"], sort=False):
            mean = line.groupby(x)["value"].mean()
            axis.plot(mean.index, mean, "o" * log + ("--" if method in dashed else "-"), ms=4,
                      lw=2.4 if method == "nss" else 1.2, color=shades[name], label=name)
        if log:
            axis.set(xscale="log", yscale="log")
        else:
            axis.xaxis.set_major_locator(MaxNLocator(steps=[1, 5, 10]))
        axis.set_title(", ".join(map(shown, network)), fontsize=9)
        axis.set(xlabel=xlabel, ylabel=ylabel)
        axis.label_outer()
    figure.legend(*axes[0].get_legend_handles_labels(), fontsize=8, loc="outside right center")
    return figure
