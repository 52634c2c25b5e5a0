"""The sentence says no more than its inputs show: on made-up results, one for each outcome."""

import itertools

import numpy as np
import pandas as pd
import pytest

from dnnlib.custom import comparing, worth
from dnnlib.measures.faults import fault_detection_rate

N = 1000
WRONG = np.arange(N) % 5 == 0  # 200 of 1,000: 20 % in random order


def order(hits: int, step: int) -> np.ndarray:
    """The first tenth has so many faults of 100, the first or (step -1) the last of the images."""
    faults, right = np.flatnonzero(WRONG)[::step], np.flatnonzero(~WRONG)[::step]
    first = np.concatenate([faults[:hits], right[:100 - hits]])
    return np.concatenate([first, np.setdiff1d(np.arange(N), first)])


def sentence(hits: dict[str, int], passes: dict[str, float]) -> str:
    orders = {name: order(n, (1, -1)[i % 2]) for i, (name, n) in enumerate(hits.items())}
    for name, n in hits.items():
        assert fault_detection_rate(WRONG, orders[name], 0.1) == n / 100
    table, found = comparing.detection(WRONG, orders, (10, 20), resamples=20)
    table["passes"] = [passes.get(name, 0.0) for name in table["method"]]
    return worth.selectors_sentence(table, found)


@pytest.mark.parametrize("hits, passes, starts, ends", [
    # the best is surely better than the other
    ({"gini": 80, "nac": 30}, {"gini": 2, "nac": 1}, "At 10 %, take gini: of the images that it puts "
     "first, 80 % are faults [", "for 2 passes over an image; every other method surely does worse."),
    # alone
    ({"gini": 80}, {"gini": 1}, "At 10 %, take gini: ", "in random order 20 %, for 1 pass over an image."),
    # two that cannot be told apart: the cheaper one, though it found fewer
    ({"nss": 61, "gini": 59}, {"nss": 2, "gini": 1}, "At 10 %, take gini: ",
     "for 1 pass over an image; nss may find as many."),
    # of the same passes: the one that found more
    ({"pd": 59, "gini": 61, "nac": 20}, {"pd": 1, "gini": 1, "nac": 1}, "At 10 %, take gini: ",
     "; pd may find as many."),
    # three, and one surely worse
    ({"a": 60, "b": 59, "c": 58, "d": 15}, dict.fromkeys("abcd", 1), "At 10 %, take a: ",
     "; b and c may find as many."),
    # the cheap one is not surely worse than the best, nor surely better than chance: not taken
    ({"dear": 38, "cheap": 27}, {"dear": 9, "cheap": 1}, "At 10 %, take dear: ",
     "; cheap may find as many."),
    # nothing is surely better than chance
    ({"nss": 22, "nac": 20}, {"nss": 2, "nac": 1}, "At 10 %, no method finds surely more faults than "
     "random order, 20 %", "; the most is 22 %, by nss."),
    # all are worse than chance
    ({"nss": 2, "nac": 1}, {"nss": 2, "nac": 1}, "At 10 %, no method finds surely more", "; the most is 2 %, by nss."),
])
def test_selectors(hits, passes, starts, ends):
    said = sentence(hits, passes)
    assert said.startswith(starts) and said.endswith(ends), said


def test_of_many_methods_none_is_taken_for_a_lead_that_one_alone_would_have():
    """Twenty random orders, six times: the interval of some leaves out chance, none is taken."""
    alone = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        orders = {f"m{i}": rng.permutation(N) for i in range(20)}
        table, found = comparing.detection(WRONG, orders, (10,), resamples=1000)
        alone += (table["method"].isin(orders) & (table["lead_low"] > 0)).sum()
        assert "no method finds surely more" in worth.selectors_sentence(table.assign(passes=1), found)
    assert alone


def fuzzers(broken: dict[str, int], passes: dict[str, float], noise: int, n: int = 100) -> str:
    """Each breaks the first so many of the inputs, noise the last."""
    by = {name: np.arange(n) < k for name, k in broken.items()}
    chance = np.arange(n) >= n - noise
    rows = [{"fuzzer": name, "broken": float(k), "low": 0.0, "high": 0.0, "noise_passes": float(noise),
             "passes": passes[name]} for name, k in broken.items()]
    return worth.fuzzers_sentence(pd.DataFrame(rows), by, dict.fromkeys(broken, chance))


@pytest.mark.parametrize("broken, passes, noise, starts, ends", [
    ({"dlfuzz": 90, "deepsensor": 4}, {"dlfuzz": 60, "deepsensor": 400}, 3,
     "At this distance, take dlfuzz: it breaks 90 % of the inputs [", "noise with as many passes 3 %; "
     "every other method surely does worse."),
    ({"dlfuzz": 90}, {"dlfuzz": 60}, 3, "At this distance, take dlfuzz: ", "noise with as many passes 3 %."),
    ({"deepxplore": 52, "dlfuzz": 50}, {"deepxplore": 80, "dlfuzz": 60}, 3,
     "At this distance, take dlfuzz: ", "; deepxplore may break as many."),
    ({"deepsensor": 4, "deephunter": 2}, {"deepsensor": 400, "deephunter": 40}, 3,
     "No fuzzer breaks surely more inputs than noise at the same distance", "; the most is 4 %, by deepsensor."),
    ({"deepsensor": 0}, {"deepsensor": 400}, 0, "No fuzzer breaks surely more", "; the most is 0 %, by deepsensor."),
])
def test_fuzzers(broken, passes, noise, starts, ends):
    said = fuzzers(broken, passes, noise)
    assert said.startswith(starts) and said.endswith(ends), said


@pytest.mark.parametrize("seed", range(5))
def test_exact_tests_agree_with_counting_all_cases(seed):
    """McNemar's: every way in which what one alone found falls to either; random order: every draw."""
    rng = np.random.default_rng(seed)
    one, other = rng.random((2, 12)) < 0.5
    apart = int((one != other).sum())
    ways = [sum(way) for way in itertools.product((0, 1), repeat=apart)]
    assert worth.more(one, other) == pytest.approx(np.mean([way >= (one & ~other).sum() for way in ways]))
    wrong, taken, k = rng.random(9) < 0.4, 4, 2
    drawn = [wrong[list(few)].sum() >= k for few in itertools.combinations(range(9), taken)]
    assert worth.more_than_in_random_order(k, taken, int(wrong.sum()), 9) == pytest.approx(np.mean(drawn))


def test_the_sentence_is_the_same_whatever_the_seed():
    """Twelve methods of which some may find as many as the best."""
    rng = np.random.default_rng(3)
    wrong = rng.random(600) < 0.2
    orders = {f"m{i}": np.argsort(-(s * wrong + rng.normal(size=600)), kind="stable")
              for i, s in enumerate(np.linspace(0.55, 1.6, 12))}
    said = set()
    for seed in range(10):
        table, found = comparing.detection(wrong, orders, [20], resamples=50, seed=seed)
        said.add(worth.selectors_sentence(table.assign(passes=1), found))
    assert len(said) == 1 and " may find as many" in said.pop()


def test_none_of_fifteen_is_no_proof_of_none():
    """Wilson: z^2 / (n + z^2) above, where z is the normal's 97.5th percentile."""
    table, _ = comparing.detection(np.arange(30) >= 29, {"a": np.arange(30)}, [50])
    row = table.set_index("method").loc["a"]
    assert (row["found"], row["low"]) == (0, 0)
    assert row["high"] == pytest.approx(100 * 1.959964**2 / (15 + 1.959964**2), abs=1e-3)
