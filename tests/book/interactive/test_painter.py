import pytest
import torch
from torch import nn

from dnnbook import interactive
from dnnbook.interactive.painter import moved


@pytest.fixture
def spot():
    """Class 1 where the pixel in row 2, column 3 of 6 x 6 is bright."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(36, 2))
    with torch.no_grad():
        model[1].weight.zero_()
        model[1].weight[1, 2 * 6 + 3] = 2
        model[1].bias.copy_(torch.tensor([1.0, 0.0]))
    return model


def test_fragile_places_are_those_over_the_spot(spot):
    found = moved(spot, torch.zeros(1, 6, 6))
    assert found.shape == (5, 5)
    assert found.max() == pytest.approx(spot(torch.eye(36)[[15]]).softmax(1)[0, 1].item())
    assert found.nonzero().tolist() == [[1, 2], [1, 3], [2, 2], [2, 3]]
    block = interactive.patch_painter(spot, torch.zeros(1, 1, 6, 6), torch.tensor([0]))
    assert block.alt.endswith("4 of 25.")


def test_it_opens_on_the_first_image_that_is_read_right_and_breaks(spot):
    images = torch.zeros(3, 1, 6, 6)
    images[1:, 0, 2, 3] = 1
    data = interactive.patch_painter(spot, images, torch.tensor([1, 1, 1])).data  # the first: misread
    assert data["first"] == 1 and data["at"] == [1, 2]
    with torch.no_grad():
        spot[1].bias[0] = 9  # now nothing breaks
    data = interactive.patch_painter(spot, images, torch.tensor([0, 0, 0])).data
    assert data["first"] == 0 and data["at"] == [3, 3]


def test_the_network_speaks_of_the_pixels_that_are_shown(spot):
    x = torch.full((1, 1, 6, 6), 0.4999)  # 127 of 255: dark by a hair, as 0.4999 is
    data = interactive.patch_painter(spot, x, torch.tensor([1]), classes=["a", "b"]).data
    assert data["described"] == ["an image of class b; the network says a with 0.50"]


@pytest.mark.parametrize("change, words", [
    ({"labels": torch.tensor([2])}, "labels: expected classes 0 to 1"),
    ({"labels": torch.tensor([0, 1])}, "labels: expected 1 integers"),
    ({"classes": ["a"]}, "classes: expected 2 names"),
    ({"images": torch.ones(1, 1, 6, 6) * 2}, r"images: expected values in \[0, 1\]"),
    ({"model": nn.Sequential(nn.Flatten(), nn.Bilinear(36, 36, 2))}, "browser cannot run layer '1'")])
def test_bad_arguments_are_named(spot, change, words):
    given = {"model": spot, "images": torch.zeros(1, 1, 6, 6), "labels": torch.tensor([0])} | change
    with pytest.raises(ValueError, match=words):
        interactive.patch_painter(given.pop("model"), given.pop("images"), given.pop("labels"), **given)
