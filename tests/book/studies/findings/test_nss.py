"""What is found of NSS, on tables small enough to see it."""

import pandas as pd
import pytest

from dnnbook.studies.findings import nss

CELL = ["dataset", "model"]
CELLS = pd.MultiIndex.from_tuples([("mnist", "lenet1"), ("cifar10", "vgg16")], names=CELL)


def rows(*lines, columns):
    """Rows of one network, each a tuple of the ``columns`` and the value."""
    return pd.DataFrame(lines, columns=[*columns, "value"]).assign(dataset="mnist", model="lenet1")


def runs(**columns):
    """A table with two networks, two seeds each."""
    index = pd.MultiIndex.from_tuples([(*cell, seed) for cell in CELLS for seed in (0, 1)], names=[*CELL, "seed"])
    return pd.DataFrame(columns, index=index)


def test_a_column_for_each_selector_and_two_for_nss():
    found = nss.by_selector(rows(
        (5, 0, "gini", None, None, 60), (5, 0, "nss", "remutated", "l1", 20), (5, 0, "nss", "original", "l1", 70),
        (5, 0, "nss", "original", "squared_normalised", 99), (20, 1, "gini", None, None, 50),
        columns=["rate", "seed", "method", "pair", "difference"]), *CELL, "rate")
    assert found.loc[("mnist", "lenet1", 5, 0)].to_dict() == {"gini": 60, "nss": 20, nss.KNOWN: 70}
    assert found["gini"].tolist() == [60, 50]


def test_without_rows_no_selector_has_a_column():
    nothing = nss.by_selector(pd.DataFrame(columns=["dataset", "model", "seed", "value"]), *CELL)
    assert nothing.empty and nothing.index.names == [*CELL, "seed"]
    assert nss.beyond_training(nothing).empty
    assert nss.by_option(pd.DataFrame(columns=["quantity", "seed", "value"]), "layer", "original").empty


def test_everywhere_needs_every_line_and_somewhere_one():
    holds = runs(holds=[True, True, True, False])["holds"]
    assert [*nss.everywhere(holds)] == [("mnist", "lenet1")]
    assert {*nss.somewhere(holds)} == {*CELLS}
    assert [*nss.somewhere(~holds)] == [("cifar10", "vgg16")]
    assert [*nss.everywhere(~holds)] == []
    assert [*nss.everywhere(holds, ["model"])] == ["lenet1"]


def test_a_selector_is_always_above_with_its_whole_interval():
    over = {name: pd.DataFrame({"mean": [2, 2], "low": low}, CELLS) for name, low in (("ats", [1, 1]), ("dsa", [1, -1]))}
    assert nss.always_above(over) == ["ats"]


def test_lenets_are_told_by_their_name():
    assert [*nss.lenets(CELLS)] == [("mnist", "lenet1")]


def test_ends_are_the_least_and_the_greatest_with_signs():
    assert nss.ends(pd.DataFrame([[3.0, -1.26, 2.0]]), 1).tolist() == ["-1.3 to +3.0"]


def test_selectors_are_apart_by_means_over_the_seeds():
    found = nss.apart(runs(gini=[60, 40, 8, 8], random=[10, 30, 2, 2]), "gini", "random")
    assert found.loc[("mnist", "lenet1")].to_dict() == {"points": 30, "times": 2.5}
    assert found.loc[("cifar10", "vgg16")].to_dict() == {"points": 6, "times": 4}


OURS = pd.DataFrame({"gini": [70, 30], "dsa": [50, 60], "nss": [20, 20], nss.KNOWN: [65, 65]}, CELLS)
PRINTED = pd.DataFrame({"gini": [60, 10], "dsa": [90, 10], "nss": [80, 80]}, CELLS)


def test_ours_less_the_paper_s_has_nss_twice():
    found = nss.less_printed(OURS, PRINTED)
    assert found.loc[("mnist", "lenet1")].to_dict() == {"gini": 10, "dsa": -40, "nss": -60, nss.KNOWN: -15}


@pytest.mark.parametrize("of_paper, count", [([], 1), (["gini"], 2), (["gini", "dsa"], 1)])
def test_nss_is_first_where_it_leads_all_its_rivals(of_paper, count):
    assert nss.firsts_if_known(OURS, PRINTED, of_paper) == count


def test_a_lead_over_chance_is_lost_if_less_than_half_is_left():
    areas = pd.DataFrame({"auc_overall": [0.9, 0.9], "auc_within": [0.6, 0.8]}, CELLS)
    assert nss.lost_within(areas).tolist() == [True, False]


def test_faults_in_common_are_those_of_one_pair():
    found = nss.found_by_both(rows(
        ("jaccard", "gini", "margin", 0.2), ("jaccard", "gini", "margin", 0.4), ("jaccard", "gini", "pd", 0.9),
        ("spearman", "gini", "margin", 0.9), columns=["quantity", "method", "other"]), "gini", "margin")
    assert found.to_dict() == {("mnist", "lenet1"): pytest.approx(0.3)}


def test_sensitive_neurons_are_divided_by_random_ones():
    found = nss.sensitive_over_random(rows(
        *((quantity, difference, neurons, "worse", 1, 0, value) for quantity, difference, neurons, value in (
            ("sensitivity", "l1", "sensitive", 6), ("sensitivity", "l1", "random", 2),
            ("sensitivity", "squared_normalised", "random", 1), ("least_step", "l1", "random", 1))),
        columns=["quantity", "difference", "neurons", "state", "strength", "seed"]))
    assert found.tolist() == [3]


def test_what_training_alone_gains_is_taken_off_seed_by_seed():
    gains = pd.DataFrame({"none": [1.0, 2.0, None, None], "gini": [None, None, 5.0, 3.0]}, pd.MultiIndex.from_tuples(
        [("mnist", 0, 0), ("mnist", 0, 1), ("mnist", 20, 0), ("mnist", 20, 1)], names=["dataset", "rate", "seed"]))
    found = nss.beyond_training(gains)
    assert found["gini"].to_dict() == {("mnist", 20, 0): 4, ("mnist", 20, 1): 1} and [*found] == ["gini"]


def test_leaders_have_the_greatest_values_of_a_line():
    assert nss.leaders(OURS, 2) == [{"gini", nss.KNOWN}, {"dsa", nss.KNOWN}]


def test_layers_are_compared_at_a_fifth_and_shares_in_the_last_layer():
    table = rows(("fdr", "original", 1, 20, 0, 10), ("fdr", "original", -1, 20, 0, 30), ("fdr", "original", -1, 1, 0, 5),
                 ("fdr", "original", 1, 1, 0, 99), ("fdr", "remutated", -1, 20, 0, 99), ("lead", "original", -1, 20, 0, 99),
                 columns=["quantity", "pair", "layer", "share", "seed"])
    layers, shares = (nss.by_option(table, option, "original") for option in ("layer", "share"))
    assert layers.iloc[0].to_dict() == {-1: 30, 1: 10} and shares.iloc[0].to_dict() == {1: 5, 20: 30}
