"""Rules that records keep, and derived rows computed again from the rows beside them."""

import copy
from collections import Counter
from functools import cache

import pytest

from dnnbook.records import recomputed, records, rules
from dnnbook.records.records import Record
from tests.book.wrong_records import RESULTS


@cache
def every():
    return [records.read(path) for path in sorted(RESULTS.glob("*/*/*.json"))]


def first(experiment, quantity=None):
    return copy.deepcopy(next(
        each for each in every() if each.experiment == experiment and
        (quantity is None or any(row["quantity"] == quantity for row in each.rows))))


def test_every_committed_record_keeps_its_rules():
    assert rules.broken(root=RESULTS) == []


def test_each_declared_derivation_is_of_rows_that_records_have():
    """So that no function computes nothing, and the test above looks at what it says."""
    seen = Counter((record.experiment, row.get("quantity")) for record in every()
                   for row in record.rows)
    experiments = {record.experiment for record in every()}
    for start, found in recomputed.DERIVED.items():
        assert not start or start in experiments
        for quantity in found:
            assert any(seen[each, quantity] for each in experiments if start in ("", each)), (
                start, quantity)


@pytest.mark.parametrize("experiment, quantity", sorted(
    {(record.experiment, row["quantity"]) for record in every() for row in record.rows
     if row.get("quantity") in recomputed.rules(record.experiment)}))
def test_a_changed_derived_row_is_named_with_what_follows(experiment, quantity):
    record = first(experiment, quantity)
    row = next(row for row in record.rows
               if row["quantity"] == quantity and row["value"] is not None)
    before = row["value"]
    row["value"] = 1.0 - before if quantity in ("chosen", "pd_steepest") else before - 0.5
    lines = [line for line in rules.violated(record) if f"{row['value']}, expected" in line]
    assert any(f"quantity={quantity}" in line for line in lines)


def test_a_derived_row_whose_raw_row_is_gone_is_named():
    record = first("nsatp/rq2")
    record.rows[:] = [row for row in record.rows if row["quantity"] != "f_measure_random"]
    assert any("quantity=inc" in line and "expected one row of f_measure_random" in line
               for line in rules.violated(record))


@pytest.mark.parametrize("experiment, where, value, expected", [
    ("deepsensor_excitable/selector", {"quantity": "fdr", "method": "best possible"}, 5.0,
     "of the best possible order"),
    ("nss/fault_detection", {"quantity": "fdr", "method": "gini"}, 100.5, "expected 0 to 100"),
    ("nss/fault_detection", {"quantity": "spearman"}, -1.2, "expected -1 to 1"),
    ("nss/overhead", {"quantity": "seconds"}, 0, "a number above 0"),
    ("nsatp/motivation", {"quantity": "strictly_more"}, 0.99, "the more_from_undecided"),
    ("nsatp/rq1", {"quantity": "accuracy"}, 98.0, "expected 0 to 1"),
    ("deepsensor_sensitivity/incomplete", {"quantity": "test_errors"}, 5000.0,
     "the number of examples"),
    ("deepsensor_excitable/attack_success", {"quantity": "asr"}, "high", "expected 0 to 100")])
def test_a_broken_rule_names_row_value_and_what_was_expected(experiment, where, value, expected):
    record = first(experiment, where["quantity"])
    row = next(row for row in record.rows if where.items() <= row.items())
    row["value"] = value
    assert any(expected in line for line in rules.violated(record))
    assert not rules.violated(first(experiment))


def test_lines_name_the_record(tmp_path):
    records.save(Record("nss/x", {"seed": 0}, [{"quantity": "fdr", "value": 101.0}]), tmp_path)
    (line,) = rules.broken(root=tmp_path)
    assert line.startswith("nss/x/seed0-") and line.endswith(
        "quantity=fdr: 101.0, expected 0 to 100")
    assert rules.broken("peacepact", tmp_path) == []
