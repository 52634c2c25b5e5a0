"""A comparison as one picture: each method's faults with intervals, each fuzzer beside noise."""

import io
from typing import TYPE_CHECKING

import pandas as pd

from dnnlib import checks
from dnnlib.custom.comparing import Compared

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

BOUNDS = ("random", "best possible")
COLOURS = ("#0173b2", "#d55e00", "#5b636b")  # blue and vermilion differ for all readers


def picture(found: Compared) -> bytes:
    """:func:`figure` as PNG."""
    figure(found).savefig(content := io.BytesIO(), format="png", dpi=130,
                          metadata={"Software": "dnnlib"})  # never taken for a photo
    return content.getvalue()


def figure(found: Compared) -> "Figure":
    """Selectors above, fuzzers below; of a comparison without one of the two, the other.

    ``ModuleNotFoundError`` without matplotlib, naming the extra.
    """
    with checks.extra("plots"):
        from matplotlib.figure import Figure

    parts = [(draw, table, height) for draw, table, height in (
        (_selectors, found.selectors,
         1 + 0.3 * (found.selectors["method"].nunique() if len(found.selectors) else 0)),
        (_fuzzers, found.fuzzers, 1.5 + 0.3 * len(found.fuzzers))) if len(table)]
    heights = [height for *_, height in parts]
    drawn = Figure((10, sum(heights)), layout="constrained")
    for place, (draw, table, _) in zip(drawn.subfigures(len(parts), 1, squeeze=False,
                                                        height_ratios=heights)[:, 0], parts):
        draw(place, table)
    return drawn


def _selectors(place: "SubFigure", table: pd.DataFrame) -> None:
    rates = table["rate"].unique()
    methods = table[~table["method"].isin(BOUNDS)]
    names = methods[methods["rate"] == rates[0]].sort_values("found")["method"].tolist()
    for number, rate in enumerate(rates):
        axis = place.add_subplot(1, len(rates), number + 1)
        part = table[table["rate"] == rate].set_index("method")
        _dots(axis, part.loc[names], names if number == 0 else None, COLOURS[0])
        for name, style in zip(BOUNDS, ("--", ":")):
            axis.axvline(part.loc[name, "found"], color=COLOURS[2], linestyle=style, label=name)
        axis.set(title=f"first {rate:g} %", xlabel="faults among them, %", xlim=(0, 102))
    axis.legend(loc="lower right", fontsize="small")


def _fuzzers(place: "SubFigure", table: pd.DataFrame) -> None:
    axis, table = place.subplots(), table.set_index("fuzzer").sort_values("broken")
    _dots(axis, table.rename(columns={"broken": "found"}), table.index.tolist(), COLOURS[0])
    axis.plot(table["noise_passes"], range(len(table)), "x", color=COLOURS[1],
              label="noise, as many passes")
    axis.plot(table["noise"], range(len(table)), "+", color=COLOURS[1],
              label="noise, as many examples")
    axis.set(xlabel="inputs broken within the distance, %", xlim=(-2, 102))
    axis.legend(fontsize="small")


def _dots(axis, table: pd.DataFrame, names: list[str] | None, colour: str) -> None:
    places = range(len(table))
    axis.hlines(places, table["low"], table["high"], color=colour, linewidth=2)
    axis.plot(table["found"], places, "o", color=colour)
    axis.set_yticks(list(places), names or [""] * len(table))
    axis.set_ylim(-0.7, len(table) - 0.3)
    axis.grid(axis="x", alpha=0.3)
