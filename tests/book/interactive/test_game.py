import pytest
import torch

from dnnbook import interactive
from dnnbook.interactive import game


@pytest.fixture
def given():
    """Forty images, a tenth of them wrong, and two orders."""
    truth = torch.arange(40) % 2
    predicted = truth.clone()
    predicted[::10] = 1 - predicted[::10]
    order = torch.randperm(40, generator=torch.Generator().manual_seed(0))
    return {"images": torch.rand(40, 1, 4, 4), "labels": truth, "predicted": predicted,
            "orders": {"one": order, "two": order.flip(0)}}


def test_a_part_keeps_its_order_and_its_truth(given):
    data = interactive.label_game(**given, most=9, knowing={"one": torch.arange(40)}).data
    wrong = given["labels"] != given["predicted"]
    some = game._like_all(wrong, [*given["orders"].values(), torch.arange(40)], 9)
    assert len(some) == 9 and data["labels"] == given["labels"][some].tolist()
    assert data["predicted"] == given["predicted"][some].tolist()
    expected = [i for i in given["orders"]["one"].tolist() if i in some]
    assert some[data["orders"]["one"]].tolist() == expected
    assert data["knowing"] == {"one": list(range(9))}


def test_the_part_has_nearly_the_rates_of_all():
    """Of an order that finds every fault first, and of one that finds them last."""
    wrong = torch.arange(1000) < 220
    good = torch.arange(1000)
    some = game._like_all(wrong, [good, good.flip(0)], 200)
    assert abs(wrong[some].float().mean() - 0.22) < 0.01
    kept = wrong[some]
    assert kept[:40].all() and not kept[-120:].any()


def test_all_take_part_where_they_are_few(given):
    data = interactive.label_game(**given).data
    assert data["orders"]["two"] == given["orders"]["two"].tolist()
    assert data["classes"] == ["0", "1"] and data["knowing"] == {}


@pytest.mark.parametrize("change, words", [
    ({"orders": {}}, "orders: expected at least one"),
    ({"orders": {"one": torch.zeros(40, dtype=torch.long)}}, "each of 40 candidates once, from one"),
    ({"knowing": {"tow": torch.arange(40)}}, "unknown method of knowing 'tow'; did you mean 'two'"),
    ({"knowing": {"two": torch.arange(39)}}, "each of 40 candidates once, from two"),
    ({"labels": torch.zeros(3, dtype=torch.long)}, "labels: expected 40 integers"),
    ({"classes": ["a"]}, "labels: expected classes 0 to 0, got 0 to 1"),
    ({"most": 0}, "most: expected a whole number of at least 1")])
def test_bad_arguments_are_named(given, change, words):
    with pytest.raises(ValueError, match=words):
        interactive.label_game(**given | change)
