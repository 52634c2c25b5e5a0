"""The book's figures."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase

from dnnbook.display import tables
from dnnbook.display.colours import palette
from dnnbook.words import headed, shown
from dnnlib.measures import fragility


def style() -> None:
    """One look for all figures and tables; a white ground keeps figures readable on a dark page."""
    pd.set_option("display.max_colwidth", None, "display.max_rows", 200)
    sns.set_theme(style="whitegrid", palette="colorblind", font_scale=0.9,
                  rc={"figure.dpi": 110, "savefig.facecolor": "white", "figure.facecolor": "white",
                      "figure.constrained_layout.use": True})
    tables.say_whose()


def images(x, titles: Sequence[str] | None = None, *, columns: int = 8,
           scale: float = 1.1) -> Figure:
    """A contact sheet of images (N, C, H, W) in [0, 1], each with its title."""
    x = np.asarray(x)
    if x.ndim != 4 or len(x) == 0:
        raise ValueError(f"x: expected images (N, C, H, W), got shape {x.shape}")
    columns = min(columns, len(x))
    rows = -(-len(x) // columns)
    figure = plt.figure(figsize=(scale * columns, (scale + 0.25 * bool(titles)) * rows))
    _fill(figure, x, titles, rows, columns)
    return figure


def sheet(parts: dict[str, tuple[Sequence, Sequence[str]]], *, columns: int = 8,
          scale: float = 1.1) -> Figure:
    """A contact sheet in parts, each under its heading: images (N, C, H, W) and their titles."""
    parts = {heading: (np.asarray(x), titles) for heading, (x, titles) in parts.items()}
    rows = [-(-len(x) // columns) for x, _ in parts.values()]
    heights = [(scale + 0.4) * n + 0.3 for n in rows]  # titles of two lines, and the heading
    figure = plt.figure(figsize=(scale * columns, sum(heights)), layout="constrained")
    grid = figure.subfigures(len(parts), squeeze=False, height_ratios=heights)
    for part, n, (heading, (x, titles)) in zip(grid.flat, rows, parts.items()):
        part.suptitle(heading, fontsize=10)
        _fill(part, x, titles, n, columns)
    return figure


def _fill(figure: FigureBase, x: np.ndarray, titles: Sequence[str] | None, rows: int,
          columns: int) -> None:
    for i, axis in enumerate(figure.subplots(rows, columns, squeeze=False).flat):
        axis.axis("off")
        if i < len(x):
            picture = x[i].transpose(1, 2, 0)
            axis.imshow(picture.squeeze(), cmap="gray", vmin=0, vmax=1)
            if titles:
                axis.set_title(titles[i], fontsize=8, parse_math=False)  # file names may have $


def decay(axis: Axes, x, y, fits: dict[str, fragility.Fit], *, bins: int = 20) -> None:
    """Eff against a distance: every input, the mean of each bin, and the fitted curves."""
    axis.scatter(x, y, s=6, alpha=0.25, linewidths=0, color="0.4", label="an input")
    axis.plot(*fragility.binned(x, y, bins=bins), "o", ms=4, color="C3", label="mean of a bin")
    grid = np.linspace(np.min(x), np.max(x), 200)
    for i, (name, fit) in enumerate(fits.items()):
        if np.isfinite(fit.a):
            axis.plot(grid, fit(grid), color=f"C{i}", lw=1.5, label=name)
    axis.set_ylim(-0.02, max(1.0, float(np.max(y))) + 0.02)


def order_curve(axis: Axes, eff, orders: dict[str, np.ndarray], *,
                what: str = "label changes met",
                points: Mapping[str, Sequence[tuple[float, float]]] | None = None) -> None:
    """Share of all that ``eff`` counts met against the share of inputs tried, for each order.

    ``points``: by name the same two shares of orders of which no more is known.
    """
    eff = np.asarray(eff, dtype=float)
    share = np.arange(1, len(eff) + 1) / len(eff)
    for name, order in orders.items():
        axis.plot(share, eff[np.asarray(order)].cumsum() / max(eff.sum(), 1e-12), label=name)
    for name, shares in (points or {}).items():
        axis.plot(*zip(*shares), "o", ms=4, label=name)
    axis.plot(share, np.sort(eff)[::-1].cumsum() / max(eff.sum(), 1e-12), "k:", lw=1,
              label="best possible")
    axis.plot([0, 1], [0, 1], color="0.6", lw=1, label="random, expected")
    axis.set(xlabel="share of inputs tried", ylabel=f"share of {what}")
    axis.legend()


def bars(table: pd.DataFrame, *, group: Sequence[str], hue: str, ylabel: str,
         line: float | None = None) -> Figure:
    """Means over the seeds as bars, their range as lines, for each group and ``hue``, in words."""
    if table.empty:
        return nothing()
    words = table.assign(hue=table[hue].map(shown))
    label = words[list(group)].map(shown).agg("\n".join, axis=1)  # side by side they would overlap
    figure, axis = plt.subplots(figsize=(9, 3.2))
    sns.barplot(words.assign(group=label), x="group", y="value", hue="hue", ax=axis,
                errorbar=("pi", 100), saturation=1, palette=palette(words["hue"]))
    if line is not None:
        axis.axhline(line, color="0.4", lw=1, ls="--")
    axis.set(xlabel="", ylabel=ylabel)
    axis.tick_params(axis="x", labelsize=8)
    if hue:
        axis.legend(title="", fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def bar_panels(panels: dict[str, tuple[pd.DataFrame, str, str]], *, hue: str) -> Figure:
    """Means of tidy rows as bars, in panels side by side: the values of ``hue`` have the colours.

    ``panels``: by its title the rows of each panel, the column whose values are the clusters of
    bars, and the label of the y axis; panels with the same label share the axis.
    """
    if all(rows.empty for rows, *_ in panels.values()):
        return nothing()
    means = {title: rows.groupby([group, hue], sort=False)["value"].mean().unstack(sort=False)
             for title, (rows, group, _) in panels.items()}
    labels = [label for *_, label in panels.values()]
    figure, axes = plt.subplots(1, len(panels), figsize=(9.5, 3.2), squeeze=False,
                                sharey=len(set(labels)) == 1,
                                width_ratios=[len(table) for table in means.values()])
    for axis, (title, table), label in zip(axes[0], means.items(), labels):
        headed(table).plot.bar(ax=axis, rot=0, legend=False, width=0.8)
        axis.set(title=title, xlabel="", ylabel=label)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right upper", fontsize=8)
    return figure


def dots(table: pd.DataFrame, *, row: str, panel: Sequence[str], xlabel: str,
         paper: pd.DataFrame | None = None) -> Figure:
    """Mean over the seeds and their range, a line for each ``row``, one panel for each group.

    ``table`` and ``paper``: the columns ``row``, ``panel`` and 'value'. The paper's values are
    drawn as crosses. More than four panels stand in rows of three.
    """
    if table.empty:
        return nothing()
    names = list(dict.fromkeys(table[row]))
    groups = list(table.groupby(list(panel), sort=False))
    figure, axes = panels(len(groups), width=2.1, height=0.7 + 0.18 * len(names), margin=1.6,
                          sharex=True, sharey=True)
    for axis, (key, group) in zip(axes, groups):
        ours = group.groupby(row)["value"].agg(["mean", "min", "max"]).reindex(names)
        axis.hlines(range(len(names)), ours["min"], ours["max"], color="C0", lw=2.5, alpha=0.5)
        axis.plot(ours["mean"], range(len(names)), "o", color="C0", ms=4, label="ours")
        if paper is not None:
            there = paper[(paper[list(panel)] == list(key)).all(axis=1) & paper[row].isin(names)]
            axis.plot(there["value"], [names.index(n) for n in there[row]], "x", color="C3", ms=5,
                      label="paper")
        axis.set_title(", ".join(map(shown, key)), fontsize=9)
        axis.set(xlabel=xlabel)
        axis.label_outer()
    axes[0].set_yticks(range(len(names)), map(shown, names))
    axes[0].invert_yaxis()
    if paper is not None:
        figure.legend(*axes[0].get_legend_handles_labels(), fontsize=8, loc="outside right upper")
    return figure


def panels(count: int, *, width: float, height: float, margin: float = 0, most: int = 4,
           **options) -> tuple[Figure, list[Axes]]:
    """A figure of so many panels, one row up to ``most``, else two or three columns; its axes.

    ``width``, ``height``: inches of a panel; ``margin``: beside them; ``options``: of plt.subplots.
    """
    columns = count if count <= most else 2 if count == 4 else 3
    rows = -(-count // columns)
    figure, axes = plt.subplots(rows, columns, squeeze=False, layout="constrained",
                                figsize=(margin + width * columns, height * rows), **options)
    for empty in axes.flat[count:]:
        empty.remove()
    return figure, list(axes.flat[:count])


def matrix(axis: Axes, table: pd.DataFrame, title: str) -> None:
    """A square table of numbers up to 1 as a heat map with its values."""
    sns.heatmap(table, ax=axis, annot=True, fmt=".2f", vmax=1, cmap="Blues", cbar=False,
                square=True, annot_kws={"size": 8})
    axis.set_title(title)


def nothing() -> Figure:
    """What stands in the place of a figure whose records are yet to be made."""
    figure, axis = plt.subplots(figsize=(4, 1))
    axis.text(0.5, 0.5, "no records yet", ha="center", va="center")
    axis.axis("off")
    return figure
