"""The engine at its defaults beside the best size of a pass, on whatever device is there.

    python benchmarks/bench_passes.py                 # on the best device there is
    python benchmarks/bench_passes.py --device cpu swarm excitable

Rates of LeNet-5, trained for some seconds on the embedded digits. On a CPU there are fewer inputs,
and no goal: the defaults were chosen there.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import mean
from unittest import mock

import torch
from goals import keep
from torch import nn

from dnnbook import studies, training
from dnnbook.data import load
from dnnlib import fuzzing, inference, models, selection
from dnnlib.neurons import activations, relevance, shapley
from dnnlib.neurons.excitable import ExcitableNeurons
from dnnlib.neurons.sensitivity import SensitiveNeurons
from dnnlib.neurons.shapley import game
from dnnlib.robustness import clever

ROOT = Path(__file__).resolve().parents[1]
ITERATIONS, POPULATION, ROUNDS = 20, 100, 3
LADDER = (256, 1024, 4096, 16_384, 65_536)


def seconds(action: Callable[[], object], rounds: int = ROUNDS) -> float:
    """The best of some rounds after one that warms up; what a GPU was given is waited for."""
    found = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        action()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        found.append(time.perf_counter() - start)
    return min(found[1:])


def name_of_gpu() -> str:
    return torch.cuda.get_device_name() if torch.cuda.is_available() else ""


def lenet5(device: torch.device) -> nn.Module:
    model = models.build("lenet5").to(device)
    training.fit(model, load("mnist_small", "train"), training.Recipe(0.05, 64, 4, momentum=0.9))
    return model.eval()


def digits(n: int) -> torch.Tensor:
    """Images (n, 1, 28, 28): the embedded test digits, with other noise each time they come."""
    few = load("mnist_small").images
    noise = torch.rand(n, *few.shape[1:], generator=torch.Generator().manual_seed(0))
    return (few[torch.arange(n) % len(few)] + 0.3 * noise).clamp(0, 1)


def told(name: str, ours: float, best: float, size: int, least: float | None) -> None:
    """Two rates a second, and their ratio; it has a goal where ``least`` is given."""
    print(f"{name}: {ours:,.0f} a second; {best:,.0f} in passes of {size:,}", flush=True)
    if least is not None:
        keep(f"{name}, of the rate at the best size", ours / best, least=least, gpu=name_of_gpu())


def searched(name: str, fitness: fuzzing.guided.Fitness, model: nn.Module, x: torch.Tensor,
             goal: float | None) -> None:
    """Images a second of a swarm, and of its score alone at the best size of a pass."""
    device = inference.device_of(model)
    y = inference.predict(model, x).argmax(1)
    swarm = fuzzing.Swarm(population=POPULATION, fitness=fitness)
    ours = len(x) * POPULATION * ITERATIONS / seconds(
        lambda: swarm.run(model, x, y, iterations=ITERATIONS,
                          generator=torch.Generator().manual_seed(0)), 1)
    with torch.no_grad():
        score, rates = fitness(model, x.to(device), y.to(device)), {}
        for size in LADDER[:3] if device.type == "cpu" else LADDER:
            of = torch.arange(size, device=device) % len(x)
            images = inference.fast_layout(x.to(device)[of], device)
            calls = max(1, LADDER[2] // size)
            rates[size] = calls * size / seconds(lambda: [score(images, of) for _ in range(calls)])
    best = max(rates, key=rates.__getitem__)
    told(f"{name} from {len(x):,} inputs", ours, rates[best], best, goal)


def swarm(model: nn.Module, gpu: bool) -> None:
    searched("the swarm", SensitiveNeurons(), model, digits(1000 if gpu else 20),
             0.7 if gpu else None)


def excitable(model: nn.Module, gpu: bool) -> None:
    searched("the swarm by excitable neurons", ExcitableNeurons(), model,
             digits(100 if gpu else 2), 0.7 if gpu else None)


def sized(name: str, module: object, action: Callable[[], object], count: int,
          goal: float | None, rounds: int = ROUNDS) -> None:
    """``action`` at its default, and where each size is the answer to what a device holds."""
    ours, rates = count / seconds(action, rounds), {}
    for size in LADDER if goal else LADDER[:3]:
        with mock.patch.object(module, "size_for", lambda *args, size=size, **options: size):
            rates[size] = count / seconds(action, rounds)
    best = max(rates, key=rates.__getitem__)
    told(name, ours, rates[best], best, goal)


def estimators(model: nn.Module, gpu: bool) -> None:
    goal = 0.5 if gpu else None
    x = digits(65_536 if gpu else 2_048).to(inference.device_of(model))
    sized("predict", inference, lambda: inference.predict(model, x), len(x), goal)
    sized("record", activations, lambda: activations.record(model, x), len(x), goal)
    part = x[:8_192 if gpu else 512]
    sized("relevance", relevance, lambda: relevance.propagate(model, part), len(part), goal)
    one = x[:2 if gpu else 1]
    samples = {} if gpu else {"batches": 2, "samples": 128, "pool": 256}
    sized("CLEVER, images", clever, lambda: clever.clever(model, one, fit="maximum", **samples),
          len(one), goal, 1)


def coalitions(model: nn.Module, gpu: bool) -> None:
    few = digits(20 if gpu else 2).to(inference.device_of(model))
    moved = (few + 0.2 * torch.rand_like(few)).clamp(0, 1)
    y, orders = inference.predict(model, few).argmax(1), 100 if gpu else 4
    count = orders * (game.Game(model, few, moved, y).players - 1) * len(few)
    sized("Shapley values by orders, coalitions", game, lambda: shapley.permutation(
        game.Game(model, few, moved, y), permutations=orders,
        generator=torch.Generator().manual_seed(0)), count, 0.5 if gpu else None)


def selectors(model: nn.Module, gpu: bool) -> None:
    count, known = (10_000, 60_000) if gpu else (1_000, 2_000)
    x, reference = digits(count), digits(known)
    labels = inference.predict(model, reference).argmax(1)
    table = studies.table_iv(reference, labels) | {"nss": selection.selector("nss")}
    times = {name: seconds(partial(each.order, model, x), 1) for name, each in table.items()}
    print("seconds of an order: " + ", ".join(
        f"{name} {times[name]:.2f}" for name in sorted(times, key=times.__getitem__)), flush=True)
    slowest = max(times, key=times.__getitem__)
    print(f"{count:,} candidates, {known:,} references: {slowest} is the slowest")
    if gpu:
        keep(f"an order of {count:,} candidates by the slowest selector", times[slowest], most=1,
             unit="seconds", gpu=name_of_gpu())


def cell(inputs: int, population: int, gpu: bool) -> tuple[float, float]:
    """Seconds of a cell of *test errors*, and the share of them in which the GPU was busy."""
    command = [sys.executable, "-m", "dnnlib.cli", "run", "deepsensor_sensitivity/02"]
    values = {"dataset": "mnist" if gpu else "mnist_small", "model_name": "lenet5",
              "recipe": "nss", "inputs": inputs, "population": population, "held_out": 20,
              "profile": "paper", "device": "cuda" if gpu else "cpu"}
    for name, value in values.items():
        command += ["-p", name, str(value)]
    busy: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        command += ["--output", f"{folder}/cell.ipynb"]
        place = os.environ | {"DNNLIB_CACHE": f"{folder}/cache", "DNNLIB_RESULTS": folder}
        start = time.perf_counter()
        running = subprocess.Popen(command, env=place, cwd=ROOT)
        try:
            while running.poll() is None:
                if gpu:
                    busy.append(torch.cuda.utilization() / 100)
                time.sleep(0.2)
        finally:
            running.kill()
        taken = time.perf_counter() - start
    if running.returncode:
        raise SystemExit(f"the cell of {inputs} inputs failed")
    return taken, mean(busy) if busy else 0.0


def cells(model: nn.Module, gpu: bool) -> None:
    many, busy = cell(1000, 100, gpu) if gpu else cell(20, 20, gpu)
    few, _ = cell(10, 100, gpu) if gpu else cell(2, 20, gpu)
    print(f"a cell of test errors: {many:.0f} s, of few inputs {few:.0f} s")
    if gpu:
        keep("a cell of test errors, 1,000 inputs", many, most=100, unit="seconds",
             gpu=name_of_gpu())
        keep("the share of them in which the GPU is busy", busy, least=0.5, unit="",
             gpu=name_of_gpu())
        keep("the same cell with 10 inputs, of its time", few / many, most=0.1,
             gpu=name_of_gpu())


PARTS = {"swarm": swarm, "excitable": excitable, "estimators": estimators, "coalitions": coalitions,
         "selectors": selectors, "cells": cells}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=" ".join(PARTS))
    parser.add_argument("--device", default="auto", help="cpu, cuda, mps or auto")
    given = parser.parse_args()
    device = inference.device(given.device)
    model = lenet5(device)
    print(f"on {name_of_gpu() or device}")
    for name in given.parts or PARTS:
        PARTS[name](model, device.type == "cuda")


if __name__ == "__main__":
    main()
