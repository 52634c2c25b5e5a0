"""Rules that a record keeps: ranges, counts within inputs, no order beyond the best possible.

They are declared here by quantity, or by experiment and quantity where a word has two units.
"""

import math
from collections.abc import Iterator
from pathlib import Path

from dnnbook import places
from dnnbook.records import recomputed, records, rows
from dnnbook.records.records import Record

Range = tuple[float, float]
PERCENT, SHARE, CORRELATION, COUNT = (0, 100), (0, 1), (-1, 1), (0, math.inf)
AT_MOST_ALL = (-math.inf, 100)  # a saving in percent, below 0 where more is spent
RANGES: dict[Range, str] = {
    PERCENT: "accuracy accuracy_unseen train_accuracy asr error_rate last_error_rate "
             "held_out_error_rate fdr apfd "
             "ftcr area confident_fdr fitted above_way above_deepfool excitable own_neighbour "
             "stamped_given_class same_as_constant last_share part excitable_neurons reached "
             "sensitive_neurons also_broken faults zero seeds overlap between_attacks chance "
             "share inc_bound",
    SHARE: "chosen share_near told_apart criteria_led criteria_led_together auc auc_overall "
           "auc_within jaccard share_fragile mean_eff mean_eff_decided mean_eff_undecided "
           "more_from_undecided strictly_more pairs_always pairs_always_strictly to_second_class "
           "rising_steps rising_clearly pd_steepest met_in_first_tenth sensitive broken low high "
           "fault_detection_rate noise_passes bin possible",
    AT_MOST_ALL: "inc",
    CORRELATION: "correlation spearman rank_correlation rank_correlation_means same_order rank "
                 "agreement count_with_loss with_loss with_gini silhouette",
    COUNT: "test_errors test_errors_all test_errors_all_iterations wrong error_categories "
           "categories_per_seed passes l2 distance distance_needed clever clever_first "
           "deepfool_l2 loss errors_per_1000_passes estimate_passes examples neurons parameters "
           "values sensitivity f_measure_ranked f_measure_random cost_to_printed scatter "
           "rows_kept error swarm_gradients total times_nss times_passes times_deepsensor "
           "estimate_seconds seconds errors_over categories_over wrong_over",
}
_PAPERS = ("nsatp", "peacepact")
ELSEWHERE: dict[tuple[str, str], Range] = {  # by the start of an experiment's name, and quantity
    **{(paper, "accuracy"): SHARE for paper in _PAPERS},
    ("nss/your_own_model", "error_rate"): SHARE,
    ("deepsensor_excitable/thresholds", "share"): SHARE,
    ("deepsensor_excitable/speakers", "seeds"): COUNT,
}
_USUAL = {quantity: range_ for range_, names in RANGES.items() for quantity in names.split()}
POSITIVE = {"seconds", "estimate_seconds", "passes", "estimate_passes", "parameters", "neurons"}
PAIRS = {"low": "high", "strictly_more": "more_from_undecided",  # never above the other
         "pairs_always_strictly": "pairs_always", "inc": "inc_bound"}
FREE = {"passes": {"nss/your_own_model"}}  # random order needs none


def range_of(experiment: str, quantity: str) -> Range | None:
    """The least and the greatest value that a quantity may have; None where none is declared.

    >>> range_of("nss/neurons", "fdr"), range_of("nsatp/rq1", "accuracy")
    ((0, 100), (0, 1))
    """
    for (start, name), found in ELSEWHERE.items():
        if name == quantity and experiment.startswith(start):
            return found
    return _USUAL.get(quantity)


def violated(record: Record) -> list[str]:
    """A line for each rule that a record breaks: the row, its value, and what was expected.

    >>> violated(Record("nss/x", {}, [{"method": "gini", "quantity": "fdr", "value": 120.0}]))
    ['method=gini quantity=fdr: 120.0, expected 0 to 100']
    """
    return [f"{_name(row)}: {row.get('value')}, expected {expected}"
            for row, expected in [*_ranges(record), *_counts(record), *_orders(record),
                                  *((row, e if isinstance(e, str) else f"{e:.7g}, which follows "
                                     "from the rows beside it")
                                    for row, e in recomputed.differing(record))]]


def _name(row: dict) -> str:
    return " ".join(f"{k}={v}" for k, v in sorted(row.items()) if k != "value")


def _ranges(record: Record) -> Iterator[tuple[dict, str]]:
    for row in record.rows:
        value, quantity = row.get("value"), str(row.get("quantity"))
        limits = range_of(record.experiment, quantity)
        if limits is None or value is None:
            continue
        low, high = limits
        if not isinstance(value, int | float) or not low <= value <= high * (1 + 1e-6):
            yield row, (f"at least {low:g}" if high == math.inf else
                        f"at most {high:g}" if low == -math.inf else f"{low:g} to {high:g}")
        elif (value == 0 and quantity in POSITIVE
              and record.experiment not in FREE.get(quantity, ())):
            yield row, "a number above 0"


def _counts(record: Record) -> Iterator[tuple[dict, str]]:
    """Errors among the examples: of the last ones no more than the inputs, or of all iterations."""
    inputs, steps = (record.parameters.get(k) for k in ("seeds_count", "iterations"))
    if not inputs or not steps:
        return
    all_of = record.experiment.endswith(("/test_errors", "/time", "/cost"))
    for row in record.rows:
        quantity = row.get("quantity")
        if quantity in ("test_errors", "wrong") and not all_of and row.get("table") != 6:
            most = inputs
        elif quantity in ("test_errors", "test_errors_all", "test_errors_all_iterations"):
            most = inputs * steps
        else:
            continue
        if record.experiment.endswith(("/time", "/cost")):
            most = 100 * steps  # counted for a hundred inputs
        if row["value"] is not None and row["value"] > most * (1 + 1e-6):
            yield row, f"at most {most}, the number of examples"


def _orders(record: Record) -> Iterator[tuple[dict, str]]:
    """No order finds more faults than the best possible; no part exceeds its whole."""
    table = rows.Table(record)
    for best in table.some("fdr", method="best possible"):
        for row in table.some("fdr", rate=best["rate"]):
            if "candidates" not in row and row["value"] > best["value"]:
                yield row, f"at most {best['value']}, of the best possible order"
    for part, whole in PAIRS.items():
        for row in table.by.get(part, ()):
            where = {k: v for k, v in row.items() if k not in ("quantity", "value")}
            if whole == "inc_bound":
                where = {}
            for other in table.some(whole, **where):
                if None not in (row["value"], other["value"]) and (
                        row["value"] > other["value"] * (1 + 1e-6)):
                    yield row, f"at most {other['value']}, the {whole}"


def broken(paper: str = "", root: Path | None = None) -> list[str]:
    """:func:`violated` of all records, each line with the record's name."""
    root = root or places.results_dir()
    names = {path: path.relative_to(root).with_suffix("").as_posix()
             for path in sorted(root.glob("*/*/*.json"))}
    return [f"{name}: {line}" for path, name in names.items() if name.startswith(paper)
            for line in violated(records.read(path))]
