import math

import pytest
import torch

from dnnlib import checks


@pytest.mark.parametrize("name, near", [
    ("mnits", "mnist"), ("MNIST", "mnist"), ("cifar", "cifar10")])
def test_unknown_name_gives_the_nearest(name, near):
    with pytest.raises(ValueError, match=f"dataset '{name}'; did you mean '{near}'"):
        checks.known(name, ["mnist", "cifar10"], "dataset")


def test_name_like_none_lists_them_all():
    with pytest.raises(ValueError, match="'zzz'; Known: cifar10, mnist"):
        checks.known("zzz", ["mnist", "cifar10"], "dataset")


GOOD = torch.full((2, 1, 3, 3), 0.5)


@pytest.mark.parametrize("x, error, words", [
    ([[1.0]], TypeError, "list"),
    ((GOOD * 255).byte(), TypeError, "uint8"),
    (GOOD[0], ValueError, r"\(1, 3, 3\)"),
    (GOOD[:0], ValueError, "at least one"),
    (GOOD * 3, ValueError, r"\[1.5, 1.5\]"),
    (GOOD - 1, ValueError, r"\[-0.5, -0.5\]"),
    (GOOD.index_fill(0, torch.tensor(1), math.nan), ValueError, "NaN"),
    (GOOD.index_fill(0, torch.tensor(1), math.inf), ValueError, "infinity"),
])
def test_images_refuse(x, error, words):
    with pytest.raises(error, match=f"photos: .*{words}"):
        checks.images(x, "photos")


def test_images_pass_through():
    assert checks.images(GOOD) is GOOD
    edges = torch.tensor([0.0, 1.0]).view(1, 1, 1, 2)
    assert checks.images(edges) is edges


@pytest.mark.parametrize("p, words", [
    ([0.5, 0.5], "shape"),
    (torch.zeros(0, 3), "N >= 1"),
    ([[1.0], [1.0]], "two classes"),
    ([[0.5, math.nan]], "NaN"),
    ([[0.5, 0.5], [0.5, 0.6]], "row 1 sums to 1.1000"),
    ([[-0.2, 1.2]], "least value is -0.2000"),
])
def test_probabilities_refuse(p, words):
    with pytest.raises(ValueError, match=words):
        checks.probabilities(p)


def test_probabilities_allow_rounding():
    p = torch.rand(50, 10, generator=torch.Generator().manual_seed(0)).half().softmax(1)
    assert checks.probabilities(p).dtype == torch.float64


@pytest.mark.parametrize("y, words", [
    ([0.0, 1.0], "integers"), ([0, 1, 2], "2 integers"), ([0, 3], "0 to 3"), ([-1, 0], "-1 to 0")])
def test_labels_refuse(y, words):
    with pytest.raises(ValueError, match=words):
        checks.labels(y, 2, 3)


def test_labels_become_int64():
    assert checks.labels(torch.tensor([0, 2], dtype=torch.uint8), 2, 3).dtype == torch.int64


@pytest.mark.parametrize("value", [0, -1, 1.0, True, "3", None])
def test_positive_refuses(value):
    with pytest.raises(ValueError, match="trials: expected a whole number"):
        checks.positive(value, "trials")
