import pytest
import torch
from torch import nn


@pytest.fixture
def model(inputs):
    """A linear network of three classes for the module's ``inputs``."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Flatten(), nn.Linear(inputs[0].numel(), 3)).eval()


@pytest.fixture
def run(model, inputs, generator):
    """``run(fuzzer, ...)``: the campaign, and its examples (T, S, C, H, W)."""
    def run(fuzzer, inputs=inputs, iterations=6, seed=1):
        examples = []
        campaign = fuzzer.run(model, inputs, torch.zeros(len(inputs), dtype=torch.int64),
                              iterations=iterations, generator=generator(seed),
                              watch=lambda x: examples.append(x.clone()))
        return campaign, torch.stack(examples)
    return run
