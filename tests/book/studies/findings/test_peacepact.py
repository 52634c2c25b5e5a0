"""What is found of PEACEPACT, on tables small enough to see it."""

import pandas as pd

from dnnbook.studies.findings import peacepact


def test_means_by_split_are_of_the_seeds_that_have_both():
    rows = pd.DataFrame([("inc", "mnist", 0, "test", 90), ("inc", "mnist", 0, "train", 80), ("inc", "mnist", 1, "test", 60),
                         ("inc", "cifar10", 0, "test", 50), ("accuracy", "mnist", 0, "test", 1)],
                        columns=["quantity", "dataset", "seed", "split", "value"])
    assert peacepact.by_split(rows, "inc").to_dict("index") == {"mnist": {"test": 90, "train": 80}}


def test_what_is_left_to_save_is_the_bound_less_what_is_saved():
    rows = pd.DataFrame([("inc", 0, 90), ("inc_bound", 0, 92), ("inc", 1, 80), ("inc_bound", 1, 85), ("accuracy", 1, 1)],
                        columns=["quantity", "seed", "value"]).assign(model="net1", dataset="mnist")
    assert peacepact.left_to_save(rows).to_dict() == {("net1", "mnist", 0): 2, ("net1", "mnist", 1): 5}
