"""What claims compare follows from raw rows as by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dnnbook import published
from dnnbook.records import derived, records, verdicts

CLAIM = published.Claim("nss-x", "nss", "IV", "x", "nss/x", "q", ["dataset"], 1, "above", 0,
                        where={"method": "ours"})
VALUES = {"ours": [5.0, 7.0, 1.0], "a": [4.0, 9.0, 2.0], "b": [2.0, 3.0, 3.0]}


def save(rows, dataset="mnist"):
    for seed in range(3):
        records.save(records.Record("nss/x", {"dataset": dataset, "seed": seed}, [
            {"quantity": "q"} | {k: v[seed] if k == "value" else v for k, v in row.items()}
            for row in rows]))


@pytest.mark.parametrize("by, expected", [
    ("less", [1, -2, -2]), ("over", [5 / 3, 7 / 6, 1 / 2.5]), ("between", [-1, 2, -1]),
    ("above", [1, 0, 0]), ("least", [0, 0, 1])])
def test_one_method_against_others_seed_by_seed(by, expected):
    save([{"method": name, "value": value} for name, value in VALUES.items()])
    (_, found), = verdicts.cells(replace(CLAIM, against={"method": ["a", "b"]}, by=by))
    assert found.tolist() == pytest.approx(expected)
    assert by in published.BY and set(published.BY) == set(derived.BY)


def test_what_a_cell_pools_is_compared_apart():
    """8 against 6 on one dataset and 1 against 7 on the other: ahead in half of them."""
    for dataset, ours, other in (("mnist", 8, 6), ("digits", 1, 7)):
        save([{"method": "ours", "kind": "k", "value": [ours] * 3},
              {"method": "a", "kind": "k", "value": [other] * 3}], dataset)
    claim = replace(CLAIM, cells=["kind"], against={"method": "a"}, by="above")
    (_, found), = verdicts.cells(claim)
    assert found.tolist() == [0.5] * 3


def test_a_trend_is_the_slope_of_the_least_squares_line():
    steps = {0.5: [4.0, 1.0, 3.0], 0.1: [1.0, 2.0, 3.0], 0.3: [2.0, 9.0, 3.0]}  # not in order
    save([{"method": "ours", "strength": at, "value": value} for at, value in steps.items()])
    claim = replace(CLAIM, along="strength", take="slope")
    (_, found), = verdicts.cells(claim)
    assert found.tolist() == pytest.approx([1.5, -0.5, 0])
    (_, found), = verdicts.cells(replace(claim, take="range"))
    assert found.tolist() == [3, 8, 0]
    assert set(published.TAKE) == set(derived.TAKE)


def test_a_claim_without_rows_to_compare_with_is_not_run():
    save([{"method": "ours", "value": VALUES["ours"]}])
    assert verdicts.cells(replace(CLAIM, against={"method": "a"}, by="less")) == []


@pytest.mark.parametrize("field, value, words", [
    ("by", "ratio", "by 'ratio': Input should be 'less'"), ("take", "slope", "take: expected with 'along'")])
def test_a_claim_names_what_is_wrong(tmp_path, field, value, words):
    path = tmp_path / "claims.toml"
    good = {"id": "nss-x", "paper": "nss", "place": "IV", "statement": "x", "experiment": "nss/x",
            "quantity": "q", "cells": ["dataset"], "expected": 1, "rule": "above", "threshold": 0}
    path.write_text("[[claim]]\n" + "\n".join(f"{k} = {v!r}" for k, v in good.items())
                    + f"\n{field} = {value!r}\n")
    with pytest.raises(ValueError, match=words):
        published.claims(path=path)


def test_derived_values_of_the_records_are_those_that_chapters_wrote(monkeypatch):
    """NSS's lead, which its chapter records, follows from the recorded rates."""
    monkeypatch.delenv("DNNLIB_BOOK")
    written = next(c for c in published.claims() if c.id == "nss-fdr-best")
    others = ["random", "nac", "kmnc", "npc", "dsa", "gini", "ats"]
    ours = replace(written, quantity="fdr", where=written.where | {"method": "nss"}, by="less",
                   against={"method": others, "pair": "", "difference": "", "share": ""})
    pairs = zip(verdicts.cells(written), verdicts.cells(ours), strict=True)
    for (key, lead), (other, found) in pairs:
        assert key == other
        np.testing.assert_allclose(found, lead, atol=2e-5)
        pd.testing.assert_index_equal(found.index, lead.index)
