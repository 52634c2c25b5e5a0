import math
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
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


# ---- lists of words and numbers


@pytest.mark.parametrize("text", ["lenet1 lenet4", "lenet1,lenet4", " lenet1,  lenet4, "])
def test_words_may_have_spaces_or_commas_between_them(text):
    assert checks.words(text, "others", ["lenet1", "lenet4"], "model") == ("lenet1", "lenet4")


@pytest.mark.parametrize("text, words", [
    ("", "others: expected words with spaces or commas between them, got ''"),
    (" , ", "others: expected words"), ("a b, a", "others: expected each once, got 'a' twice"),
    ("a lenet", "unknown model 'lenet'; did you mean 'lenet1'"),
    ("lenet", "unknown model 'lenet'")])
def test_words_that_make_no_list(text, words):
    with pytest.raises(ValueError, match=f"^{words}"):
        checks.words(text, "others", ["a", "b", "lenet1"], "model")


@pytest.mark.parametrize("text, found", [
    ("4 8 12", (4, 8, 12)), ("0.5, 1", (0.5, 1)), (3, (3,)), (0.25, (0.25,)), ("1e-3", (0.001,)),
    ("-2", (-2,))])
def test_numbers_and_their_types(text, found):
    numbers = checks.numbers(text, "bounds")
    assert numbers == found and [*map(type, numbers)] == [*map(type, found)]


@pytest.mark.parametrize("text", ["", "1 two", "nan", "1 inf", "0 1"])
def test_numbers_that_make_no_list(text):
    with pytest.raises(ValueError, match="^bounds: expected numbers of at least 1 .*, got"):
        checks.numbers(text, "bounds", least=1)


# ---- single numbers


@pytest.mark.parametrize("value, bounds, words", [
    (math.nan, {}, "a finite number, got nan"), (math.inf, {}, "a finite number, got inf"),
    (-math.inf, {}, "a finite number, got -inf"), ("1", {}, "a finite number, got '1'"),
    (True, {}, "a finite number, got True"), (-0.1, {"least": 0}, "of at least 0, got -0.1"),
    (0, {"above": 0}, "above 0, got 0")])
def test_what_is_no_finite_number(value, bounds, words):
    with pytest.raises(ValueError, match=f"^scale: expected .*{words}"):
        checks.finite(value, "scale", **bounds)


def test_finite_numbers_up_to_their_bounds():
    assert checks.finite(0, "scale", least=0) == 0 and checks.finite(-1e300, "scale") == -1e300
    assert checks.finite(1e-300, "scale", above=0) == 1e-300


@pytest.mark.parametrize("value", [0, 1.1, -0.5, math.nan, True, "0.5"])
def test_what_is_no_share(value):
    with pytest.raises(ValueError, match=r"^rate: expected a share in \(0, 1\], got"):
        checks.share(value, "rate")


# ---- options of a factory


@dataclass
class Made:
    needed: int
    other: list = field(default_factory=list)
    derived: int = field(init=False, default=0)


@pytest.mark.parametrize("given, words", [
    ({"neded": 1}, "unknown option of 'made' 'neded'; did you mean 'needed'"),
    ({"needed": 1, "derived": 2}, "unknown option of 'made' 'derived'"),
    ({"other": []}, "made: needs the option needed")])
def test_options_that_do_not_fit(given, words):
    with pytest.raises(ValueError, match=f"^{words}"):
        checks.options(Made, given, "made")


def test_options_that_fit():
    checks.options(Made, {"needed": 1}, "made")


# ---- numbers and tables of other libraries

def test_numpys_whole_numbers_are_whole_numbers():
    assert type(checks.positive(np.int64(3), "n")) is int
    assert checks.seed(np.int64(0)) == 0 and checks.seed(2**32 - 1) == 2**32 - 1
    for wrong in (-1, 2**32, 2**64, 1.0, True, "1"):
        with pytest.raises(ValueError, match="seed: expected a whole number from 0 to 4294967295"):
            checks.seed(wrong)


@pytest.mark.parametrize("given", [
    lambda p: pd.DataFrame(p), lambda p: np.ascontiguousarray(p[::-1, ::-1])[::-1, ::-1],
    lambda p: np.asfortranarray(p), lambda p: torch.from_numpy(p), lambda p: p.tolist()])
def test_tables_and_reversed_arrays_are_probabilities(given):
    p = np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])
    assert checks.probabilities(given(p)).tolist() == p.tolist()


def test_columns_of_a_table_are_labels_whatever_their_index():
    column = pd.Series([0, 2, 1], index=[7, 5, 6])
    assert checks.labels(column, 3, 3).tolist() == [0, 2, 1]
    assert checks.labels(np.array([0, 2, 1])[::-1], 3, 3).tolist() == [1, 2, 0]


@pytest.mark.parametrize("a, b, same", [
    ("4 8", "4, 8.0", True), ("4 8", "8 4", False), ("lenet1,lenet4", "lenet1 lenet4", True),
    ("", "", True), ("", "0", False), (0.5, 0.5, True), (1, "1", False)])
def test_lists_are_alike_however_they_are_written(a, b, same):
    assert checks.alike(a, b) is same
