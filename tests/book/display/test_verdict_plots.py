"""The figures of verdicts show what was counted, and where the paper's numbers are."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from dnnbook import published
from dnnbook.display import verdict_plots
from dnnbook.records import records
from dnnbook.records.verdicts import STATES, verdict


def test_verdicts_are_counted_for_each_paper():
    board = pd.DataFrame({"paper": ["b", "b", "a", "b"],
                          "verdict": ["mostly", "not run", "reproduced", "mostly"]})
    figure = verdict_plots.bar(board)
    axis, = figure.axes
    widths = {bars.get_label(): [bar.get_width() for bar in bars] for bars in axis.containers}
    assert [t.get_text() for t in axis.get_yticklabels()] == ["b", "a"]
    assert list(widths) == list(STATES)
    assert {state: width for state, width in widths.items() if any(width)} == {
        "reproduced": [0, 1], "mostly": [2, 0], "not run": [1, 0]}
    assert [t.get_text() for t in axis.texts if t.get_text()] == ["1", "2", "1"]


def test_before_and_after_are_two_bars_of_the_claims_that_have_both():
    first = pd.DataFrame({"paper": ["a", "a"], "verdict": ["partly", "partly"]}, index=["x", "y"])
    now = pd.DataFrame({"paper": ["a"] * 3, "verdict": ["reproduced", "mostly", "not run"]},
                       index=["x", "y", "added"])
    axis, = verdict_plots.before_after(first, now, {"a": "A, all"}).axes
    widths = {bars.get_label(): [bar.get_width() for bar in bars] for bars in axis.containers}
    assert [t.get_text() for t in axis.get_yticklabels()] == ["A\nall: first", "A\nall: now"]
    assert (widths["partly"], widths["reproduced"], widths["not run"]) == ([2, 1], [0, 1], [0, 0])


def test_each_cell_is_a_square_in_the_colour_of_its_outcome():
    counts = pd.DataFrame({"holds": [2, 0], "open": [0, 1], "fails": [1, 0], "blank": [7, 0]},
                          index=["a", "b"])
    axis, = verdict_plots.squares(counts).axes
    painted = [[to_hex(face) for face in block.get_facecolors()] for block in axis.collections]
    holds, open_, fails = (verdict_plots.OUTCOMES[name] for name in ("holds", "open", "fails"))
    assert painted == [[holds] * 2 + [fails] + ["#ffffff"] * 7, [open_]]
    places = {tuple(path.vertices.min(0)) for path in axis.collections[0].get_paths()}
    assert len(places) == 10  # none hides another
    assert [t.get_text() for t in axis.texts] == ["a: 2 hold, 1 fail, 7 not run", "b: 1 open"]


def test_every_cell_of_the_papers_is_counted_once(folders):
    claims = pd.DataFrame({"paper": claim.paper, "n": claim.expected}
                          for claim in published.claims()).groupby("paper")["n"].sum()
    found = verdict_plots.outcomes()
    assert (found["blank"] == claims.reindex(found.index)).all()  # nothing has run here
    assert not found[["holds", "open", "fails"]].to_numpy().any()


def test_a_line_falls_as_seeds_decide_cells():
    cells = pd.DataFrame({"paper": ["a", "a", "a", "b"], "deciding": [4, 6, np.inf, 5]})
    axis, = verdict_plots.left_open(cells, most=7).axes
    assert {line.get_label(): line.get_ydata().tolist() for line in axis.lines} == {
        "a": [3, 2, 2, 1, 1], "b": [1, 1, 0, 0, 0]}


def test_only_open_cells_are_listed(monkeypatch):
    claim = published.Claim("nsatp-x", "nsatp", "IV", "More errors.", "nsatp/x", "q",
                            ["dataset", "rate"], 2, "above", 1.0)
    for dataset, values in (("mnist", (1, 2, 3)), ("cifar10", (5, 6, 7))):
        for seed, value in enumerate(values):
            records.save(records.Record("nsatp/x", {"dataset": dataset, "rate": 5.0, "seed": seed},
                                        [{"quantity": "q", "value": value}]))
    monkeypatch.setattr(published, "claims", lambda: [claim])
    assert verdict_plots.open_cells().to_dict("records") == [
        {"paper": "nsatp", "claim": "More errors.", "cell": "MNIST, 5", "seeds": 3,
         "deciding": 9}]  # variances of 1 in both cells: 1.33 t(n + 1) / sqrt(n) is below 1 from 9 on


def judged(rule="above", threshold=1.0, values=(2.0, 2.2, 2.1), scale="ratio", fashion_mnist=None,
           cifar10=1.0, **more):
    claim = published.Claim("nsatp-x", "nsatp", "IV", "More errors.", "nsatp/x", "errors_over",
                            ["dataset"], 2, rule, threshold, scale=scale, **more)
    shifts = {"mnist": 0.0, "fashion_mnist": fashion_mnist, "cifar10": cifar10}
    for dataset, shift in shifts.items():
        for seed, value in enumerate(values if shift is not None else ()):
            records.save(records.Record("nsatp/x", {"dataset": dataset, "seed": seed},
                                        [{"quantity": "errors_over", "value": value + shift}]))
    return verdict(claim)


def drawn(found, paper):
    figure = verdict_plots.forests({"nsatp-x": (found, paper)})
    (axis,) = figure.axes
    plt.close(figure)
    return axis


def test_a_forest_has_a_line_for_each_cell_and_a_cross_for_each_printed_value():
    paper = pd.DataFrame({"dataset": ["mnist", "svhn"], "value": [1.1, 4.0]})
    found = judged()
    axis = drawn(found, paper)
    assert [t.get_text() for t in axis.get_yticklabels()] == ["CIFAR-10", "MNIST", "SVHN"]
    crosses = {line.get_ydata()[0]: line.get_xdata()[0] for line in axis.lines
               if line.get_marker() == "x"}
    assert crosses == {1: 1.1, 2: 4.0}
    spans = {line.get_ydata()[0]: tuple(line.get_xdata()) for line in axis.lines
             if len(line.get_xdata()) == 2 and line.get_linestyle() == "-"}
    cells = found.cells.set_index("dataset")
    assert spans == {0: pytest.approx((cells["low"]["cifar10"], cells["high"]["cifar10"])),
                     1: pytest.approx((cells["low"]["mnist"], cells["high"]["mnist"]))}
    assert "Reproduced: 2 of 2 hold" in axis.get_title(loc="left").replace("\n", " ")


def test_a_printed_rate_is_a_cell_of_the_same_rate_and_rates_are_in_order():
    claim = published.Claim("nsatp-x", "nsatp", "IV", "More faults.", "nsatp/x", "lead", ["rate"], 2,
                            "above", 0)
    for rate in (10.0, 5.0):
        for seed in range(3):
            records.save(records.Record("nsatp/x", {"seed": seed, "at": rate}, [
                {"rate": rate, "quantity": "lead", "value": rate + seed / 10}]))
    axis = drawn(verdict(claim), pd.DataFrame({"rate": [20, 5, 10], "value": [3.0, 1.0, 2.0]}))
    assert [t.get_text() for t in axis.get_yticklabels()] == ["5", "10", "20"]
    assert {line.get_ydata()[0]: line.get_xdata()[0] for line in axis.lines
            if line.get_marker() == "x"} == {0: 1.0, 1: 2.0, 2: 3.0}


def test_about_is_a_band_and_anything_else_a_line():
    band = drawn(judged("about", 2.0, margin=0.5), pd.DataFrame())
    assert len(band.patches) == 1 and band.patches[0].get_width() == pytest.approx(1.0)
    line = drawn(judged("at_least", 2.0), pd.DataFrame())
    assert not line.patches and any(item.get_linestyle() == "--" for item in line.lines)


@pytest.mark.parametrize("far, scale", [(5000.0, "symlog"), (500.0, "linear")])
def test_a_cell_far_away_leaves_room_for_the_others(far, scale):
    axis = drawn(judged(scale="linear", fashion_mnist=0.5, cifar10=far), pd.DataFrame())
    assert axis.get_xscale() == scale


def test_a_claim_without_records_says_so():
    claim = published.Claim("nsatp-y", "nsatp", "IV", "x", "nsatp/y", "q", ["dataset"], 2, "above", 0)
    assert [text.get_text() for text in drawn(verdict(claim), pd.DataFrame()).texts] == [
        "no records yet"]


@pytest.mark.parametrize("ceiling, said", [
    ({}, "undefined with some seed"),
    ({"quantity": "test_errors"}, "not judged: with some seed, all or no examples are errors")])
def test_a_cell_that_is_not_judged_says_why(ceiling, said):
    found = judged(values=(2.0, float("nan"), 2.1))
    found = replace(found, claim=replace(found.claim, ceiling=ceiling))
    assert {text.get_text() for text in drawn(found, pd.DataFrame()).texts} == {said}


@pytest.mark.parametrize("fields, said", [
    ({}, "lead"), ({"along": "threshold", "take": "slope"}, "slope of lead, a step"),
    ({"against": {"method": ["nac"]}, "by": "less"}, "lead, less the largest of the others"),
    ({"along": "rate", "take": "range", "against": {"method": ["nac"]}, "by": "over"},
     "range of lead, over the others' mean")])
def test_the_axis_says_what_is_judged_and_not_only_of_what(fields, said):
    found = judged()
    claim = replace(found.claim, quantity="lead", **fields)
    axis = drawn(replace(found, claim=claim), pd.DataFrame())
    assert axis.get_xlabel() == f"{said}; claimed: above 1"


def test_many_rates_stand_close_under_one_name():
    claim = published.Claim("nsatp-x", "nsatp", "IV", "More faults.", "nsatp/x", "lead",
                            ["model", "rate"], 24, "above", 0)
    printed = pd.DataFrame([{"model": model, "rate": rate, "value": float(rate)}
                            for model in "abcdef" for rate in (20, 15, 10, 5)])
    axis = drawn(verdict(claim), printed)
    assert [t.get_text() for t in axis.get_yticklabels()] == [f"{m}, 5 to 20" for m in "abcdef"]
    crosses = [(line.get_ydata()[0], line.get_xdata()[0]) for line in axis.lines
               if line.get_marker() == "x"]
    assert [value for _, value in crosses] == [5.0, 10.0, 15.0, 20.0] * 6
    steps = np.diff([y for y, _ in crosses])
    assert steps.tolist() == pytest.approx(
        (([verdict_plots.CLOSE] * 3 + [1.0]) * 6)[:-1])  # close in a group, a line between groups
