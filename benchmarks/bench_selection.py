"""Selectors against the model passes they need, and DSA against dnn-tip, as ratios in one run.

The networks are trained on the digits for a few seconds and the candidates are mutated digits,
so that some predictions are decided and some are not: ATS depends on how many. Without dnn-tip
(``pip install dnn-tip``) that comparison is left out.
"""

import gc
import importlib
import importlib.util
import time
from dataclasses import replace
from functools import partial
from statistics import median

import numpy as np
import pandas as pd
import torch

from dnnbook.data import load
from dnnbook.training import Recipe, fit
from dnnlib import models
from dnnlib.inference import device_of, fast_layout, predict
from dnnlib.perturb import mutations
from dnnlib.selection import ATS, SELECTORS, selector
from dnnlib.selection.surprise import dsa

REFERENCED = [name for name, kind in SELECTORS.items() if "reference" in kind.__dataclass_fields__]
# over the candidates, and as many mutated ones or training images
PASSES = dict.fromkeys(SELECTORS, 1) | dict.fromkeys(["nss", *REFERENCED], 2) | {
    "random": 0, "excitable": 11}  # the prediction, four at the game's ends, six at its point
GUIDED = ("nac", "kmnc", "npc")  # by coverage; others should take less than twice their passes
SIZES = (500, 1_000, 2_000, 5_000, 10_000)
REFERENCES, TESTS, WIDTH, CLASSES = 10_000, 2_000, 84, 10
EVERY = 20  # dnn-tip's time is proportional to the tests: it is given one in so many


def seconds(actions: dict, rounds: int = 3) -> tuple[dict[str, float], dict]:
    """The median of a few rounds, in which all take turns, and what each gave last."""
    times, results = {name: [] for name in actions}, {}
    for _ in range(rounds):
        for name, action in actions.items():
            start = time.perf_counter()
            results[name] = action()
            times[name].append(time.perf_counter() - start)
    return {name: median(values) for name, values in times.items()}, results


@torch.inference_mode()
def bare_pass(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    return torch.cat([model(fast_layout(part, device_of(model))).cpu() for part in x.split(512)])


def measure(model: torch.nn.Module, x: torch.Tensor, reference: torch.Tensor, names=SELECTORS,
            sizes=SIZES) -> pd.DataFrame:
    """One row for each number of ``candidates`` and ``selector``: ``seconds`` for an order.

    The selector "model" is one bare pass over the candidates. There are as many training images
    as candidates.
    """
    rows = []
    for size in sizes:
        actions = {"model": partial(bare_pass, model, x[:size])}
        for name in names:
            needs = {"reference": reference[:size]} if name in REFERENCED else {}
            actions[name] = partial(selector(name, **needs).order, model, x[:size])
        rows += [(size, *item) for item in seconds(actions)[0].items()]
    return pd.DataFrame(rows, columns=["candidates", "selector", "seconds"])


def digits(name: str, n: int, images: int, epochs: int) -> tuple:
    """A network, trained a little, with n candidates and n other mutated digits beside them."""
    model = models.build(name)
    data = load("digits", "train", size=model.spec.shape[1], channels=model.spec.shape[0])
    few = replace(data, images=data.images[:images], labels=data.labels[:images])
    fit(model, few, Recipe(learning_rate=0.05, batch_size=32, epochs=epochs, momentum=0.9))
    many = data.images[torch.arange(n) % len(data.images)]
    return model.eval(), *(mutations.mutate(many, seed=seed).images for seed in (0, 1))


def against_passes(table: pd.DataFrame) -> None:
    """How long an order takes beside its passes, for the most candidates in the table."""
    most = table[table.candidates == table.candidates.max()].set_index("selector").seconds
    print(f"  one pass: {most['model']:.2f} s")
    for name, took in most.drop(["model", "random"], errors="ignore").items():
        ratio = took / (PASSES[name] * most["model"])
        over = "" if name in GUIDED or ratio < 2 else ", more than twice"
        print(f"  {name:17}{took:6.2f} s = {ratio:4.2f} x {PASSES[name]} passes{over}")


def dsa_against_dnn_tip() -> None:
    peer = importlib.import_module("dnn_tip.surprise").DSA
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(CLASSES, WIDTH))
    known, tested = rng.integers(CLASSES, size=REFERENCES), rng.integers(CLASSES, size=TESTS)
    b, a = (centres[k] + rng.normal(size=(len(k), WIDTH)) for k in (known, tested))
    gc.freeze()  # dnn-tip collects garbage all the time, and would search PyTorch's objects too
    times, score = seconds({
        "ours": lambda: dsa(*map(torch.from_numpy, (a, tested, b, known))).numpy(),
        "dnn-tip": lambda: peer(b, known)(a[::EVERY], tested[::EVERY])})
    gc.unfreeze()
    if not np.allclose(score["ours"][::EVERY], score["dnn-tip"], rtol=1e-9):
        raise SystemExit("DSA: the scores differ from dnn-tip's")
    theirs = times["dnn-tip"] * EVERY
    print(f"DSA, {REFERENCES} references x {TESTS} tests, width {WIDTH}: {times['ours']:.2f} s")
    print(f"  against dnn-tip, with the same scores: {theirs / times['ours']:.0f} times faster")


def main() -> None:
    if importlib.util.find_spec("dnn_tip") is not None:
        dsa_against_dnn_tip()
    for name, n, images, epochs in (("lenet5", max(SIZES), 1_297, 8), ("resnet20", 1_000, 300, 3)):
        model, x, reference = digits(name, n, images, epochs)
        undecided = (predict(model, x).amax(1) <= ATS.upper).double().mean()
        print(f"{name}, {n} candidates, of which {undecided:.0%} are undecided")
        if name == "lenet5":
            table = measure(model, x, reference)
            against_passes(table)
            print("seconds by number of candidates")
            print(table.pivot(index="selector", columns="candidates", values="seconds")
                  .sort_values(n).round(3).to_string())
        else:  # those that read the softmax alone cost the same
            against_passes(measure(model, x, reference, ("gini", "ats", "dsa", "nss"), (n,)))


if __name__ == "__main__":
    main()
