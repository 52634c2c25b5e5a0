"""Figures of verdicts: the bar of all claims, and a forest plot for each."""

import math
from collections.abc import Iterable, Mapping
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke
from matplotlib.ticker import LogLocator
from pandas.api.types import is_numeric_dtype

from dnnbook import published
from dnnbook.display import whose
from dnnbook.published.printed import printed
from dnnbook.records.verdicts import Verdict, counted, verdict
from dnnbook.words import shown

STATES = {  # as in book.css
    "reproduced": "#029e73", "reproduced where run": "#56c2a0", "mostly": "#a9dcc8",
    "partly, some fail": "#e8c35a", "not reproduced": "#d55e00", "too few runs": "#c4c4c4",
    "nothing to compare": "#e4e4e4", "not run": "#ffffff"}
FIRST = {  # the words of the first rules, and those that they were split into
    "reproduced": ["reproduced"], "reproduced where run": ["reproduced where run"],
    "partly": ["mostly", "partly, some fail"], "not reproduced": ["not reproduced"],
    "undecided": ["too few runs", "nothing to compare"], "not run": ["not run"]}
OUTCOMES = {"holds": "#029e73", "open": "#7a7a7a", "fails": "#d55e00"}
NEEDED = {"at_least": "at least {t:g}", "above": "above {t:g}", "at_most": "at most {t:g}",
          "below": "below {t:g}", "about": "about {t:g} (within {m:g})"}
TAKEN = {"slope": "slope of {q}, a step", "range": "range of {q}"}  # as :class:`published.Claim`
COMPARED = {"less": "{q}, less the largest of the others", "over": "{q}, over the others' mean",
            "between": "{q}, how far inside the others' range",
            "above": "{q}: 1 above all others, else 0", "least": "{q}: 1 below all others, else 0"}
FULL = "not judged: with some seed, all or no examples are errors"  # a claim's ceiling
LINE = 0.17  # inches for a cell
MANY, CLOSE = 20, 0.4  # cells of a claim from which on they stand close, and how close: in lines
FAR = 1000  # times the usual value: one so far away would press all others into one place
TALL = 8  # squares, one above the other


def first_words(verdicts: pd.Series) -> pd.Series:
    """Verdicts in the words of the first rules, which had fewer: to compare them with theirs."""
    return verdicts.replace({word: first for first, words in FIRST.items() for word in words})


def bar(board: pd.DataFrame, states: Mapping[str, str] = STATES) -> Figure:
    """A scoreboard's verdicts, counted: a bar for each paper, a part of it for each verdict."""
    counts = pd.crosstab(board["paper"], board["verdict"]).reindex(
        index=dict.fromkeys(board["paper"]), columns=states, fill_value=0)
    figure, axis = plt.subplots(figsize=(9, 0.7 + 0.42 * len(counts)))
    left = np.zeros(len(counts))
    for state, colour in states.items():
        bars = axis.barh(counts.index, counts[state], left=left, color=colour, edgecolor="0.4",
                         linewidth=0.6, label=state)
        axis.bar_label(bars, [n or "" for n in counts[state]], label_type="center",
                       path_effects=[withStroke(linewidth=2, foreground="white")])
        left += counts[state].to_numpy()
    axis.invert_yaxis()
    axis.grid(False)
    axis.set(xlabel="claims")
    axis.locator_params(axis="x", integer=True)
    figure.legend(loc="outside upper center", ncols=-(-len(states) // 2), fontsize=9)
    return figure


def before_after(first: pd.DataFrame, now: pd.DataFrame, names: Mapping[str, str]) -> Figure:
    """:func:`bar` of two scoreboards, paper by paper, for the claims that both have.

    In the words of the first rules.
    """
    both = [claim for claim in now.index if claim in first.index]
    return bar(pd.concat([
        board.loc[both].query("paper == @paper").assign(
            paper=f"{name.replace(', ', chr(10))}: {when}",
            verdict=lambda rows: first_words(rows["verdict"]))
        for paper, name in names.items() for when, board in (("first", first), ("now", now))]),
        {word: STATES[words[0]] for word, words in FIRST.items()})


def outcomes() -> pd.DataFrame:
    """The cells of all claims of a paper, counted: those that hold, are open, fail, are not run."""
    judged = [verdict(claim) for claim in published.claims()]
    return pd.DataFrame([{
        "paper": found.claim.paper, "holds": found.holds,
        "open": found.run - found.holds - found.fails, "fails": found.fails,
        "blank": found.claim.expected - found.run} for found in judged]).groupby(
            "paper", sort=False).sum()


def squares(counts: pd.DataFrame) -> Figure:
    """:func:`outcomes`, drawn: a block for each paper, a square for each cell, by its outcome."""
    paint = OUTCOMES | {"blank": "#ffffff"}
    words = {"holds": "hold", "open": "open", "fails": "fail", "blank": "not run"}
    wide = max(1, -(-int(counts[list(paint)].sum(axis=1).max()) // TALL))
    high = (TALL + 3) * len(counts)
    figure, axis = plt.subplots(figsize=(8, 0.4 + 8 * high / max(wide, 40)))
    for top, (paper, row) in zip(range(2, high, TALL + 3), counts.iterrows()):
        each = [name for name in paint for _ in range(int(row[name]))]
        axis.add_collection(PatchCollection(
            [Rectangle((i // TALL, top + i % TALL), 0.84, 0.84) for i in range(len(each))],
            facecolors=[paint[name] for name in each], edgecolors="0.5", linewidths=0.5))
        said = ", ".join(f"{row[name]} {word}" for name, word in words.items() if row[name])
        axis.text(0, top - 0.5, f"{paper}: {said}", fontsize=9)
    axis.set(xlim=(-0.2, max(wide, 40)), ylim=(high, 0), aspect="equal")
    axis.axis("off")
    figure.legend(handles=[Rectangle((0, 0), 1, 1, facecolor=colour, edgecolor="0.5",
                                     label=words[name]) for name, colour in paint.items()],
                  loc="outside upper left", ncols=len(paint), fontsize=9)
    return figure


def open_cells() -> pd.DataFrame:
    """The open cells: 'paper', 'claim', 'cell', 'seeds' and how many would be 'deciding'."""
    found = [verdict(claim) for claim in published.claims()]
    return pd.DataFrame([{
        "paper": each.claim.paper, "claim": each.claim.statement,
        "cell": _named(cell[name] for name in each.claim.cells),
        "seeds": cell["seeds"], "deciding": cell["deciding"]}
        for each in found for cell in each.cells.to_dict("records") if cell["outcome"] == "open"],
        columns=["paper", "claim", "cell", "seeds", "deciding"])


def left_open(cells: pd.DataFrame, most: int = 30) -> Figure:
    """How many of the :func:`open_cells` would still be open with so many seeds: a line a paper."""
    figure, axis = plt.subplots(figsize=(8, 3))
    seeds = range(3, most + 1)
    for paper, part in cells.groupby("paper", sort=False):
        left = [int((part["deciding"] > count).sum()) for count in seeds]
        axis.step(seeds, left, where="post", label=paper)
    axis.set(xlabel="seeds of every cell", ylabel="cells still open", ylim=(0, None))
    axis.legend(fontsize=8)
    return figure


def show(experiment: str) -> None:
    """Display the forest plots of the claims that rest on an experiment, if there are any."""
    from IPython.display import display

    found = {claim.id: (verdict(claim), printed(claim)) for claim in published.claims()
             if claim.experiment == experiment}
    if found:
        figure = whose.signed(forests(found), whose.RECORDS)
        display(figure)
        plt.close(figure)


def needed(claim: published.Claim) -> str:
    """What a claim's rule asks of its quantity, in words: 'about 1.2 (within 0.1)'."""
    return NEEDED[claim.rule].format(t=claim.threshold, m=claim.margin)


def judged(claim: published.Claim) -> str:
    """What a claim's rule is asked of, in words: its quantity, or what follows from it."""
    said = claim.quantity if claim.quantity == "sensitivity" else shown(claim.quantity)  # no swarm
    for words, how in ((TAKEN, claim.take), (COMPARED, claim.by)):
        said = words[how].format(q=said) if how else said
    return said


def forests(found: dict[str, tuple[Verdict, pd.DataFrame]]) -> Figure:
    """Forest plots, one below the other: a line for each cell of a claim, with its interval.

    ``found``: by the claim's id its verdict, and the paper's values: the claim's cells and 'value'.
    The dashed line, or the gray band, is what the claim needs; a cross is the paper's value. Cells
    that the paper has and nobody ran are crosses alone. Of a claim with more than ``MANY`` cells,
    those that differ in a last number only, such as a rate, stand close under one name.
    """
    rows = [1 + _lines(*pair)["y"].max() if len(_lines(*pair)) else 1 for pair in found.values()]
    figure, axes = plt.subplots(len(rows), 1, squeeze=False, layout="constrained",
                                height_ratios=[n + 4 for n in rows],
                                figsize=(8, LINE * sum(n + 5 for n in rows)))
    for axis, pair in zip(axes[:, 0], found.values()):
        forest(axis, *pair)
    return figure


def forest(axis: Axes, found: Verdict, paper: pd.DataFrame) -> None:
    """One claim of :func:`forests`."""
    claim, lines = found.claim, _lines(found, paper)
    close = 0.7 if lines["name"].duplicated().any() else 1
    for y, (_, line) in zip(lines["y"], lines.iterrows()):
        if pd.notna(line["mean"]):
            colour = OUTCOMES[line["outcome"]]
            axis.plot([line["low"], line["high"]], [y, y], color=colour, lw=2 * close)
            axis.plot(line["mean"], y, "o", color=colour, ms=4.5 * close)
        elif pd.notna(line["outcome"]):
            axis.text(0.01, y, FULL if claim.ceiling else "undefined with some seed", fontsize=7,
                      va="center", transform=axis.get_yaxis_transform())
        if pd.notna(line["value"]):
            axis.plot(line["value"], y, "x", color="black", ms=5 * close, mew=1.3 * close)
    if claim.rule == "about":
        axis.axvspan(claim.threshold - claim.margin, claim.threshold + claim.margin, color="0.88",
                     zorder=0)
    else:
        axis.axvline(claim.threshold, color="0.35", ls="--", lw=1)
    drawn = lines[["low", "high", "value"]].astype(float).stack()
    ours = lines[["low", "high"]].astype(float).stack().abs()
    if claim.scale == "ratio" and len(drawn) and 0 < 4 * drawn.min() < drawn.max():
        axis.set_xscale("log", subs=[])
        axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.xaxis.set_major_formatter("{x:g}")
    elif 0 < FAR * (usual := ours.median()) < ours.max():
        axis.set_xscale("symlog", linthresh=10.0 ** math.ceil(math.log10(usual)))
        axis.xaxis.set_major_formatter("{x:,g}")
    places = lines.groupby("name", sort=False)["y"].mean()
    axis.set_yticks(places, places.index, fontsize=8)
    axis.set_ylim(0.6 + lines["y"].max() if len(lines) else 1, -0.6)
    axis.set_xlabel(f"{judged(claim)}; claimed: {needed(claim)}", fontsize=8)
    axis.set_title(fill(f"{claim.statement} {found.state.capitalize()}: {counted(found)}", 88),
                   fontsize=9, loc="left")
    axis.tick_params(axis="x", labelsize=8)
    axis.grid(axis="y", visible=False)
    if not len(lines):
        axis.text(0.5, 0.5, "no records yet", ha="center", va="center", transform=axis.transAxes)


def _named(cell: Iterable) -> str:
    return ", ".join(f"{v:g}" if isinstance(v, float) else str(shown(v)) for v in cell)


def _lines(found: Verdict, paper: pd.DataFrame) -> pd.DataFrame:
    """A row for each cell that was run or printed, with its name in words and its place 'y'."""
    cells, keys = found.cells, list(found.claim.cells)
    if cells.empty:
        cells = pd.DataFrame(columns=[*keys, "mean", "low", "high", "outcome"])
    if len(paper):
        alike = {k: float if all(is_numeric_dtype(t[k]) for t in (cells, paper) if len(t)) else str
                 for k in keys}  # a rate of 5 in the paper's table is the 5.0 of a record
        both = cells.astype(alike).merge(paper.astype(alike), on=keys, how="outer", sort=False)
    else:
        both = cells.assign(value=np.nan)
    varying = [k for k in keys if both[k].nunique() > 1] or keys
    last, end = varying[-1], ""
    close = len(both) > MANY and len(varying) > 1 and is_numeric_dtype(both[last])
    if close:
        varying, end = varying[:-1], f", {both[last].min():g} to {both[last].max():g}"
    names = [_named(row) + end for row in both[varying].itertuples(index=False)]
    steps = np.where(pd.Series(names, dtype=str).duplicated(), CLOSE, 1.0)
    return both.assign(name=names, y=np.cumsum(steps) - 1)
