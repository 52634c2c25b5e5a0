"""DeepXplore: ascent on disagreement and neuron coverage, under image constraints (SOSP 2017)."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

import torch
from torch import nn

from dnnlib import checks
from dnnlib.fuzzing.ascent import Hits, Response, normalise
from dnnlib.fuzzing.protocol import Budget, Log
from dnnlib.fuzzing.together import Climb, Look, Search, Side
from dnnlib.inference import device_of

READINGS = ("differential", "single")
CONSTRAINTS = {"blackout": 6, "light": None, "occlusion": 10}  # default side of the rectangle
CLIPS = ("step", "judging", "saving")


def inside(corners: torch.Tensor, patch: int, size: tuple[int, int]) -> torch.Tensor:
    """Squares of ``patch`` pixels a side, bool (B, 1, H, W), True inside.

    ``corners``: int64 (B, 2), the top row and the left column of each. ``size``: (H, W).

    >>> inside(torch.tensor([[0, 1]]), 2, (3, 3)).int()[0, 0].tolist()
    [[0, 1, 1], [0, 1, 1], [0, 0, 0]]
    """
    def span(n: int, first: torch.Tensor) -> torch.Tensor:
        at = torch.arange(n, device=first.device)
        return (at >= first[:, None]) & (at < first[:, None] + patch)

    tall, wide = map(span, size, corners.unbind(1))
    return tall[:, None, :, None] & wide[:, None, None, :]


def light(g: torch.Tensor) -> torch.Tensor:
    """Every pixel gets the mean of its image's gradient: brighter or darker as a whole."""
    return g.mean((1, 2, 3), keepdim=True).expand_as(g)


def occlusion(g: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The gradient inside a square, 0 outside: what a sticker there may show."""
    return g * mask


def blackout(g: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """-1 inside a square whose mean gradient is negative; no step at all for other images.

    >>> g = torch.tensor([[[[1.0, -2.0]]], [[[1.0, 2.0]]]])
    >>> mask = torch.ones(2, 1, 1, 2, dtype=torch.bool)
    >>> blackout(g, mask).tolist()
    [[[[-1.0, -1.0]]], [[[0.0, 0.0]]]]
    """
    dark = (g * mask).sum((1, 2, 3), keepdim=True) < 0
    return torch.zeros_like(g).masked_fill_(mask & dark, -1)


@dataclass(frozen=True, kw_only=True, eq=False)
class DeepXplore(Side):
    r"""Ascent that makes a model differ and activates uncovered neurons (SOSP 2017, Algorithm 1).

    .. math:: \sum_{k \ne t} z_{k,c} - \lambda_1 z_{t,c} + \lambda_2 \sum_k a_{k,n(k)}

    is the objective for an input with the label c, over the models k; model t is under test;
    :math:`z_{k,c}` is the logit of the label, :math:`a_{k,n(k)}` the raw activation of one neuron
    for each input and model.

    - ``budget``: how far an example may be from its input; default any distance.
    - ``reading``: 'differential', the original, or 'single', without other models: -lambda1 z_c +
      lambda2 a_n.
    - ``others``: models for the same classes on the same device, which stay as they are; none with
      'single'.
    - ``constraint``: what may change: see :func:`blackout` (default), :func:`light` and
      :func:`occlusion`.
    - ``patch``: side of the square in pixels, default 6 under blackout (ImageNet: 10), where it
      lies elsewhere in every iteration, and 10 under occlusion; None under light.
    - ``corner``: (row, column) of the square under occlusion.
    - ``lambda1``: weight of the model under test, at least 0.
    - ``lambda2``: weight of the neurons, at least 0.
    - ``step``: times the normalised gradient after the constraint, at least 0. Values for
      ImageNet: :func:`released.settings`.
    - ``clip``: when pixels are brought into [0, 1], and images within the ``budget``: at each
      'step', so that blackout on black does nothing; before an image is judged ('judging'), while
      the walk goes on outside; or only when it is saved ('saving'), as the original has it, where
      the class is that of an image with pixels of -10. The last takes no ``budget``.
    - ``threshold``: a neuron is covered once its scaled activation is above it for an image on
      which the models differ (single: a test error), inputs among them.
    - ``batch_size``: images in a pass; it does not change what is drawn.

    Each n is uniform among the uncovered, or any, and kept for the input. All inputs run at once,
    where the original has one after another, so a neuron that any of them covers is replaced
    while uncovered ones remain. The defaults are those for MNIST.

    The original stops at the first difference. Here all iterations run, each giving an example.
    ``run`` raises ``ValueError`` for other models that do not go with the model, labels that it
    does not have, or a square that is larger than the images.

    >>> from dnnlib import models
    >>> one, two = (models.build("lenet1", seed=seed) for seed in (0, 1))
    >>> campaign = DeepXplore(others=(two,), budget=Budget(l2=2)).run(
    ...     one, torch.rand(3, 1, 28, 28), torch.tensor([0, 1, 2]), iterations=4,
    ...     generator=torch.Generator().manual_seed(0))
    >>> campaign.predicted.shape, bool(campaign.l2.max() < 2.001)
    (torch.Size([4, 3]), True)
    """

    budget: Budget = Budget()
    reading: str = "differential"
    others: Sequence[nn.Module] = field(default=(), repr=False)
    constraint: str = "blackout"
    patch: int | None = None
    corner: tuple[int, int] = (0, 0)
    lambda1: float = 1.0
    lambda2: float = 0.1
    step: float = 10.0
    threshold: float = 0.0
    clip: str = "step"
    batch_size: int = 256

    def __post_init__(self):
        checks.known(self.reading, READINGS, "reading")
        checks.known(self.constraint, CONSTRAINTS, "constraint")
        checks.known(self.clip, CLIPS, "clip")
        if self.clip == "saving" and self.budget != Budget():
            raise ValueError("budget: expected none with clip='saving', where images are judged "
                             f"before they are brought within it; got {self.budget}")
        if (not isinstance(self.others, tuple | list)
                or not all(isinstance(other, nn.Module) for other in self.others)):
            raise TypeError("others: expected a tuple of models, got "
                            f"{type(self.others).__name__}")
        if bool(self.others) != (self.reading == "differential"):
            raise ValueError("others: expected at least one model if reading='differential', and "
                             f"no model if reading='single'; got {len(self.others)} with "
                             f"reading={self.reading!r}")
        if self.patch is not None:
            checks.positive(self.patch, "patch")
            if self.constraint == "light":
                raise ValueError("patch: expected None with constraint='light', which has no "
                                 f"square; got {self.patch}")
        for name in ("lambda1", "lambda2", "step", "threshold"):
            checks.finite(getattr(self, name), name, least=0)
        checks.positive(self.batch_size, "batch_size")

    def search(self, log: Log, iterations: int, generator: torch.Generator) -> Search:
        self._square(log.inputs.shape[2:])
        models = self._models(log.model)
        x, n = log.inputs, len(log.inputs)
        seen = yield from self._look(models, x, log)
        labels = checks.labels(log.labels, n, seen[0].logits.shape[1]).to(x.device)
        hits = [Hits.none(s, self.threshold) for s in seen]
        self._cover(hits, seen, labels)
        aims = [h.uncovered(n, generator) for h in hits]
        for _ in range(iterations):
            g = torch.zeros_like(x)
            for each, aim in zip(models, aims):
                g = g + (yield Climb(each, x, self.batch_size,
                                     self._objective(each is not log.model, labels, aim)))
            log.passes += 3 * n * len(models)
            g = self._constrained(normalise(g), generator)
            x = x + self.step * g
            example = self.budget.project(x, log.inputs)
            x = example if self.clip == "step" else x
            seen = yield from self._look(models, x if self.clip == "saving" else example, log)
            log.add(example, predicted=seen[0].logits.argmax(1))
            self._cover(hits, seen, labels)
            aims = [torch.where(h.covered[aim] & ~h.covered.all(), h.uncovered(n, generator), aim)
                    for h, aim in zip(hits, aims)]

    def _models(self, model: nn.Module) -> list[nn.Module]:
        """The model under test, then the others."""
        for other in self.others:
            if other is model:
                raise ValueError("others: expected other models, got the model under test")
            if device_of(other) != device_of(model):
                raise ValueError(f"others: expected models on {device_of(model)}, as the model "
                                 f"under test, got one on {device_of(other)}")
        return [model, *(other.eval() for other in self.others)]

    def _look(self, models: list[nn.Module], x: torch.Tensor, log: Log
              ) -> Generator[Look, Response, list[Response]]:
        seen = []
        for each in models:
            seen.append((yield Look(each, x, self.batch_size)))
        log.passes += len(x) * len(models)
        if len({s.logits.shape for s in seen}) > 1:
            raise ValueError("others: expected as many classes as the model under test, "
                             f"{seen[0].logits.shape[1]}, got "
                             f"{[s.logits.shape[1] for s in seen[1:]]}")
        return seen

    def _cover(self, hits: list[Hits], seen: list[Response], labels: torch.Tensor) -> None:
        """Count the neurons of images on which the models differ, or which are test errors."""
        first, *rest = (s.logits.argmax(1) for s in seen)
        against = torch.stack(rest) if rest else labels[None]
        differ = (against != first).any(0)
        for h, s in zip(hits, seen):
            h.add(s.scaled[differ])

    def _objective(self, oracle: bool, labels: torch.Tensor, aim: torch.Tensor):
        weight = 1 if oracle else -self.lambda1

        def objective(answer: Response, rows: slice) -> torch.Tensor:
            z = answer.logits.gather(1, labels[rows, None])
            return (weight * z + self.lambda2 * answer.raw.gather(1, aim[rows, None]))[:, 0]

        return objective

    def _square(self, size: torch.Size) -> int | None:
        """The side of the square, in images of ``size`` (H, W)."""
        patch = CONSTRAINTS[self.constraint] if self.patch is None else self.patch
        if patch is None:
            return None
        corner = self.corner if self.constraint == "occlusion" else (0, 0)
        if any(not 0 <= at <= side - patch for at, side in zip(corner, size)):
            raise ValueError(f"patch: expected a square that fits into images of {size[0]} x "
                             f"{size[1]}, got {patch} pixels a side at {tuple(corner)}")
        return patch

    def _constrained(self, g: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        if self.constraint == "light":
            return light(g)
        size = g.shape[2:]
        patch = self._square(size)
        if self.constraint == "occlusion":
            corners = torch.tensor([self.corner], device=g.device)
            return occlusion(g, inside(corners, patch, size))
        corners = torch.stack([torch.randint(side - patch + 1, (len(g),), generator=generator)
                               for side in size], 1).to(g.device)
        return blackout(g, inside(corners, patch, size))
