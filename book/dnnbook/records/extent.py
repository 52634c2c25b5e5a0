"""How much of each paper is regenerated: of its tables and figures, and of their cells."""

from pathlib import Path

import pandas as pd

from dnnbook import published
from dnnbook.records import records
from dnnbook.records.verdicts import SEEDS

STATES = ("whole", "partial", "blank")
PAIR = ["dataset", "model"]
ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X")
START, END = "<!-- computed -->", "<!-- end -->"


def items(root: Path | None = None) -> pd.DataFrame:
    """Every table and figure: its chapter, the paper's cells, those run, its state.

    A cell counts as run with three seeds. 'possible': the cells that need none of the data that
    this project does not have; 'by_part': those of the others that a part of them
    (:data:`published.PARTS`) stands for.

    'whole': every cell was run, or the chapter's code alone makes it; 'partial': some were;
    'blank': none was, or no chapter regenerates it. How large the runs were is another question,
    which :func:`dnnbook.records.verdicts.scale` answers.
    """
    rows = []
    for paper, entries in published.OUTLINE.items():
        for name, entry in entries.items():
            run, cells = _run(entry, root), entry.get("cells", 0)
            full = "chapter" in entry and run >= cells
            rows.append({"paper": paper, "item": name, "chapter": entry.get("chapter", ""),
                         "cells": cells, "run": run,
                         "possible": cells - sum(entry.get("missing", {}).values()),
                         "by_part": _run(entry, root, by_part=True),
                         "state": STATES[0 if full else 1 if run else 2]})
    return pd.DataFrame(rows)


def lacking(paper: str, item: str, root: Path | None = None) -> list[tuple[str, str]]:
    """Which pairs of a dataset and a network a table prints and no records of three seeds have.

    Only of tables whose copy names both; of others there is no list. A dataset of which all is
    lacking stands once, with an empty name of a network.
    """
    entry, number = published.OUTLINE[paper][item], item.removeprefix("Table ")
    number = str(ROMAN.index(number) + 1) if number in ROMAN else number
    if "experiment" not in entry or not number.isdigit():
        return []
    printed = published.table(paper, int(number))
    if not set(PAIR) <= set(printed):
        return []
    asked = printed[PAIR].dropna().drop_duplicates()
    run: set[tuple] = set()
    for part in (entry, *entry.get("also", ())):
        run |= {tuple(pair) for pair in _counted(part, root, by=PAIR).index}
    left = [pair for pair in asked.itertuples(index=False, name=None) if pair not in run]
    whole = {data for data, _ in left
             if sum(d == data for d, _ in left) == (asked["dataset"] == data).sum() > 1}
    return list(dict.fromkeys((data, "" if data in whole else model) for data, model in left))


def _run(entry: dict, root: Path | None, *, by_part: bool = False) -> int:
    """How many cells of an item have records of three seeds."""
    return sum(len(_counted(part, root, by_part=by_part))
               for part in (entry, *entry.get("also", ())))


def _counted(entry: dict, root: Path | None, by: list[str] | None = None, *,
             by_part: bool = False) -> pd.Series:
    """The cells of an item that have records of three seeds, and how many they have.

    ``by_part``: those on a part of a dataset, and no others.
    """
    if "experiment" not in entry:
        return pd.Series(dtype=int)
    rows = records.frame(entry["experiment"], root, told=["dataset"])
    by = by or entry.get("by", PAIR)
    if "dataset" in rows:
        rows = rows[rows["dataset"].isin(published.PARTS) == by_part]
    for column, value in entry.get("where", {}).items():
        if column in rows:
            rows = rows[rows[column].isin(value if isinstance(value, list) else [value])]
    if rows.empty or not {*by, "seed"} <= set(rows):
        return pd.Series(dtype=int)
    seeds = rows.groupby(by)["seed"].nunique()
    return seeds[seeds >= SEEDS]


def states(root: Path | None = None) -> pd.DataFrame:
    """For each paper, its tables and figures by state, and its cells: run, by a part of their data,
    possible, all."""
    found = items(root)
    counts = pd.crosstab(found["paper"], found["state"]).reindex(
        index=list(published.PAPERS), columns=list(STATES), fill_value=0)
    return counts.join(found.groupby("paper")[["run", "by_part", "possible", "cells"]].sum())


def readme(text: str, root: Path | None = None) -> str:
    """A README with the table between its two marks computed anew.

    Raises ``ValueError`` if the marks are not there.
    """
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        raise ValueError(f"README: expected the marks {START} and {END}")
    lines = ["| paper | tables and figures: whole, partial, blank | cells run "
             "| of those that our data allow | of the paper's | more by a part of SVHN |",
             "|---|---|---|---|---|---|"]
    lines += [f"| {published.PAPERS[paper]} | {row['whole']}, {row['partial']}, {row['blank']} | "
              f"{row['run']} | {row['possible']} | {row['cells']} | {row['by_part'] or ''} |"
              for paper, row in states(root).iterrows()]
    return "\n".join([f"{before}{START}", *lines, f"{END}{after}"])
