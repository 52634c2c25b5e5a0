"""The scoreboard as a page: each claim in a sentence, its cells as dots, its verdict in a word."""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

import pandas as pd

from dnnbook import published
from dnnbook.chapters import notebooks
from dnnbook.display import verdict_plots
from dnnbook.published.printed import printed
from dnnbook.records import intervals, verdicts
from dnnbook.words import shown

OUTCOMES = {"holds": "holds", "fails": "fails", "open": "is open"}


@dataclass(frozen=True)
class Board:
    """The claims of one paper, folded, for a notebook to show."""

    name: str
    found: tuple[verdicts.Verdict, ...]
    chapters: Mapping[str, Path]  # by experiment, with its forest plots

    def _repr_html_(self) -> str:
        counts = pd.Series([verdict.state for verdict in self.found]).value_counts()
        counted = ", ".join(f"{n} {state}" for state in verdict_plots.STATES
                            if (n := counts.get(state, 0)))
        return (f'<details class="board"><summary><b>{escape(self.name)}</b>: {counted}</summary>'
                f"{''.join(self._line(verdict) for verdict in self.found)}</details>")

    def __repr__(self) -> str:
        return "\n".join(f"{verdict.claim.statement} {worded(verdict)}: {verdicts.counted(verdict)}"
                         for verdict in self.found)

    def _line(self, verdict: verdicts.Verdict) -> str:
        claim, chapter = verdict.claim, self.chapters.get(verdict.claim.experiment)
        statement = escape(claim.statement)
        if chapter:  # some wait for one
            page = f"../{chapter.parent.name}/{chapter.stem}.html#verdict"
            statement = f'<a href="{page}">{statement}</a>'
        needed = f"{shown(claim.quantity)}, {verdict_plots.needed(claim)}"
        runs = f"; {verdict.scale}" if verdict.scale else ""
        squares = "".join(_square(claim, cell, chapter)
                          for cell in verdict.cells.to_dict("records"))
        squares += '<span class="square missing"></span>' * (claim.expected - verdict.run)
        noted = "".join(f" {mark}." for mark in marks(verdict))
        return (f'<div class="claim verdict {css(verdict.state)}"><p>{statement} '
                f'<b>{worded(verdict)}</b></p>'
                f'<p class="squares">{squares}</p><p class="small">'
                f"{escape(verdicts.counted(verdict))}. Needed: {escape(needed)}. "
                f"{escape(claim.place)}{escape(runs)}.{escape(noted)}</p></div>")


def css(state: str) -> str:
    """The class of a verdict in book.css.

    >>> css("partly, some fail"), css("not reproduced")
    ('partly', 'not-reproduced')
    """
    return state.split(",")[0].replace(" ", "-")


def worded(found: verdicts.Verdict) -> str:
    """The verdict in a word; how many cells hold where not all do, and whether it may change."""
    word = found.state + (f" ({found.holds} of {found.run})" if found.state == "mostly" else "")
    return word + (", provisional" if found.provisional else "")


def marks(found: verdicts.Verdict) -> list[str]:
    """What a reader should know of a verdict beside it.

    That the paper's own numbers fail the rule; that cells hold because a baseline finds far less
    than in print, as the claim's note says; that it rests on one cell.
    """
    marks, print_ = [], printed(found.claim)
    if len(print_):
        alone = [intervals.estimate([v, v], found.claim.scale) for v in print_["value"]]
        failing = sum(verdicts.outcome(found.claim, each) != "holds" for each in alone)
        if failing:
            marks.append("The paper's own numbers fail the rule in "
                         f"{failing} of {len(alone)} cells")
    if found.claim.weak_baseline:
        marks.append(found.claim.weak_baseline.rstrip("."))
    if found.run == 1:
        marks.append("It rests on one cell")
    return marks


def boards(names: Mapping[str, str]) -> list[Board]:
    """The scoreboard of each paper; ``names`` by its code.

    Behind each dot, for a pointer and for the keyboard: which cell it is, the mean over the
    seeds with its interval, and the command that runs it.
    """
    chapters = notebooks.declaring()
    return [Board(name, tuple(verdicts.verdict(claim) for claim in published.claims(paper)),
                  chapters) for paper, name in names.items()]


def _square(claim: published.Claim, cell: Mapping, chapter: Path | None) -> str:
    where = ", ".join(str(shown(cell[key])) for key in claim.cells)
    text = (f"{where}: {cell['mean']:.3g} [{cell['low']:.3g}, {cell['high']:.3g}], "
            f"{cell['seeds']} seeds, {OUTCOMES[cell['outcome']]}."
            f"{' ' + command(claim, cell, chapter) if chapter else ''}")
    return (f'<span class="square {cell["outcome"]}" tabindex="0" role="img" '
            f'aria-label="{escape(text)}" data-tip="{escape(text)}"></span>')


def command(claim: published.Claim, cell: Mapping, chapter: Path) -> str:
    """What runs a cell of a claim again, with the chapter's seed.

    >>> claim = {claim.id: claim for claim in published.claims()}["nss-diversity-best"]
    >>> command(claim, {"dataset": "mnist", "model": "lenet1_nss"}, Path("nss/04_diversity.py"))
    'dnnbook run nss/04 -p profile paper -p dataset mnist -p model_name lenet1_nss'
    """
    given = {"dataset": "dataset", "model": "model_name"}
    values = {name: cell.get(key, claim.where.get(key)) for key, name in given.items()}
    return " ".join([f"dnnbook run {chapter.parent.name}/{chapter.stem[:2]} -p profile paper", *(
        f"-p {name} {value}" for name, value in values.items() if isinstance(value, str))])
