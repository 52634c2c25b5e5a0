import math
from dataclasses import replace

import pandas as pd
import pytest
from scipy import stats

from dnnbook import places, published
from dnnbook.records import records, verdicts

# Verdicts

# The moderated error of a cell of three seeds whose spread is 1, as that of all others: d0 is
# infinite and s0^2 = exp(-digamma(1)) = exp(Euler's constant).
POOLED = math.sqrt(math.exp(0.5772156649) / 3)


def claim(rule="above", threshold=0.0, **changes):
    return published.Claim(**{
        "id": "nsatp-x", "paper": "nsatp", "place": "IV", "statement": "x",
        "experiment": "nsatp/x", "quantity": "q", "cells": ["dataset"], "expected": 4,
        "rule": rule, "threshold": threshold, "margin": 0.1 if rule == "about" else 0.0} | changes)


def save(values, dataset="mnist", seeds=None, experiment="nsatp/x", quantity="q", rows=(),
         **parameters):
    """One record for each value, with seeds 0, 1, 2, ..."""
    for seed, value in zip(seeds or range(len(values)), values):
        records.save(records.Record(experiment, {"dataset": dataset, "seed": seed, **parameters},
                                    [{"quantity": quantity, "value": value}, *rows]))


# 1, 2, 3 has mean 2 and the 95 % interval [-0.48, 4.48] (t = 4.303, error 1 / sqrt 3)
@pytest.mark.parametrize("rule, threshold, outcome", [
    ("above", -0.5, "holds"), ("above", 4.5, "fails"), ("above", 2, "open"),
    ("at_least", -0.5, "holds"), ("at_least", 4.5, "fails"), ("at_least", 2, "open"),
    ("below", 4.5, "holds"), ("below", -0.5, "fails"), ("below", 2, "open"),
    ("at_most", 4.5, "holds"), ("at_most", -0.5, "fails"), ("at_most", 2, "open")])
def test_rules_look_at_the_whole_interval(rule, threshold, outcome):
    save([1, 2, 3])
    found = verdicts.verdict(claim(rule, threshold))
    assert found.cells[["dataset", "mean", "seeds", "outcome"]].values.tolist() == [
        ["mnist", 2, 3, outcome]]
    assert (found.holds, found.fails, found.run) == (outcome == "holds", outcome == "fails", 1)
    assert found.state == {"holds": "reproduced where run", "fails": "not reproduced",
                           "open": "too few runs"}[outcome]  # one of four cells
    assert found.provisional  # not yet five seeds


@pytest.mark.parametrize("rule", verdicts.RULES)
@pytest.mark.parametrize("threshold", [0.5, 0.4])
def test_a_spread_of_zero_is_unknown_not_certain(rule, threshold):
    save([0.5, 0.5, 0.5])
    found = verdicts.verdict(claim(rule, threshold))
    assert (found.state, found.cells["outcome"].tolist()) == ("too few runs", ["open"])
    assert found.cells["mean"].tolist() == [0.5] and found.cells["low"].isna().all()
    save([0.4, 0.5, 0.6], "digits")
    save([0.4, 0.5, 0.6], "svhn")  # now it borrows: s0 = 0.1, so that its variance is 0.01 / 3
    low = verdicts.verdict(claim(rule, threshold)).cells.set_index("dataset")["low"]
    assert low.notna().all() and low["mnist"] == low["digits"] == low["svhn"]


def test_a_share_of_nothing_among_many_inputs_is_known():
    save([0.0] * 3, seeds_count=1000)
    save([0.0] * 3, "digits", seeds_count=2)
    found = verdicts.verdict(claim("above", 0.5, scale="share", out_of="seeds_count"))
    assert found.cells.set_index("dataset")["outcome"].to_dict() == {"mnist": "fails",
                                                                     "digits": "open"}
    assert verdicts.verdict(claim("above", 0.5, scale="share")).fails == 0
    for name in range(6):  # none of six
        save([0.0] * 3, "both", model=str(name), experiment="nsatp/y")
    pooled = claim("above", 0.5, scale="share", out_of="rows", experiment="nsatp/y")
    half = stats.t.ppf(0.975, 2) * math.sqrt(1 / (4 * 6 * 3))
    assert verdicts.verdict(pooled).cells["high"].tolist() == pytest.approx([math.sin(half) ** 2])


def test_the_first_five_seeds_count_whatever_they_show():
    save([1, 2, 3, 4, 5, 100, 200])
    found = verdicts.verdict(claim())
    assert found.cells[["mean", "seeds"]].values.tolist() == [[3, 5]] and not found.provisional


@pytest.mark.parametrize("values, seeds", [([], []), ([1], [0]), ([1, 1], [0, 1])])
def test_fewer_than_three_seeds_decide_nothing(values, seeds):
    save(values, seeds=seeds)
    found = verdicts.verdict(claim())
    assert (found.state, found.run, found.holds) == ("not run", 0, 0) and found.cells.empty


def test_seeds_that_would_decide_a_cell():
    save([1, 2, 3])  # of n seeds, the interval is 2 +- t(n - 1) / sqrt(n)
    for threshold in (1, 1.5, 2.9):
        wide = abs(2 - threshold)
        needed = next(n for n in range(3, 31) if stats.t.ppf(0.975, n - 1) / math.sqrt(n) <= wide)
        assert verdicts.verdict(claim("above", threshold)).cells["deciding"].tolist() == [needed]
    assert verdicts.verdict(claim("above", 2)).cells["deciding"].tolist() == [math.inf]
    assert verdicts.verdict(claim("above", -0.5)).cells["deciding"].tolist() == [3]  # it is decided


def test_two_records_of_one_cell_and_seed_are_refused():
    for trials in (10, 20):
        save([1], trials=trials)
    with pytest.raises(ValueError, match=r"differ in trials, .*: nsatp/x/mnist-seed0-\w+.json and "
                                         r"nsatp/x/mnist-seed0-\w+.json"):
        verdicts.verdict(claim())
    assert verdicts.verdict(claim(where={"trials": 20})).state == "not run"


def test_a_cell_of_several_networks_has_the_seeds_of_all_of_them():
    for model, values in (("a", [1, 2, 3, 50]), ("b", [3, 4, 5])):  # a has a fourth seed, b has not
        save(values, model=model)
    (key, means), = verdicts.cells(claim())
    assert key == ("mnist",) and means.to_dict() == {0: 2, 1: 3, 2: 4}
    assert [len(group) for _, group in verdicts.cells(claim(cells=["model"]))] == [4, 3]


def test_a_cell_where_no_count_can_tell_is_open():
    for dataset, counts in {"full": (50, 50), "none": (0, 0), "mnist": (50, 49)}.items():
        save([0.75, 1, 1.25], dataset, seeds_count=50,
             rows=[{"quantity": "errors", "value": count, "threshold": i}
                   for i, count in enumerate(counts)])
    found = verdicts.verdict(claim(ceiling={"quantity": "errors"}))
    assert found.cells.set_index("dataset")["outcome"].to_dict() == {
        "full": "open", "none": "open", "mnist": "holds"}
    assert found.state == "mostly"  # the one that can tell
    assert set(verdicts.verdict(claim()).cells["outcome"]) == {"holds"}
    of = {"quantity": "errors", "of": 49, "threshold": 1}  # another number, of some rows
    found = verdicts.verdict(claim(ceiling=of)).cells.set_index("dataset")["outcome"]
    assert found.to_dict() == {"full": "holds", "none": "open", "mnist": "open"}
    with pytest.raises(ValueError, match="no ceiling .*'eror'"):
        verdicts.verdict(claim(ceiling={"quantity": "eror"}))


def test_where_no_cell_can_tell_there_is_nothing_to_compare():
    save([0.75, 1, 1.25], seeds_count=9, rows=[{"quantity": "errors", "value": 9}])
    assert verdicts.verdict(claim(ceiling={"quantity": "errors"})).state == "nothing to compare"


@pytest.mark.parametrize("cells, state", [
    ("hhhh", "reproduced"), ("hhho", "mostly"), ("hhoo", "too few runs"), ("hhhf", "partly, some fail"),
    ("ffoo", "not reproduced"), ("oooo", "too few runs"), ("hhh", "reproduced"),
    ("hh", "reproduced where run"), ("", "not run")])
def test_the_word_says_what_the_cells_do(cells, state):
    """Clear cells: Simes's test and Holm's agree."""
    middle = {"h": 100, "f": -100, "o": 0}
    for number, kind in enumerate(cells):
        save([middle[kind] - 1, middle[kind], middle[kind] + 1.5], f"d{number}")
    assert verdicts.verdict(claim()).state == state and state in verdicts.STATES


def test_many_weak_failures_are_some_by_simes_though_holm_names_none():
    """Each p is 0.04: the largest of n is below the level, no single one below a n-th of it."""
    half = stats.t.ppf(1 - 0.04 / 2, 12) * POOLED
    for dataset in "abcdef":
        save([-half - 1, -half, -half + 1], dataset)
    found = verdicts.verdict(claim())
    assert (found.fails, found.sure_fails, found.state) == (6, 0, "not reproduced")


def test_partly_and_not_reproduced():
    save([0.75, 1, 1.25], "mnist")
    save([-1.25, -1, -0.75], "digits")
    save([1, 1], "svhn")  # not counted
    found = verdicts.verdict(claim())
    assert (found.state, found.holds, found.fails, found.run) == ("partly, some fail", 1, 1, 2)
    assert verdicts.verdict(claim("at_most", -2)).state == "not reproduced"
    assert verdicts.verdict(claim("at_most", 2)).state == "reproduced where run"
    assert verdicts.verdict(claim("at_most", 2, expected=3)).state == "reproduced"


def test_one_cell_picked_from_many_must_stand_a_correction():
    """p is 0.04 in a cell: enough alone, not as the best of ten."""
    half = stats.t.ppf(1 - 0.04 / 2, 20) * POOLED
    save([half - 1, half, half + 1], "mnist")
    for dataset in "abcdefghi":
        save([-1, 0, 1], dataset)
    found = verdicts.verdict(claim())
    assert (found.holds, found.sure_holds, found.state) == (1, 0, "too few runs")
    assert verdicts.counted(found) == "1 of 10 hold (0 corrected), 9 open (4)"
    assert verdicts.told(found) == ("1 of the 10 cells that were run holds and 9 are open; after "
                                    "Holm's correction, none holds and none fails")
    assert verdicts.told(replace(found, fails=2, sure_holds=1, sure_fails=2)) == (
        "1 of the 10 cells that were run holds, 2 fail and 7 are open")


@pytest.mark.parametrize("values, outcome", [
    ([1.19, 1.2, 1.21], "holds"), ([1.9, 2.0, 2.1], "fails"), ([0.5, 0.51, 0.52], "fails"),
    ([1.1, 1.3, 1.5], "open")])
def test_about_has_two_sides(values, outcome):
    save(values)
    about = claim("about", 1.2, margin=0.1, scale="ratio")
    assert verdicts.verdict(about).cells["outcome"].tolist() == [outcome]


def test_a_verdict_tells_how_large_its_runs_were():
    save([1, 1, 1], seeds_count=100, population=10)
    save([1, 1, 1], "digits", seeds_count=1000, population=10)
    assert verdicts.verdict(claim()).scale == "100 to 1,000 inputs, population 10, 3 seeds"


def test_the_scoreboard_counts_what_is_open(monkeypatch):
    monkeypatch.setattr(verdicts.published, "claims", lambda paper: [claim()])
    for dataset, values in (("mnist", [9, 10, 11]), ("digits", [-1, 0, 1]), ("svhn", [-11, -10, -9])):
        save(values, dataset)
    board = verdicts.scoreboard()
    assert board["verdict"].tolist() == ["partly, some fail"]
    assert board["cells (paper's)"].tolist() == ["1 of 3 hold, 1 fails, 1 open (4)"]


def test_cells_of_two_columns():
    for model, value in (("net1", 1), ("net2", -1)):
        save([value - 0.2, value, value + 0.2], model=model)
    both = ["dataset", "model"]
    cells = verdicts.verdict(claim(cells=both)).cells.set_index(both)
    assert cells["outcome"].to_dict() == {("mnist", "net1"): "holds", ("mnist", "net2"): "fails"}


@pytest.mark.parametrize("where, means", [
    ({"trials": 100}, [2]), ({"trials": 10}, [0]), ({"patch": "random"}, [2]),
    ({"trials": [100]}, [2]), ({"trials": 100, "patch": "random"}, [2]),
    ({"trials": 10, "patch": ["random"]}, []), ({"trials": [7]}, [])])
def test_where_filters_rows(where, means):
    save([2, 2, 2], trials=100, patch="random", rows=[{"quantity": "other", "value": 90}])
    save([0, 0, 0], trials=10, patch="invert")
    found = verdicts.verdict(claim(where=where))
    assert (found.cells["mean"].tolist() if means else found.run) == (means or 0)


def test_where_can_name_a_column_of_the_cells():
    for distance in ("pd", "certainty"):
        save([1, 1, 1], distance=distance)
    found = verdicts.verdict(claim(cells=["distance"], where={"distance": ["pd", "pe", "pv"]}))
    assert found.cells["distance"].tolist() == ["pd"]


@pytest.mark.parametrize("rule", verdicts.RULES)
@pytest.mark.parametrize("values", [[1, 1, math.nan], [math.nan] * 3])
def test_undefined_values_neither_hold_nor_fail(rule, values):
    save(values)
    found = verdicts.verdict(claim(rule))
    assert (found.state, found.holds, found.fails, found.run) == ("nothing to compare", 0, 0, 1)


def test_an_undefined_row_is_not_averaged_away():
    save([1, 1, 1], rows=[{"quantity": "q", "value": None}])
    assert verdicts.verdict(claim()).cells["outcome"].tolist() == ["open"]


@pytest.mark.parametrize("changes, column", [
    ({"where": {"fit": "curve"}}, "fit"), ({"cells": ["dataset", "model"]}, "model")])
def test_records_without_a_column_of_the_claim(changes, column):
    save([1, 1, 1])
    words = f"claim nsatp-x: .* no column '{column}', only .*'dataset'"
    with pytest.raises(ValueError, match=words):
        verdicts.verdict(claim(**changes))


# The scoreboard


def test_scoreboard_lists_every_claim():
    board = verdicts.scoreboard()
    assert board.index.tolist() == [c.id for c in published.claims()]
    assert board["claim"].tolist() == [c.statement for c in published.claims()]
    assert set(board["verdict"]) == {"not run"}
    assert all(c.startswith("(") for c in board["cells (paper's)"])
    assert set(verdicts.scoreboard("peacepact")["paper"]) == {"peacepact"}


def test_scoreboard_of_one_experiment_follows_its_records(tmp_path):
    board = verdicts.scoreboard(experiment="nsatp/rq3")
    assert board.index.tolist() == ["nsatp-rq3-pd-best", "nsatp-rq3-pd-general",
                                    "nsatp-rq3-pv-middle", "nsatp-rq3-pe-last"]
    common = dict(experiment="nsatp/rq3", quantity="pd_lead", trials=100, patch="random",
                  recipe="nsatp")
    slopes = [{"quantity": "slope", "distance": name, "value": 1.0} for name in ("pd", "pe", "pv")]
    steepest = [{"quantity": "pd_steepest", "value": 1.0}]
    save([0.8, 1, 1.2], model="net1", rows=slopes + steepest, **common)
    save([-1.2, -1, -0.8], model="net2", rows=slopes + steepest, **common)
    row = verdicts.scoreboard(experiment="nsatp/rq3").loc["nsatp-rq3-pd-best"]
    assert (row["verdict"], row["cells (paper's)"]) == (
        "partly, some fail", "1 of 2 hold, 1 fails (8)")
    elsewhere = verdicts.scoreboard("nsatp", tmp_path / "elsewhere", experiment="nsatp/rq3")
    assert set(elsewhere["verdict"]) == {"not run"}


@pytest.mark.parametrize("where", [{"trials": 10}, {"patch": "invert"}, {"distance": "certainty"}])
def test_other_readings_do_not_decide_rq1(where):
    row = {"fit": "loglinear", "points": "examples", "model": "net1", "distance": "pd",
           "trials": 100, "patch": "random", "recipe": "nsatp"}
    save([-1.2, -1, -0.8], experiment="nsatp/rq1", quantity="b", **row)
    save([9, 9, 9], experiment="nsatp/rq1", quantity="b", **row | where)
    board = verdicts.scoreboard(experiment="nsatp/rq1")
    assert board.loc["nsatp-rq1-falling", ["verdict", "cells (paper's)"]].tolist() == [
        "reproduced where run", "1 of 1 hold (24)"]


def test_verdicts_of_another_reading_stand_beside(monkeypatch):
    pairs = claim(where={"pair": "remutated"}, id="a", expected=1)
    monkeypatch.setattr(published, "claims", lambda paper=None: [pairs, claim(id="b")])
    save([1, 2, 3], pair="original")
    found = verdicts.with_readings(verdicts.scoreboard(), {"known": {"pair": "original"}})
    assert found["verdict"].tolist() == ["not run", "too few runs"]
    assert found["known"].tolist() == ["too few runs: 0 of 1 hold, 1 open (1)", ""]  # b has no pair


def test_unknown_paper():
    with pytest.raises(ValueError, match="unknown paper 'nsapt'; did you mean 'nsatp'"):
        verdicts.scoreboard("nsapt")


def test_the_committed_scoreboard_is_that_of_the_committed_records(monkeypatch):
    """So that a verdict changes only in a commit that shows it: `dnnbook scoreboard --out ...`."""
    monkeypatch.delenv("DNNLIB_BOOK")
    kept = pd.read_csv(places.results_dir() / "scoreboard.csv", index_col="id",
                       keep_default_na=False)  # a claim that was not run has no size of runs
    pd.testing.assert_frame_equal(verdicts.scoreboard(), kept)


def test_a_cell_of_several_settings_is_refused():
    for seed in range(3):
        records.save(records.Record("nsatp/x", {"dataset": "mnist", "seed": seed}, [
            {"quantity": "q", "value": value, "setting": setting}
            for setting, value in (("paper", 1), ("best", 2))]))
    with pytest.raises(ValueError, match="rows of one cell and seed differ in setting"):
        verdicts.verdict(claim())
    assert verdicts.verdict(claim(where={"setting": "best"})).cells["mean"].tolist() == [2]


def test_where_can_ask_for_rows_without_a_value():
    for seed in range(3):
        records.save(records.Record("nsatp/x", {"dataset": "mnist", "seed": seed}, [
            {"quantity": "q", "value": 5, "fuzzer": "ours"},
            {"quantity": "q", "value": 1, "fuzzer": "rival", "setting": "paper"},
            {"quantity": "q", "value": 2, "fuzzer": "rival", "setting": "best"}]))
    found = verdicts.verdict(claim(where={"setting": ["best", ""]}, cells=["fuzzer"])).cells
    assert found.set_index("fuzzer")["mean"].to_dict() == {"ours": 5, "rival": 2}


# What counts


def foreign(record):
    """Records that are no cell of the paper, or in another setting: what a reader might add."""
    def changed(**parameters):
        return replace(record, parameters=record.parameters | parameters,
                       rows=[row | {"value": 1234.5} for row in record.rows])

    yield changed(dataset="own/images")
    yield changed(model="mine")
    for name, value in record.parameters.items():
        if name not in ("dataset", "model", "seed"):
            yield changed(**{name: f"{value}9" if isinstance(value, str) else value + 97})


@pytest.mark.parametrize("experiment", sorted({c.experiment for c in published.claims()}))
def test_no_verdict_moves_by_what_is_not_the_papers(experiment, tmp_path, monkeypatch):
    monkeypatch.delenv("DNNLIB_BOOK")
    claims = [c for c in published.claims() if c.experiment == experiment]
    before = [verdicts.cells(c) for c in claims]
    kept = records.find(experiment)
    columns = {name for c in claims for name in c.cells} - {"dataset", "model"}
    for name in sorted(columns):  # a distance, a criterion, a rate of one's own
        for record in kept:
            rows = [row | {name: "own" if isinstance(row[name], str) else 99, "value": 1234.5}
                    for row in record.rows if name in row]
            records.save(replace(record, rows=record.rows + rows), tmp_path / name)
        judge(claims, before, tmp_path / name, refused={
            c.id for c in claims if name not in {*c.cells, *c.where, *c.against}})
    for record in kept:
        records.save(record, tmp_path / "all")
    for other in foreign(kept[0]) if kept else ():
        records.save(other, tmp_path / "all")
    judge(claims, before, tmp_path / "all")


def judge(claims, before, root, refused=()):
    """Every claim has the cells that it had; a row in which it names nothing may be refused."""
    for c, cells in zip(claims, before):
        try:
            found = verdicts.cells(c, root)
        except ValueError as error:
            assert c.id in refused and "rows of one cell and seed differ" in str(error)
            continue
        assert [key for key, _ in found] == [key for key, _ in cells], c.id
        for (_, ours), (_, theirs) in zip(found, cells):
            pd.testing.assert_series_equal(ours, theirs, check_dtype=False)
