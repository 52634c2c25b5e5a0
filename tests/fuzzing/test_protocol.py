"""What all fuzzers check before they begin, and what a campaign counts."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from dnnbook.studies import outcomes
from dnnlib.fuzzing import (
    ArtAttack,
    Budget,
    Campaign,
    DeepHunter,
    DeepXplore,
    DLFuzz,
    Noise,
    Swarm,
)
from dnnlib.fuzzing.noise import Constant

LABELS = torch.tensor([0, 1, 2, 0])
FUZZERS = {
    "swarm": lambda x: Swarm(population=2), "constant": lambda x: Swarm(
        population=2, fitness=Constant()), "noise": lambda x: Noise(),
    "deephunter": lambda x: DeepHunter(reference=x), "dlfuzz": lambda x: DLFuzz(runners_up=1),
    "deepxplore": lambda x: DeepXplore(reading="single"),
    "pgd": lambda x: ArtAttack(budget=Budget(l2=1)),
    "apgd": lambda x: ArtAttack(kind="apgd", budget=Budget(linf=0.1))}


@pytest.fixture
def x(tiny_data):
    return tiny_data.images[:4]


@pytest.fixture(params=FUZZERS)
def run(request, x, generator):
    """``run(model, **changes)`` of each fuzzer."""
    def go(model, **changes):
        options = {"labels": LABELS, "iterations": 2, "generator": generator(0)} | changes
        return FUZZERS[request.param](x).run(model, x, **options)
    return go


class NaN(nn.Sequential):
    """Its activations are finite, its logits are not."""

    def forward(self, x):
        return super().forward(x) * math.nan


def test_outputs_that_are_not_numbers_are_no_class(run, tiny_model):
    with pytest.raises(ValueError, match="model: expected finite outputs, got NaN"):
        run(NaN(*tiny_model()))


@pytest.mark.parametrize("wrong, got", [([0, 1, 2, 99], "0 to 99"), ([0, 1, 2, -1], "-1 to 2")])
def test_labels_that_the_model_lacks(run, tiny_model, wrong, got):
    with pytest.raises(ValueError, match=f"labels: expected classes 0 to 2, got {got}"):
        run(tiny_model(), labels=torch.tensor(wrong))


def test_no_global_random_numbers(run, tiny_model):
    with pytest.raises(TypeError, match="generator: expected a torch.Generator on the CPU"):
        run(tiny_model(), generator=None)


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float64"])
def test_another_precision_is_named(run, tiny_model, kind):
    with pytest.raises(ValueError, match=f"in float32, as the images are, got {kind}; dnnlib"):
        run(tiny_model().to(getattr(torch, kind)))


def test_numpys_numbers_will_do(run, tiny_model):
    assert run(tiny_model(), iterations=np.int64(2)).predicted.shape == (2, 4)


def test_budgets():
    assert Budget(l2=np.int64(1), linf=np.float32(0.5)) == Budget(l2=1.0, linf=0.5)
    assert isinstance(Budget(linf=np.float32(0.5)).linf, float)
    for wrong in (True, 0, -1, math.inf, math.nan, "1"):
        with pytest.raises(ValueError, match="l2: expected a distance above 0 or None, got"):
            Budget(l2=wrong)


def test_errors_at_the_bound_are_within_it():
    """As a projection leaves them: the distance is the bound, but for the rounding of float32."""
    l2 = torch.tensor([[1.0, 1 + 2e-7, 1 + 5e-6, 1.001]])
    campaign = Campaign(LABELS, 1 - torch.clamp(LABELS, max=1)[None], torch.arange(4)[None], l2,
                        l2 / 10, torch.zeros(4, 1, 2, 2), 4, 0.0)
    assert campaign.errors.all()
    assert campaign.within(l2=1.0) == 3
    assert outcomes.every_example(campaign, near=1.0)["share_near"] == 0.75
