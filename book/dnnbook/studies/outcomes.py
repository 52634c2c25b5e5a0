"""What the tables of both DeepSensor papers ask of campaigns, and what their claims make of it."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
import torch
from torch import nn

from dnnbook import reproducible
from dnnbook.studies.naming import FuzzerKey, keys
from dnnlib import coverage
from dnnlib.fuzzing.protocol import Campaign
from dnnlib.neurons import activations

# what `every_example` measures
_EVERY = ("test_errors", "error_rate", "error_categories", "categories_per_seed", "l2",
          "share_near", "passes", "errors_per_1000_passes")

FIG_3 = ("nc", "kmnc", "nbc", "snac", "tknc", "bknc")  # the first paper's criteria
# Criteria by name, and what is covered: of activations, these scaled, boundaries and sections.
CRITERIA: dict[str, Callable] = {
    "nc": lambda raw, scaled, usual, sections: coverage.nac(scaled.values, 0.2),
    "kmnc": lambda raw, scaled, usual, sections: coverage.kmnc(raw.values, usual, sections),
    "nbc": lambda raw, scaled, usual, sections: coverage.nbc(raw.values, usual),
    "snac": lambda raw, scaled, usual, sections: coverage.snac(raw.values, usual),
    "tknc": lambda raw, scaled, usual, sections: coverage.tknc(raw.values, 1, offsets=raw.offsets),
    "bknc": lambda raw, scaled, usual, sections: coverage.bknc(raw.values, 1, offsets=raw.offsets),
}


def table(found: Mapping[tuple[str, FuzzerKey], Campaign], measure: Callable[..., dict[str, float]],
          **options) -> pd.DataFrame:
    """``measure(campaign, **options)`` of campaigns by bound and key: a line for each of them."""
    return pd.DataFrame({key: measure(campaign, **options)
                         for key, campaign in found.items()}).T.rename_axis(["budget", "key"])


def tidy(measured: pd.DataFrame, bounds: Mapping[str, float | None]) -> list[dict]:
    """The lines of a :func:`table` as rows of a record: the fuzzer, its budget, and the bound."""
    return [row for (budget, key), line in measured.iterrows()
            for row in rows(line, budget=budget, bound=bounds[budget], **key.columns)]


def untidy(rows: pd.DataFrame) -> pd.DataFrame:
    """The :func:`table` that :func:`tidy` made rows of; other rows than its own are left out.

    >>> measured = pd.DataFrame({"l2": [1.0]}, index=pd.MultiIndex.from_tuples(
    ...     [("none", FuzzerKey("noise"))], names=["budget", "key"]))
    >>> untidy(pd.DataFrame(tidy(measured, {"none": None}))).equals(measured)
    True
    """
    own = rows[rows["quantity"].isin(_EVERY)] if "baseline" not in rows else rows[
        rows["quantity"].isin(_EVERY) & rows["baseline"].isna()]
    return own.assign(key=keys(own)).pivot(
        index=["budget", "key"], columns="quantity", values="value").rename_axis(columns=None)


def same_network(rows: Iterable[Mapping], accuracy: float) -> None:
    """Refuse to go on from a record's rows with another network: the percent it got right tells.

    Raises ``ValueError`` with both, or for rows without an accuracy.

    >>> same_network([{"quantity": "accuracy", "value": 99.08}], accuracy=99.08)
    """
    then = [float(row["value"]) for row in rows if row["quantity"] == "accuracy"]
    if len(then) != 1 or not math.isclose(then[0], accuracy, rel_tol=1e-6):  # records: 7 digits
        raise ValueError(f"keep: expected the network of the record, of accuracy {then[0]:.2f} %, "
                         f"got one of {accuracy:.2f} %: run it without keep" if then else
                         "keep: expected a record with its network's accuracy, got none of it")


def ratios(counts: pd.Series, swarms: Iterable[FuzzerKey], baselines: Sequence[FuzzerKey],
           quantity: str, bounds: Mapping[str, float | None]) -> list[dict]:
    """What the claims ask for, as rows: :func:`over` of every swarm at every bound.

    ``counts``: by budget and key, a column of :func:`table`.
    """
    return [row for budget in bounds for row in times(counts[budget], swarms, baselines, quantity,
                                                      budget=budget, bound=bounds[budget])]


def times(counts: Mapping[FuzzerKey, float], swarms: Iterable[FuzzerKey],
          baselines: Sequence[FuzzerKey], quantity: str, *, least: float = 1,
          **where) -> list[dict]:
    """As :func:`ratios`, in one network or at one bound; ``counts``: by key.

    Baselines of several settings give the ratios of each, with the column 'setting'. ``least``: see
    :func:`over`.

    >>> swarm, rival = FuzzerKey("deepsensor", "paper"), FuzzerKey("dlfuzz")
    >>> times({swarm: 6, rival: 3}, [swarm], [rival], "errors_over", network="clean")[0]["value"]
    2.0
    """
    found = []
    for setting in dict.fromkeys(key.setting for key in baselines):
        theirs = {key.fuzzer: counts[key] for key in baselines if key.setting == setting}
        named = where | ({"setting": setting} if setting else {})
        found += [named | {"fuzzer": "deepsensor", "swarm": swarm.reading, "baseline": baseline,
                           "quantity": quantity, "value": value}
                  for swarm in swarms
                  for baseline, value in over(counts[swarm], theirs, least=least).items()]
    return found


def rows(values: Mapping[str, float], **where) -> list[dict]:
    """Measured values as tidy rows: the columns ``where``, 'quantity' and 'value'.

    >>> rows({"test_errors": 3}, fuzzer="noise")
    [{'fuzzer': 'noise', 'quantity': 'test_errors', 'value': 3.0}]
    """
    return [where | {"quantity": quantity, "value": float(value)}
            for quantity, value in values.items()]


def each(column: str, values: Mapping[str, float]) -> list[dict]:
    """Values by name as rows: the names as ``column``, beside 'value'."""
    return [{column: name, "value": float(value)} for name, value in values.items()]


def hits(campaign: Campaign, target: int | None = None) -> torch.Tensor:
    """Test errors, bool (T, S); with a ``target`` the examples that are given this class.

    The latter is the error of a polluted network (first paper, IV.B.2). Raises ``ValueError`` if
    some input is of the target class, as its examples would count though they are right.

    >>> c = Campaign(torch.tensor([0, 2]), torch.tensor([[1, 1], [0, 0]]),
    ...              torch.tensor([[0, 1], [0, 1]]), torch.ones(2, 2), torch.ones(2, 2),
    ...              torch.zeros(2, 1, 1, 1), 4, 0.0)
    >>> hits(c).tolist(), hits(c, target=1).tolist()
    ([[True, True], [False, True]], [[True, True], [False, False]])
    """
    if target is None:
        return campaign.errors
    if already := int((campaign.labels == target).sum()):
        raise ValueError(f"target: expected inputs of other classes than {target}, got {already} "
                         f"of it among {len(campaign.labels)}")
    return campaign.predicted == target


def every_example(campaign: Campaign, *, near: float) -> dict[str, float]:
    """Of the examples of all iterations (first paper's Table II, the second's Table 3).

    ``test_errors``; ``error_rate``, in percent of the examples; ``error_categories``, the
    different wrong classes of each input, summed, and ``categories_per_seed``; ``l2``, the mean
    distance; ``share_near``, the share of the errors within an L2 distance of ``near``, 0 without
    errors; ``passes``, and ``errors_per_1000_passes``.
    """
    reproducible.note("near")
    errors = int(campaign.errors.sum())
    return {"test_errors": errors, "error_rate": 100 * errors / campaign.errors.numel(),
            "error_categories": campaign.categories(),
            "categories_per_seed": campaign.categories() / len(campaign.labels),
            "l2": float(campaign.l2.mean()),
            "share_near": campaign.within(l2=near) / max(1, errors), "passes": campaign.passes,
            "errors_per_1000_passes": 1000 * errors / campaign.passes}


def last_examples(campaign: Campaign, *, target: int | None = None) -> dict[str, float]:
    """Of the last examples, one for each input (Tables III and IV of the first paper, 4 and 5).

    ``test_errors``, which with a ``target`` are those of :func:`hits`, and
    ``test_errors_all_iterations``; with a target also ``wrong``, the last examples of any wrong
    class; ``l2``, their median distance from the inputs.
    """
    found = hits(campaign, target)
    any_wrong = {} if target is None else {"wrong": int(campaign.errors[-1].sum())}
    return {"test_errors": int(found[-1].sum()), "test_errors_all_iterations": int(found.sum()),
            **any_wrong, "l2": float(campaign.l2[-1].median())}


def reached(campaign: Campaign, score: Callable[..., torch.Tensor]) -> float:
    """The mean of a fitness over the last examples, in percent: a share of neurons in [0, 1].

    ``score``: of images (N, C, H, W) and of the numbers (N,) of their inputs, gives (N,); see
    :class:`guided.Guided`.

    >>> c = Campaign(torch.tensor([0, 2]), torch.tensor([[1, 1]]), torch.tensor([[0, 1]]),
    ...              torch.ones(1, 2), torch.ones(1, 2), torch.zeros(2, 1, 1, 1), 4, 0.0)
    >>> reached(c, lambda x, of: of / 2)
    25.0
    """
    parts = zip(campaign.images.split(64), campaign.origin[-1].split(64))
    with torch.no_grad():
        return float(100 * torch.cat([score(*part) for part in parts]).cpu().double().mean())


def over(count: float, others: Mapping[str, float], *, least: float = 1) -> dict[str, float]:
    """A count over each of the others and, as 'mean', over the mean of them.

    Where the other count, or the mean, is below ``least`` it counts as that; NaN over 0.

    >>> over(6, {"dlfuzz": 3, "deephunter": 0})
    {'dlfuzz': 2.0, 'deephunter': 6.0, 'mean': 4.0}
    """
    if not len(others):
        raise ValueError("others: expected at least one count, got none")
    against = {**others, "mean": sum(others[name] for name in others.keys()) / len(others)}
    against = {name: max(least, other) for name, other in against.items()}
    return {name: float(count / other) if other else math.nan for name, other in against.items()}


def distance_needed(rates: Mapping[float, float], goal: float) -> float:
    """The bound on the distance at which error rates, by bound, first reach ``goal``.

    From (0, 0) on and between the bounds by interpolation; a rate that falls again does not
    matter. NaN if the largest bound is not enough.

    >>> distance_needed({2.0: 10.0, 4.0: 50.0}, 30.0)
    3.0
    """
    if not len(rates):
        raise ValueError("rates: expected the rate at one bound at least, got none")
    bounds = sorted(rates.keys())
    best = np.maximum.accumulate([rates[bound] for bound in bounds])
    return float(np.interp(goal, [0, *best], [0, *bounds], right=math.nan))


def least_step(counts: Mapping[float, float]) -> float:
    """The least change of a count from one threshold to the next; below 0 if any step falls.

    NaN for fewer than two thresholds.

    >>> least_step({0.1: 5, 0.3: 9, 0.2: 7})
    2.0
    """
    steps = np.diff([counts[threshold] for threshold in sorted(counts.keys())])
    return float(steps.min()) if len(steps) else math.nan


def per_hundred(campaign: Campaign, seconds: float | None = None) -> dict[str, float]:
    """What a campaign costs and finds for 100 inputs: ``passes``, ``test_errors``, ``seconds``.

    ``seconds``: those that it took, if they were measured.
    """
    share = 100 / len(campaign.labels)
    found = {"passes": share * campaign.passes, "test_errors": share * int(campaign.errors.sum())}
    return found | ({} if seconds is None else {"seconds": share * seconds})


def error_shares(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of 'test_errors' among last examples, one for each input: in percent of the inputs.

    ``rows``: those of records or of a run, which have the number of inputs as 'seeds_count'.

    >>> error_shares(pd.DataFrame({"quantity": ["test_errors"], "value": [3.0],
    ...                            "seeds_count": [4]}))["value"].item()
    75.0
    """
    part = rows[rows["quantity"] == "test_errors"]
    return part.assign(value=100 * part["value"].astype(float) / part["seeds_count"])


def lines(measured: pd.DataFrame, name: str) -> list[dict]:
    """The lines of a :func:`table` as rows of a record: what stands before the key as ``name``."""
    return [row for (which, key), line in measured.iterrows()
            for row in rows(line, **{name: which}, **key.columns)]


def covered(model: nn.Module, images: torch.Tensor, usual: coverage.Boundaries, *,
            sections: int = 10_000, criteria: Mapping[str, Callable] = CRITERIA) -> pd.Series:
    """What images (N, C, H, W) cover by each of the ``criteria``, in percent.

    With the options of the first paper's IV.C; ``usual``: neurons' boundaries over training
    images; ``sections``: k of KMNC.
    """
    raw = activations.record(model, images)
    scaled = activations.record(model, images, scale=True)
    return pd.Series({name: 100 * coverage.coverage(items(raw, scaled, usual, sections))
                      for name, items in criteria.items()})


def criteria_led(gains: pd.Series, others: pd.Series) -> float:
    """The share of the six criteria of Fig. 3 that gain more than the others' most, in [0, 1].

    Both by the names of criteria; one of your own is not among the six.

    >>> six = pd.Series(1.0, index=FIG_3)
    >>> criteria_led(six.replace({1.0: 2.0}), six.where(six.index != "nc", 3.0))
    0.8333333333333334
    """
    names = [*FIG_3]
    return float((gains[names] > others[names]).mean())
