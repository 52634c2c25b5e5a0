"""Ranking a person's own images by a person's own model: what ``dnnlib rank`` does."""

from collections.abc import Sequence
from dataclasses import MISSING, fields

import pandas as pd
import torch
from torch import nn
from tqdm import tqdm

from dnnlib import checks, selection
from dnnlib.custom.classifier import classifier
from dnnlib.custom.photos import Photos, shortened
from dnnlib.custom.rehearsal import FROM_OUTPUTS, options_of, rehearse
from dnnlib.inference import predict
from dnnlib.measures.uncertainty import indecision
from dnnlib.selection.protocol import candidates


def parse_methods(by: str, *, reference: bool) -> tuple[str, ...]:
    """The names in 'gini,nss', of :data:`selection.SELECTORS`, before anything is computed.

    ``reference``: whether there are training images. Raises ``ValueError`` for a name that is
    unknown or comes twice, and for one that needs training images where there are none.

    >>> parse_methods("gini, dsa", reference=False)
    Traceback (most recent call last):
    ValueError: dsa: needs training images; give a folder of them (--reference)
    """
    names = checks.words(by, "methods", selection.SELECTORS, "method")
    for name in names:
        if needs_reference(name) and not reference:
            raise ValueError(f"{name}: needs training images; give a folder of them (--reference)")
    return names


def needs_reference(method: str) -> bool:
    """Whether a selector compares the candidates with training images.

    >>> [name for name in ("gini", "nss", "kmnc") if needs_reference(name)]
    ['kmnc']
    """
    return any(f.name == "reference" and f.default is MISSING
               for f in fields(selection.SELECTORS[method]))


def parse_top(top: str | float, n: int) -> float:
    """A share of ``n`` candidates: '5%', '0.05', or the count '50'.

    >>> parse_top("5%", 200), parse_top("0.05", 200), parse_top("50", 200)
    (0.05, 0.05, 0.25)
    """
    text = str(top).strip()
    try:
        if text.endswith("%"):
            return float(text[:-1]) / 100
        share = float(text) if "." in text else int(text) / n
    except ValueError as error:
        raise ValueError("top: expected a share such as 5% or 0.05, or a count such as 50, "
                         f"got {top!r}") from error
    if "." not in text and share > 1:
        raise ValueError(f"top: expected at most the {n} images there are, got {top}")
    return share


def rank(model: nn.Module, photos: Photos, by: str, *, reference: torch.Tensor | None = None,
         top: str | float = 0.05, seed: int | None = None, probabilities: bool = False,
         layers: Sequence[str] | None = None, batch_size: int = 64) -> pd.DataFrame:
    """Every image's score and rank by each method in ``by``, see :func:`parse_methods`.

    ``reference``: training images (M, C, H, W), which some methods need; ``top``: as of
    :func:`parse_top`; ``seed``: of what is random in a method, default its own;
    ``probabilities``: see :func:`classifier`; ``layers``: names or patterns, of
    :func:`layers.matching`, with nac, kmnc and npc; nss and dsa take the last of them.

    What cannot work is told by two images, before the others are looked at. Returns a row for
    every image, in the order of the first method, then the skipped ones with their reason under
    'note'; the index is the place in ``photos.images``. A method has a ``_score``, the larger the
    sooner and empty where it only orders, a ``_rank`` from 1, and says what is ``_selected``.
    Methods that read softmax vectors share one pass. A method that fails later costs only itself:
    its reason is in the table's ``attrs["failed"]``, by name. Raises ``ValueError`` naming the
    method that cannot rank these, or if all fail.
    """
    methods = parse_methods(by, reference=reference is not None)
    checks.positive(batch_size, "batch_size")
    x, n = candidates(photos.images), len(photos.images)
    chosen = len(selection.top(torch.arange(n), parse_top(top, n)))
    model = classifier(model, x, probabilities=probabilities)
    options = {name: options_of(name, model, x, reference=reference, seed=seed, layers=layers,
                                batch_size=batch_size) for name in methods}
    for name in methods:
        rehearse(name, options[name], model, x)
    table = pd.DataFrame({"path": [*photos.paths, *photos.skipped]})
    p, done, failed = None, [], {}
    for name in tqdm(methods, desc="ranking", unit="method"):
        try:
            if name in FROM_OUTPUTS:
                if p is None and name != "random":
                    p = predict(model, x, batch_size=batch_size)
                score, order = _from_outputs(name, p, n, seed)
            else:
                score, order = _ordered(selection.selector(name, **options[name]), model, x)
        except (ValueError, RuntimeError) as error:
            failed[name] = str(error).strip().splitlines()[0]
            continue
        _add(table, name, score, order, chosen)
        done.append(name)
    if not done:
        raise ValueError("; ".join(f"{name}: {why}" for name, why in failed.items()))
    table["note"] = [""] * n + [*photos.skipped.values()]
    table.attrs["failed"] = failed
    return table.sort_values(f"{done[0]}_rank", kind="stable", na_position="last")


def rank_outputs(p: torch.Tensor, names: Sequence[str], by: str, *, top: str | float = 0.05,
                 seed: int | None = None) -> pd.DataFrame:
    """The same for softmax vectors (N, classes) alone, whatever gave them, called ``names``.

    ``by``: of :data:`FROM_OUTPUTS`. Raises ``ValueError`` for a method that needs a model.

    >>> p = torch.tensor([[0.9, 0.1], [0.5, 0.5]])
    >>> rank_outputs(p, ["a", "b"], "gini", top=1)["path"].tolist()
    ['b', 'a']
    """
    methods = checks.words(by, "methods", selection.SELECTORS, "method")
    if others := [name for name in methods if name not in FROM_OUTPUTS]:
        raise ValueError(f"{others[0]}: needs a model and images; from outputs alone there are "
                         f"{', '.join(FROM_OUTPUTS)}")
    if len(p) < 2:
        raise ValueError(f"outputs: expected at least two rows to order, got {len(p)}")
    chosen = len(selection.top(torch.arange(len(p)), parse_top(top, len(p))))
    table = pd.DataFrame({"path": list(names)})
    for name in methods:
        try:
            score, order = _from_outputs(name, p, len(p), seed)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
        _add(table, name, score, order, chosen)
    table["note"] = ""
    return table.sort_values(f"{methods[0]}_rank", kind="stable")


def _from_outputs(name: str, p: torch.Tensor | None, n: int,
                  seed: int | None) -> tuple[torch.Tensor | float, torch.Tensor]:
    """Scores, NaN where the method has none, and the order, of n softmax vectors."""
    given = {} if seed is None else {"seed": seed}
    if name == "random":  # needs their number only
        return torch.nan, selection.Random(**given).order(None, torch.zeros(n, 1, 1, 1))
    if name == "ats":
        return torch.nan, selection.ATS(**given).arrange(p)
    score = indecision(p, name)
    return score.numpy(), selection.by_score(score)


def _add(table: pd.DataFrame, name: str, score, order: torch.Tensor, chosen: int) -> None:
    """A method's columns; shorter than the table, since what was skipped stays empty."""
    place = pd.Series(order.argsort() + 1, dtype="Int64")
    table[f"{name}_score"] = pd.Series(score, range(len(order)))
    table[f"{name}_rank"] = place
    table[f"{name}_selected"] = (place <= chosen).reindex(table.index, fill_value=False)


def _ordered(chosen: selection.Selector, model: nn.Module,
             x: torch.Tensor) -> tuple[torch.Tensor | float, torch.Tensor]:
    """Scores, NaN where the method has none, and the order."""
    if not isinstance(chosen, selection.Scored):
        return torch.nan, chosen.order(model, x)
    score = chosen.score(model, x)  # once: it may take all the time
    return score.numpy(), selection.by_score(score)


def first(table: pd.DataFrame, photos: Photos, *,
          limit: int = 24) -> dict[str, tuple[torch.Tensor, list[str]]]:
    """For every method of :func:`rank`'s ``table``, the images selected, at most ``limit``.

    Each with a title of two lines: rank and score, and the end of the file's name.
    """
    found = {}
    for name in (c.removesuffix("_rank") for c in table if c.endswith("_rank")):
        rows = table[table[f"{name}_selected"]].sort_values(f"{name}_rank")[:limit]
        titles = []
        for path, place, score in zip(rows["path"], rows[f"{name}_rank"], rows[f"{name}_score"]):
            titles.append(f"{place}" + ("" if pd.isna(score) else f": {score:.3g}")
                          + f"\n{shortened(path)}")
        found[name] = (photos.images[rows.index.tolist()], titles)
    return found
