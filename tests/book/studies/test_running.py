from dataclasses import replace

import pytest
import torch

from dnnbook import studies
from dnnbook.studies import FuzzerKey, campaigns, swarms
from dnnlib import fuzzing
from dnnlib.fuzzing import Budget, Noise, Swarm
from dnnlib.neurons.excitable import ExcitableNeurons


@pytest.fixture
def inputs(generator):
    return torch.rand(4, 1, 8, 8, generator=generator())


LABELS = torch.tensor([0, 1, 2, 0])


def same(a, b):
    return all(torch.equal(getattr(a, k), getattr(b, k))
               for k in ("labels", "predicted", "origin", "l2", "linf", "images"))


def test_what_is_kept_is_what_was_run(tiny_model, inputs, generator):
    fuzzers = {"noise": Noise(), "swarm": Swarm(population=3)}
    run = {name: fuzzer.run(tiny_model(), inputs, LABELS, iterations=2, generator=generator(5))
           for name, fuzzer in fuzzers.items()}
    for _ in range(2):  # made, then read
        found = campaigns(tiny_model(), inputs, LABELS, fuzzers, iterations=2, seed=5)
        assert all(same(found[name], run[name]) for name in fuzzers)
        assert all(found[name].passes == run[name].passes for name in fuzzers)


def test_a_campaign_is_run_once_for_each_key(tiny_model, inputs, monkeypatch):
    calls, run = [], Noise.run
    monkeypatch.setattr(Noise, "run", lambda self, *a, **k: calls.append(self) or run(self, *a, **k))

    def go(model=tiny_model(), x=inputs, labels=LABELS, iterations=2, seed=0, **options):
        campaigns(model, x, labels, {"noise": Noise(**options)}, iterations=iterations, seed=seed)

    go()
    go()
    assert len(calls) == 1
    for change in ({"model": tiny_model(1)}, {"x": inputs.flip(0)}, {"labels": LABELS.flip(0)},
                   {"iterations": 3}, {"seed": 1}, {"scale": 0.2}, {"budget": Budget(l2=1.0)}):
        go(**change)
    assert len(calls) == 8


def test_a_function_of_ones_own_has_no_key(tiny_model, inputs):
    own = Swarm(population=2, fitness=lambda model, inputs, labels: None)
    with pytest.raises(TypeError, match="a function has no key in the cache"):
        campaigns(tiny_model(), inputs, LABELS, {"own": own})


def test_unknown_fuzzer_says_what_is_near():
    with pytest.raises(ValueError, match="did you mean 'deephunter'"):
        fuzzing.fuzzer("deephunt")


def test_benign_seeds_are_those_the_model_gets_right(tiny_model, tiny_data):
    model, x, y = tiny_model(), tiny_data.images, tiny_data.labels
    with torch.inference_mode():
        right = (model(x).argmax(1) == y).nonzero().flatten()
    found = studies.benign(model, x, y, seed=1)
    assert torch.equal(found.sort().values, right) and 0 < len(right) < len(x)
    assert not torch.equal(found, studies.benign(model, x, y, seed=2))


def test_benign_seeds_without_a_class_keep_their_order(tiny_model, tiny_data):
    model, x, y = tiny_model(), tiny_data.images, tiny_data.labels
    every = studies.benign(model, x, y, seed=1)
    for label in y[every].unique():
        expected = [i for i in every.tolist() if y[i] != label]
        found = studies.benign(model, x, y, without=int(label), seed=1)
        assert found.tolist() == expected and len(found) < len(every)


def test_models_share_the_order_of_benign_seeds(tiny_model, tiny_data):
    one, other = (studies.benign(tiny_model(seed), tiny_data.images, tiny_data.labels).tolist()
                  for seed in (0, 1))
    assert [i for i in one if i in other] == [i for i in other if i in one] != []


def test_swarms_differ_in_their_fitness_alone(tiny_model, inputs):
    swarm = fuzzing.Swarm(population=3, epsilon=0.4)
    found = swarms(swarm, "excitable excitable_scaled sensitive constant random", points=3, seed=5)
    assert {key.reading: each.fitness for key, each in found.items()} == {
        "excitable": ExcitableNeurons(points=3),
        "excitable_scaled": ExcitableNeurons(points=3, scale="total"),
        "sensitive": swarm.fitness, "constant": fuzzing.Constant(),
        "random": fuzzing.RandomFitness(seed=5)}
    assert all(replace(each, fitness=swarm.fitness) == swarm for each in found.values())


def test_an_unknown_fitness_says_what_is_near():
    with pytest.raises(ValueError, match="did you mean 'excitable'"):
        swarms(fuzzing.Swarm(), "sensitive exitable")


def test_every_fuzzer_runs_at_every_bound(tiny_model, inputs):
    bounds = studies.bounds("0.5", near=0.1)
    assert bounds == {"near": 0.1, "0.5": 0.5, "none": None}
    key = FuzzerKey("noise")
    found = studies.at_bounds(tiny_model(), inputs, LABELS, {key: Noise(scale=1.0)}, bounds,
                              iterations=2, seed=3)
    assert list(found) == [("near", key), ("0.5", key), ("none", key)]
    alone = campaigns(tiny_model(), inputs, LABELS, {key: Noise(scale=1.0, budget=Budget(l2=0.5))},
                      iterations=2, seed=3)
    assert same(found["0.5", key], alone[key])
    assert found["near", key].l2.max() < 0.1 + 1e-6 < found["none", key].l2.min()


@pytest.mark.parametrize("name, options, words", [
    ("noise", {"scal": 1.0}, "unknown option of 'noise' 'scal'; did you mean 'scale'"),
    ("deepsensor", {"swarm": 3}, "unknown option of 'deepsensor' 'swarm'"),
    ("deephunter", {}, "deephunter: needs the option reference"),
    ("deepxplore", {}, "others: expected at least one model")])
def test_options_of_a_fuzzer_by_name(name, options, words):
    with pytest.raises(ValueError, match=f"^{words}"):
        fuzzing.fuzzer(name, **options)
