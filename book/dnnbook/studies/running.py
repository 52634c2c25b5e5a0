"""Comparing fuzzers: the same benign inputs, the same bounds, each campaign run once and kept."""

from collections.abc import Hashable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import torch
from torch import nn

from dnnbook import reproducible
from dnnbook.data import Dataset, load
from dnnbook.studies.naming import FuzzerKey
from dnnlib import checks, files
from dnnlib.fuzzing.noise import Constant, RandomFitness
from dnnlib.fuzzing.protocol import Budget, Campaign, Fuzzer
from dnnlib.fuzzing.swarm import Swarm
from dnnlib.fuzzing.together import Choosing, Side, run_all
from dnnlib.inference import device_of, predict
from dnnlib.models.fingerprints import described
from dnnlib.neurons.excitable import ExcitableNeurons
from dnnlib.progress import progress

Name = TypeVar("Name", bound=Hashable)
_TENSORS = ("labels", "predicted", "origin", "l2", "linf", "images")


def benign(model: nn.Module, images: torch.Tensor, labels: torch.Tensor, *,
           without: int | None = None, seed: int = 0) -> torch.Tensor:
    """The places of the images (N, C, H, W) that ``model`` gets right, in a random order.

    ``labels``: true classes (N,). ``without``: a class whose images are left out, such as the one
    that errors of a polluted network are given, see :func:`outcomes.hits`. The order of any two
    of them depends on ``seed`` and N alone, so that several models share most of the first ones.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    >>> benign(model, torch.rand(6, 1, 2, 2), torch.full((6,), 2)).tolist()
    []
    """
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(seed))
    labels = labels.cpu()
    right = predict(model, images).argmax(1) == labels
    if without is not None:
        right &= labels != without
    return order[right[order]]


def known_images(dataset: str, data: Dataset, chosen: torch.Tensor, count: int) -> torch.Tensor:
    """The first ``count`` training images of a dataset, (N, C, H, W): a fuzzer's neuron boundaries.

    Of ImageNet, whose training images few have, the first of ``data``, test images, that are not
    at the places ``chosen``, as the inputs are. Raises what :func:`dnnbook.data.load` does.

    >>> data = load("mnist_small")
    >>> torch.equal(known_images("mnist_small", data, torch.arange(5), 100),
    ...             load("mnist_small", "train").images[:100])
    True
    >>> torch.equal(known_images("imagenet", data, torch.arange(5), 100), data.images[5:105])
    True
    """
    if dataset != "imagenet":
        return load(dataset, "train").images[:count]
    left = torch.ones(len(data), dtype=torch.bool).index_fill(0, chosen, False)
    return data.images[left][:count]


def campaigns(model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor,
              fuzzers: Mapping[Name, Fuzzer], *, iterations: int = 20,
              seed: int = 0) -> dict[Name, Campaign]:
    """The campaign of each fuzzer, under its name, all random numbers drawn from ``seed``.

    The key in the cache covers the weights, the inputs and every option; ``seconds`` are those of
    the run that filled it. Small campaigns of one kind share their passes, as many as fit in one:
    see :func:`together.side_by_side`. Raises ``TypeError`` for an option that has no key there,
    such as a function of your own: call the fuzzer's ``run``.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    >>> from dnnlib.fuzzing.noise import Noise
    >>> found = campaigns(model, torch.rand(3, 1, 2, 2), torch.tensor([0, 1, 1]),
    ...                   {"noise": Noise()}, iterations=2)
    >>> found["noise"].predicted.shape
    torch.Size([2, 3])
    """
    key = {"model": described(model), "inputs": described(inputs),
           "labels": described(torch.as_tensor(labels)), "iterations": iterations, "seed": seed,
           **reproducible.key("campaigns", device_of(model))}

    keys = {name: key | {"fuzzer": described(fuzzer)} for name, fuzzer in fuzzers.items()}
    paths = {name: files.cache_dir() / "campaigns" / f"{files.digest(each)}.safetensors"
             for name, each in keys.items()}
    missing = {path: name for name, path in paths.items() if not path.exists()}
    running = _settled(model, inputs, {path: fuzzers[name] for path, name in missing.items()},
                       iterations)
    with progress(total=len(running), desc="fuzzers", leave=False) as bar:
        for group in _groups(running, len(inputs)):
            with ExitStack() as locks:  # in one order, so that no two processes wait for each other
                left = [path for path in sorted(group) if locks.enter_context(files.making(path))]
                made = run_all([running[path] for path in left], model, inputs, labels,
                               iterations=iterations, seed=seed)
                for path, found in zip(left, made):
                    cost = torch.tensor([found.passes, found.seconds], dtype=torch.float64)
                    tensors = {name: getattr(found, name) for name in _TENSORS} | {"cost": cost}
                    files.save_tensors(path, tensors, key=keys[missing[path]])
            bar.update(len(group))
    done = {}
    for name, path in paths.items():
        kept, _ = files.load_tensors(path)
        passes, seconds = kept.pop("cost").tolist()
        done[name] = Campaign(**kept, passes=int(passes), seconds=seconds)
    return done


def _settled(model: nn.Module, inputs: torch.Tensor, fuzzers: Mapping[Path, Fuzzer],
             iterations: int) -> dict[Path, Fuzzer]:
    """Each :class:`released.Best` replaced by its choice, for which all settings run at once."""
    asked: dict[str, tuple[torch.Tensor, torch.Tensor, dict[Hashable, Fuzzer]]] = {}
    for path, fuzzer in fuzzers.items():
        if isinstance(fuzzer, Choosing):
            x, labels, each = fuzzer.held_out(model, inputs)
            same = files.digest([described(x), described(labels)])
            asked.setdefault(same, (x, labels, {}))[2].update(
                {(path, name): setting for name, setting in each.items()})
    for x, labels, every in asked.values():
        campaigns(model, x, labels, every, iterations=iterations)  # into the cache
    return {path: fuzzer.chosen(model, inputs, iterations=iterations)[1]
            if isinstance(fuzzer, Choosing) else fuzzer for path, fuzzer in fuzzers.items()}


def _groups(fuzzers: Mapping[Path, Fuzzer], count: int) -> list[list[Path]]:
    """Fuzzers of one kind, as many together as ``count`` images of each fill a pass."""
    kinds: dict[Hashable, tuple[int, list[Path]]] = {}
    for path, fuzzer in fuzzers.items():
        size = fuzzer.batch_size if isinstance(fuzzer, Side) else 1
        kind = (type(fuzzer), size) if isinstance(fuzzer, Side) else path
        kinds.setdefault(kind, (max(1, size // count), []))[1].append(path)
    return [paths[i:i + at_once] for at_once, paths in kinds.values()
            for i in range(0, len(paths), at_once)]


def swarms(swarm: Swarm, names: str = "excitable sensitive constant random", *,
           points: int = 2, seed: int = 0) -> dict[FuzzerKey, Swarm]:
    """``swarm`` under the fitnesses ``names``: one method, guided by one thing after another.

    'excitable': this paper's, with ``points`` gradients, and 'excitable_scaled' with the values in
    units of their mean; 'sensitive': the first paper's, that of ``swarm``. The controls look at no
    neuron: 'constant', and 'random', drawn from ``seed``. Raises ``ValueError`` for another name.

    >>> [key.reading for key in swarms(Swarm(population=5), "excitable constant")]
    ['excitable', 'constant']
    """
    fitnesses = {"excitable": ExcitableNeurons(points=points),
                 "excitable_scaled": ExcitableNeurons(points=points, scale="total"),
                 "sensitive": swarm.fitness, "constant": Constant(),
                 "random": RandomFitness(seed=seed)}
    return {FuzzerKey("deepsensor", name): replace(swarm, fitness=fitnesses[name])
            for name in checks.words(names, "names", fitnesses, "fitness")}


def bounds(distances: str, **first: float) -> dict[str, float | None]:
    """Bounds on the L2 distance by name: ``first``, then each of the list, and last 'none'.

    >>> bounds("4 8", paper=1.0)
    {'paper': 1.0, '4': 4.0, '8': 8.0, 'none': None}
    """
    return {**first, **{f"{l2:g}": float(l2) for l2 in checks.numbers(distances, "distances", 0)},
            "none": None}


def at_bounds(model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor,
              fuzzers: Mapping[FuzzerKey, Fuzzer], bounds: Mapping[str, float | None], *,
              iterations: int = 20, seed: int = 0) -> dict[tuple[str, FuzzerKey], Campaign]:
    """The campaign of every fuzzer at every bound on the L2 distance, by the names of both."""
    return campaigns(model, inputs, labels, iterations=iterations, seed=seed, fuzzers={
        (name, key): replace(fuzzer, budget=Budget(l2=l2)) for name, l2 in bounds.items()
        for key, fuzzer in fuzzers.items()})


def benign_for_each(models: Mapping[str, nn.Module], images: torch.Tensor, labels: torch.Tensor, *,
                    without: Mapping[str, int | None] | None = None, count: int, seed: int = 0
                    ) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """For each model ``count`` images (N, C, H, W) that it gets right, and their classes (N,).

    ``without``: a class left out for each model, or None; this and ``seed`` as of :func:`benign`.
    """
    chosen = {name: benign(model, images, labels, without=(without or {}).get(name),
                           seed=seed)[:count] for name, model in models.items()}
    return {name: (images[places], labels[places]) for name, places in chosen.items()}


def in_each(models: Mapping[str, nn.Module],
            inputs: Mapping[str, tuple[torch.Tensor, torch.Tensor]],
            fuzzers: Mapping[Hashable, Fuzzer], *, iterations: int = 20,
            seed: int = 0) -> dict[tuple[str, Hashable], Campaign]:
    """The campaign of every fuzzer in every one of ``models``, by the names of both.

    ``inputs``: each model's images (S, C, H, W) and their classes (S,): :func:`benign_for_each`.
    """
    return {(name, key): campaign for name, model in models.items()
            for key, campaign in campaigns(model, *inputs[name], fuzzers, iterations=iterations,
                                           seed=seed).items()}
