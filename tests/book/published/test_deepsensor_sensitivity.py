"""DeepSensor's tables against their own arithmetic and text; known slips are listed, not mended."""

import math

import pandas as pd
import pytest

from dnnbook import published
from dnnbook.records.intervals import estimate
from dnnbook.records.verdicts import outcome
from dnnlib import models

PAPER = "deepsensor_sensitivity"
FILE = published.FOLDER / PAPER / "claims.toml"
CLAIMS = {c.id.removeprefix("deepsensor-sensitivity-"): c for c in published.claims(PAPER)}
BASELINES = ["deepxplore", "dlfuzz", "deephunter"]
FUZZERS = {*BASELINES, "deepsensor"}
DATASETS = {"lenet1": "mnist", "lenet4": "mnist", "lenet5": "mnist", "resnet20": "cifar10",
            "vgg16": "cifar10", "mobilenet": "imagenet", "resnet50": "imagenet"}
THREE = {"lenet5", "vgg16", "resnet50"}  # the networks of Tables III to VI
ROMAN = dict(enumerate(["I", "II", "III", "IV", "V", "VI"], 1))
ROWS = {1: 7 * 4, 2: 7 * 4 * 3, 3: 9 * 4, 4: 9 * 4, 5: 3 * (6 + 3 + 3 + 3), 6: 3 * 4}
SEEDS, ITERATIONS, EXAMPLES = 1000, 20, 1000


def wide(number, quantity, *rows):
    """One row for each value of ``rows``, one column for each fuzzer."""
    table = published.table(PAPER, number)
    table = table[table["quantity"] == quantity]
    return table.pivot(index=list(rows), columns="fuzzer", values="value")


ERRORS = wide(2, "test_errors", "model")
CATEGORIES = wide(2, "error_categories", "model")
POLLUTED = wide(3, "test_errors", "model", "alpha")
INCOMPLETE = wide(4, "test_errors", "model", "training")
SECONDS = wide(6, "seconds", "model")


def over(table, baseline="each"):
    """DeepSensor over each baseline (a table), over the 'best' one, or over their 'mean'."""
    others = table[BASELINES]
    if baseline == "each":
        return others.rdiv(table["deepsensor"], axis=0)
    return table["deepsensor"] / (others.max(axis=1) if baseline == "best" else others.mean(axis=1))


@pytest.mark.parametrize("number", ROMAN)
def test_table_is_whole_and_says_its_source(number):
    table = published.table(PAPER, number)
    assert len(table) == ROWS[number] and not table.isna().any(axis=None)
    assert not table.duplicated([c for c in table.columns if c not in ("value", "printed")]).any()
    assert published.source(PAPER, number).startswith(
        f"DeepSensor I, Table {ROMAN[number]} (Section IV.")
    pairs = set(table[["model", "dataset"]].itertuples(index=False, name=None))
    assert pairs == {(m, d) for m, d in DATASETS.items() if number < 3 or m in THREE}
    if "fuzzer" in table:
        assert set(table["fuzzer"]) == FUZZERS


@pytest.mark.parametrize("model", DATASETS)
@pytest.mark.parametrize("quantity", ["parameters", "neurons"])
def test_table_1_has_the_sizes_of_the_registry(model, quantity):
    sizes = published.table(PAPER, 1).set_index(["model", "quantity"])["value"]
    assert sizes[model, quantity] == models.SPECS[model].published[quantity]


def test_categories_for_each_seed_are_a_thousandth_of_all():
    average = wide(2, "categories_per_seed", "model")
    pd.testing.assert_frame_equal(average * SEEDS, CATEGORIES)


def test_table_2_counts_within_what_twenty_iterations_can_give():
    assert (ERRORS <= SEEDS * ITERATIONS).all(axis=None)
    assert (CATEGORIES <= ERRORS).all(axis=None)
    small = [m for m, d in DATASETS.items() if d != "imagenet"]
    assert (CATEGORIES.loc[small] <= SEEDS * 9).all(axis=None)  # ten classes


def test_one_cell_of_table_2_has_too_few_categories_for_its_errors():
    """A seed with errors has a category or more, and no more errors than iterations."""
    beyond = (ERRORS - CATEGORIES * ITERATIONS).stack()
    assert beyond[beyond > 0].to_dict() == {("mobilenet", "deepxplore"): 13_974 - 13_780}


def test_deepsensor_leads_every_row_of_tables_2_to_4_and_6():
    for table in (ERRORS, CATEGORIES, POLLUTED, INCOMPLETE):
        assert (over(table) > 1).all(axis=None)
    assert (over(SECONDS) < 1).all(axis=None)


def test_table_2_is_far_from_one_point_two_times_the_errors():
    assert round(over(ERRORS, "mean").mean(), 2) == 1.06
    assert over(ERRORS, "mean").agg(["min", "max"]).round(2).tolist() == [1.03, 1.08]
    assert over(ERRORS).stack().idxmax() == ("vgg16", "dlfuzz")
    assert round(over(ERRORS).max(axis=None), 2) == 1.14
    share = ERRORS["deepsensor"] / (SEEDS * ITERATIONS)
    assert round(share["lenet1"], 2) == 0.94 and round(share["lenet5"], 2) == 0.92


def test_up_to_twice_the_categories_is_the_mean_of_the_baselines():
    """IV.B.1, of larger models: more than four times DeepXplore's, 1.3 times the best one's."""
    assert round(over(CATEGORIES, "mean").max(), 1) == 1.8
    assert round(over(CATEGORIES, "best").max(), 1) == 1.3
    assert over(CATEGORIES).stack().idxmax() == ("mobilenet", "deepxplore")
    assert round(over(CATEGORIES).max(axis=None), 2) == 4.35


def test_figure_7_explains_a_lead_of_twenty_six_errors():
    lead = ERRORS["deepsensor"] - ERRORS["deephunter"]
    assert lead["lenet5"] == lead.min() == 26
    assert lead["lenet5"] / ERRORS.loc["lenet5", "deephunter"] < 0.0015


def test_five_times_the_errors_on_polluted_data():
    assert round(over(POLLUTED, "mean").mean(), 2) == 6.76
    assert round(over(POLLUTED, "best").mean(), 2) == 5.24
    assert round(POLLUTED["deepsensor"].sum() / POLLUTED[BASELINES].mean(axis=1).sum(), 2) == 6.26
    ratios = over(POLLUTED, "mean")
    assert ratios[ratios < 5].index.tolist() == [("lenet5", 10)]
    assert ratios.agg(["min", "max"]).round(2).tolist() == [4.83, 10.2]
    assert (POLLUTED <= EXAMPLES).all(axis=None)


def test_more_pollution_does_not_mean_more_errors():
    steps = POLLUTED["deepsensor"].unstack().diff(axis=1).iloc[:, 1:]
    assert steps.lt(0).any(axis=1).all()  # a fall in every row


def test_incomplete_training_gives_less_than_one_point_three():
    ratios = over(INCOMPLETE, "mean")
    assert round(ratios.mean(), 2) == 1.19
    incomplete = ratios[ratios.index.get_level_values("training") != "well_trained"]
    assert round(incomplete.mean(), 2) == 1.23
    assert set(incomplete[incomplete > 1.3].index.get_level_values("model")) == {"resnet50"}
    assert (INCOMPLETE <= EXAMPLES).all(axis=None)


def test_only_deepsensor_gains_from_incomplete_training_everywhere():
    well = INCOMPLETE.xs("well_trained", level="training")
    gain = INCOMPLETE.drop("well_trained", level="training").sub(well, level="model")
    assert set(gain.columns[(gain > 0).all()]) == {"deepsensor"}


def test_well_trained_networks_differ_between_tables_2_and_4():
    """Per thousand examples. Only DLFuzz on LeNet-5 is the same within one."""
    rate = ERRORS.loc[sorted(THREE)] / ITERATIONS
    change = INCOMPLETE.xs("well_trained", level="training").loc[sorted(THREE)] - rate
    assert (change["deepsensor"] > 11).all() and (change["deephunter"] < -10).all()
    near = change.abs().stack()
    assert near[near < 1].index.tolist() == [("lenet5", "dlfuzz")]


def test_accuracies_of_table_5():
    table = published.table(PAPER, 5)
    accuracy = table[table["quantity"] == "accuracy"].astype({"value": float})
    under = accuracy[accuracy["training"] == "underfitted"].set_index("model")["value"]
    assert under[under.duplicated(keep=False)].to_dict() == {"lenet5": 79.32, "resnet50": 79.32}
    well = published.table(PAPER, 1).query("quantity == 'accuracy'").set_index("model")["value"]
    overfitted = accuracy[accuracy["training"] == "overfitted"].set_index("model")["value"]
    assert (overfitted > well[overfitted.index]).all()  # of the images trained on, it seems


def test_table_5_trains_on_more_images_than_the_setup_has():
    images = published.table(PAPER, 5).query("quantity == 'training_images'")
    images = images.set_index("dataset")["value"].astype(int)
    assert images["mnist"] > 50_000  # the setup's
    assert images["cifar10"] == 60_000  # the whole set, test images too


def test_the_lead_in_time_grows_with_the_network():
    """IV.H: the lead is larger for larger models; over DeepHunter, the fastest baseline."""
    saved = 1 - SECONDS["deepsensor"] / SECONDS[BASELINES].min(axis=1)
    assert saved.sort_values().index.tolist() == ["lenet5", "vgg16", "resnet50"]
    assert (saved * 100).round(1).to_dict() == {"lenet5": 0.8, "vgg16": 5.9, "resnet50": 7.6}


def test_times_of_the_later_paper_are_these_averages():
    """Its text has 167.8, 889.1 and 1084.4 s for the baselines."""
    mean = SECONDS[BASELINES].mean(axis=1)
    for model, printed in {"lenet5": 167.8, "vgg16": 889.1, "resnet50": 1084.4}.items():
        assert mean[model] == pytest.approx(printed, abs=0.1)


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=lambda c: c.id)
def test_claim_can_be_decided(claim):
    assert claim.id.startswith("deepsensor-sensitivity-") and claim.paper == PAPER
    assert claim.experiment.startswith(f"{PAPER}/") and math.isfinite(claim.threshold)
    fixed = {k for k, v in claim.where.items() if not isinstance(v, list)}
    assert not set(claim.cells) & fixed
    comment = "\n".join(line for line in FILE.read_text().splitlines() if line.startswith("#"))
    name = claim.experiment.split("/")[1]
    assert f"#   {name} " in comment and claim.quantity in comment
    for column in {*claim.where, *claim.cells} - {"dataset", "model", "fuzzer", "lambda"}:
        assert f"#   {column} " in comment or f'"{column}"' in comment


@pytest.mark.parametrize("claim, printed", [
    ("errors", over(ERRORS)), ("categories", over(CATEGORIES)), ("incomplete", over(INCOMPLETE)),
    ("time", 1 / over(SECONDS)), ("errors-size", over(ERRORS, "mean")),
    ("polluted", over(POLLUTED, "mean"))])
def test_claims_expect_the_cells_of_their_tables(claim, printed):
    assert CLAIMS[claim].expected == printed.size


@pytest.mark.parametrize("claim, printed, failing", [
    ("errors", over(ERRORS), 0), ("categories", over(CATEGORIES), 0),
    ("incomplete", over(INCOMPLETE), 0), ("time", 1 / over(SECONDS), 0),
    ("errors-size", over(ERRORS, "mean"), 7), ("polluted", over(POLLUTED, "mean"), 5)])
def test_the_printed_tables_under_the_rules(claim, printed, failing):
    """Where the paper's own numbers break its claim, the claim's note says so."""
    claim = CLAIMS[claim]
    values = printed.stack() if isinstance(printed, pd.DataFrame) else printed
    assert sum(outcome(claim, estimate([v, v], claim.scale)) != "holds" for v in values) == failing
    assert not failing or "Table" in claim.note
