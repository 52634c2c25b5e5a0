"""The second DeepSensor's tables against their own arithmetic, their text and the first paper's."""

import math
import re

import pandas as pd
import pytest

from dnnbook import published
from dnnbook.records.intervals import estimate
from dnnbook.records.verdicts import outcome
from dnnlib import models

PAPER, FIRST = "deepsensor_excitable", "deepsensor_sensitivity"
FILE = published.FOLDER / PAPER / "claims.toml"
CLAIMS = {c.id.removeprefix("deepsensor-excitable-"): c for c in published.claims(PAPER)}
BASELINES = ["deepxplore", "dlfuzz", "deephunter"]
FUZZERS = {*BASELINES, "deepsensor"}
DATASETS = {"lenet1": "mnist", "lenet4": "mnist", "lenet5": "mnist", "resnet20": "cifar10",
            "vgg16": "cifar10", "mobilenet": "imagenet", "resnet50": "imagenet",
            "resnet34": "vctk", "deep_speaker": "vctk"}
SPEAKERS = {"resnet34", "deep_speaker"}
IMAGES = set(DATASETS) - SPEAKERS
THREE = {"lenet5", "vgg16", "resnet50"}
NETWORKS = {1: set(DATASETS), 2: THREE, 3: IMAGES, 4: THREE, 5: THREE, 6: SPEAKERS,
            7: {"deep_speaker"}}
SECTIONS = {1: "5.2", 2: "5.5", 3: "6.1.1", 4: "6.1.2", 5: "6.1.2", 6: "6.4", 7: "6.4"}
ROWS = {1: 9 * 4, 2: 3 * (6 + 3 + 3 + 3), 3: 7 * 4 * 3, 4: 9 * 4, 5: 9 * 4, 6: 2 * 4 * 3, 7: 3 * 4}
IN_THE_FIRST = {1: 1, 2: 5, 3: 2, 4: 3, 5: 4}  # tables of this paper that are tables of that one
SEEDS, ITERATIONS, EXAMPLES = 1000, 20, 1000


def wide(number, quantity, *rows, paper=PAPER):
    """One row for each value of ``rows``, one column for each fuzzer."""
    table = published.table(paper, number)
    table = table[table["quantity"] == quantity]
    return table.pivot(index=list(rows), columns="fuzzer", values="value")


ERRORS = wide(3, "test_errors", "model")
CATEGORIES = wide(3, "error_categories", "model")
POLLUTED = wide(4, "test_errors", "model", "alpha")
INCOMPLETE = wide(5, "test_errors", "model", "training")
SPOKEN = wide(6, "test_errors", "model")
SPOKEN_CATEGORIES = wide(6, "error_categories", "model")
SPOKEN_INCOMPLETE = wide(7, "test_errors", "training")
SECONDS = wide(6, "seconds", "model", paper=FIRST)


def over(table, baseline="each"):
    """DeepSensor over each baseline (a table), over one of them, or over their 'mean'."""
    if baseline == "each":
        return table[BASELINES].rdiv(table["deepsensor"], axis=0)
    return table["deepsensor"] / (table[BASELINES].mean(axis=1) if baseline == "mean"
                                  else table[baseline])


def text(quantity, **where):
    """Numbers that stand in the text only, by their place, dataset and model."""
    table = published.table(PAPER, 8)
    for column, value in {"quantity": quantity, **where}.items():
        table = table[table[column] == value]
    assert len(table)
    return table.set_index(["place", "dataset", "model"])["value"]


def said(quantity, **where):
    """One number of the text."""
    return text(quantity, **where).item()


def changed(number, first):
    """Rows of a table that differ from the first paper's, as (ours, theirs) columns."""
    tables = [published.table(paper, n).set_index(
        [c for c in published.table(paper, n) if c not in ("value", "printed")])["value"]
        for paper, n in ((PAPER, number), (FIRST, first))]
    both = pd.concat(tables, axis=1, keys=["second", "first"])
    return both[both["second"] != both["first"]]


# The tables

@pytest.mark.parametrize("number", NETWORKS)
def test_table_is_whole_and_says_its_source(number):
    table = published.table(PAPER, number)
    assert len(table) == ROWS[number] and not table.isna().any(axis=None)
    assert not table.duplicated([c for c in table.columns if c not in ("value", "printed")]).any()
    assert published.source(PAPER, number).startswith(
        f"DeepSensor II, Table {number} (Section {SECTIONS[number]})")
    pairs = set(table[["model", "dataset"]].itertuples(index=False, name=None))
    assert pairs == {(m, DATASETS[m]) for m in NETWORKS[number]}
    if "fuzzer" in table:
        assert set(table["fuzzer"]) == FUZZERS


def test_numbers_of_the_text_are_whole_and_say_their_place():
    table = published.table(PAPER, 8)
    assert not table.isna().any(axis=None)
    assert not table.duplicated([c for c in table.columns if c not in ("value", "printed")]).any()
    assert table["place"].str.fullmatch(r"Abstract|RQ\d|\d(\.\d)*").all()
    assert set(table["model"]) <= {*DATASETS, "-"}
    assert set(table["dataset"]) <= {*DATASETS.values(), "-"}
    assert "no table" in published.source(PAPER, 8)


@pytest.mark.parametrize("model", sorted(IMAGES))
@pytest.mark.parametrize("quantity", ["parameters", "neurons"])
def test_table_1_has_the_sizes_of_the_registry(model, quantity):
    sizes = published.table(PAPER, 1).set_index(["model", "quantity"])["value"]
    assert sizes[model, quantity] == models.SPECS[model].published[quantity]


@pytest.mark.parametrize("number, categories", [(3, CATEGORIES), (6, SPOKEN_CATEGORIES)])
def test_categories_for_each_seed_are_a_thousandth_of_all(number, categories):
    average = wide(number, "categories_per_seed", "model")
    pd.testing.assert_frame_equal(average * SEEDS, categories.astype(float))


def test_counts_are_within_what_can_be_generated():
    for errors, categories in ((ERRORS, CATEGORIES), (SPOKEN, SPOKEN_CATEGORIES)):
        assert (errors <= SEEDS * ITERATIONS).all(axis=None)
        assert (categories <= errors).all(axis=None)
    for errors in (POLLUTED, INCOMPLETE, SPOKEN_INCOMPLETE):
        assert (errors <= EXAMPLES).all(axis=None)


def test_deepsensor_leads_every_row():
    for table in (ERRORS, CATEGORIES, POLLUTED, INCOMPLETE, SPOKEN, SPOKEN_CATEGORIES,
                  SPOKEN_INCOMPLETE):
        assert (over(table) > 1).all(axis=None)


# Beside the first paper's

@pytest.mark.parametrize("number", [2, 3, 4])
def test_table_repeats_the_first_paper(number):
    """DeepSensor's rows too, though neuron sensitivity made way for Shapley values."""
    assert changed(number, IN_THE_FIRST[number]).empty


def test_table_5_repeats_the_first_paper_but_for_one_cell():
    (cell, row), = changed(5, IN_THE_FIRST[5]).iterrows()
    assert cell == ("imagenet", "resnet50", "underfitted", "deephunter", "test_errors")
    assert row.to_dict() == {"second": 520, "first": 620}


def test_the_text_on_table_5_fits_the_first_paper_s_cell():
    """757.7 errors on average, 1.2 times DeepHunter's."""
    mean = INCOMPLETE.loc["resnet50"].mean()
    where = {"place": "6.1.2", "model": "resnet50"}
    assert round(mean["deepsensor"], 1) == said("test_errors", **where)
    factor = said("errors_over", **where)
    assert round(mean["deepsensor"] / mean["deephunter"], 1) == 1.3 != factor
    first = wide(4, "test_errors", "model", "training", paper=FIRST).loc["resnet50"].mean()
    assert round(mean["deepsensor"] / first["deephunter"], 1) == factor


def test_table_1_adds_two_networks_and_keeps_the_accuracies():
    """There on the images of the experiments, here on "the validation set"."""
    new = changed(1, IN_THE_FIRST[1])
    assert set(new.index.get_level_values("model")) == SPEAKERS and new["first"].isna().all()


def test_times_of_the_baselines_are_the_first_paper_s_averages():
    """On a Tesla V100 there, on an RTX 3090 here."""
    printed = text("seconds", fuzzer="mean").droplevel(["place", "dataset"])
    mean = SECONDS[BASELINES].mean(axis=1)
    assert set(printed.index) == THREE
    assert (printed - mean[printed.index]).abs().max() < 0.1


def test_deepsensor_went_from_the_fastest_to_slower_than_the_mean():
    now = text("seconds", fuzzer="deepsensor").droplevel(["place", "dataset"])[SECONDS.index]
    assert (SECONDS["deepsensor"] == SECONDS.min(axis=1)).all()
    assert (now > SECONDS[BASELINES].mean(axis=1)).all()
    slowest = now > SECONDS[BASELINES].max(axis=1)
    assert slowest[slowest].index.tolist() == ["lenet5"]


# The settings

def test_cifar10_is_trained_on_all_it_has_and_validated_on_more():
    images, training, test = (said(q, dataset="cifar10")
                              for q in ("images", "training_images", "test_images"))
    assert training == images == 60_000 and training + test > images


def test_mnist_parts_are_fewer_than_its_images():
    images, training, test = (said(q, dataset="mnist")
                              for q in ("images", "training_images", "test_images"))
    assert training + test == images - 10_000


def test_imagenet_has_two_training_sets():
    table = published.table(PAPER, 2).query("quantity == 'training_images'")
    table = table.set_index("dataset")["value"].astype(int)
    assert table["imagenet"] == 20_000
    assert said("training_images", dataset="imagenet") == 11_000


def test_overfitted_is_above_well_trained_for_images_and_below_for_speech():
    well = published.table(PAPER, 1).query("quantity == 'accuracy'").set_index("model")["value"]
    table = published.table(PAPER, 2).query("training == 'overfitted' and quantity == 'accuracy'")
    overfitted = table.set_index("model")["value"].astype(float)
    assert (overfitted > well[overfitted.index]).all() and overfitted.min() == 98.2
    speech = said("accuracy", training="overfitted")
    assert speech == 76.26 and speech < well["deep_speaker"] - 20
    assert said("accuracy", training="underfitted") < speech


# The text against the tables

@pytest.mark.parametrize("table, model, baseline, quantity", [
    (ERRORS, "resnet20", "dlfuzz", "errors_over"),
    (CATEGORIES, "resnet50", "deepxplore", "categories_over"),
    (CATEGORIES, "resnet50", "deephunter", "categories_over"),
    (SPOKEN, "deep_speaker", "deepxplore", "errors_over"),
    (SPOKEN_CATEGORIES, "deep_speaker", "deepxplore", "categories_over")])
def test_examples_of_the_text_are_the_tables(table, model, baseline, quantity):
    printed = said(quantity, model=model, baseline=baseline, training="well_trained")
    assert round(over(table, baseline)[model], 1) == printed


def test_averages_of_the_text_on_pollution():
    mean = POLLUTED.loc["lenet5"].mean()
    assert round(mean["deepsensor"], 1) == said("test_errors", model="lenet5")
    ratio = mean["deepsensor"] / mean["deepxplore"]
    assert round(ratio) == said("errors_over", model="lenet5", baseline="deepxplore")


def test_errors_of_table_3_are_far_from_one_point_two_times():
    assert set(text("errors_over", baseline="all", training="well_trained")) == {1.2}
    assert round(over(ERRORS, "mean").mean(), 2) == 1.06
    assert over(ERRORS, "mean").agg(["min", "max"]).round(2).tolist() == [1.03, 1.08]
    assert round(over(ERRORS).max(axis=None), 2) == 1.14


def test_errors_on_speech_are_below_one_point_two_times():
    assert said("errors_over", place="RQ4", training="well_trained") == 1.2
    assert over(SPOKEN, "mean").round(2).to_dict() == {"resnet34": 1.11, "deep_speaker": 1.14}


def test_two_factors_for_incomplete_training():
    """1.3 in the abstract, 1.2 in the answer to RQ1; without the well trained networks 1.24."""
    factors = text("errors_over", baseline="all", training="incomplete").droplevel([1, 2])
    assert factors["Abstract"] == 1.3 and factors["RQ1"] == 1.2
    ratios = over(INCOMPLETE, "mean")
    faulty = ratios.drop("well_trained", level="training")
    assert round(ratios.mean(), 1) == round(faulty.mean(), 1) == 1.2
    assert set(faulty[faulty > 1.3].index.get_level_values("model")) == {"resnet50"}


def test_incomplete_training_on_speech_is_as_the_text_says():
    assert set(text("errors_over", dataset="vctk", training="incomplete")) == {1.2}
    assert round(over(SPOKEN_INCOMPLETE, "mean").mean(), 1) == 1.2


def test_table_6_counts_a_thousand_seeds_where_the_text_has_four():
    """A thousandth of the well trained network's errors is what Table 7 has for 1,000 examples."""
    assert said("seeds", dataset="vctk") == 4 * SEEDS
    assert (SPOKEN > SEEDS * ITERATIONS * 0.7).all(axis=None)  # of 80,000 it would be under 24 %
    rate = SPOKEN.loc["deep_speaker"] / ITERATIONS
    change = SPOKEN_INCOMPLETE.loc["well_trained"] - rate
    assert change[["deepsensor", "deepxplore"]].between(-1, 0).all()
    assert change.abs().max() < 0.015 * EXAMPLES


def test_polluted_networks_have_fewer_errors_than_well_trained_ones():
    """So Table 4 counts some errors only: those given the polluted class, as the first paper says.

    Every count of a method is below that of the same method in the well trained network.
    """
    well = INCOMPLETE.xs("well_trained", level="training")
    assert (POLLUTED.sub(well, level="model") < 0).all(axis=None)
    assert (POLLUTED[BASELINES].div(well[BASELINES], level="model") < 0.25).all(axis=None)


def test_the_share_of_fig_3_needs_thousands_of_nats():
    """Shapley values sum to the change of loss: at least the sum of those above the threshold."""
    sizes = published.table(PAPER, 1).set_index(["model", "quantity"])["value"]
    nats = 0.5 * sizes["vgg16", "neurons"] * said("excitable_share", model="vgg16") / 100
    assert f"{nats:,.0f} nats" in CLAIMS["share"].note


# The claims

@pytest.mark.parametrize("claim", CLAIMS.values(), ids=lambda c: c.id)
def test_claim_can_be_decided(claim):
    assert claim.id.startswith("deepsensor-excitable-") and claim.paper == PAPER
    assert claim.experiment.startswith(f"{PAPER}/") and math.isfinite(claim.threshold)
    fixed = {k for k, v in claim.where.items() if not isinstance(v, list)}
    assert not set(claim.cells) & fixed
    comment = "\n".join(line for line in FILE.read_text(encoding="utf-8").splitlines() if line.startswith("#"))
    name = claim.experiment.split("/")[1]
    assert f"#   {name} " in comment and re.search(rf"\b{claim.quantity}[,:]", comment)
    for column in {*claim.where, *claim.cells} - {"dataset", "model", "fuzzer", "lambda"}:
        assert f"#   {column} " in comment


def test_rules_ask_for_the_first_paper_s_quantities_where_the_claim_is_the_same():
    first = {c.id.removeprefix("deepsensor-sensitivity-"): c for c in published.claims(FIRST)}
    same = set(first) & set(CLAIMS)
    assert same >= {"neurons", "errors", "errors-size", "categories", "near", "polluted",
                    "incomplete", "incomplete-more", "asr", "clever", "lambda", "epsilon", "start"}
    for name in same:
        ours, theirs = CLAIMS[name], first[name]
        assert (ours.quantity, ours.cells, ours.rule, ours.threshold) == (
            theirs.quantity, theirs.cells, theirs.rule, theirs.threshold)
        assert {*theirs.where} <= {*ours.where}


SECONDS_NOW = text("seconds", fuzzer="mean") / text("seconds", fuzzer="deepsensor")
STATES = INCOMPLETE["deepsensor"].unstack()
MORE = STATES.drop(columns="well_trained").div(STATES["well_trained"], axis=0)
IN_PRINT = [("errors", over(ERRORS), 0), ("categories", over(CATEGORIES), 0),
            ("incomplete", over(INCOMPLETE), 0), ("incomplete-more", MORE, 0),
            ("speakers", over(SPOKEN), 0),
            ("speakers-incomplete", over(SPOKEN_INCOMPLETE), 0), ("cost", SECONDS_NOW, 0),
            ("errors-size", over(ERRORS, "mean"), 7), ("polluted", over(POLLUTED, "mean"), 5)]


@pytest.mark.parametrize("name, printed, failing", IN_PRINT, ids=[name for name, *_ in IN_PRINT])
def test_the_printed_tables_under_the_rules(name, printed, failing):
    """Where the paper's own numbers break its claim, the claim's note says so."""
    claim, values = CLAIMS[name], pd.DataFrame(printed).to_numpy().ravel()
    assert claim.expected == len(values)
    assert sum(outcome(claim, estimate([v, v], claim.scale)) != "holds" for v in values) == failing
    assert not failing or "Table" in claim.note


def test_thresholds_are_the_text_s():
    assert {CLAIMS["errors-size"].threshold} == set(
        text("errors_over", baseline="all", training="well_trained"))
    assert {CLAIMS["polluted"].threshold} == set(
        text("errors_over", baseline="all", training="polluted"))
    assert CLAIMS["share"].threshold == said("excitable_share") / 100
