"""What a paper prints for each cell of a claim: the line of its value in a forest plot.

>>> from dnnbook import published
>>> claim = next(c for c in published.claims() if c.id == "nsatp-rq3-pd-best")
>>> claim.printed
{'table': 6, 'quantity': 'slope', 'how': ['lead', 'distance', 'pd']}
>>> printed(claim).query("model == 'net2' and dataset == 'mnist'")["value"].tolist()
[0.01]
"""

import numpy as np
import pandas as pd

from dnnbook import published
from dnnbook.published import Claim
from dnnlib import checks

# Our records name what stands in for a dataset or network of the paper, where it is another one.
STAND_INS = {"dataset": {"vctk": "fsdd"},
             "model": {"resnet34": "resnet34_s", "deep_speaker": "deep_speaker_s"}}


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


def over_baselines(rows: pd.DataFrame) -> pd.DataFrame:
    """DeepSensor's value over that of each baseline, and over the mean of them."""
    ours, others = _others(rows)
    return _long(others.rdiv(ours, axis=0), "baseline")


def times_ours(rows: pd.DataFrame) -> pd.DataFrame:
    """Each baseline's value, and their mean, over DeepSensor's."""
    ours, others = _others(rows)
    return _long(others.div(ours, axis=0), "baseline")


def mean_over(rows: pd.DataFrame) -> pd.DataFrame:
    """DeepSensor's value over the mean of the baselines."""
    ours, others = _others(rows)
    return _long(ours / others["mean"], "baseline")


def over_well_trained(rows: pd.DataFrame) -> pd.DataFrame:
    """DeepSensor's value over that in the well trained network."""
    return each_over_well_trained(rows[rows["fuzzer"] == "deepsensor"])


def each_over_well_trained(rows: pd.DataFrame) -> pd.DataFrame:
    """Each fuzzer's value over that in the well trained network."""
    wide = _wide(rows, "training")
    return _long(wide.div(wide["well_trained"], axis=0), "training")


def lead(rows: pd.DataFrame, column: str, ours) -> pd.DataFrame:
    """The value of ``ours`` less the largest of the others in ``column``."""
    others = [each for each in rows[column].unique() if each != ours]
    return less(rows, column, ours, *others)


def less(rows: pd.DataFrame, column: str, ours, *others) -> pd.DataFrame:
    """The value of ``ours`` less the largest of ``others`` in ``column``."""
    wide = _wide(rows, column)
    return _long(wide[ours] - wide[list(others)].max(axis=1), column)


def each_less(rows: pd.DataFrame, column: str, other) -> pd.DataFrame:
    """Every value less that of ``other`` in ``column``."""
    wide = _wide(rows, column)
    return _long(wide.sub(wide[other], axis=0), column)


def between(rows: pd.DataFrame, column: str, ours, *ends) -> pd.DataFrame:
    """How far inside the range of ``ends`` the value of ``ours`` is in ``column``."""
    wide = _wide(rows, column)
    least, most = wide[list(ends)].min(axis=1), wide[list(ends)].max(axis=1)
    return _long(pd.concat([wide[ours] - least, most - wide[ours]], axis=1).min(axis=1), column)


def slope(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """The slope of a line through the values in the order of ``column``, a step."""
    wide = _wide(rows, column)
    steps = np.arange(wide.shape[1]) - (wide.shape[1] - 1) / 2
    return _long((wide * steps).sum(axis=1) / (steps ** 2).sum(), column)


def over_mean(rows: pd.DataFrame, column: str, ours) -> pd.DataFrame:
    """The value of ``ours`` over the mean of all others in ``column``."""
    wide = _wide(rows, column)
    return _long(wide[ours] / wide.drop(columns=ours).mean(axis=1), column)


def less_random(rows: pd.DataFrame) -> pd.DataFrame:
    """NSS minus random at each rate; Table VI has one column for all rates."""
    rows = rows.rename(columns={"operator": "candidates"})
    random = rows[rows["method"] == "random"].set_index("candidates")["value"]
    nss = rows[rows["method"] == "nss"]
    return nss.assign(value=nss["value"] - nss["candidates"].map(random))


def hundredth(rows: pd.DataFrame) -> pd.DataFrame:
    """Percent as a share."""
    return rows.assign(value=rows["value"] / 100)


def itself(rows: pd.DataFrame) -> pd.DataFrame:
    """A multiple of the printed value: of the printed ones, once."""
    return rows.assign(value=1.0)


HOW = {rule.__name__: rule for rule in (
    over_baselines, times_ours, mean_over, over_well_trained, each_over_well_trained, lead, less,
    each_less, between, slope, over_mean, less_random, hundredth, itself)}


def printed(claim: Claim) -> pd.DataFrame:
    """The claim's quantity in each of its cells, computed from the numbers that the paper prints.

    Columns: ``claim.cells`` and 'value'; no rows if the paper prints no number for a cell, which
    ``claim.unprinted`` gives a reason for. Cells have the names of our records, also those that
    nobody has run. Raises ``ValueError`` for a ``how`` that is none of :data:`HOW`.
    """
    if not claim.printed:
        return pd.DataFrame(columns=[*claim.cells, "value"])
    rows = published.table(claim.paper, claim.printed["table"])
    rows = rows[rows["quantity"] == claim.printed["quantity"]]
    if how := claim.printed.get("how"):
        rows = HOW[checks.known(how[0], HOW, "how")](rows, *how[1:])
    rows = rows.replace({column: names for column, names in STAND_INS.items() if column in rows})
    for column, value in claim.where.items():
        if column in rows and column != "quantity":
            rows = rows[rows[column].isin(value if isinstance(value, list) else [value])]
    rows = rows[[*claim.cells, "value"]].astype({"value": float}).reset_index(drop=True)
    return rows.assign(value=rows["value"].round(10))  # 70.6 - 55.7 as on paper
