import base64

import numpy as np
import pytest
import torch
from torch import nn

from dnnbook import interactive
from dnnbook.interactive.movie import flown
from dnnlib import fuzzing


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(9, 5), nn.ReLU(), nn.Linear(5, 2)).eval()


@pytest.fixture
def image():
    return torch.rand(1, 3, 3, generator=torch.Generator().manual_seed(1))


def test_the_flight_is_the_swarms_own(model, image):
    """The best positions of the flight are the examples that the same swarm shows."""
    swarm, examples = fuzzing.Swarm(population=4), []
    swarm.run(model, image[None], torch.tensor([0]), iterations=6, watch=examples.append,
              generator=torch.Generator().manual_seed(3))
    x, fitness = flown(swarm, model, image, 0, iterations=6, seed=3)
    assert x.shape == (6, 4, 1, 3, 3) and fitness.shape == (6, 4)
    for example, (t, i) in zip(examples, interactive.movie.leaders(fitness), strict=True):
        assert torch.equal(example[0], x[t, i])


def test_a_swarm_that_stops_has_fewer_scenes(model, image):
    swarm = fuzzing.Swarm(population=4, fitness=fuzzing.Constant(), epsilon=-1)
    assert len(flown(swarm, model, image, 0, iterations=6)[0]) == 1


def test_positions_are_sent_in_sixteen_levels_and_places_keep_distances(model, image):
    """Nine pixels of three particles are an odd number; two directions hold at most the distance."""
    swarm = fuzzing.Swarm(population=3)
    data = interactive.swarm_movie(model, image, 1, {"one": swarm}, iterations=3).data
    scene, = data["swarms"]
    sent = np.frombuffer(base64.b64decode(scene["pixels"]), dtype=np.uint8)
    levels = np.stack([sent >> 4, sent & 15], axis=1).ravel()[:81]
    x, _ = flown(swarm, model, image, 1, iterations=3)
    assert levels.tolist() == (x * 15).round().flatten().int().tolist()
    lengths = torch.tensor(scene["places"]).norm(dim=2)
    assert (lengths <= (x - image).flatten(2).norm(dim=2) + 0.02).all() and lengths.max() > 0.5


def test_a_share_of_neurons_is_told_as_a_number(model, image):
    half = fuzzing.Swarm(population=3, fitness=lambda *_: lambda x, of: torch.full((len(x),), 0.5))
    films = {name: interactive.swarm_movie(model, image, 1, {"half": half}, iterations=2, neurons=given).data
             for name, given in (("told", {"half": 10}), ("plain", None))}
    assert [films[name]["swarms"][0]["neurons"] for name in films] == [10, None]
    with pytest.raises(ValueError, match="the fitness of half is no share of 5"):
        interactive.swarm_movie(model, image, 1, {"half": half}, iterations=2, neurons={"half": 5})


@pytest.mark.parametrize("change, words", [
    ({"neurons": {"two": 5}}, "unknown swarm of neurons 'two'"),
    ({"swarms": {}}, r"at least one, all of one population, got \[\]"),
    ({"swarms": {n: fuzzing.Swarm(population=len(n)) for n in ("a", "bb")}}, r"got \[1, 2\]"),
    ({"label": 2}, "label: expected classes 0 to 1"),
    ({"classes": ["a"]}, "classes: expected 2 names"),
    ({"image": torch.full((1, 3, 3), 2.0)}, r"image: expected values in \[0, 1\]")])
def test_bad_arguments_are_named(model, image, change, words):
    given = {"image": image, "label": 0, "swarms": {"one": fuzzing.Swarm(population=2)},
             "iterations": 2} | change
    with pytest.raises(ValueError, match=words):
        interactive.swarm_movie(model, given.pop("image"), given.pop("label"), given.pop("swarms"),
                                **given)
