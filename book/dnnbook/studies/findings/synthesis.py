"""Over all papers: selectors and fuzzers side by side, and what depends on a reading."""

import pandas as pd

from dnnbook.studies.findings.nss import CELL

RIVALS = ["deepxplore", "dlfuzz", "deephunter"]


def selectors_by_network(rows: pd.DataFrame) -> pd.DataFrame:
    """Means over the seeds: a line for each selector, a column for each network."""
    return rows.groupby(["selector", *CELL])["value"].mean().unstack(CELL)


def as_published(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of rivals in their papers' settings, of swarms and of noise.

    The column 'who' is the fuzzer, and of a swarm its reading too.
    """
    rows = rows[(rows["setting"].fillna("paper") == "paper") | (rows["fuzzer"] == "noise")]
    swarm = rows["fuzzer"] == "deepsensor"
    return rows.assign(who=rows["fuzzer"].mask(swarm, "deepsensor, " + rows["swarm"].fillna("")))


def of_each_paper(rows: pd.DataFrame) -> pd.Series:
    """The mean by fuzzer as its paper describes it; of DeepSensor's swarms the first paper's."""
    found = as_published(rows)
    swarm = found["fuzzer"] == "deepsensor"
    return found[~swarm | (found["swarm"] == "paper")].groupby("fuzzer")["value"].mean()


def by_fuzzer(rows: pd.DataFrame) -> pd.DataFrame:
    """The values by network, bound and seed, a column for each fuzzer.

    A rival counts in its best recorded setting, and DeepXplore not in its reading 'single'.
    """
    kind = rows["fuzzer"].str.split(", ").str[0]
    rows = rows.assign(fuzzer=rows["fuzzer"].mask(kind.isin(RIVALS), kind))
    if "reading" in rows:
        rows = rows[rows["reading"] != "single"]
    return rows.groupby([*CELL, "bound", "seed", "fuzzer"])["value"].max().unstack("fuzzer")


def lead(table: pd.DataFrame, one: str, other: str, where: str) -> pd.Series:
    """By network and seed: one fuzzer's value less another's, in the lines that a query picks.

    ``table``: of :func:`by_fuzzer`. Networks with fewer than three seeds are left out.
    """
    found = (table[one] - table[other]).rename("value").reset_index().query(where).dropna()
    found = found[found.groupby("model")["seed"].transform("size") > 2]
    return found.set_index(["model", "seed"])["value"]


def in_two_readings(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """A line for each claim that was judged in several readings of a column.

    The share of cells that hold, as 'judged' and in the last reading ('otherwise'); the cells that
    hold and that were run, as judged; and whether the verdict 'depends' on the reading.
    """
    claims = rows[rows["column"] == column].groupby("id", sort=False)
    return pd.DataFrame({"judged": claims["share"].first(), "otherwise": claims["share"].last(),
                         "holds": claims["holds"].first(), "run": claims["run"].first(),
                         "depends": claims["verdict"].nunique() > 1})


def over_networks(rows: pd.DataFrame) -> pd.DataFrame:
    """Means over the seeds by network, under their quantity, method and other method.

    Missing where the value of one seed is. Without rows the table is empty.
    """
    if rows.empty:
        return pd.DataFrame()
    values = rows.astype({"value": float}).groupby([*CELL, "quantity", "method", "other"])["value"]
    found = values.agg(lambda v: v.mean(skipna=False))
    return found.unstack(["quantity", "method", "other"]).sort_index(axis=1)
