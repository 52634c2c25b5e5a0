"""What the tables of both DeepSensor papers ask of campaigns, and what their claims make of it."""

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
import torch

from dnnlib.fuzzing.protocol import Campaign

READING = {"deepsensor": "swarm", "deepxplore": "reading"}  # the column that tells them apart


def columns(name: str) -> dict[str, str]:
    """A campaign's name as the columns of a row: the fuzzer, and its swarm or reading.

    Raises ``ValueError`` for a reading of a fuzzer that has one only.

    >>> columns("deepsensor, constant"), columns("dlfuzz")
    ({'fuzzer': 'deepsensor', 'swarm': 'constant'}, {'fuzzer': 'dlfuzz'})
    """
    fuzzer, *reading = name.split(", ", 1)
    if reading and fuzzer not in READING:
        raise ValueError(f"name: expected a reading of {' or '.join(READING)} only, got {name!r}")
    return {"fuzzer": fuzzer} | ({READING[fuzzer]: reading[0]} if reading else {})


def names(table: pd.DataFrame) -> pd.Series:
    """The campaigns' names again, of rows with their :func:`columns`; '' where there is no fuzzer.

    >>> names(pd.DataFrame([columns("deepsensor, constant"), columns("dlfuzz")])).tolist()
    ['deepsensor, constant', 'dlfuzz']
    """
    parts = table.reindex(columns=["fuzzer", *READING.values()])
    return parts.apply(lambda row: ", ".join(row.dropna()), axis=1)


def rows(values: Mapping[str, float], **where) -> list[dict]:
    """Measured values as tidy rows: the columns ``where``, 'quantity' and 'value'.

    >>> rows({"test_errors": 3}, fuzzer="noise")
    [{'fuzzer': 'noise', 'quantity': 'test_errors', 'value': 3.0}]
    """
    return [where | {"quantity": quantity, "value": float(value)}
            for quantity, value in values.items()]


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


def over(count: float, others: Mapping[str, float]) -> dict[str, float]:
    """A count over each of the others and, as 'mean', over the mean of them.

    Where the other count, or the mean, is below 1 it counts as 1.

    >>> over(6, {"dlfuzz": 3, "deephunter": 0})
    {'dlfuzz': 2.0, 'deephunter': 6.0, 'mean': 4.0}
    """
    if not len(others):
        raise ValueError("others: expected at least one count, got none")
    against = {**others, "mean": sum(others[name] for name in others.keys()) / len(others)}
    return {name: float(count / max(1, other)) for name, other in against.items()}


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
