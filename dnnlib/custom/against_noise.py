"""Fuzzers beside noise: at the same distance, with as many examples, and with as many passes."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import torch
from torch import nn

from dnnlib import checks
from dnnlib.custom.failures import campaign_of
from dnnlib.custom.fuzzing_run import Found
from dnnlib.custom.loading import in_file
from dnnlib.custom.options import ATTACKS, METHODS, SWARMS, Options
from dnnlib.custom.own_code import reason
from dnnlib.custom.photos import Photos
from dnnlib.custom.scores import all_of
from dnnlib.custom.worth import interval
from dnnlib.data.folders import of_one
from dnnlib.fuzzing import Campaign, Fuzzer, Noise


def beside(found: Found, by: str) -> list[str]:
    """What a run broke, beside noise: a line, if noise was made.

    >>> table = pd.DataFrame({"outcome": ["broken", "held", "left out"],
    ...                       "noise": ["held", "held", ""]})
    >>> beside(Found(table, table[:0], passes={"dlfuzz": 83.5, "noise": 20}), "dlfuzz")
    ['noise at the same distance, as many examples: 0 of 2 inputs broken, by dlfuzz 1; passes over \
an input: 20 by noise, 83.5 by dlfuzz']
    """
    made = found.inputs[found.inputs["noise"] != ""]
    if made.empty:
        return []
    broken, by_noise = ((made[name] == "broken").sum() for name in ("outcome", "noise"))
    own, others = (f"{found.passes[name]:,.4g}" for name in (by, "noise"))
    return [f"noise at the same distance, as many examples: {by_noise:,} of {len(made):,} inputs "
            f"broken, by {by} {broken:,}; passes over an input: {others} by noise, {own} by {by}"]


def options_of_all(fuzz: str, reference: bool,
                   **given) -> tuple[dict[str, Options], dict[str, str]]:
    """The fuzzers asked for, without noise, which all are compared with; of 'all', why not others.
    """
    if not fuzz:
        if alone := [name for name in ("l2", "linf", "population") if given[name] is not None]:
            raise ValueError(f"{', '.join(alone)}: only with fuzzers (--fuzz)")
        return {}, {}
    if fuzz == "all":
        names = METHODS
    elif in_file(fuzz):
        names = tuple(part.strip() for part in fuzz.split(",") if part.strip())
    else:
        names = checks.words(fuzz, "fuzz", METHODS, "fuzzer")
    population, found, left = given.pop("population"), {}, {}
    for name in names:
        try:
            options = Options(by=name, population=population if name in SWARMS else None, **given)
        except (ValueError, ModuleNotFoundError) as error:
            if fuzz != "all" or name not in ATTACKS:
                raise
            left[name] = str(error).removeprefix(f"{name}: ")
            continue
        if options.needs_reference and not reference:
            if fuzz != "all":
                raise ValueError(f"{options.name}: needs training images; give a folder of them "
                                 "(--reference)")
        elif name != "noise":
            found[options.name] = options
    return found, left


def fuzzed(model: nn.Module, x: torch.Tensor, labels: torch.Tensor, fuzzers: Mapping[str, Options],
           seen: Photos | None, resamples: int, seed: int, left: dict[str, str],
           ) -> tuple[pd.DataFrame, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The table of ``Compared.fuzzers``; what each fuzzer, and noise of as many passes, breaks.

    The last two: which of the inputs, bool (n,), by fuzzer. A fuzzer that fails on some input is
    not among them; why goes to ``left``.
    """
    n, made = len(x), {}
    for name, options in fuzzers.items():
        try:
            with of_one(reason):
                reference = (all_of(model, seen, options.batch_size)[0]
                             if options.needs_reference and seen is not None else None)
                made[name] = _campaigns(model, options.fuzzer(reference), x, labels,
                                        options.iterations, options.at_once, seed)
        except ValueError as error:  # that no rehearsal could show
            left[name] = str(error).removeprefix(f"{name}: ")
    if not made:
        return pd.DataFrame(), {}, {}
    least = next(iter(fuzzers.values()))
    most = max(least.iterations, *(round(passes / n) for _, _, passes, _ in made.values()))
    noise = Noise(budget=least.budget)
    _, when, _, _ = _campaigns(model, noise, x, labels, most, 32, seed)
    drawn, rows = np.random.default_rng(seed).integers(0, n, (resamples, n)), []
    by_fuzzer, by_noise = {}, {}
    for name, (errors, first, passes, seconds) in made.items():
        iterations = fuzzers[name].iterations
        broken = first < iterations
        same, equal = when < iterations, when < max(1, round(passes / n))
        by_fuzzer[name], by_noise[name] = broken, equal
        low, high = interval(int(broken.sum()), n)
        behind, ahead = np.percentile(
            100 * (broken[drawn].mean(1) - equal[drawn].mean(1)), (2.5, 97.5))
        rows.append({"fuzzer": name, "broken": 100 * broken.mean(), "low": low, "high": high,
                     "errors": errors, "noise": 100 * same.mean(),
                     "noise_passes": 100 * equal.mean(),
                     "lead": 100 * (broken.mean() - equal.mean()),
                     "lead_low": behind, "lead_high": ahead, "passes": passes / n,
                     "seconds": seconds})
    return pd.DataFrame(rows), by_fuzzer, by_noise


def _campaigns(model: nn.Module, fuzzer: Fuzzer, x: torch.Tensor, labels: torch.Tensor,
               iterations: int, block: int, seed: int) -> tuple[int, np.ndarray, int, float]:
    """Errors, the iteration (S,) that first broke each input, passes, seconds."""
    found: list[Campaign] = []
    for number, (part, given) in enumerate(zip(x.split(block), labels.split(block))):
        generator = torch.Generator().manual_seed(seed * 100_003 + number)
        found.append(campaign_of(model, fuzzer, part, given, iterations=iterations,
                                 generator=generator)[0])
    return (sum(int(c.errors.sum()) for c in found),
            np.concatenate([first_break(c) for c in found]),
            sum(c.passes for c in found), sum(c.seconds for c in found))


def first_break(campaign: Campaign) -> np.ndarray:
    """The iteration, from 0, that first broke each input (S,); the number of them if none did."""
    t, s = campaign.predicted.shape
    first = torch.full((s,), t)
    when = torch.arange(t)[:, None].expand(t, s)
    wrong = campaign.errors
    return first.scatter_reduce(0, campaign.origin[wrong], when[wrong], "amin").numpy()
