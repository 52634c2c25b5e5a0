"""Which method is worth its passes on a person's own model? Told by images of known classes."""

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd
import torch
from torch import nn

from dnnlib import checks, selection
from dnnlib.custom.against_noise import fuzzed, options_of_all
from dnnlib.custom.class_names import classes_named, labels_of
from dnnlib.custom.identity import identity_of
from dnnlib.custom.looks import few, first_look
from dnnlib.custom.methods import (
    Asked,
    needs_reference,
    parse_methods,
    takes_layers,
    tell_unused,
)
from dnnlib.custom.photos import Images, Photos, photos_of
from dnnlib.custom.ranking import job_of
from dnnlib.custom.ranking_run import Run
from dnnlib.custom.rehearsal import rehearse_fuzzer
from dnnlib.custom.scores import Job, classes_of_photos
from dnnlib.custom.worth import fuzzers_sentence, interval, selectors_sentence
from dnnlib.fuzzing import Budget
from dnnlib.inference import leaves_modes
from dnnlib.measures import faults

RATES = (5, 10, 20)  # % of the images, as NSS's tables
RESAMPLES = 1000


@dataclass(frozen=True, eq=False)
class Compared:
    """``selectors``: a row for each method and rate, 'found' in %; ``fuzzers``: a row for each, if
    any; ``left``: the reasons for methods that are not there, ``unread`` for images and
    ``reference`` for training images, by name. ``images``, ``wrong``: how many there are, and how
    many the model gets wrong; ``sentences``: what it comes to; ``used``: of what, in a line;
    ``failed``: which methods of ``left`` were asked for by their names.
    """

    selectors: pd.DataFrame
    fuzzers: pd.DataFrame
    images: int
    wrong: int
    sentences: tuple[str, ...]
    left: Mapping[str, str] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    reference: Mapping[str, str] = field(default_factory=dict)
    used: str = ""
    failed: Sequence[str] = ()


@leaves_modes
def compare(model: nn.Module, images: Images,
            by: Asked | Literal["all"] = "all", *,
            reference: Images | None = None, fuzz: str = "", l2: float | None = None,
            linf: float | None = None, iterations: int = 20, population: int | None = None,
            limit: int = 100, rates: Sequence[float] | None = None, resamples: int = RESAMPLES,
            seed: int = 0, probabilities: bool | None = None, layers: Sequence[str] | None = None,
            class_names: Sequence[str] | None = None, batch_size: int = 64,
            workers: int | None = None) -> Compared:
    """Every selector's fault detection, and every fuzzer's errors against noise.

    ``images``: in sub-folders of the model's classes, or with labels in a Parquet file, see
    :func:`classes_named`, also for ``class_names``. ``by``, ``fuzz``: names of methods with commas,
    or 'all', those that can work here; ``reference``: training images, for methods that need them.
    ``l2``, ``linf``, ``iterations``, ``population``: of :class:`Options`, for fuzzers.

    - ``rates``: shares of the images, in %; default those of 5, 10 and 20 that are an image at
      least.
    - ``limit``: inputs for fuzzers, evenly spread over the images that the model gets right.
    - ``layers``: layers whose neurons count, by name or pattern; default all. Methods that look at
      one take the last. See :func:`layers.matching`.
    - ``resamples``: of the images, for the intervals of the leads in the table.
    - ``seed``: of the resamples and of fuzzers.
    - ``workers``: processes that read images ahead; default one for each core, at most 8.

    ``selectors`` has, beside each method: 'random', the expectation, and 'best possible'. 'found':
    the share of misclassified images among the first ones, with Wilson's interval of 95 %, and
    'lead', what it is above random order, with one over the resamples. 'passes': over an
    image, those over training images shared out among the images; 'seconds': of the method alone,
    with reading. ``fuzzers``: the share of inputs that are 'broken' within the distance, of noise
    with as many examples ('noise') and with as many passes ('noise_passes'), and the paired 'lead'
    over the latter. The sentences rest on exact tests of these counts, whatever the resamples.

    Raises ``ValueError`` for names and rates that will not do before the first pass, for folders
    after a look at 64 images, and later if the model gets every image right, or none. A method that
    is asked for by name and cannot work on two images is an error; of 'all', it is in ``left``.
    """
    methods = parse_methods(
        [name for name in selection.SELECTORS if reference is not None or not needs_reference(name)]
        if by == "all" else by, reference=reference is not None, layers=layers)
    methods.pop("random", None)
    if not methods:
        raise ValueError("by: expected a method to compare with random order, got random alone")
    fuzzers, left = options_of_all(fuzz, reference is not None, l2=l2, linf=linf,
                                   iterations=iterations, population=population,
                                   batch_size=batch_size, limit=limit)
    tell_unused(methods, reference,
                {name: options.needs_reference for name, options in fuzzers.items()})
    checks.positive(resamples, "resamples")
    photos = photos_of(images, model)
    if rates is None:
        rates = [rate for rate in RATES if checks.count(len(photos), rate / 100)] or RATES
    for rate in rates:
        if not checks.count(len(photos), rate / 100, "rate"):
            raise ValueError(f"rates: {rate:g} % of {len(photos)} images is none")
    if photos.labels is None and any("/" not in path for path in photos.paths):
        classes_named(photos, 2, "folders")  # tells which has no folder
    seen = None if reference is None else photos_of(reference, model)
    look = first_look(model, photos, seen, probabilities=probabilities,
                      budget=Budget(l2=l2, linf=linf))
    fit, some = look.model, look.images
    with torch.no_grad():
        names = classes_named(photos, fit(some[:2]).shape[1], "folders", class_names)
    jobs = {}
    for name, kind in methods.items():
        try:
            jobs[name] = job_of(fit, some, photos, {name: kind}, reference=seen, seed=None,
                                layers=layers if takes_layers(kind) else None,
                                batch_size=batch_size, block=1024)
        except ValueError as error:
            if by != "all":
                raise
            left[name] = str(error).removeprefix(f"{name}: ")
    for name, options in [*fuzzers.items()]:
        try:
            rehearse_fuzzer(name, options.fuzzer(few(fit, seen) if seen is not None and
                                                 options.needs_reference else None),
                            fit, some, torch.zeros(len(some), dtype=torch.int64))
        except ValueError as error:
            if fuzz != "all":
                raise
            left[name] = str(error).removeprefix(f"{name}: ")
            del fuzzers[name]
    labels = labels_of(photos, names)
    given, unread = classes_of_photos(fit, photos, batch_size=batch_size, workers=workers)
    wrong = (given != labels).numpy()[(given >= 0).numpy()]
    if wrong.all() or not wrong.any():
        raise ValueError(f"images: the model gets {'none' if wrong.all() else 'all'} of "
                         f"{len(wrong)} right, so that there is nothing to tell methods apart by")
    orders, costs, unseen = {}, {}, {}
    for name, job in jobs.items():
        try:
            order, cost, run = _ordered(name, job, seen, workers)
            if run.skipped.keys() != unread.keys():
                raise ValueError("leaves out other images than a pass over them does")
            orders[name], costs[name] = order, cost
            unseen |= run.unread
        except ValueError as error:  # that only a look at all images could show
            left[name] = str(error).removeprefix(f"{name}: ")
    if not orders:
        raise ValueError("images: no method works here: "
                         + "; ".join(f"{name}: {why}" for name, why in left.items()))
    table, found_by = detection(wrong, orders, rates, resamples=resamples, seed=seed)
    for column in ("passes", "seconds"):
        table[column] = [costs.get(name, {}).get(column, 0.0) for name in table["method"]]
    right = ((given == labels) & (given >= 0)).nonzero()[:, 0]
    count = min(limit, len(right))
    right = right[torch.arange(count) * len(right) // count]
    # dealt as by fuzz: DLFuzz does badly on a block of few classes
    right = right[torch.randperm(count, generator=torch.Generator().manual_seed(seed))]
    told, found = [selectors_sentence(table, found_by)], pd.DataFrame()
    if fuzzers:
        found, broken, by_noise = fuzzed(fit, photos.take(right), labels[right], fuzzers,
                                         seen, resamples, seed, left)
        told += [fuzzers_sentence(found, broken, by_noise)] if broken else []
    asked = {*(() if by == "all" else methods), *(() if fuzz == "all" else fuzzers)}
    return Compared(table, found, len(wrong), int(wrong.sum()), tuple(told), left,
                    {photos.paths[i]: why for i, why in unread.items()}, unseen,
                    identity_of(look, photos, seen, {}, compared=False).said(False),
                    [name for name in left if name in asked])


def detection(wrong: np.ndarray, orders: Mapping[str, np.ndarray], rates: Sequence[float] = RATES,
              *, resamples: int = RESAMPLES, seed: int = 0,
              ) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """The rows of :class:`Compared`'s ``selectors``, and which faults each method has first.

    ``wrong``: bool (N,); ``orders``: permutations of range(N), by method. An image that is drawn
    twice stands twice in its place of the order. Faults: at the first rate, bool (N,).

    >>> wrong = np.arange(100) < 10
    >>> table, _ = detection(wrong, {"good": np.arange(100)}, [10])
    >>> table[["method", "found"]].values.tolist()
    [['good', 100.0], ['random', 10.0], ['best possible', 100.0]]
    """
    rng, n = np.random.default_rng(seed), len(wrong)
    weights = rng.multinomial(n, np.full(n, 1 / n), size=resamples).astype(np.int32)
    base, rows = 100 * (weights @ wrong) / n, []
    faults_by = {"random": wrong, "best possible": wrong}
    for rate in rates:
        taken = checks.count(n, rate / 100)
        best = np.minimum(100.0, base * n / taken)
        found = {name: (100 * faults.fault_detection_rate(wrong, order, rate / 100),
                        _resampled(wrong[order], weights[:, order], taken))
                 for name, order in orders.items()}
        found |= {"random": (100 * float(wrong.mean()), base),
                  "best possible": (100 * faults.best_rate(wrong, rate / 100), best)}
        if rate == rates[0]:
            faults_by |= {name: wrong & (np.argsort(order) < taken)
                          for name, order in orders.items()}
        for name, (value, values) in found.items():
            of = n if name == "random" else taken
            low, high = interval(round(value * of / 100), of)
            behind, ahead = np.percentile(values - base, (2.5, 97.5))
            rows.append({"method": name, "rate": rate, "found": value, "low": low, "high": high,
                         "lead": value - 100 * float(wrong.mean()), "lead_low": behind,
                         "lead_high": ahead})
    return pd.DataFrame(rows), faults_by


def _resampled(wrong: np.ndarray, weights: np.ndarray, taken: int) -> np.ndarray:
    """In % (R,), the faults among the first ``taken``; both (.., N) in the method's order."""
    before = weights.cumsum(1) - weights
    return 100 * (np.clip(taken - before, 0, weights) @ wrong) / taken


def _ordered(name: str, job: Job, seen: Photos | None,
             workers: int | None) -> tuple[np.ndarray, dict[str, float], Run]:
    """The order by one method alone, what it took, and the run."""
    chosen = job.selectors[name]
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        run = Run(place)
        places, found = run.go(job, seen, workers, None)
    passes = chosen.shared + chosen.passes
    share = 1 + (len(seen) / len(places) if chosen.keeps and seen is not None else 0)
    cost = {"passes": passes * share, "seconds": time.perf_counter() - start}
    return found[name]["order"].numpy(), cost, run
