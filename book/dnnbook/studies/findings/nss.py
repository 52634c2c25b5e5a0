"""Of NSS: what each selector finds, and with which networks it is so everywhere or somewhere."""

from collections.abc import Collection, Mapping, Sequence

import pandas as pd

CELL = ["dataset", "model"]
KNOWN = "nss, original"  # NSS that is told the image that a candidate was made from


def by_selector(rows: pd.DataFrame, *cell: str) -> pd.DataFrame:
    """The values by the columns ``cell`` and the seed, a column for each selector.

    NSS in the text's difference: 'nss' as the text describes it, and :data:`KNOWN`. Without rows
    the table is empty.
    """
    rows = rows.reindex(columns=[*dict.fromkeys([*rows, *cell, "method", "pair", "difference"])])
    rows = rows[rows["difference"] != "squared_normalised"]
    name = rows["method"].where(rows["pair"] != "original", KNOWN)
    index = [*cell, "seed", "selector"]
    return rows.assign(selector=name).set_index(index)["value"].unstack("selector")


def everywhere(holds: pd.Series, by: Sequence[str] = CELL) -> pd.Index:
    """The networks (or what else ``by`` names) of which ``holds`` is true in every line."""
    every = holds.groupby(level=list(by)).all()
    return every.index[every]


def somewhere(holds: pd.Series) -> pd.Index:
    """The networks of which ``holds`` is true in some line."""
    some = holds.groupby(level=list(CELL)).any()
    return some.index[some]


def always_above(over: Mapping[str, pd.DataFrame]) -> list[str]:
    """The selectors whose interval ('low' to 'high') lies above 0 in every cell."""
    return [name for name, found in over.items() if (found["low"] > 0).all()]


def lenets(cells: pd.Index) -> pd.Index:
    """The cells whose network is a LeNet."""
    return cells[cells.get_level_values("model").str.startswith("lenet")]


def ends(points: pd.DataFrame, digits: int) -> pd.Series:
    """The least and the greatest of each line, with their signs, in words."""
    return points.agg(lambda line: f"{line.min():+.{digits}f} to {line.max():+.{digits}f}", axis=1)


def apart(found: pd.DataFrame, one: str, other: str) -> pd.DataFrame:
    """By network, in means over the seeds: one selector less another, and divided by it."""
    means = found.groupby(CELL).mean()
    return pd.DataFrame({"points": means[one] - means[other], "times": means[one] / means[other]})


def less_printed(ours: pd.DataFrame, printed: pd.DataFrame) -> pd.DataFrame:
    """Our means less what the paper prints of the same cell and selector.

    NSS with the known original has a column too: it is compared with the paper's NSS.
    """
    paper, ours = printed.reindex(ours.index), ours.reindex(columns=[*printed, KNOWN])
    return (ours[paper.columns] - paper).assign(**{KNOWN: ours[KNOWN] - paper["nss"]})


def firsts_if_known(ours: pd.DataFrame, printed: pd.DataFrame,
                    of_paper: Collection[str] = ()) -> int:
    """In how many cells NSS is first if the original is known.

    Its rivals are those that the paper prints; those ``of_paper`` count with their printed numbers.
    """
    ours = ours.reindex(columns=[*printed, KNOWN])
    rivals = ours[printed.columns.drop("nss")].assign(
        **{name: printed[name].reindex(ours.index) for name in of_paper})
    return int((ours[KNOWN] > rivals.max(axis=1)).sum())


def lost_within(areas: pd.DataFrame) -> pd.Series:
    """Where an AUC taken within a mutation loses more than half of its lead over chance."""
    lead = areas - 0.5
    return lead["auc_within"] < lead["auc_overall"] / 2


def found_by_both(rows: pd.DataFrame, one: str, other: str) -> pd.Series:
    """By network: the share of the faults that both selectors find, of those that either finds."""
    pair = (rows["method"] == one) & (rows["other"] == other)
    return rows[pair & (rows["quantity"] == "jaccard")].groupby(CELL)["value"].mean()


def sensitive_over_random(rows: pd.DataFrame) -> pd.Series:
    """How many times as far as random neurons the most sensitive ones move: a line for each run."""
    mean = rows[(rows["quantity"] == "sensitivity") & (rows["difference"] == "l1")].set_index(
        [*CELL, "state", "strength", "seed", "neurons"])["value"].unstack("neurons")
    return mean["sensitive"] / mean["random"]


def beyond_training(gains: pd.DataFrame) -> pd.DataFrame:
    """What the candidates add to the gain of training alone ('none', at a rate of 0), by seed."""
    if gains.empty:
        return gains
    alone = gains["none"].xs(0, level="rate")
    return gains.drop(columns="none").drop(index=0, level="rate").sub(alone, axis=0)


def leaders(table: pd.DataFrame, count: int) -> list[set[str]]:
    """The selectors with the greatest values in each line, so many of them."""
    return [{*line.nlargest(count).index} for _, line in table.iterrows()]


def by_option(rows: pd.DataFrame, option: str, pair: str) -> pd.DataFrame:
    """NSS's FDR in one pair by network and seed, a column for each 'layer' or each 'share'.

    Layers are compared with a fifth of their neurons, and shares in the last layer. Without rows
    the table is empty.
    """
    rows = rows.reindex(columns=[*dict.fromkeys([*rows, *CELL, "pair", "layer", "share"])])
    fixed = rows["share"] == 20 if option == "layer" else rows["layer"] == -1
    rows = rows[fixed & (rows["quantity"] == "fdr") & (rows["pair"] == pair)]
    return rows.set_index([*CELL, "seed", option])["value"].unstack(option)
