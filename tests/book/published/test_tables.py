import math

import pandas as pd
import pytest

from dnnbook import published
from dnnbook.records import verdicts

CELL = ["model", "dataset", "distance"]
PAPERS = {"deepsensor_excitable": 8, "deepsensor_sensitivity": 7, "nsatp": 6, "nss": 10,
          "peacepact": 6}  # tables printed in each, and one of text
TEXT = [("deepsensor_excitable", 8), ("deepsensor_sensitivity", 7)]  # numbers that no table has
TABLES = [(paper, n) for paper, count in PAPERS.items() for n in range(1, count + 1)]
# Inc recomputed from the printed F-measures is 0.01 away; the unrounded ones may still agree.
OFF_BY_A_HUNDREDTH = {("net1", "mnist", "pd"), ("net1", "fashion_mnist", "pv"),
                      ("net1", "cifar100", "pd"), ("net1", "cifar100", "pv")}


def wide(paper, number):
    """One row for each cell, one numeric column for each quantity."""
    tidy = published.table(paper, number)
    tidy = tidy[tidy["quantity"] != "mark"].astype({"value": float})
    return tidy.pivot(index=CELL, columns="quantity", values="value")


def net1_of_peacepact(number, model):
    """A table of NSATP cut to PD and one network, labelled as PEACEPACT labels its own."""
    cut = wide("nsatp", number).xs("pd", level="distance", drop_level=False).loc[[model]]
    return cut.rename(index={model: "net1_peacepact"}, level="model")


def test_every_table_is_here():
    assert published.tables() == {paper: list(range(1, n + 1)) for paper, n in PAPERS.items()}


@pytest.mark.parametrize("paper, number", TABLES)
def test_table_is_whole_and_says_its_source(paper, number):
    table = published.table(paper, number)
    assert len(table) and not table.isna().any(axis=None)
    keys = [c for c in table.columns if c not in ("value", "printed")]
    assert not table.duplicated(keys).any()
    if "value" in table:  # the text is the number, with no digit less
        numbers = table[~table["value"].astype(str).str.contains("[^0-9.-]|^-$")]
        assert (numbers["printed"].astype(float) == numbers["value"].astype(float)).all()
    roman = "I II III IV V VI VII VIII IX X".split()[number - 1]
    title = {"deepsensor_excitable": "DeepSensor II",
             "deepsensor_sensitivity": "DeepSensor I"}.get(paper, paper.upper())
    numeral = number if paper == "deepsensor_excitable" else roman
    head = f"Table {numeral} (Section "
    if (paper, number) in TEXT:
        head = "no table but the text ("
    assert published.source(paper, number).startswith(f"{title}, {head}")


@pytest.mark.parametrize("paper, number, quantity, places", [
    ("nss", 1, "accuracy", 2), ("nss", 6, "fdr", 1), ("nss", 7, "area", 2),
    ("nss", 8, "gain", 2), ("nss", 9, "fdr", 1), ("nss", 10, "fdr", 2), ("nsatp", 3, "b", 2),
    ("nsatp", 5, "inc", 2), ("nsatp", 6, "slope", 2), ("peacepact", 6, "inc", 2),
    ("deepsensor_sensitivity", 2, "categories_per_seed", 3),
    ("deepsensor_sensitivity", 6, "seconds", 2), ("deepsensor_excitable", 1, "accuracy", 2),
    ("deepsensor_excitable", 6, "categories_per_seed", 3)])
def test_a_column_of_the_paper_has_as_many_digits_in_each_cell(paper, number, quantity, places):
    printed = published.table(paper, number).query("quantity == @quantity")["printed"]
    assert set(printed.str.split(".").str[1].str.len()) == {places}


@pytest.mark.parametrize("number, quantities", [
    (3, {"a", "b"}), (4, {"correlation"}), (6, {"slope"}),
    (5, {"f_measure_ranked", "f_measure_random", "inc"})])
def test_nsatp_has_24_cells(number, quantities):
    table = wide("nsatp", number)
    assert set(table.columns) == quantities
    assert [len(table.index.unique(level)) for level in CELL] == [2, 4, 3]
    assert len(table) == 24 and not table.isna().any(axis=None)


@pytest.mark.parametrize("number, quantities", [
    (4, {"a", "b"}), (5, {"correlation"}), (6, {"f_measure_ranked", "f_measure_random", "inc"})])
def test_peacepact_has_four_cells(number, quantities):
    table = wide("peacepact", number)
    assert set(table.columns) == quantities and len(table) == 4
    assert set(table.index.droplevel("dataset")) == {("net1_peacepact", "pd")}


@pytest.mark.parametrize("paper, number, off", [
    ("nsatp", 5, OFF_BY_A_HUNDREDTH), ("peacepact", 6, set())])
def test_inc_follows_from_the_f_measures(paper, number, off):
    table = wide(paper, number)
    inc = (1 - table["f_measure_ranked"] / table["f_measure_random"]) * 100
    gap = ((inc.round(2) - table["inc"]) * 100).round().abs()
    assert set(gap[gap > 0].index) == off
    assert gap.max() <= 1
    half = 0.005  # what rounding may hide in each printed number
    low = (1 - (table["f_measure_ranked"] + half) / (table["f_measure_random"] - half)) * 100
    high = (1 - (table["f_measure_ranked"] - half) / (table["f_measure_random"] + half)) * 100
    assert ((low <= table["inc"] + half) & (table["inc"] - half <= high)).all()


def test_slopes_of_table_6_are_the_exponents_of_table_3():
    pd.testing.assert_series_equal(wide("nsatp", 6)["slope"], wide("nsatp", 3)["b"].abs(),
                                   check_names=False)


def test_marks_of_table_6_follow_from_its_slopes():
    table = published.table("nsatp", 6).pivot(index=CELL, columns="quantity", values="value")
    order = table["slope"].astype(float).groupby(["model", "dataset"]).rank()
    assert (table["mark"] == order.map({1: "Worst", 2: "Middle", 3: "Best"})).all()
    counts = table.groupby("distance")["mark"].value_counts()
    assert counts.to_dict() == {("pd", "Best"): 6, ("pd", "Worst"): 2, ("pe", "Best"): 2,
                                ("pe", "Worst"): 6, ("pv", "Middle"): 8}  # as IV.D.3 counts them


@pytest.mark.parametrize("theirs, number, model", [(4, 3, "net1"), (5, 4, "net1"), (6, 5, "net2")])
def test_peacepact_repeats_nsatp(theirs, number, model):
    """Tables IV and V are NSATP's Net-1; Table VI is its Net-2, under the head Net-1."""
    pd.testing.assert_frame_equal(wide("peacepact", theirs), net1_of_peacepact(number, model))


def test_peacepact_s_text_quotes_the_other_network():
    quoted = {"f_measure_ranked": 7.13, "f_measure_random": 144.82, "inc": 95.07}
    assert wide("nsatp", 5).loc[("net1", "mnist", "pd")].to_dict() == quoted
    assert wide("peacepact", 6).loc[("net1_peacepact", "mnist", "pd")].to_dict() != quoted


def test_the_networks_and_their_training():
    layers = published.table("nsatp", 1)
    assert layers.groupby(["model", "dataset"]).size().eq(8).all()
    last = layers[layers["layer"] == 8].set_index(["model", "dataset"])["value"]
    assert last.xs("cifar100", level="dataset").eq("100").all() and (last == "10").sum() == 6
    assert published.table("peacepact", 2)["type"].str.startswith("convolution").sum() == 3
    pd.testing.assert_frame_equal(published.table("nsatp", 2), published.table("peacepact", 3))
    assert published.table("peacepact", 1).set_index("dataset")["samples"]["mnist"] == 70_000


def test_unknown_paper_gives_the_nearest():
    with pytest.raises(ValueError, match="paper 'nsapt'; did you mean 'nsatp'"):
        published.table("nsapt", 3)
    with pytest.raises(ValueError, match="paper 'peacefact'; did you mean 'peacepact'"):
        published.source("peacefact", 6)
    with pytest.raises(ValueError, match="unknown paper 'nsapt'"):
        published.claims("nsapt")


@pytest.mark.parametrize("number", [0, 7, "III"])
def test_unknown_table_lists_those_that_are_here(number):
    with pytest.raises(ValueError, match=r"nsatp has no table .* \[1, 2, 3, 4, 5, 6\]"):
        published.table("nsatp", number)


@pytest.mark.parametrize("claim", published.claims(), ids=lambda c: c.id)
def test_claim_can_be_decided(claim):
    assert claim.id.startswith(claim.paper.replace("_", "-") + "-")
    assert claim.experiment.startswith(f"{claim.paper}/")
    assert claim.rule in published.RULES and math.isfinite(claim.threshold)
    assert claim.statement.strip() and claim.place.strip()
    fixed = {k for k, v in claim.where.items() if not isinstance(v, list)}  # a list leaves a choice
    assert claim.cells and not set(claim.cells) & fixed
    assert isinstance(claim.expected, int) and claim.expected >= 1


def test_rules_are_those_that_verdicts_know():
    assert set(published.RULES) == set(verdicts.RULES)


@pytest.mark.parametrize("paper", PAPERS)
def test_claims_of_one_paper(paper):
    own = published.claims(paper)
    assert own and {c.paper for c in own} == {paper}
    assert own == [c for c in published.claims() if c.paper == paper]


def test_thresholds_stand_in_the_tables():
    claims = {c.id: c for c in published.claims()}
    assert claims["nsatp-rq2-size"].threshold == 1  # of the printed saving of each cell
    assert claims["peacepact-size"].threshold == wide("peacepact", 6)["inc"].min()
    assert claims["peacepact-correlation"].threshold == wide("peacepact", 5).min().item()
    assert claims["nsatp-rq1-exponential"].threshold < wide("nsatp", 4).min().item()


GOOD = '''[[claim]]
id = "nsatp-x"
paper = "nsatp"
place = "IV"
statement = "Something holds."
experiment = "nsatp/x"
quantity = "x"
cells = ["dataset"]
expected = 4
rule = "above"
threshold = 0.5
'''


@pytest.mark.parametrize("old, new, words", [
    ('rule = "above"', 'rule = "over"', "claim nsatp-x: rule 'over'"),
    ("threshold = 0.5", 'threshold = "half"', "claim nsatp-x: threshold 'half'"),
    ("threshold = 0.5", "threshold = true", "claim nsatp-x: threshold True"),
    ("threshold = 0.5", "threshold = nan", "claim nsatp-x: threshold nan"),
    ("threshold = 0.5", "threshold = inf", "claim nsatp-x: threshold inf"),
    ('experiment = "nsatp/x"', 'experiment = "x"', "claim nsatp-x: experiment 'x'"),
    ('experiment = "nsatp/x"', "experiment = 3", "claim nsatp-x: experiment 3"),
    ("expected = 4", "expected = 0", "claim nsatp-x: expected 0: Input should be greater"),
    ("expected = 4", "expected = 4.0", "claim nsatp-x: expected 4.0"),
    ("expected = 4", "expected = true", "claim nsatp-x: expected True"),
    ('cells = ["dataset"]', "cells = []", r"claim nsatp-x: cells \[\]"),
    ('cells = ["dataset"]', 'cells = "dataset"', "claim nsatp-x: cells 'dataset'"),
    ('cells = ["dataset"]', "cells = [1]", r"claim nsatp-x: cells \[1\]"),
    ("threshold = 0.5", 'threshold = 0.5\nwhere = "x"', "claim nsatp-x: where 'x'"),
    ("threshold = 0.5", "threshold = 0.5\nnote = 1", "claim nsatp-x: note 1"),
    ('paper = "nsatp"', 'paper = "nsapt"', "claim nsatp-x: paper 'nsapt': unknown paper 'nsapt'; did you mean 'nsatp'"),
    ('paper = "nsatp"', "paper = []", r"claim nsatp-x: paper \[\]"),
    ('quantity = "x"\n', "", "claim nsatp-x: quantity: Field required"),
    ("expected = 4", "expected = 4\nexpects = 4", "claim nsatp-x: expects 4: Unexpected"),
    (GOOD, GOOD + GOOD, "share the id nsatp-x"),
    ("threshold = 0.5", "threshold =", "not TOML"),
])
def test_malformed_claims_say_what_is_wrong(tmp_path, old, new, words):
    path = tmp_path / "claims.toml"
    path.write_text(GOOD)
    assert len(published.claims(path=path)) == 1
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(ValueError, match=words):
        published.claims(path=path)


@pytest.mark.parametrize("paper", published.PAPERS)
def test_a_paper_without_its_claims_is_named(tmp_path, paper):
    for name in published.PAPERS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "claims.toml").touch()
    assert published.papers(tmp_path) == [*published.PAPERS]
    (tmp_path / paper / "claims.toml").unlink()
    with pytest.raises(ValueError, match=rf"{paper}/claims.toml: expected the claims of \[{paper}\] in outline"):
        published.papers(tmp_path)


def test_a_paper_without_an_outline_is_named(tmp_path):
    for name in (*published.PAPERS, "sixth"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "claims.toml").touch()
    with pytest.raises(ValueError, match=r"outline.toml: expected \[sixth\], with its title, tables and figures"):
        published.papers(tmp_path)
