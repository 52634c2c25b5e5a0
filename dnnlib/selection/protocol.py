"""What a selector is, what it sees of a batch of images, and the one loop that orders.

``order`` on a tensor and ``rank`` on files call the same methods, batch by batch: selectors that
are asked together share a pass, and what is kept of the images may lie in a mapped file.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Self

import torch
from torch import nn

from dnnlib import checks
from dnnlib.inference import as_logits, classes_of, device_of, size_for
from dnnlib.neurons.activations import Want, record_all

ROWS = 4096  # images that are looked at together where no pass is shared


@dataclass(frozen=True, eq=False)
class Batch:
    """Images with their ``places`` (B,) among all, and what a pass over them gave.

    ``x``: (B, C, H, W) in [0, 1]; ``logits``: (B, classes), None without a pass; ``values``:
    activations (B, neurons), as wanted; ``labels``: of training images (B,), where they are known.
    """

    model: nn.Module
    x: torch.Tensor
    places: torch.Tensor
    logits: torch.Tensor | None = None
    values: Mapping[Want, torch.Tensor] = field(default_factory=dict)
    labels: torch.Tensor | None = None

    @cached_property
    def p(self) -> torch.Tensor:
        """Softmax vectors (B, classes); ``ValueError`` for an output that is not finite."""
        p = as_logits(self.logits, self.model, self.x).softmax(1)
        if not p.isfinite().all():
            raise ValueError("model: expected finite outputs, got NaN or infinity")
        return p

    @cached_property
    def classes(self) -> torch.Tensor:
        """Predicted classes (B,), of the logits: softmax may make two entries equal."""
        return classes_of(self.logits)

    def of(self, want: Want) -> torch.Tensor:
        """The activations wanted; ``ValueError`` if one is not finite."""
        values = self.values[want]
        if not values.isfinite().all():
            raise ValueError(f"layers {', '.join(want.layers[:3])}: expected finite activations, "
                             "got NaN or infinity")
        return values


class Vectors(Batch):
    """Softmax vectors ``p`` (B, classes) alone, whatever gave them."""

    def __init__(self, p: torch.Tensor):
        super().__init__(nn.Identity(), p, torch.arange(len(p)), p)

    @property
    def p(self):
        return self.logits


class Selector:
    """A frozen dataclass that holds nothing but options.

    ``order`` gives a permutation of the candidates, the most worth labelling first; equals keep
    the order in which they came. It is made of these, which see batches:

    - :meth:`settled`: the same selector for one model, its layers named.
    - ``want``: activations that it needs of a pass, if any.
    - :meth:`learn`, :meth:`learned`: of training images, ``reference``, by the names in ``keeps``.
    - :meth:`read`: what is kept of each image; :meth:`finish`: the order of all.

    ``shared``: whether it needs a pass that others may share; ``passes``: how many it makes by
    itself, a backward pass as two; ``vectors``: whether softmax vectors are all that it reads.
    ``batch_size``: images in a pass on a CPU; elsewhere :func:`inference.size_for` says how many.
    """

    batch_size = 128
    keeps: tuple[str, ...] = ()
    passes, shared, vectors = 0, True, False
    want: Want | None = None
    reference: torch.Tensor  # of those that keep something of training images

    def settled(self, model: nn.Module, x: torch.Tensor) -> Self:
        """With the layers named that are looked at; ``x``: images, which show the model's."""
        return self

    def learn(self, batch: Batch) -> dict[str, torch.Tensor]:
        """What is kept of training images, by the names in ``keeps``, in rows (R, ...)."""
        return {}

    def learned(self, rows: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """What the rows of all batches come to; ``ValueError`` if that will not do."""
        return rows

    def read(self, batch: Batch, known: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """What is kept of each image (B, ...), given what was learned."""
        raise _missing(self, "read(self, batch, known)")

    def finish(self, rows: torch.Tensor, classes: torch.Tensor, known: Mapping[str, torch.Tensor],
               *, folder: Path | None = None, device: torch.device | str = "cpu",
               ) -> tuple[torch.Tensor | None, torch.Tensor]:
        """Scores (N,), if there are any, and the order, of the rows (N, ...) kept of all images.

        ``classes``: the predicted ones (N,), if there was a pass; ``folder``: for files that are
        needed meanwhile; ``device``: the model's.
        """
        raise _missing(self, "finish(self, rows, classes, known, *, folder, device)")

    def order(self, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        """The order of candidates (N, C, H, W) in [0, 1], N >= 2: int64 (N,)."""
        return ordered(self, model, x)[1]


def _missing(chosen: Selector, method: str) -> ValueError:
    return ValueError(f"{type(chosen).__name__}: expected the class to have a method {method}, got "
                      "none")


@dataclass(frozen=True, kw_only=True, eq=False)
class Scored(Selector):
    """A selector that orders by a score of every candidate, the largest first.

    :meth:`Selector.read` gives the scores, or :meth:`Selector.finish` makes them.
    """

    batch_size: int = 128

    def __post_init__(self):
        checks.positive(self.batch_size, "batch_size")

    def finish(self, rows, classes, known, *, folder=None, device="cpu"):
        return rows, by_score(rows, type(self).__name__)

    def score(self, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        """The scores (N,) of candidates (N, C, H, W) in [0, 1], N >= 2."""
        found, _ = ordered(self, model, x)
        assert found is not None
        return found


def ordered(chosen: Selector, model: nn.Module, x: torch.Tensor,
            size: int | None = None) -> tuple[torch.Tensor | None, torch.Tensor]:
    """Scores (N,), if the selector has any, and the order of candidates (N, C, H, W), N >= 2.

    ``size``: images of a batch; default as many as the selector says.
    """
    found = chosen.finish(*kept(chosen, model, x, size),
                          device="cpu" if model is None else device_of(model))
    if not isinstance(found, tuple) or len(found) != 2:
        raise ValueError(f"{type(chosen).__name__}.finish: expected a pair, scores or None and the "
                         f"order, got {type(found).__name__}")
    return found


def kept(chosen: Selector, model: nn.Module, x: torch.Tensor, size: int | None = None,
         ) -> tuple[torch.Tensor, torch.Tensor, dict[str, torch.Tensor]]:
    """Rows (N, ...) of candidates, their classes and what was learned: see :meth:`Selector.finish`.
    """
    candidates(x)
    reference = beside(chosen.reference, x, "reference") if chosen.keeps else None
    chosen, known = chosen.settled(model, x), {}
    if reference is not None:
        labels = getattr(chosen, "reference_labels", None)
        labels = None if labels is None else checks.tensor(labels)
        parts = [chosen.learn(batch)
                 for batch in _batches(chosen, model, reference, size, labels)]
        known = chosen.learned({name: torch.cat([part[name] for part in parts])
                                for name in chosen.keeps})
    rows, classes = [], []
    for batch in _batches(chosen, model, x, size):
        rows.append(rows_of(chosen, batch, known))
        classes.append(batch.classes if chosen.shared else torch.empty(0))
    return torch.cat(rows), torch.cat(classes), known


def _batches(chosen: Selector, model: nn.Module, x: torch.Tensor, size: int | None,
             labels: torch.Tensor | None = None) -> Iterator[Batch]:
    if size is None:
        size = size_for(model, x, chosen.batch_size, times=3) if chosen.shared else ROWS
    for places in torch.arange(len(x)).split(size):
        given = None if labels is None else labels[places]
        yield (passed(model, x[places], places, [chosen], given) if chosen.shared
               else Batch(model, x[places], places, labels=given))


def rows_of(chosen: Selector, batch: Batch, known: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """What :meth:`Selector.read` keeps (B, ...), also of a list or an array; ``ValueError`` unless
    it has a row an image."""
    given = chosen.read(batch, known)
    expected = (f"{type(chosen).__name__}.read: expected a row for each of {len(batch.places)} "
                "images, got ")
    try:
        rows = checks.tensor(given)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(expected + ("None: is a `return` missing?" if given is None else
                                     type(given).__name__)) from error
    if rows.shape[:1] != (len(batch.places),):
        raise ValueError(f"{expected}shape {tuple(rows.shape)}")
    return rows


def passed(model: nn.Module, x: torch.Tensor, places: torch.Tensor,
           selectors: Sequence[Selector], labels: torch.Tensor | None = None) -> Batch:
    """A batch after one pass, for all selectors; each is :meth:`Selector.settled`."""
    wants = {each.want: None for each in selectors if each.want is not None}
    return Batch(model, x, places, *record_all(model, x, tuple(wants)), labels)


def candidates(x: torch.Tensor) -> torch.Tensor:
    """At least two images: there is nothing to order in one."""
    checks.images(x)
    if len(x) < 2:
        raise ValueError(f"x: expected at least two candidates to order, got {len(x)}")
    return x


def beside(other: torch.Tensor, x: torch.Tensor, name: str) -> torch.Tensor:
    """Images of the shape of those in ``x``, as many or as few as there may be."""
    checks.images(other, name)
    if other.shape[1:] != x.shape[1:]:
        raise ValueError(f"{name}: expected images of shape {tuple(x.shape[1:])} as in x, "
                         f"got {tuple(other.shape[1:])}")
    return other


def by_score(score, name: str = "score") -> torch.Tensor:
    """Indices by falling score (N,), stable under ties. Raises ``ValueError`` on NaN, by ``name``.

    >>> by_score([0.5, 0.9, 0.5]).tolist()
    [1, 0, 2]
    """
    score = checks.tensor(score)
    if score.ndim != 1:
        raise ValueError(f"{name}: expected one score for each image, of shape (N,), got shape "
                         f"{tuple(score.shape)}")
    if score.isnan().any():
        raise ValueError(f"{name}: expected scores without NaN, got {int(score.isnan().sum())} NaN "
                         f"among {len(score)}")
    return score.argsort(descending=True, stable=True)


def top(order, rate: float) -> torch.Tensor:
    """The first share of an order (N,): what is labelled when ``rate`` of the candidates is.

    Raises ``ValueError`` for a rate outside (0, 1] or one that selects no candidate.

    >>> top(torch.tensor([3, 1, 0, 2]), 0.5).tolist()
    [3, 1]
    """
    order = checks.tensor(order)
    chosen = checks.count(len(order), rate)
    if not chosen:
        raise ValueError(f"rate: {rate:g} of {len(order)} candidates is none; take at least "
                         f"{1 / max(len(order), 1):.2g}")
    return order[:chosen]
