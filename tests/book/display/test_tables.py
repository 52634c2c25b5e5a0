import math

import pandas as pd
import pytest
from scipy import stats

from dnnbook import places, words
from dnnbook.display import tables, whose
from dnnbook.records import records

ON = ["dataset", "distance"]


def tidy(*rows, columns=(*ON, "value")):
    return pd.DataFrame(rows, columns=columns)


def seeds(*rows):
    return tidy(*rows, columns=(*ON, "seed", "value"))


PAPER = tidy(("mnist", "pd", 0.99), ("mnist", "pe", "0.98"), ("cifar10", "pd", 0.97),
             ("cifar10", "pe", "Best"))


def test_a_table_to_read_has_means():
    runs = seeds(*(("mnist", "pd", s, v) for s, v in enumerate([0.0, 0.0, 3.0])))
    assert float(tables.wide(runs, index="dataset", columns="distance", digits=1).iloc[0, 0]) == 1.0


# Tables beside each other


def test_cells_stand_as_published_and_extra_ones_last():
    ours = seeds(("digits", "pd", 0, 0.5), ("cifar10", "pe", 0, 0.4), ("mnist", "pd", 0, 0.3))
    table = tables.beside(PAPER, ours, on=ON)
    assert table.index.tolist() == [("MNIST", "PD"), ("MNIST", "PE"), ("CIFAR-10", "PD"),
                                    ("CIFAR-10", "PE"), ("digits", "PD")]
    assert table["paper"].tolist() == ["0.99", "0.98", "0.97", "Best", ""]
    assert table["ours"].tolist() == ["0.30", "", "", "0.40", "0.50"]
    assert table["seeds"].tolist() == ["1", "", "", "1", "1"]


def test_the_paper_s_digits_stay_unless_its_value_was_converted():
    paper = tidy(("mnist", "pd", 98.9), ("mnist", "pe", 0.989)).assign(printed=["98.90", "98.90"])
    table = tables.beside(paper, seeds(("mnist", "pd", 0, 98.87)), on=ON, digits=1)
    assert table["paper"].tolist() == ["98.90", "1.0"] and table["ours"].tolist() == ["98.9", ""]


def test_spread_over_seeds():
    ours = seeds(*(("mnist", "pd", s, v) for s, v in enumerate([0.1, 0.2, 0.6])),
                 *(("mnist", "pe", s, v) for s, v in enumerate([0.5, math.nan, 0.5])))
    table = tables.beside(PAPER, ours, on=ON, digits=1)
    assert table.loc[("MNIST", "PD"), ["paper", "ours", "seeds"]].tolist() == [
        "1.0", "0.3 [0.1, 0.6]", "3"]
    assert table.loc[("MNIST", "PE"), "ours"] == "undefined"


def test_live_column():
    live = tidy(("mnist", "pe", 0.25), ("digits", "pd", 0.75))
    table = tables.beside(PAPER, seeds(("mnist", "pd", 0, 0.3)), on=ON, live=live)
    assert table["this run"].tolist() == ["", "0.25", "", "", "0.75"]
    nobody = tables.beside(PAPER, seeds(), on=ON)
    assert (nobody[["ours", "seeds", "this run"]] == "").all(axis=None)


def test_where_says_which_of_our_rows_are_meant():
    ours = seeds(("mnist", "pd", 0, 0.3), ("mnist", "pe", 0, 0.4), ("mnist", "pd", 1, 9.0))
    live = tidy(("mnist", "pd", 0.2), ("mnist", "pe", 7.0))
    table = tables.beside(PAPER, ours, on=ON, live=live, where="value < 1")
    assert table.loc[("MNIST", "PD"), ["ours", "seeds", "this run"]].tolist() == [
        "0.30", "1", "0.20"]
    assert table.loc[("MNIST", "PE"), ["ours", "this run"]].tolist() == ["0.40", ""]
    nobody = tables.beside(PAPER, pd.DataFrame(), on=ON, where="no_such_column == 1")
    assert (nobody["ours"] == "").all()


def test_runs_in_other_settings_never_share_a_row():
    """A range is over seeds: where a setting differs, each has a row that says which."""
    ours = pd.DataFrame([("mnist", "pd", seed, trials, value + seed / 10)
                         for trials, value in ((5, 0.1), (50, 0.5)) for seed in (0, 1)],
                        columns=[*ON, "seed", "trials", "value"])
    table = tables.beside(PAPER, ours, on=ON, digits=1, settings=["trials"])
    found = table.loc[("MNIST", "PD")]
    assert found.to_dict("index") == {
        "trials 5": {"paper": "1.0", "ours": "0.2 [0.1, 0.2]", "seeds": "2", "this run": ""},
        "trials 50": {"paper": "", "ours": "0.6 [0.5, 0.6]", "seeds": "2", "this run": ""}}


def test_a_setting_that_is_not_told_or_hardly_differs_shares_no_row():
    for settings, told in (([50, math.nan, 5], {"trials 50", "trials not told", "trials 5"}),
                           ([0.1234567, 0.1234568], {"trials 0.1234567", "trials 0.1234568"})):
        ours = pd.DataFrame({"model": "lenet5", "seed": range(len(settings)), "value": 1.0,
                             "trials": settings})
        table = tables.beside(pd.DataFrame({"model": ["lenet5"], "value": [1]}), ours,
                              on=["model"], settings=["trials"])
        assert {*table.reset_index()["settings"]} == told and {*table["seeds"]} == {"1"}


def test_a_run_stands_apart_and_says_in_what_it_differs():
    ours = pd.DataFrame([("mnist", "pd", 0, 50, 10.0, "lenet1", 0.5)],
                        columns=[*ON, "seed", "trials", "l2", "others", "value"])
    live = pd.DataFrame([("mnist", "pd", 3, 5, 10, "", 0.9), ("cifar10", "pd", 3, 5, 10, "", 0.8)],
                        columns=ours.columns)
    settings = ["trials", "l2", "others", "never_there"]
    table = tables.beside(PAPER, ours, on=ON, live=live, settings=settings)
    assert table["this run"].loc[("MNIST", "PD")].to_dict() == {
        "": "", "trials 5 (50), others none (LeNet-1)": "0.90"}
    assert table["this run"].loc[("CIFAR-10", "PD")].to_dict() == {"": "0.80"}
    same = live.assign(trials=50, others="lenet1")  # another seed is no other setting
    table = tables.beside(PAPER, ours, on=ON, live=same, settings=settings)
    assert table.loc[("MNIST", "PD"), ["ours", "this run"]].tolist() == ["0.50", "0.90"]


def test_one_column_of_cells():
    paper, ours = tidy(("b", 1), ("a", 2), columns=("dataset", "value")), tidy(
        ("a", 0, 3.0), columns=("dataset", "seed", "value"))
    table = tables.beside(paper, ours, on=["dataset"], digits=0)
    assert table.index.tolist() == ["b", "a"] and table["ours"].tolist() == ["", "3"]


@pytest.mark.parametrize("which, column", [("paper", "distance"), ("ours", "value"),
                                           ("ours", "seed"), ("live", "dataset")])
def test_missing_columns_are_named(which, column):
    given = {"paper": PAPER, "ours": seeds(("mnist", "pd", 0, 0.3)), "live": PAPER}
    given[which] = given[which].drop(columns=column)
    with pytest.raises(ValueError, match=rf"{which}: the columns are missing: \['{column}'\]"):
        tables.beside(given["paper"], given["ours"], on=ON, live=given["live"])


def test_a_table_of_means_and_intervals():
    runs = pd.DataFrame([("gini", "mnist", s, v) for s, v in enumerate([1.0, 2.0, 3.0])]
                        + [("gini", "cifar10", 0, 5.0), ("gini", "cifar10", 1, 6.0)]
                        + [("pd", "cifar10", s, v) for s, v in enumerate([1.0, math.nan, 3.0])],
                        columns=["method", "dataset", "seed", "value"])
    table = tables.mean_and_interval(runs, index=["method"], columns=["dataset"])
    half = stats.t.ppf(0.975, 2) / math.sqrt(3)
    assert table.loc["DeepGini", "MNIST"].split() == ["2.0", "±", f"{half:.1f}"]
    assert table.loc["DeepGini", "CIFAR-10"] == "5.5"  # two seeds: no interval
    assert table.loc["PD", "CIFAR-10"] == "undefined" and table.loc["PD", "MNIST"] == ""


def test_several_rows_of_a_seed_are_one_value_of_the_interval():
    runs = pd.DataFrame({"m": "a", "seed": [0, 0, 1, 1, 2, 2], "value": [0, 2, 1, 3, 2, 4]})
    merged = runs.groupby(["m", "seed"], as_index=False)["value"].mean()
    assert tables.mean_and_interval(runs, index=["m"]).equals(
        tables.mean_and_interval(merged, index=["m"]))


# Wide tables


ROWS = pd.DataFrame({"model": ["lenet5", "lenet1", "lenet5", "lenet5"], "seed": [0, 0, 1, 0],
                     "quantity": ["l2", "l2", "l2", "passes"], "value": [1.0, 5.0, 2.0, 3.04]})


def test_means_in_words_in_the_order_of_the_rows():
    table = tables.wide(ROWS, index="model", columns="quantity")
    assert table.index.tolist() == ["LeNet-5", "LeNet-1"] and table.index.name == "network"
    assert table.to_dict("list") == {"L2": ["1.5", "5.0"], "passes": ["3.0", ""]}


def test_order_and_where_choose_and_sort():
    table = tables.wide(ROWS, "quantity == 'l2'", index="model", columns="quantity", digits=0,
                        order={"model": ["vgg16", "lenet1", "lenet5"]})
    assert table["L2"].to_dict() == {"LeNet-1": "5", "LeNet-5": "2"}


def test_a_missing_value_is_not_averaged_away():
    rows = ROWS.assign(value=[math.nan, 5.0, 2.0, 3.0])
    table = tables.wide(rows, index="model", columns="quantity", blank="-")
    assert table.loc["LeNet-5", "L2"] == "-"


@pytest.mark.parametrize("value, shown", [(21.05, f"{21.05:.1f}"), (-0.04, "0.0")])
def test_a_table_rounds_as_a_sentence_does_but_for_the_sign_of_nothing(value, shown):
    rows = pd.DataFrame({"model": ["a"], "seed": [0], "value": [value]})
    assert tables.wide(rows, index="model")["value"].tolist() == [shown]
    assert tables.mean_and_interval(rows, index=["model"], digits=1)["value"].tolist() == [shown]
    paper = pd.DataFrame({"model": ["a"], "value": [1.0]})
    assert tables.beside(paper, rows, on=["model"], digits=1)["ours"].tolist() == [shown]


def test_rows_that_lack_a_part_of_their_name_stay():
    rows = pd.DataFrame({"fuzzer": ["dlfuzz", "deepxplore"], "reading": [None, "single"],
                         "value": [1, 2]})
    table = tables.wide(rows, index=["fuzzer", "reading"], digits=0)
    assert table.index.tolist() == [("DLFuzz", ""), ("DeepXplore", "single")]


def test_no_rows_give_no_rows():
    for columns in ((), "quantity"):
        assert tables.wide(ROWS[:0], index="model", columns=columns).empty


@pytest.mark.parametrize("code, text", [
    ("deepsensor, errors_over", "DeepSensor, errors, times the rival's"),
    ("no_such_code", "no such code"),
    ("error_rate", "errors (% of examples)"), (8.0, 8.0), (None, None)])
def test_words_for_codes(code, text):
    assert words.shown(code) == text


def test_what_records_count_has_words_of_its_own(monkeypatch):
    from dnnbook.records import records

    monkeypatch.delenv("DNNLIB_BOOK")
    root = places.results_dir()
    experiments = {path.parent.relative_to(root).as_posix() for path in root.glob("*/*/*.json")}
    codes = {code for experiment in experiments
             for code in records.frame(experiment)["quantity"].unique() if "_" in code}
    assert codes - set(words.WORDS) == set()
    assert len(codes) > 50


def test_a_column_about_a_method_has_its_words():
    table = words.headed(pd.DataFrame({"nss_rank": [1], "least_confidence": [2]}))
    assert table.columns.tolist() == ["NSS rank", "least confidence"]


def test_every_dataset_and_network_has_a_word():
    from dnnbook.data import sources
    from dnnlib import models

    assert {*models.SPECS, *sources.SOURCES} - {"digits", "voices"} <= set(words.WORDS)


def test_a_table_of_the_books_records_says_so_below_it(tmp_path):
    rows = [{"fuzzer": "noise", "quantity": "error_rate", "value": 1.5}]
    records.save(records.Record("toy/luck", {"dataset": "digits", "model": "lenet1", "seed": 0}, rows))
    records.save(records.Record("toy/luck", {"dataset": "digits", "model": "lenet5", "seed": 0}, rows), tmp_path / "own")
    of_book, own = records.frame("toy/luck"), records.frame("toy/luck", tmp_path / "own")
    for made in (lambda rows: tables.wide(rows.query("value > 0"), index="model", columns="fuzzer"),
                 lambda rows: tables.mean_and_interval(rows, index=["model"]), tables.headed):
        assert tables.as_html(made(of_book)).endswith(f"<small>{whose.RECORDS}</small>")
        assert whose.RECORDS not in tables.as_html(made(own)) and "<table" in tables.as_html(made(own))
