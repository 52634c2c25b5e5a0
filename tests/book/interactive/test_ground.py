import base64

import numpy as np
import pytest
import torch
from torch import nn

from dnnbook import interactive
from dnnbook.interactive.movie import flown
from dnnlib.fuzzing import Swarm


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(2, 5), nn.ReLU(), nn.Linear(5, 2)).eval()


IMAGE = torch.tensor([[[0.3, 0.6]]])


def test_the_numbers_that_are_sent_make_the_engines_first_move(model):
    data = interactive.swarm_ground(model, IMAGE, 0, population=4, iterations=3, seed=5).data
    luck = torch.tensor(np.frombuffer(base64.b64decode(data["luck"]), dtype="<f4")).view(3, 2, 4, 1)
    places, fitness = flown(Swarm(population=4), model, IMAGE, 0, iterations=3, seed=5)
    start, leader = places[0].flatten(1), int(fitness[0].argmax())
    assert torch.equal(torch.tensor(data["start"]), start)
    move = 0.4 * (start - IMAGE.flatten()) + 2 * luck[0, 1] * (start[leader] - start)  # own best: the start
    assert torch.allclose((start + move).clamp(0, 1), places[1].flatten(1), atol=1e-6)


def test_the_layers_that_count_are_those_of_the_fitness(model):
    data = interactive.swarm_ground(model, IMAGE, 0, iterations=2).data
    kinds = [data["network"]["layers"][i]["kind"] for i in data["counted"]]
    assert kinds == ["linear", "relu", "linear"]


@pytest.mark.parametrize("change, words", [
    ({"image": torch.zeros(1, 2, 1)}, r"expected two pixels, shape \(1, 1, 2\), got \(1, 2, 1\)"),
    ({"image": torch.full((1, 1, 2), 2.0)}, r"expected values in \[0, 1\]"),
    ({"population": 0}, "population"),
    ({"inertia": (0.4,)}, "inertia"),
    ({"model": nn.Sequential(nn.Flatten(), nn.Bilinear(2, 2, 2))}, "browser cannot run layer '1'")])
def test_bad_arguments_are_named(model, change, words):
    given = {"model": model, "image": IMAGE, "label": 0, "iterations": 2} | change
    with pytest.raises(ValueError, match=words):
        interactive.swarm_ground(given.pop("model"), given.pop("image"), given.pop("label"), **given)
