"""Derived rows: quantities of a record that follow from other rows beside them, computed again.

Each has a function that takes the record and the row, and gives the value that the row should have,
or None where the record lacks what it rests on. :data:`DERIVED` declares them by quantity, or by
experiment and quantity where experiments differ.
"""

import math
from collections.abc import Callable, Mapping
from itertools import pairwise

from dnnbook.records.records import Record
from dnnbook.records.rows import Table

TOLERANCE = 2e-6  # records keep seven digits, and a difference of two such values fewer


Derivation = Callable[[Table, Mapping], float | None]


def _where(row: Mapping, *but: str) -> dict:
    return {k: v for k, v in row.items() if k not in ("quantity", "value", *but)}


def _baselines(table: Table, row: Mapping) -> list[str]:
    return list(dict.fromkeys(each["baseline"] for each in table.some(row["quantity"])
                              if each.get("baseline") != "mean"))


def _against(table: Table, row: Mapping, of: str, names: list[str], where: dict) -> float:
    """The value of a baseline, or the mean of all."""
    theirs = [table.value(of, **where, fuzzer=name, setting=row.get("setting"))
              for name in (names if row["baseline"] == "mean" else [row["baseline"]])]
    return sum(theirs) / len(theirs)


def over(of: str, least: float = 1) -> Derivation:
    """A swarm's value over that of a baseline, which counts as ``least`` at the least."""
    def rule(table: Table, row: Mapping) -> float:
        where = _where(row, "fuzzer", "swarm", "baseline", "setting")
        ours = table.value(of, **where, fuzzer="deepsensor", swarm=row["swarm"])
        other = max(least, _against(table, row, of, _baselines(table, row), where))
        return ours / other if other else math.nan
    return rule


def multiple(of: str) -> Derivation:
    """A rival's value, or another swarm's, over that of a swarm: how many times as dear it is."""
    def rule(table: Table, row: Mapping) -> float:
        where = _where(row, "fuzzer", "swarm", "baseline", "setting")
        swarms = {each.get("swarm") for each in table.some(of, fuzzer="deepsensor")}
        names = [name for name in _baselines(table, row) if name not in swarms]
        ours = table.value(of, **where, fuzzer="deepsensor", swarm=row["swarm"])
        theirs = (table.value(of, **where, fuzzer="deepsensor", swarm=row["baseline"])
                  if row["baseline"] in swarms else _against(table, row, of, names, where))
        return theirs / ours
    return rule


def itself(of: str, column: str, other: str, least: float = 1, own: str = "") -> Derivation:
    """A fuzzer's value over its own where ``column`` is ``other``; ``own``: where it is else."""
    def rule(table: Table, row: Mapping) -> float:
        where = {"fuzzer": "deepsensor"} | _where(row, column)
        below = max(least, table.value(of, **where, **{column: other}))
        value = table.value(of, **where, **{column: own or row[column]})
        return value / below if below else math.nan
    return rule


def ahead(of: str, swarm: str) -> Derivation:
    """A swarm's value, less that of the swarm which the name of the quantity ends in."""
    def rule(table: Table, row: Mapping) -> float:
        where, other = _where(row), row["quantity"].removeprefix("over_")
        return table.value(of, **where, swarm=swarm) - table.value(of, **where, swarm=other)
    return rule


def gain(of: str, sign: int = 1) -> Derivation:
    """A value less that before retraining; with ``sign`` -1 what was taken from it."""
    def rule(table: Table, row: Mapping) -> float:
        where = _where(row, "fuzzer", "swarm", "setting")
        mine = {name: row.get(name) for name in ("fuzzer", "swarm", "setting")}
        return sign * (table.value(of, **where, **mine) - table.value(of, **where, fuzzer="before"))
    return rule


def gain_lead(of: str, fuzzer: str = "", ceiling: float | None = None) -> Derivation:
    """A swarm's gain less the best baseline's, or ``fuzzer``'s; NaN where all is at ``ceiling``."""
    def rule(table: Table, row: Mapping) -> float:
        where = _where(row, "fuzzer", "swarm", "setting")
        gains = f"{of}_gain"
        ours = {"fuzzer": "deepsensor", "swarm": row.get("swarm")}
        rivals = [{"fuzzer": fuzzer, "setting": None}] if fuzzer else [
            {"fuzzer": each["fuzzer"], "setting": row["setting"]}
            for each in table.some(gains, **where, setting=row["setting"])
            if each["fuzzer"] != "deepsensor"]
        asked = [ours, {"fuzzer": "before"}, *rivals]
        if ceiling is not None and all(table.value(of, **where, **each) == ceiling
                                       for each in asked):
            return math.nan
        return table.value(gains, **where, **ours) - max(table.value(gains, **where, **each)
                                                         for each in rivals)
    return rule


def clever_excess(table: Table, row: Mapping) -> float:
    where = _where(row, "fuzzer", "swarm", "setting")
    theirs = [each["value"] for each in table.some("clever_gain", **where, setting=row["setting"])]
    ours = table.value("clever_gain", **where, fuzzer="deepsensor", swarm=row["swarm"])
    return ours - 3 * sum(theirs) / len(theirs)


def overlap_lead(table: Table, row: Mapping) -> float:
    both = [each["value"] for each in table.by["between_attacks"]
            if row["attack"] in (each["attack"], each["other"])]
    return table.value("overlap", **_where(row)) - max(both)


def least_step(of: str, highest: float = math.inf) -> Derivation:
    """The least change of a value along thresholds; lambda counts up to ``highest``."""
    def rule(table: Table, row: Mapping) -> float:
        line = [each for each in table.some(of, **_where(row))
                if row["varied"] != "lambda" or each["threshold"] <= highest]
        return _least(line, "threshold")
    return rule


def _least(rows: list[dict], along: str) -> float:
    line = [row["value"] for row in sorted(rows, key=lambda row: row[along])]
    return min((b - a for a, b in pairwise(line)), default=math.nan)


def most_over_least(table: Table, row: Mapping) -> float:
    line = [each["value"] for each in table.some("test_errors", **_where(row))]
    return max(line) / max(1, min(line))


def start_ratio(start: str) -> Derivation:
    def rule(table: Table, row: Mapping) -> float:
        where = _where(row)
        return (table.value("test_errors", **where, start="random")
                / max(1, table.value("test_errors", **where, start=start)))
    return rule


def starts_gain(quantity: str) -> Derivation:
    def rule(table: Table, row: Mapping) -> float:
        random, seed = (table.value(quantity, **_where(row), start=start)
                        for start in ("random", "seed"))
        return random - seed

    return rule


def order_lead(of: str) -> Derivation:
    """A reading of NSS, less the best of the other selectors of Table V."""
    table_v = ("random", "nac", "kmnc", "npc", "gini", "ats", "dsa")

    def rule(table: Table, row: Mapping) -> float:
        where, rate = _where(row, "rate"), row["rate"]
        extra = {"test": "clean"} if of == "gain" else {}
        others = [each["value"] for each in table.some(of, rate=rate, **extra)
                  if each.get("method") in table_v]
        return table.value(of, method="nss", rate=rate, **where, **extra) - max(others)
    return rule


def less(of: str, other: str = "", method: str = "") -> Derivation:
    """A selector's value less that of another, by default the one that the quantity names."""
    def rule(table: Table, row: Mapping) -> float:
        own = table.value(of, **({"method": method} if method else {}) | _where(row),
                          **({} if "scale" in row else {"scale": None}))
        if "candidates" in row:  # of one mutation, random order is its expectation
            return own - table.value("faults", candidates=row["candidates"])
        return own - table.value(of, method=other or row["quantity"].removeprefix("over_"),
                                 rate=row["rate"])
    return rule


def area(table: Table, row: Mapping) -> float:
    line = [each["value"] for each in table.some("ftcr", **_where(row, "rate"))]
    return sum(line) / len(line)


def all_over_one(table: Table, row: Mapping) -> float:
    return table.value("fdr", **_where(row), share=100) - table.value("fdr", **_where(row), share=1)


def last_layer_lead(table: Table, row: Mapping) -> float:
    line = table.some("fdr", **_where(row))
    last = [each["value"] for each in line if each["layer"] == -1]
    return last[0] - max(each["value"] for each in line if each["layer"] != -1)


def times_nss(table: Table, row: Mapping) -> float:
    most = max(each["candidates"] for each in table.by["seconds"])
    return (table.value("seconds", method=row["method"], candidates=most)
            / table.value("seconds", method="nss", candidates=most))


def quotient(of: str, column: str, one: str, other: str) -> Derivation:
    def rule(table: Table, row: Mapping) -> float:
        return (table.value(of, **_where(row), **{column: one})
                / table.value(of, **_where(row), **{column: other}))
    return rule


def strength_step(table: Table, row: Mapping) -> float:
    return _least(table.some("sensitivity", **_where(row)), "strength")


def inc(table: Table, row: Mapping) -> float:
    where = _where(row)
    ranked = table.value("f_measure_ranked", **where)
    return 100 * (1 - ranked / table.value("f_measure_random", **where))


def pd_lead(table: Table, row: Mapping) -> float:
    slopes = {each["distance"]: each["value"] for each in table.by["slope"]}
    return slopes.pop("pd") - max(slopes.values())


def per_seed(table: Table, row: Mapping) -> float | None:
    """Wrong classes for each input; campaigns of held-out inputs have fewer."""
    if row.get("setting") not in (None, "paper", "best"):
        return None
    return table.value("error_categories", **_where(row)) / table.parameters["seeds_count"]


def error_rate(table: Table, row: Mapping) -> float | None:
    if row.get("setting") not in (None, "paper", "best"):
        return None
    examples = table.parameters["seeds_count"] * table.parameters["iterations"]
    return 100 * table.value("test_errors", **_where(row)) / examples


def per_1000_passes(table: Table, row: Mapping) -> float:
    where = _where(row)
    return 1000 * table.value("test_errors", **where) / table.value("passes", **where)


def per_error(table: Table, row: Mapping) -> float:
    where = _where(row)
    errors = table.value("test_errors", **where)
    return table.value("passes", **where) / errors if errors else math.nan


def distance_over(table: Table, row: Mapping) -> float:
    return (table.value("distance", **_where(row))
            / table.value("distance", budget=row["budget"], fuzzer="deephunter"))


def distance_over_unbounded(table: Table, row: Mapping) -> float:
    return table.value("distance", **_where(row)) / table.value("distance", fuzzer="deephunter")


def optimiser_errors(table: Table, row: Mapping) -> float:
    # counts of examples are kept as rates of the same number of examples
    return (table.value("error_rate", **_where(row))
            / table.value("error_rate", budget=row["budget"], optimiser="swarm"))


def chosen(table: Table, row: Mapping) -> float:
    """1 for the setting with the most errors of the held-out inputs, the first of equals."""
    rates = table.some("held_out_error_rate", **_where(row, "setting"))
    best = max(rates, key=lambda each: each["value"])
    return float(best["setting"] == row["setting"])


_SENSITIVITY, _EXCITABLE = "deepsensor_sensitivity", "deepsensor_excitable"
DERIVED: dict[str, dict[str, Derivation]] = {  # by the start of an experiment's name
    "": {"chosen": chosen, "inc": inc, "errors_per_1000_passes": per_1000_passes,
         "categories_per_seed": per_seed, "distance_over_deephunter": distance_over,
         "errors_over": over("test_errors"), "categories_over": over("error_categories")},
    f"{_EXCITABLE}/test_errors": {"error_rate": error_rate} | {
        f"over_{name}": ahead("error_rate", "excitable")
        for name in ("excitable_scaled", "sensitive", "constant", "random",
                     "sensitive_same_passes")},
    f"{_SENSITIVITY}/test_errors": {"error_rate": error_rate} | {
        f"over_{name}": ahead("error_rate", "paper") for name in ("constant", "random")},
    f"{_EXCITABLE}/polluted": {
        "wrong_over": over("wrong"),
        "errors_over_all_iterations": over("test_errors_all_iterations"),
        "over_clean": itself("test_errors", "network", "clean", own="polluted")},
    f"{_SENSITIVITY}/polluted": {
        "errors_over": over("test_errors", 0),
        "errors_over_all_iterations": over("test_errors_all_iterations", 0),
        "over_clean": itself("test_errors", "network", "clean", 0, own="polluted")},
    f"{_EXCITABLE}/incomplete": {
        "over_well_trained": itself("test_errors", "training", "well_trained")},
    f"{_SENSITIVITY}/incomplete": {
        "errors_over": over("test_errors", 0),
        "over_well_trained": itself("test_errors", "training", "well_trained", 0)},
    f"{_EXCITABLE}/attack_success": {
        "asr_gain": gain("asr", -1), "asr_gain_over": over("asr_gain"),
        "asr_lead": gain_lead("asr", ceiling=100),
        "asr_lead_pgd_at": gain_lead("asr", "pgd_at", ceiling=100)},
    f"{_EXCITABLE}/clever": {"clever_gain": gain("clever"), "clever_lead": gain_lead("clever"),
                             "clever_excess": clever_excess},
    f"{_SENSITIVITY}/robustness": {
        "asr_gain": gain("asr", -1), "asr_lead": gain_lead("asr", ceiling=100),
        "clever_gain": gain("clever"), "clever_lead": gain_lead("clever"),
        "accuracy_gain": gain("accuracy"),
        "accuracy_unseen_gain": gain("accuracy_unseen")},
    f"{_EXCITABLE}/cost": {"times_deepsensor": multiple("seconds"),
                           "times_passes": multiple("passes")},
    f"{_SENSITIVITY}/time": {
        "times_deepsensor": multiple("seconds"), "times_passes": multiple("passes"),
        "passes_per_error": per_error},
    f"{_EXCITABLE}/overlap": {"overlap_lead": overlap_lead},
    f"{_EXCITABLE}/optimisers": {"errors_over_swarm": optimiser_errors},
    f"{_EXCITABLE}/selector": {f"over_{name}": less("fdr")
                               for name in ("gini", "nss", "random", "loss", "flip")},
    f"{_EXCITABLE}/thresholds": {"least_step": least_step("test_errors", 0.6),
                                 "most_over_least": most_over_least},
    f"{_SENSITIVITY}/thresholds": {"least_step": least_step("test_errors", 0.6),
                                   "least_step_all": least_step("test_errors_all", 0.6)},
    **{f"{paper}/start": {"random_over_fixed": start_ratio("seed"),
                          "random_over_signed": start_ratio("seed, signed")}
       | ({"random_less_fixed": starts_gain("gain"),
           "random_less_fixed_alone": starts_gain("gain_alone")} if paper == _SENSITIVITY else {})
       for paper in (_SENSITIVITY, _EXCITABLE)},
    f"{_SENSITIVITY}/examples": {"distance_over_deephunter": distance_over_unbounded},
    f"{_SENSITIVITY}/coverage": {"gain_over": over("gain", 0.01)},
    "nsatp/rq3": {"pd_lead": pd_lead,
                  "pd_steepest": lambda table, row: float(pd_lead(table, row) > 0)},
    "nss/fault_detection": {
        "lead": order_lead("fdr"), "over_gini": less("fdr", method="nss"),
        "over_random": less("fdr", method="nss"), "less_random": less("fdr", "random")},
    "nss/diversity": {"area": area, "lead": order_lead("area"),
                      "over_random": less("area", method="nss")},
    "nss/repair": {"lead": order_lead("gain")},
    "nss/neurons": {"all_over_one_percent": all_over_one, "last_layer_lead": last_layer_lead},
    "nss/overhead": {"times_nss": times_nss},
    "nss/sensitivity": {"worse_over_better": quotient("sensitivity", "state", "worse", "better"),
                        "sensitive_over_random": quotient("sensitivity", "neurons", "sensitive",
                                                          "random"),
                        "least_step": strength_step},
    "peacepact/against_random": {
        "inc_bound": lambda table, _: 100 * (1 - 1 / table.value("f_measure_random"))},
}


def rules(experiment: str) -> dict[str, Derivation]:
    """The derived quantities of an experiment, each with what computes it."""
    return {k: v for start, found in DERIVED.items() if start in ("", experiment)
            for k, v in found.items()}


def differing(record: Record) -> list[tuple[dict, float | str]]:
    """Derived rows that do not follow from the rows beside them, and what would.

    >>> rows = [{"quantity": "f_measure_ranked", "value": 5.0},
    ...         {"quantity": "f_measure_random", "value": 20.0}, {"quantity": "inc", "value": 70.0}]
    >>> differing(Record("nsatp/rq2", {}, rows))
    [({'quantity': 'inc', 'value': 70.0}, 75.0)]
    """
    table, of, found = Table(record), rules(record.experiment), []
    for quantity in set(table.by) & set(of):
        for row in table.by[quantity]:
            try:
                expected = of[quantity](table, row)
            except (LookupError, ValueError, TypeError) as error:
                found.append((row, f"rows to compute it from ({error})"))
                continue
            if expected is not None and not _same(row["value"], expected):
                found.append((row, expected))
    return found


def _same(value: float | None, expected: float) -> bool:
    if value is None or not math.isfinite(expected):
        return value is None and not math.isfinite(expected)
    return math.isclose(value, expected, rel_tol=TOLERANCE, abs_tol=2e-5)
