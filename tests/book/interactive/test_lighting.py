import pytest
import torch
from torch import nn

from dnnbook import interactive


@pytest.fixture
def given():
    """A network, two images and their two mutations."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 2)).eval()
    x = torch.rand(2, 1, 6, 6)
    return {"model": model, "images": x, "labels": torch.tensor([0, 1]), "layers": ["1"],
            "mutated": {"none": x[None], "dark": torch.stack([x / 2, x / 4])}}


def figure(given, **change):
    return interactive.lighting_up(**given | change)


def test_a_tenth_of_the_neurons_is_marked_at_first(given):
    data = figure(given, mutated={"dark": given["mutated"]["dark"]}).data
    x = (given["images"] * 255).round() / 255
    moved = []
    with torch.no_grad():
        for factor in (2, 4):
            y = (given["images"] / factor * 255).round() / 255
            moved.append((given["model"][:2](y) - given["model"][:2](x)).abs())
    share = float((torch.stack(moved) > data["threshold"]).float().mean())
    assert 0.08 < share <= 0.11 and data["most"] == pytest.approx(float(torch.stack(moved).max()), abs=1e-3)
    assert [mutation["strengths"] for mutation in data["mutations"]] == [2]


def test_values_of_the_maps_take_the_place_of_changes(given):
    values = {"none": torch.zeros(1, 2, 3), "dark": torch.arange(12.0).view(2, 2, 3) / 10}
    data = figure(given, values=values, threshold=0.5).data
    assert (data["threshold"], data["most"]) == (0.5, 1.1)
    assert data["mutations"][1]["values"][1] == [[0.6, 0.7, 0.8], [0.9, 1.0, 1.1]]


@pytest.mark.parametrize("change, words", [
    ({"values": {"none": torch.zeros(1, 2, 3)}}, r"values: expected shape \(2, 2, 3\) of 'dark', got none"),
    ({"values": {"none": torch.zeros(1, 2, 4)}}, r"expected shape \(1, 2, 3\) of 'none', got \(1, 2, 4\)"),
    ({"values": {}, "layers": ["0", "1"]}, "layers: expected the one that the values are of"),
    ({"mutated": {}}, "mutated: expected at least one mutation"),
    ({"mutated": {"dark": torch.zeros(1, 2, 1, 5, 6)}}, r"\(2, 1, 6, 6\), of 'dark', got \(1, 2, 1, 5, 6\)"),
    ({"mutated": {"dark": torch.full((1, 2, 1, 6, 6), 2.0)}}, r"expected values in \[0, 1\]"),
    ({"layers": ["3"]}, "unknown layer '3'"),
    ({"layers": []}, "layers: expected at least one name"),
    ({"labels": torch.tensor([0, 2])}, "labels: expected classes 0 to 1")])
def test_bad_arguments_are_named(given, change, words):
    with pytest.raises(ValueError, match=words):
        figure(given, **change)
