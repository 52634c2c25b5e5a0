"""Figures of campaigns: errors against distance."""

from collections.abc import Callable, Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dnnlib.book.plots import nothing
from dnnlib.book.words import shown
from dnnlib.fuzzing import Key, outcomes


def errors_against_distance(rows: pd.DataFrame, panels: Sequence[Sequence[Key]], *,
                            goal: Callable[[str], float], near: float | None = None) -> Figure:
    """Error rates against the bound on the L2 distance: a row of panels for each network.

    ``rows``: tidy, a run's or of all records; those of 'error_rate' with a 'bound' are drawn, as
    means over the seeds. ``panels``: the keys drawn in each panel of a row. ``goal``: the printed
    rate of a network by its name (broken line); ``near``: a bound that the paper has (dotted).
    """
    rows = rows[(rows["quantity"] == "error_rate") & rows["bound"].notna()]
    if rows.empty:
        return nothing()
    networks = list(rows.assign(key=outcomes.keys(rows)).groupby(["dataset", "model"], sort=False))
    figure, axes = plt.subplots(len(networks), len(panels), sharey=True, squeeze=False,
                                figsize=(9.5, 0.5 + 3.2 * len(networks)))
    for line, ((_, model_name), group) in zip(axes, networks, strict=True):
        means = group.groupby(["bound", "key"])["value"].mean()
        for axis, keys in zip(line, panels, strict=True):
            _lines(axis, means, keys, goal=goal(model_name), near=near)
        line[0].set_ylabel(f"{shown(model_name)}: test errors (% of examples)")
    for axis in axes[0]:
        axis.legend(fontsize=7, loc="upper left")
    return figure


def _lines(axis: Axes, rates: pd.Series, keys: Sequence[Key], *, goal: float,
           near: float | None) -> None:
    bounds = sorted(set(rates.index.get_level_values(0)))
    drawn = [key for key in keys if key in rates.index.get_level_values(1)]
    for i, key in enumerate(drawn):
        line = rates.xs(key, level=1)
        axis.plot(line.index, line, "o-", ms=4, lw=1.2 if i else 2, label=shown(str(key)))
    axis.axhline(goal, color="0.3", ls="--", lw=1)
    if near is not None:
        axis.axvline(near, color="0.3", ls=":", lw=1)
    axis.set(xscale="log", xlabel="bound on the L2 distance", ylim=(-3, 103))
    axis.set_xticks(bounds, [f"{bound:g}" for bound in bounds])
    axis.minorticks_off()
