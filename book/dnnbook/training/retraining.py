"""Retraining on generated examples, and what it gains (first DeepSensor IV.D, second 6.2)."""

import copy
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

import torch
from torch import nn

from dnnbook.data import Dataset
from dnnbook.training import Recipe, fit
from dnnlib import checks
from dnnlib.inference import predict
from dnnlib.progress import progress

RECIPE = Recipe(0.01, 32, 20, momentum=0.9)
BEFORE = "before"  # the name of the network that was not retrained


def retrained(model: nn.Module, benign: Dataset,
              examples: Mapping[str, tuple[torch.Tensor, torch.Tensor]],
              recipe: Recipe = RECIPE, *, seed: int = 0) -> dict[str, nn.Module]:
    """A copy of ``model`` for each set of examples, trained on with it, under the set's name.

    Each copy sees ``benign``, N images and their labels, and one set of ``examples``, by name:
    images (M, C, H, W) in [0, 1] and the classes (M,) they should have, for both papers those of
    the inputs they were made from. N = M = 500 there, with 20 epochs of batches of 32, as in
    ``RECIPE``; neither prints the learning rate. The training set is not seen again. The order of
    the images depends on ``seed`` and N + M alone. The copies are in evaluation mode; the model
    itself is left as it was. Raises ``ValueError`` for a set called 'before', images of another
    shape or outside [0, 1] and labels that do not fit.

    >>> network = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    >>> zeros, ones = torch.zeros(1, 1, 2, 2), torch.ones(1, 1, 2, 2)
    >>> benign = Dataset("mine", "train", zeros, torch.tensor([0]), ("off", "on"), "")
    >>> found = retrained(network, benign, {"bright": (ones, torch.tensor([1]))},
    ...                   Recipe(1.0, 2, 20))
    >>> found["bright"](torch.cat([zeros, ones])).argmax(1).tolist()
    [0, 1]
    """
    checks.images(benign.images, "benign")
    if BEFORE in examples:
        raise ValueError(f"examples: expected names other than '{BEFORE}', which stands for the "
                         "model itself")
    sets = {}
    for name, (images, labels) in examples.items():
        checks.images(images, name)
        if images.shape[1:] != benign.images.shape[1:]:
            raise ValueError(f"{name}: expected images of {benign.shape}, as the benign ones, got "
                             f"{tuple(images.shape[1:])}")
        labels = checks.labels(labels, len(images), len(benign.classes), f"{name}'s labels")
        sets[name] = replace(benign, images=torch.cat([benign.images.cpu(), images.cpu()]),
                             labels=torch.cat([benign.labels.cpu(), labels.cpu()]))
    networks = {}
    for name, data in progress(sets.items(), desc="retraining", leave=False):
        networks[name] = copy.deepcopy(model)
        fit(networks[name], data, recipe, seed=seed)
    return networks


def all_right(models: Iterable[nn.Module], images: torch.Tensor,
              labels: torch.Tensor) -> torch.Tensor:
    """The images (N, C, H, W) that every one of the models gets right, bool (N,) on the CPU.

    A score of distance, such as CLEVER, compares networks on these only.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(2, 2, bias=False))
    >>> model[1].weight.data = torch.eye(2)
    >>> images = torch.eye(2).view(2, 2, 1, 1)
    >>> all_right([model], images, torch.tensor([1, 1])).tolist()
    [False, True]
    """
    right = [predict(model, images).argmax(1) == labels.cpu() for model in models]
    if not right:
        raise ValueError("models: expected at least one, got none")
    return torch.stack(right).all(0)


def gains(values: Mapping[str, float], *, before: str = BEFORE,
          falls: bool = False) -> dict[str, float]:
    """What each retraining adds to a measure, over ``before``; ``falls``: what it takes from it.

    >>> gains({"before": 96.0, "noise": 90.0, "benign": 97.0}, falls=True)
    {'noise': 6.0, 'benign': -1.0}
    """
    if before not in values:
        raise ValueError(f"values: expected one of '{before}', got only {list(values.keys())}")
    sign = -1 if falls else 1
    return {name: sign * (values[name] - values[before])
            for name in values.keys() if name != before}


def lead(found: Mapping[str, float], name: str, others: Iterable[str]) -> float:
    """The gain of ``name``, less the largest of the others': above 0 where it gains most.

    >>> lead({"deepsensor": 3.0, "dlfuzz": 1.0, "deephunter": 2.0}, "deepsensor",
    ...      ["dlfuzz", "deephunter"])
    1.0
    """
    others = list(others)
    if missing := [each for each in (name, *others) if each not in found]:
        raise ValueError(f"found: expected the gains of {missing}, got only {list(found.keys())}")
    if not others:
        raise ValueError("others: expected at least one, got none")
    return found[name] - max(found[other] for other in others)


def success_lead(rates: Mapping[str, float], name: str, others: Iterable[str], *,
                 before: str = BEFORE) -> float:
    """The :func:`lead` in taking success from an attack, of success rates in percent (0 to 100).

    NaN where the attack succeeds on every image, before and after each retraining: nothing taken
    against nothing taken tells neither from the other.
    Raises ``ValueError`` as :func:`gains` and :func:`lead` do. Second DeepSensor, Figs. 4 and 5.

    >>> rates = {"before": 90.0, "deepsensor": 60.0, "dlfuzz": 80.0}
    >>> success_lead(rates, "deepsensor", ["dlfuzz"])
    20.0
    >>> success_lead(dict.fromkeys(rates, 100.0), "deepsensor", ["dlfuzz"])
    nan
    """
    others = list(others)
    found = lead(gains(rates, before=before, falls=True), name, others)
    return math.nan if min(rates[each] for each in (before, name, *others)) == 100 else found
