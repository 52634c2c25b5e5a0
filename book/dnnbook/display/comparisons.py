"""What a comparison of fuzzers rests on: the rivals' settings, and the sizes of the runs."""

import pandas as pd

from dnnbook.studies.released import PAPER
from dnnbook.words import listed, shown

RANK = {"best": 2, "paper": 1}  # 0: in no named setting, as a fuzzer of our own, or a rival alone
SIZES = {"seeds_count": "inputs", "population": "particles", "iterations": "iterations",
         "seed": "random seeds"}


def at_best(rows: pd.DataFrame, *cell: str) -> pd.DataFrame:
    """The rows with each rival in one setting: its 'best', where that was not run the 'paper' one.

    ``rows``: of records; ``cell``: the columns of a cell, such as dataset and model, in each of
    which a rival has one or the other. Rows without a setting stay, but for those of such a rival.

    >>> rows = pd.DataFrame({"fuzzer": ["dlfuzz", "dlfuzz", "noise"],
    ...                      "setting": ["paper", "best", None], "value": [1.0, 2.0, 3.0]})
    >>> at_best(rows)["value"].tolist()
    [2.0, 3.0]
    """
    if "setting" not in rows or rows.empty:
        return rows
    names = [*cell, *(name for name in ("fuzzer", "baseline") if name in rows)]
    setting = rows["setting"].replace("", None)
    rank = setting.map(RANK).where(setting.notna(), 0).astype(float)
    most = rank.groupby([rows[name] for name in names], dropna=False).transform("max")
    rival = rows["fuzzer"].isin(list(PAPER)) if "fuzzer" in rows else False
    return rows[(rank == most) | (setting.isna() & ~rival)]


def of_rivals(rows: pd.DataFrame) -> str:
    """Which settings of the rivals :func:`at_best` found, in words for a sentence.

    >>> of_rivals(pd.DataFrame({"fuzzer": ["dlfuzz", "noise"], "setting": ["paper", None]}))
    "in the paper's setting"
    """
    column = "fuzzer" if "fuzzer" in rows and rows["fuzzer"].isin(list(PAPER)).any() else "baseline"
    found = rows[rows[column].isin([*PAPER, "mean"])] if column in rows else rows
    if "setting" not in found:
        return "in the paper's setting"
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
        which = ["of width 0.75"] if model == "mobilenet" else []
        if "recipe" in part and (part["recipe"] == "pretrained").all():
            which.append("trained by others")
        told = f" ({', '.join(which)})" if which else ""
        found.setdefault(text, []).append(f"{shown(model)}{told} on {shown(dataset)}")
    return "; ".join(f"{listed(who)}: {text}" for text, who in found.items())


def rows_kept(rows: pd.DataFrame) -> list[str]:
    """What records took over from older ones, as a sentence; no sentence if they took nothing.

    ``rows``: of records, those of the quantity ``rows_kept`` among them.

    >>> cell = {"dataset": "mnist", "model": "lenet5"}
    >>> said, = rows_kept(pd.DataFrame([{**cell, "seed": 0, "quantity": "rows_kept"},
    ...                                 {**cell, "seed": 1, "quantity": "error_rate"}]))
    >>> said[:31]
    'In 1 of 2 records, the swarms a'
    >>> rows_kept(pd.DataFrame([{**cell, "seed": 1, "quantity": "error_rate"}]))
    []
    """
    cell = ["dataset", "model", "seed"]
    kept = rows.loc[rows["quantity"] == "rows_kept", cell].drop_duplicates()
    if kept.empty:
        return []
    return [f"In {len(kept)} of {len(rows[cell].drop_duplicates())} records, the swarms and the "
            "rivals in the paper's setting come from an older record of the same random seed. "
            "The rest was run later, with the network of that seed trained again."]
