"""Ranking a person's own images by a person's own model: what ``dnnlib rank`` does."""

import logging
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from types import MappingProxyType

import pandas as pd
import torch
from torch import nn

from dnnlib import checks, selection
from dnnlib.custom.class_names import distinct
from dnnlib.custom.duplicates import duplicates
from dnnlib.custom.identity import identity_of
from dnnlib.custom.labelling import merged
from dnnlib.custom.looks import few, first_look
from dnnlib.custom.methods import (
    FROM_OUTPUTS,
    Asked,
    Kind,
    kinds_of,
    parse_methods,
    said,
    tell_unused,
)
from dnnlib.custom.own_code import made_of, own_code
from dnnlib.custom.photos import Images, Photos, photos_of, shortened
from dnnlib.custom.ranking_run import Run
from dnnlib.custom.rehearsal import chosen_of
from dnnlib.custom.scores import Job
from dnnlib.data.pictures import Pictures
from dnnlib.inference import leaves_modes
from dnnlib.selection.protocol import Vectors, rows_of

_log = logging.getLogger(__name__)  # to stderr, as it is
TOP = 0.05  # of the candidates, unless another share is asked for


def parse_top(top: str | float | None, n: int) -> float:
    """A share of ``n`` candidates: '5%', '0.05', or the count '50'; None: 5 %, and at least one.

    >>> parse_top("5%", 200), parse_top("0.05", 200), parse_top("50", 200), parse_top(None, 8)
    (0.05, 0.05, 0.25, 0.125)
    """
    if top is None:
        return max(TOP, 1 / n)
    text = str(top).strip()
    try:
        share = (float(text[:-1]) / 100 if text.endswith("%")
                 else float(text) if "." in text else int(text) / n)
    except ValueError as error:
        raise ValueError("top: expected a share such as 5% or 0.05, or a count such as 50 (--top), "
                         f"got {top!r}") from error
    if not 0 < share <= 1:
        raise ValueError("top: expected a share above 0 % and up to 100 %, or a count from 1 to at "
                         f"most the {n} images there are (--top), got {top}")
    if not checks.count(n, share):
        raise ValueError(f"top: {top} of {n} candidates is none; take a count, such as 1 (--top)")
    return share


@leaves_modes
def rank(model: nn.Module, images: Images, by: Asked, *,
         reference: Images | None = None, top: str | float | None = None,
         seed: int | None = None, probabilities: bool | None = None,
         layers: Sequence[str] | None = None, batch_size: int = 64, block: int = 1024,
         workers: int | None = None, folder: str | Path | None = None, client=None,
         merge: bool = False, class_names: Sequence[str] | None = None) -> pd.DataFrame:
    """Every image's score and rank by each method in ``by``, see :func:`methods.parse_methods`.

    A string of names with commas, as the command takes it, is taken too.

    - ``images``, ``reference``: what :func:`photos_of` takes; the latter are training images, which
      some methods need.
    - ``top``: to select: 5%, 0.05, or a count, 50; default 5%, and at least one image.
    - ``seed``: of what is random in a method; default its own.
    - ``probabilities``: see :func:`classifier`.
    - ``layers``: layers whose neurons count, by name or pattern; default all. Methods that look at
      one take the last. See :func:`layers.matching`.
    - ``batch_size``: images in one pass.
    - ``block``: images whose scores are kept at once: all that a run that is killed does again.
    - ``workers``: processes that read images ahead; default one for each core, at most 8.
    - ``folder``: where scores are kept block by block, so that the same call goes on after it was
      killed, and a finished run is not made again; default none.
    - ``client``: of a Dask cluster, whose workers score the blocks; they need the same files.
    - ``merge``: one list from all methods, before theirs: by the mean of an image's ranks; among
      equals the first method decides.
    - ``class_names``: one for each class, in the order of the model's outputs.

    Images are read as they are needed, block by block, and all methods share a pass over them
    (:class:`scores.Blocks`); what each block gave is kept, and put in order in the end
    (:class:`ranking_run.Run`).

    What cannot work is told by a few images, before the others are looked at. Returns a row for
    every image, in the order of the first method, then those that cannot be read with their reason
    under 'note'; the index is the place in what was given, a list, dataset or array, or among a
    folder's images in order of their paths. A method has a ``_score``, the larger the sooner and
    empty where it only orders, a ``_rank`` from 1, and says what is ``_selected``.
    Beside them: the class 'predicted', its 'predicted_name' if there are names, the
    'confidence' in it and the 'margin' to the next, empty if no method needed a pass; for files,
    'absolute_path' and 'duplicate_of', the path of the first image of the same bytes.
    A method that fails later costs only itself: its reason is in the table's ``attrs["failed"]``,
    by name; ``attrs["unread"]`` and ``["reference"]`` have those of images and training images.
    ``attrs["used"]`` says in one line of what the run was.
    Raises ``ValueError`` naming the method that cannot rank these, if all fail, or for a folder
    where another run was killed; one that is finished is put aside, as ``folder-1``.
    """
    methods = parse_methods(by, reference=reference is not None, layers=layers)
    seed = None if seed is None else checks.seed(seed)
    photos = photos_of(images, model)
    if len(photos) < 2:
        raise ValueError(f"images: expected at least two candidates to order, got {len(photos)}")
    tell_unused(methods, reference)
    seen = None if reference is None else photos_of(reference, model)
    chosen = len(selection.top(torch.arange(len(photos)), parse_top(top, len(photos))))
    batch_size, block = _sizes(batch_size, block)
    look = first_look(model, photos, seen, probabilities=probabilities)
    job = job_of(look.model, look.images, photos, methods, reference=seen, seed=seed, layers=layers,
                 batch_size=batch_size, block=block)
    classes = max(2, look.answers.shape[1])  # one column is the second of two
    if class_names is not None:
        class_names = distinct(class_names, classes)
    identity = identity_of(look, replace(photos, labels=None), seen, {  # no score looks at labels
        "by": sorted(said(*each) for each in methods.items()), "probabilities": bool(probabilities),
        "seed": seed, "layers": layers and list(layers), "batch_size": batch_size, "block": block},
        compared=folder is not None)
    with tempfile.TemporaryDirectory() as place:
        run = Run(place if folder is None else folder, identity)
        places, found = run.go(job, seen, workers, client)
    found = {name: found[name] for name in methods if name in found}  # as asked for this time
    table = _described(photos, places, run.outputs)
    if class_names is not None:
        table.insert(2, "predicted_name", [pd.NA if pd.isna(given) else class_names[given]
                                           for given in table["predicted"]])
    table["note"] = [run.skipped.get(i, "") for i in range(len(photos))] + [
        *photos.skipped.values()]
    for name, tensors in found.items():
        score = tensors.get("score")
        if score is not None and (score == score[0]).all():
            _log.warning("%s: all images have the same score, so that their order says nothing",
                         name)
        _add(table, name, score, places[tensors["order"]], min(chosen, len(places)))
    for name in ("duplicate_of", "absolute_path", "note"):  # as the last columns
        if name in table:
            table[name] = table.pop(name)
    table.attrs |= {"failed": run.failed, "used": identity.said(run.again),
                    "class_names": class_names, "classes": classes, "reference": run.unread,
                    "unread": {photos.paths[i]: why for i, why in run.skipped.items()}}
    table = table.sort_values(f"{[*found][0]}_rank", kind="stable", na_position="last")
    table = merged(table, min(chosen, len(places))) if merge else table
    return table.set_axis([photos.places[i] for i in table.index]) if photos.places else table


def _described(photos: Photos, places: torch.Tensor,
               outputs: Mapping[str, torch.Tensor]) -> pd.DataFrame:
    """Of every image, also of those that cannot be read: which it is, and what the model says."""
    paths = pd.Series([*photos.paths, *photos.skipped], dtype=object)  # perhaps no text
    table = pd.DataFrame({"path": paths})
    for name, kind in (("predicted", "Int64"), ("confidence", None), ("lead", None)):
        table[{"lead": "margin"}.get(name, name)] = (
            pd.Series(outputs[name].numpy(), places.tolist(), kind) if name in outputs
            else pd.Series(torch.nan, table.index, dtype=kind))
    if photos.labels is not None and (photos.labels >= 0).any():
        named = [pd.NA if i < 0 else photos.classes[i] if photos.classes else str(i)
                 for i in photos.labels.tolist()]
        table.insert(1, "label", pd.Series(named, dtype=object))
    if isinstance(photos.source, Pictures):
        table["duplicate_of"] = pd.Series({later: photos.paths[first] for later, first
                                           in duplicates(photos).items()}, dtype=object)
        table["absolute_path"] = pd.Series(photos.source.files, dtype=object)
    return table


def prepared_job(model: nn.Module, photos: Photos, methods: Asked, *,
                 reference: Photos | None, seed: int | None, layers: Sequence[str] | None,
                 probabilities: bool | None, batch_size: int, block: int) -> Job:
    """What :func:`rank` will do, after a look at 64 images, and at a few by each method.

    The model is put in evaluation mode.
    """
    batch_size, block = _sizes(batch_size, block)
    tell_unused(kinds_of(methods), reference)
    look = first_look(model, photos, reference, probabilities=probabilities)
    return job_of(look.model, look.images, photos, methods, reference=reference, seed=seed,
                  layers=layers, batch_size=batch_size, block=block)


def _sizes(batch_size: int, block: int) -> tuple[int, int]:
    return checks.positive(batch_size, "batch_size"), checks.positive(block, "block")


def job_of(model: nn.Module, some: torch.Tensor, photos: Photos, methods: Asked, *,
           reference: Photos | None, seed: int | None, layers: Sequence[str] | None,
           batch_size: int, block: int) -> Job:
    """As :func:`prepared_job`, after :func:`looks.first_look`, which gave ``some``."""
    tried = some[:8] if len(some) > 1 else some.repeat(2, 1, 1, 1)
    shown = None if reference is None else few(model, reference)
    selectors = {name: chosen_of(name, kind, model, tried, reference=shown, seed=seed,
                                 layers=layers, batch_size=batch_size)
                 for name, kind in kinds_of(methods).items()}
    return Job(model, photos, selectors, batch_size, block)


def rank_outputs(p: torch.Tensor, names: Sequence[str],
                 by: Asked, *, top: str | float | None = None,
                 seed: int | None = None, merge: bool = False,
                 class_names: Sequence[str] | None = None,
                 unread: Mapping[str, str] = MappingProxyType({})) -> pd.DataFrame:
    """As :func:`rank`, for softmax vectors (N, classes) alone, of whatever model; called ``names``.

    ``by``: of :data:`methods.FROM_OUTPUTS`, or a person's own that says so; ``class_names``: in
    the order of the columns; ``unread``: the reasons for rows that are no softmax vectors, by name,
    which come last. Raises ``ValueError`` for a
    method that needs a model.

    >>> p = torch.tensor([[0.9, 0.1], [0.5, 0.5]])
    >>> rank_outputs(p, ["a", "b"], "gini", top=1)["path"].tolist()
    ['b', 'a']
    """
    methods = kinds_of(by)
    seed = None if seed is None else checks.seed(seed)
    if others := [name for name, kind in methods.items() if not kind.vectors]:
        raise ValueError(f"{others[0]}: needs a model and images; from outputs alone there are "
                         f"{', '.join(FROM_OUTPUTS)}")
    if len(p) < 2:
        raise ValueError(f"outputs: expected at least two rows to order, got {len(p)}")
    chosen = len(selection.top(torch.arange(len(p)), parse_top(top, len(p))))
    two = p.topk(2).values
    table = pd.DataFrame({"path": pd.Series([*names, *unread], dtype=object)})
    table["predicted"] = pd.Series(p.argmax(1).numpy(), dtype="Int64" if unread else "int64")
    if class_names is not None:
        called = distinct(class_names, p.shape[1])
        table["predicted_name"] = pd.Series([called[i] for i in p.argmax(1).tolist()], dtype=object)
    table["confidence"] = pd.Series(two[:, 0].numpy())
    table["margin"] = pd.Series((two[:, 0] - two[:, 1]).numpy())
    for name, kind in methods.items():
        try:
            with own_code(kind):
                score, order = _from_outputs(kind, p, seed)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
        _add(table, name, score, order, chosen)
    table["note"] = [""] * len(p) + [*unread.values()]
    table = table.sort_values(f"{[*methods][0]}_rank", kind="stable", na_position="last")
    return merged(table, chosen) if merge else table


def _from_outputs(kind: Kind, p: torch.Tensor,
                  seed: int | None) -> tuple[torch.Tensor | None, torch.Tensor]:
    """Scores, None where the method has none, and the order, of softmax vectors (N, n)."""
    seeded = seed is not None and "seed" in {field.name for field in fields(kind)}
    chosen = made_of(kind, {"seed": seed} if seeded else {})
    return chosen.finish(rows_of(chosen, Vectors(p), {}), p.argmax(1), {})


def _add(table: pd.DataFrame, name: str, score, order: torch.Tensor, chosen: int) -> None:
    """A method's columns, for the images in ``order``; what is not in it stays empty.

    ``score``: of them by their place, not in this order.
    """
    places, ranks = order.tolist(), range(1, len(order) + 1)
    table[f"{name}_score"] = torch.nan if score is None else pd.Series(
        score.numpy(), sorted(places))
    table[f"{name}_rank"] = pd.Series(ranks, places, "Int64")
    table[f"{name}_selected"] = (table[f"{name}_rank"] <= chosen).fillna(False).astype(bool)


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
        places = photos.numbers(rows["path"])
        there = photos.those(places)  # perhaps not what was there when it was ranked
        titles = [title for title, i in zip(titles, places) if i in there]
        if there:
            found[name] = (torch.stack([*there.values()]), titles)
    return found
