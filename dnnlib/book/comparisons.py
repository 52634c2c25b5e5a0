"""What a comparison of fuzzers rests on: the rivals' settings, and the sizes of the runs."""

from collections.abc import Sequence

import pandas as pd

from dnnlib.book.words import listed, shown
from dnnlib.fuzzing.settings import PAPER

RANK = {"best": 2, "paper": 1}  # 0: in no named setting, as a fuzzer of our own, or a rival alone
SIZES = {"seeds_count": "inputs", "population": "particles", "iterations": "iterations",
         "seed": "random seeds"}


def strongest(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Of each group of rows those of the setting 'best', where it was not run those of 'paper'.

    ``rows``: of records; ``by``: the columns that tell one cell and one rival from another. Rows of
    other settings are left out; what has no setting stays where a group has nothing else.

    >>> rows = pd.DataFrame({"fuzzer": ["dlfuzz", "dlfuzz", "noise"],
    ...                      "setting": ["paper", "best", None], "value": [1.0, 2.0, 3.0]})
    >>> strongest(rows, ["fuzzer"])["value"].tolist()
    [2.0, 3.0]
    """
    setting = rows["setting"] if "setting" in rows else pd.Series(None, rows.index, object)
    rank = setting.map(RANK).where(setting.notna(), 0).astype(float)
    kept, rank = rows[rank.notna()], rank.dropna()
    return kept[rank == rank.groupby([kept[name] for name in by], dropna=False).transform("max")]


def of_rivals(rows: pd.DataFrame) -> str:
    """Which settings of the rivals :func:`strongest` found, in words for a sentence.

    >>> of_rivals(pd.DataFrame({"fuzzer": ["dlfuzz", "noise"], "setting": ["paper", None]}))
    "in the paper's setting"
    """
    column = "fuzzer" if "fuzzer" in rows and rows["fuzzer"].isin(list(PAPER)).any() else "baseline"
    found = rows[rows[column].isin([*PAPER, "mean"])] if column in rows else rows
    if (found["setting"] == "best").all():
        return "in the best of their authors' settings"
    if (found["setting"] == "best").any():
        return "in the best of their authors' settings, or the paper's where that alone was run"
    return "in the paper's setting"


def sizes(rows: pd.DataFrame) -> str:
    """What was run with each network, in words.

    >>> sizes(pd.DataFrame({"dataset": "mnist", "model": "lenet5", "seeds_count": 1000,
    ...                     "population": 1, "iterations": 20, "seed": [0, 1, 2]}))
    'LeNet-5 on MNIST: 1,000 inputs, 1 particle, 20 iterations, 3 random seeds'
    """
    found = {}
    for (dataset, model), part in rows.groupby(["dataset", "model"], sort=False):
        numbers = {word: part[name].nunique() if name == "seed" else part[name].min()
                   for name, word in SIZES.items() if name in part}
        text = ", ".join(f"{number:,.0f} {word if number != 1 else word[:-1]}"
                         for word, number in numbers.items())
        width = ", of width 0.75," if model == "mobilenet" else ""
        found.setdefault(text, []).append(f"{shown(model)}{width} on {shown(dataset)}")
    return "; ".join(f"{listed(who)}: {text}" for text, who in found.items())
