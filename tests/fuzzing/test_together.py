import time
from dataclasses import replace

import pytest
import torch

from dnnbook.studies import campaigns
from dnnlib import models
from dnnlib.fuzzing import Budget, DeepHunter, DeepXplore, DLFuzz, Noise
from dnnlib.fuzzing.together import run_all

S, T = 5, 4
X = torch.rand(S, 1, 28, 28, generator=torch.Generator().manual_seed(0))
Y = torch.arange(S)
REFERENCE = torch.rand(20, 1, 28, 28, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def model():
    return models.build("lenet1", seed=0)


def fuzzers(kind: str) -> list:
    """Of one kind, at several bounds and in several settings."""
    other = models.build("lenet1", seed=1)
    made = {
        "dlfuzz": [DLFuzz(step=0.5), DLFuzz(strategy="weight"), DLFuzz(strategy="threshold")],
        "deepxplore": [DeepXplore(others=(other,), constraint="light"),
                       DeepXplore(others=(other,), constraint="occlusion"),
                       DeepXplore(reading="single", clip="judging")],
        "deephunter": [DeepHunter(reference=REFERENCE), DeepHunter(reference=REFERENCE, steps=11)]}
    return [replace(fuzzer, budget=Budget(l2=l2)) for l2 in (None, 4.0, 0.5)
            for fuzzer in made[kind]]


def counted(model, action):
    """What ``action`` gives, and how often it called the model, not counting its first look."""
    calls: list[int] = []
    handle = model.register_forward_pre_hook(lambda module, given: calls.append(len(given[0])))
    try:
        return action(), calls
    finally:
        handle.remove()


@pytest.mark.parametrize("kind", ["dlfuzz", "deepxplore", "deephunter"])
def test_a_campaign_beside_others_is_the_campaign_alone(model, kind):
    every = fuzzers(kind)
    beside = run_all(every, model, X, Y, iterations=T, seed=2)
    alone = [run_all([fuzzer], model, X, Y, iterations=T, seed=2)[0] for fuzzer in every]
    for found, expected in zip(beside, alone):
        assert torch.equal(found.predicted, expected.predicted)
        assert torch.equal(found.origin, expected.origin)
        assert torch.allclose(found.images, expected.images, atol=1e-5)
        assert torch.allclose(found.l2, expected.l2, atol=1e-4)
        assert found.passes == expected.passes
    assert not all(torch.equal(found.images, beside[0].images) for found in beside)


def test_bounds_share_their_passes(model):
    at = [DLFuzz(budget=Budget(l2=l2)) for l2 in (None, 4.0, 2.0, 1.0, 0.5)]
    _, one = counted(model, lambda: run_all(at[:1], model, X, Y, iterations=T, seed=0))
    _, five = counted(model, lambda: run_all(at, model, X, Y, iterations=T, seed=0))
    assert sum(five) == 5 * sum(one)  # as many images
    # in as many passes, but for each campaign's look at what the network's layers are
    assert len(five) - len(one) == 4


@pytest.mark.parametrize("count, together", [(S, True), (200, False)])
def test_only_campaigns_that_fit_into_a_pass_share_it(model, count, together):
    x = X.repeat(40, 1, 1, 1)[:count]
    at = {l2: DLFuzz(budget=Budget(l2=l2)) for l2 in (4.0, 2.0)}
    _, calls = counted(model, lambda: campaigns(model, x, Y.repeat(40)[:count], at, iterations=2))
    assert (max(calls) == 2 * count) == together


def test_seconds_are_shared_out(model):
    start = time.perf_counter()
    found = run_all(fuzzers("dlfuzz"), model, X, Y, iterations=T, seed=0)
    taken = time.perf_counter() - start
    assert all(each.seconds > 0 for each in found)
    assert sum(each.seconds for each in found) <= taken


def test_a_fuzzer_under_two_names_is_run_once(model):
    _, one = counted(model, lambda: campaigns(model, X, Y, {"a": Noise()}, iterations=3))
    found, two = counted(model, lambda: campaigns(
        model, X, Y, {"a": Noise(scale=2.0), "b": Noise(scale=2.0)}, iterations=3))
    assert one == two and torch.equal(found["a"].images, found["b"].images)


def test_a_mistake_of_one_is_told(model):
    wrong = [DLFuzz(), DLFuzz(neurons=10_000)]
    with pytest.raises(ValueError, match="neurons: expected at most the model's"):
        run_all(wrong, model, X, Y, iterations=T, seed=0)
