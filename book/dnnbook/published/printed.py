"""What a paper prints for each cell of a claim: the line of its value in a forest plot.

>>> from dnnbook import published
>>> claim = next(c for c in published.claims() if c.id == "nsatp-rq3-pd-best")
>>> printed(claim).query("model == 'net2' and dataset == 'mnist'")["value"].tolist()
[0.01]
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dnnbook import published
from dnnbook.published import Claim

# Our records name what stands in for a dataset or network of the paper, where it is another one.
STAND_INS = {"dataset": {"vctk": "fsdd"},
             "model": {"resnet34": "resnet34_s", "deep_speaker": "deep_speaker_s"}}


def _as_it_is(rows: pd.DataFrame) -> pd.DataFrame:
    return rows


def _wide(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """A column for each value of ``column``, a line for each cell."""
    keys = [c for c in rows if c not in ("quantity", "value", "printed", column)]
    return rows.pivot(index=keys, columns=column, values="value").astype(float)


def _long(table: pd.DataFrame | pd.Series, column: str) -> pd.DataFrame:
    """The opposite of :func:`_wide`, or a line for each cell as it stands."""
    if isinstance(table, pd.DataFrame):
        table = table.rename_axis(columns=column).stack()
    return table.rename("value").reset_index()


def _others(rows: pd.DataFrame) -> tuple[pd.Series, pd.DataFrame]:
    """DeepSensor's values, and those of the baselines, 'mean' the mean of them."""
    wide = _wide(rows.drop(columns="baseline", errors="ignore"), "fuzzer")
    others = wide.drop(columns="deepsensor")
    if "mean" not in others:
        others = others.assign(mean=others.mean(axis=1))
    return wide["deepsensor"], others


def _over_baselines(rows: pd.DataFrame) -> pd.DataFrame:
    ours, others = _others(rows)
    return _long(others.rdiv(ours, axis=0), "baseline")


def _times_ours(rows: pd.DataFrame) -> pd.DataFrame:
    ours, others = _others(rows)
    return _long(others.div(ours, axis=0), "baseline")


def _over_well_trained(rows: pd.DataFrame) -> pd.DataFrame:
    wide = _wide(rows[rows["fuzzer"] == "deepsensor"], "training")
    return _long(wide.div(wide["well_trained"], axis=0), "training")


def _lead(column: str, ours) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """The value of ``ours`` less the largest of the others in ``column``."""
    def less(rows: pd.DataFrame) -> pd.DataFrame:
        wide = _wide(rows, column)
        return _long(wide[ours] - wide.drop(columns=ours).max(axis=1), column)
    return less


def _less(column: str, ours, other) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """The value of ``ours`` less that of ``other`` in ``column``."""
    def less(rows: pd.DataFrame) -> pd.DataFrame:
        wide = _wide(rows, column)
        return _long(wide[ours] - wide[other], column)
    return less


def _each_less(column: str, other) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Every value less that of ``other`` in ``column``."""
    def less(rows: pd.DataFrame) -> pd.DataFrame:
        wide = _wide(rows, column)
        return _long(wide.sub(wide[other], axis=0), column)
    return less


def _less_most(column: str, ours, *others) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """The value of ``ours`` less the largest of ``others`` in ``column``."""
    def less(rows: pd.DataFrame) -> pd.DataFrame:
        wide = _wide(rows, column)
        return _long(wide[ours] - wide[list(others)].max(axis=1), column)
    return less


def _between(column: str, ours, *ends) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """How far inside the range of ``ends`` the value of ``ours`` is in ``column``."""
    def inside(rows: pd.DataFrame) -> pd.DataFrame:
        wide = _wide(rows, column)
        least, most = wide[list(ends)].min(axis=1), wide[list(ends)].max(axis=1)
        return _long(pd.concat([wide[ours] - least, most - wide[ours]], axis=1).min(axis=1), column)
    return inside


def _slope(column: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """The slope of a line through the values in the order of ``column``, a step."""
    def slope(rows: pd.DataFrame) -> pd.DataFrame:
        wide = _wide(rows, column)
        steps = np.arange(wide.shape[1]) - (wide.shape[1] - 1) / 2
        return _long((wide * steps).sum(axis=1) / (steps ** 2).sum(), column)
    return slope


def _over_mean(column: str, ours) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """The value of ``ours`` over the mean of all others in ``column``."""
    def over(rows: pd.DataFrame) -> pd.DataFrame:
        wide = _wide(rows, column)
        return _long(wide[ours] / wide.drop(columns=ours).mean(axis=1), column)
    return over


def _each_over_well_trained(rows: pd.DataFrame) -> pd.DataFrame:
    wide = _wide(rows, "training")
    return _long(wide.div(wide["well_trained"], axis=0), "training")


def _mean_over(rows: pd.DataFrame) -> pd.DataFrame:
    """DeepSensor's value over the mean of the baselines."""
    ours, others = _others(rows)
    return _long(ours / others["mean"], "baseline")


def _less_random(rows: pd.DataFrame) -> pd.DataFrame:
    """NSS minus random at each rate; Table VI has one column for all rates."""
    rows = rows.rename(columns={"operator": "candidates"})
    random = rows[rows["method"] == "random"].set_index("candidates")["value"]
    nss = rows[rows["method"] == "nss"]
    return nss.assign(value=nss["value"] - nss["candidates"].map(random))


def _hundredth(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(value=rows["value"] / 100)


def _itself(rows: pd.DataFrame) -> pd.DataFrame:
    """A multiple of the printed value: of the printed ones, once."""
    return rows.assign(value=1.0)


@dataclass(frozen=True)
class Rows:
    """Rows of ``quantity`` in a table of the claim's paper, and what the claim makes of them."""

    table: int
    quantity: str
    of: Callable[[pd.DataFrame], pd.DataFrame] = _as_it_is


PRINTED = {
    "nsatp-rq1-falling": Rows(3, "b"),
    "nsatp-rq1-exponential": Rows(4, "correlation"),
    "nsatp-rq2-better": Rows(5, "inc"),
    "nsatp-rq2-size": Rows(5, "inc", _itself),
    "nsatp-rq3-pd-best": Rows(6, "slope", _lead("distance", "pd")),
    "peacepact-falling": Rows(4, "b"),
    "peacepact-correlation": Rows(5, "correlation"),
    "peacepact-better": Rows(6, "inc"),
    "peacepact-size": Rows(6, "inc"),
    "nss-fdr-best": Rows(5, "fdr", _lead("method", "nss")),
    "nss-fdr-gini": Rows(5, "fdr", _less("method", "nss", "gini")),
    "nss-fdr-each-mutation": Rows(6, "fdr", _less_random),
    "nss-diversity-best": Rows(7, "area", _lead("method", "nss")),
    "nss-repair-best": Rows(8, "gain", _lead("method", "nss")),
    "nss-neurons-more": Rows(9, "fdr", _less("share", 100, 1)),
    "nss-layer-last": Rows(10, "fdr", _lead("layer", -1)),
    "nss-fdr-share": Rows(5, "fdr"),
    "nss-fdr-twenty-points": Rows(5, "fdr", _lead("method", "nss")),
    "nss-fdr-coverage": Rows(5, "fdr", _each_less("method", "random")),
    "nss-diversity-above-random": Rows(7, "area", _less("method", "nss", "random")),
    "nss-repair-size": Rows(8, "gain", _lead("method", "nss")),
    "deepsensor-sensitivity-errors": Rows(2, "test_errors", _over_baselines),
    "deepsensor-sensitivity-errors-size": Rows(2, "test_errors", _over_baselines),
    "deepsensor-sensitivity-categories": Rows(2, "error_categories", _over_baselines),
    "deepsensor-sensitivity-polluted": Rows(3, "test_errors", _over_baselines),
    "deepsensor-sensitivity-incomplete": Rows(4, "test_errors", _over_baselines),
    "deepsensor-sensitivity-incomplete-more": Rows(4, "test_errors", _over_well_trained),
    "deepsensor-sensitivity-time": Rows(6, "seconds", _times_ours),
    "deepsensor-sensitivity-incomplete-size": Rows(4, "test_errors", _over_baselines),
    "deepsensor-excitable-share": Rows(8, "excitable_share", _hundredth),
    "deepsensor-excitable-errors": Rows(3, "test_errors", _over_baselines),
    "deepsensor-excitable-errors-size": Rows(3, "test_errors", _over_baselines),
    "deepsensor-excitable-categories": Rows(3, "error_categories", _over_baselines),
    "deepsensor-excitable-polluted": Rows(4, "test_errors", _over_baselines),
    "deepsensor-excitable-incomplete": Rows(5, "test_errors", _over_baselines),
    "deepsensor-excitable-incomplete-more": Rows(5, "test_errors", _over_well_trained),
    "deepsensor-excitable-speakers": Rows(6, "test_errors", _over_baselines),
    "deepsensor-excitable-speakers-incomplete": Rows(7, "test_errors", _over_baselines),
    "deepsensor-excitable-cost": Rows(8, "seconds", _times_ours),
    "deepsensor-excitable-incomplete-size": Rows(5, "test_errors", _over_baselines),
    "deepsensor-excitable-incomplete-answer": Rows(5, "test_errors", _over_baselines),
    "deepsensor-excitable-speakers-size": Rows(6, "test_errors", _over_baselines),
    "deepsensor-excitable-speakers-incomplete-size": Rows(7, "test_errors", _over_baselines),
    "deepsensor-excitable-speakers-deepxplore": Rows(6, "test_errors", _over_baselines),
    "deepsensor-excitable-speakers-categories": Rows(6, "error_categories", _over_baselines),
}

PRINTED |= {
    "nsatp-rq3-pv-middle": Rows(6, "slope", _between("distance", "pv", "pd", "pe")),
    "nss-diversity-coverage": Rows(7, "area", _each_less("method", "random")),
    "nss-fdr-gini-coverage": Rows(5, "fdr", _less_most("method", "gini", "nac", "kmnc", "npc")),
    "nss-fdr-mutation-size": Rows(6, "fdr", _less_random),
    "nss-repair-fashion": Rows(8, "gain", _over_mean("method", "nss")),
    "nss-neurons-steps": Rows(9, "fdr", _slope("share")),
    "nss-layer-depth": Rows(10, "fdr", _less("layer", -1, 1)),
    "deepsensor-sensitivity-categories-large": Rows(2, "error_categories", _over_baselines),
    "deepsensor-sensitivity-incomplete-others": Rows(4, "test_errors", _each_over_well_trained),
    "deepsensor-excitable-categories-large": Rows(3, "error_categories", _over_baselines),
    "deepsensor-excitable-categories-resnet": Rows(3, "error_categories", _over_baselines),
    "deepsensor-excitable-categories-resnet-hunter": Rows(3, "error_categories", _over_baselines),
    "deepsensor-excitable-errors-resnet": Rows(3, "test_errors", _over_baselines),
    "deepsensor-excitable-incomplete-others": Rows(5, "test_errors", _each_over_well_trained),
    "deepsensor-excitable-polluted-deepxplore": Rows(4, "test_errors", _over_baselines),
    "deepsensor-excitable-cost-lenet5": Rows(8, "seconds", _mean_over),
    "deepsensor-excitable-cost-vgg16": Rows(8, "seconds", _mean_over),
    "deepsensor-excitable-cost-resnet50": Rows(8, "seconds", _mean_over),
}

_FIGURE = "its numbers are only drawn, in "
UNPRINTED = {
    "nsatp-rq3-pd-general": "a share of cells, which the text calls \"in general\"",
    "peacepact-monotone": "the text says \"monotone\"",
    "peacepact-nonlinear": "the text says \"non-linear\"",
    "nsatp-motivation": "ten repetitions of one pair; the text says only \"each time\"",
    "peacepact-motivation": "ten repetitions of one pair; the text says only \"always\"",
    "peacepact-second-class": "the text says \"mostly\"",
    "nss-sensitivity-worse": _FIGURE + "Fig. 3",
    "nss-sensitivity-strength": _FIGURE + "Fig. 3",
    "nss-sensitivity-random": _FIGURE + "Fig. 3",
    "nss-overhead": _FIGURE + "Fig. 5",
    "nss-overhead-others": _FIGURE + "Fig. 5",
    "nss-overhead-gini": _FIGURE + "Fig. 5",
    "deepsensor-sensitivity-neurons": _FIGURE + "Fig. 1",
    "deepsensor-sensitivity-near": _FIGURE + "Fig. 8",
    "deepsensor-sensitivity-coverage": _FIGURE + "Fig. 3",
    "deepsensor-sensitivity-asr": _FIGURE + "Fig. 4 (a)",
    "deepsensor-sensitivity-clever": _FIGURE + "Fig. 4 (b)",
    "deepsensor-sensitivity-lambda": _FIGURE + "Fig. 5 (a)",
    "deepsensor-sensitivity-epsilon": _FIGURE + "Fig. 5 (b)",
    "deepsensor-sensitivity-start": _FIGURE + "Fig. 6",
    "deepsensor-sensitivity-coverage-size": _FIGURE + "Fig. 3",
    "deepsensor-sensitivity-clever-gain": _FIGURE + "Fig. 4 (b)",
    "deepsensor-sensitivity-accuracy": "the text says \"barely affected\"",
    "deepsensor-sensitivity-start-coverage": _FIGURE + "Fig. 6",
    "deepsensor-sensitivity-clusters": _FIGURE + "Fig. 7",
    "deepsensor-excitable-neurons": _FIGURE + "Fig. 1",
    "deepsensor-excitable-near": _FIGURE + "Fig. 9",
    "deepsensor-excitable-asr": _FIGURE + "Fig. 4",
    "deepsensor-excitable-asr-pgd-at": _FIGURE + "Fig. 5",
    "deepsensor-excitable-clever": _FIGURE + "Fig. 6",
    "deepsensor-excitable-clever-size": _FIGURE + "Fig. 6",
    "deepsensor-excitable-overlap": _FIGURE + "Fig. 7",
    "deepsensor-excitable-lambda": _FIGURE + "Fig. 10 (a)",
    "deepsensor-excitable-epsilon": _FIGURE + "Fig. 10 (b)",
    "deepsensor-excitable-start": _FIGURE + "Fig. 11",
    "deepsensor-excitable-asr-size": _FIGURE + "Fig. 4",
    "deepsensor-excitable-asr-seventy": _FIGURE + "Fig. 5",
    "deepsensor-excitable-asr-pgd-at-better": _FIGURE + "Fig. 5",
    "deepsensor-excitable-clever-average": _FIGURE + "Fig. 6",
    "deepsensor-excitable-clusters": _FIGURE + "Fig. 8",
    "deepsensor-excitable-parameters": _FIGURE + "Fig. 10",
    "deepsensor-excitable-optimisers": "no result is shown",
    "peacepact-most-fragile": "the text says \"most\"",
    "nsatp-all-fragile": "the text says \"all\"",
    "nsatp-other-training": "the text says \"consistent\"",
    "nsatp-rq1-nonlinear": "the text says \"nonlinear\"",
    "nsatp-rq3-pe-last": "a share of cells: six of eight in Table VI",
    "nss-diversity-thirteen": _FIGURE + "Fig. 4",
    "nss-diversity-alone": "a share of cells of Table VII",
    "nss-fdr-confident": "the text gives no number",
    "nss-overhead-seconds": _FIGURE + "Fig. 5",
    "nss-overhead-kmnc": _FIGURE + "Fig. 5",
    "nss-overhead-hours": _FIGURE + "Fig. 5",
    "nss-overhead-growth": "the text gives an order of growth",
    "nss-overhead-square": "the text gives an order of growth",
    "nss-sensitivity-range": _FIGURE + "Fig. 3",
    "nss-layer-gini": "a share of cells of Table V",
    "deepsensor-sensitivity-asr-falls": _FIGURE + "Fig. 4 (a)",
    "deepsensor-sensitivity-lambda-stable": _FIGURE + "Fig. 5 (a)",
    "deepsensor-sensitivity-start-neurons": "no result is shown",
    "deepsensor-sensitivity-start-passes": "no result is shown",
    "deepsensor-sensitivity-corner-cluster": _FIGURE + "Fig. 1",
    "deepsensor-sensitivity-coverage-rises": _FIGURE + "Fig. 3",
    "deepsensor-sensitivity-coverage-deepxplore-nc": _FIGURE + "Fig. 3",
    "deepsensor-sensitivity-coverage-deepxplore-others": _FIGURE + "Fig. 3",
    "deepsensor-sensitivity-coverage-deephunter": _FIGURE + "Fig. 3",
    "deepsensor-excitable-asr-falls": _FIGURE + "Fig. 4",
    "deepsensor-excitable-lambda-stable": _FIGURE + "Fig. 10 (a)",
    "deepsensor-excitable-start-excitable": "no result is shown",
    "deepsensor-excitable-start-passes": "no result is shown",
    "deepsensor-excitable-corner-cluster": _FIGURE + "Fig. 1",
    "deepsensor-excitable-accuracy-all": "the text says \"barely\"",
    "deepsensor-excitable-overlap-almost-all": _FIGURE + "Fig. 7",
    "deepsensor-excitable-fitness-stable": _FIGURE + "Fig. 3",
}


def printed(claim: Claim) -> pd.DataFrame:
    """The claim's quantity in each of its cells, computed from the numbers that the paper prints.

    Columns: ``claim.cells`` and 'value'; no rows if the paper prints no number for a cell, for a
    reason in ``UNPRINTED``. Cells have the names of our records, also those that nobody has run.
    """
    recipe = PRINTED.get(claim.id)
    if recipe is None:
        return pd.DataFrame(columns=[*claim.cells, "value"])
    table = published.table(claim.paper, recipe.table)
    rows = recipe.of(table[table["quantity"] == recipe.quantity])
    rows = rows.replace({column: names for column, names in STAND_INS.items() if column in rows})
    for column, value in claim.where.items():
        if column in rows and column != "quantity":
            rows = rows[rows[column].isin(value if isinstance(value, list) else [value])]
    rows = rows[[*claim.cells, "value"]].astype({"value": float}).reset_index(drop=True)
    return rows.assign(value=rows["value"].round(10))  # 70.6 - 55.7 as on paper
