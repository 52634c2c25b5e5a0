"""A comparison as one picture: each method's faults with intervals, each fuzzer beside noise."""

import io

import pandas as pd

from dnnlib import checks
from dnnlib.custom.comparing import Compared

BOUNDS = ("random", "best possible")
COLOURS = ("#0173b2", "#d55e00", "#5b636b")  # blue and vermilion differ for all readers


def picture(found: Compared) -> bytes:
    """PNG. ``ModuleNotFoundError`` without matplotlib, naming the extra."""
    with checks.extra("plots"):
        from matplotlib.figure import Figure

    rates = found.selectors["rate"].unique()
    methods = found.selectors[~found.selectors["method"].isin(BOUNDS)]
    names = methods[methods["rate"] == rates[0]].sort_values("found")["method"].tolist()
    rows = 2 if len(found.fuzzers) else 1
    figure = Figure((10, 1.6 + 0.3 * len(names) + (1.5 + 0.3 * len(found.fuzzers)) * (rows - 1)),
                    layout="constrained")
    grid = figure.add_gridspec(rows, len(rates), height_ratios=[
        3 + len(names), 4 + len(found.fuzzers)][:rows])
    for place, rate in enumerate(rates):
        axis = figure.add_subplot(grid[0, place])
        part = found.selectors[found.selectors["rate"] == rate].set_index("method")
        _dots(axis, part.loc[names], names if place == 0 else None, COLOURS[0])
        for name, style in zip(BOUNDS, ("--", ":")):
            axis.axvline(part.loc[name, "found"], color=COLOURS[2], linestyle=style, label=name)
        axis.set(title=f"first {rate:g} %", xlabel="faults among them, %", xlim=(0, 102))
    axis.legend(loc="lower right", fontsize="small")
    if rows == 2:
        axis = figure.add_subplot(grid[1, :])
        table = found.fuzzers.set_index("fuzzer").sort_values("broken")
        _dots(axis, table.rename(columns={"broken": "found"}), table.index.tolist(), COLOURS[0])
        axis.plot(table["noise_passes"], range(len(table)), "x", color=COLOURS[1],
                  label="noise, as many passes")
        axis.plot(table["noise"], range(len(table)), "+", color=COLOURS[1],
                  label="noise, as many examples")
        axis.set(xlabel="inputs broken within the distance, %", xlim=(-2, 102))
        axis.legend(fontsize="small")
    figure.savefig(content := io.BytesIO(), format="png", dpi=130)
    return content.getvalue()


def _dots(axis, table: pd.DataFrame, names: list[str] | None, colour: str) -> None:
    places = range(len(table))
    axis.hlines(places, table["low"], table["high"], color=colour, linewidth=2)
    axis.plot(table["found"], places, "o", color=colour)
    axis.set_yticks(list(places), names or [""] * len(table))
    axis.set_ylim(-0.7, len(table) - 0.3)
    axis.grid(axis="x", alpha=0.3)
