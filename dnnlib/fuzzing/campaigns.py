"""Many fuzzers on the same seeds, each campaign run once and kept in the cache."""

from collections.abc import Mapping

import torch
from torch import nn
from tqdm import tqdm

from dnnlib import files
from dnnlib.fuzzing.protocol import Campaign, Fuzzer
from dnnlib.inference import described, device_of

REVISION = 1  # raise when a fuzzer changes what it computes
_TENSORS = ("labels", "predicted", "origin", "l2", "linf", "images")


def campaigns(model: nn.Module, seeds: torch.Tensor, labels: torch.Tensor,
              fuzzers: Mapping[str, Fuzzer], *, iterations: int = 20,
              seed: int = 0) -> dict[str, Campaign]:
    """The campaign of each fuzzer, under its name, all random numbers drawn from ``seed``.

    The key in the cache covers the weights, the seeds and every option; ``seconds`` are those of
    the run that filled it. Raises ``TypeError`` for an option that has no key there, such as a
    function of your own: call the fuzzer's ``run``.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    >>> from dnnlib.fuzzing.noise import Noise
    >>> found = campaigns(model, torch.rand(3, 1, 2, 2), torch.tensor([0, 1, 1]),
    ...                   {"noise": Noise()}, iterations=2)
    >>> found["noise"].predicted.shape
    torch.Size([2, 3])
    """
    key = {"model": described(model), "seeds": described(seeds),
           "labels": described(torch.as_tensor(labels)), "iterations": iterations, "seed": seed,
           "device": device_of(model).type, "torch": torch.__version__, "revision": REVISION}

    def make(fuzzer: Fuzzer) -> dict[str, torch.Tensor]:
        generator = torch.Generator().manual_seed(seed)
        found = fuzzer.run(model, seeds, labels, iterations=iterations, generator=generator)
        cost = torch.tensor([found.passes, found.seconds], dtype=torch.float64)
        return {name: getattr(found, name) for name in _TENSORS} | {"cost": cost}

    done = {}
    for name, fuzzer in tqdm(fuzzers.items(), desc="fuzzers", leave=False):
        kept = files.cached("campaigns", key | {"fuzzer": described(fuzzer)},
                            lambda: make(fuzzer))
        passes, seconds = kept.pop("cost").tolist()
        done[name] = Campaign(**kept, passes=int(passes), seconds=seconds)
    return done
