"""What every fuzzer is, and what they share: a budget, and the log of a campaign."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Protocol

import torch
from torch import nn

from dnnlib import checks
from dnnlib.inference import as_logits, classes_of, fast_layout, ready

_ROUNDING = 1e-5  # of distances in float32, relative
Watch = Callable[[torch.Tensor], None]  # sees the examples (S, C, H, W) of every iteration


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How far an example may be from its input: greatest L2 and L-infinity distances, or None.

    Raises ``ValueError`` for a distance that is not a finite number above 0, and for an
    L-infinity distance above 1, which bounds nothing.
    """

    l2: float | None = None
    linf: float | None = None

    def __post_init__(self):
        for name in ("l2", "linf"):
            value = getattr(self, name)
            number = isinstance(value, Real) and not isinstance(value, bool)
            if value is not None and not (number and 0 < value < math.inf):
                raise ValueError(f"{name}: expected a distance above 0 or None, got {value!r}")
            if name == "linf" and value is not None:
                checks.of_a_pixel(value, name)
            if number and not isinstance(value, int):  # NumPy's
                object.__setattr__(self, name, float(value))

    def project(self, x: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        """``x`` (N, C, H, W) brought within the budget of ``inputs``, and into [0, 1].

        >>> Budget(l2=0.5).project(torch.ones(1, 1, 1, 1), torch.zeros(1, 1, 1, 1)).item()
        0.5
        """
        step = x - inputs
        if self.linf is not None:
            step = step.clamp(-self.linf, self.linf)
        if self.l2 is not None:
            norm = step.flatten(1).norm(dim=1).clamp_min(1e-12)
            step = step * (self.l2 / norm).clamp_max(1).view(-1, 1, 1, 1)
        return (inputs + step).clamp(0, 1)  # inputs are inside, so clipping only shortens


def reach(inputs: torch.Tensor, direction: torch.Tensor, length: torch.Tensor) -> torch.Tensor:
    """Images (N, C, H, W) moved along ``direction`` until, cut to [0, 1], they are ``length`` away.

    ``length``: L2 distances (N,). What leaves [0, 1] is cut off, so the factor of the direction is
    found by bisection: the distance never falls as it grows. Where the length cannot be had, the
    image is as far as it goes.

    >>> x, step = torch.full((1, 1, 1, 2), 0.5), torch.tensor([[[[9.0, 0.1]]]])
    >>> round((reach(x, step, torch.tensor([0.6])) - x).norm().item(), 3)
    0.6
    """
    step = direction / direction.flatten(1).abs().amax(1).clamp_min(1e-12).view(-1, 1, 1, 1)
    least = step.abs().masked_fill(step == 0, torch.inf).flatten(1).amin(1)
    low = torch.zeros(len(inputs)).to(inputs)
    high = (1 / least).clamp(1, 1e4)  # there nearly every pixel that moves has left [0, 1]
    for _ in range(40):
        middle = (low + high) / 2
        moved = (inputs + middle.view(-1, 1, 1, 1) * step).clamp(0, 1)
        short = (moved - inputs).flatten(1).norm(dim=1) < length.to(inputs)
        low, high = torch.where(short, middle, low), torch.where(short, high, middle)
    return (inputs + low.view(-1, 1, 1, 1) * step).clamp(0, 1)  # never beyond the length


@dataclass(frozen=True, eq=False)
class Campaign:
    """What a fuzzer made of S inputs in T iterations, all on the CPU.

    ``labels``: int64 (S,), true classes of the inputs. ``predicted``: int64 (T, S), the class of
    each example. ``origin``: int64 (T, S), the input it came from. ``l2``, ``linf``: float32
    (T, S), its distance to that input. ``images``: float32 (S, C, H, W), the last examples.
    ``passes``: images sent through a model, a gradient counting as two more. ``seconds``: of
    wall time.
    """

    labels: torch.Tensor
    predicted: torch.Tensor
    origin: torch.Tensor
    l2: torch.Tensor
    linf: torch.Tensor
    images: torch.Tensor
    passes: int
    seconds: float

    @property
    def errors(self) -> torch.Tensor:
        """Test errors, bool (T, S): examples of another class than their input's."""
        return self.predicted != self.labels[self.origin]

    def within(self, *, l2: float) -> int:
        """How many test errors lie within a given L2 distance of their inputs.

        Those that were brought to just that distance are, though float32 rounds it: one part in
        100,000 beyond counts as at the distance.
        """
        return int((self.errors & (self.l2 <= l2 * (1 + _ROUNDING))).sum())

    def categories(self) -> int:
        """Error categories: the number of different wrong classes, summed over the inputs.

        >>> c = Campaign(torch.tensor([0]), torch.tensor([[1], [1], [2]]),
        ...              torch.zeros(3, 1, dtype=torch.int64), torch.ones(3, 1), torch.ones(3, 1),
        ...              torch.zeros(1, 1, 2, 2), 3, 0.0)
        >>> int(c.errors.sum()), c.categories(), c.within(l2=0.5)
        (3, 2, 0)
        """
        wrong = self.errors
        pairs = torch.stack([self.origin[wrong], self.predicted[wrong]], dim=1)
        return len(pairs.unique(dim=0))


class Unbound(ValueError):
    """A fuzzer's examples are not what was asked for: what it finds says nothing."""


def one_of_each(x: torch.Tensor, inputs: torch.Tensor) -> None:
    """:class:`Unbound` unless examples ``x`` are one for each of the inputs, of their shape."""
    if x.shape != inputs.shape:
        raise Unbound(f"examples: expected one for each of {len(inputs)} inputs, of shape "
                      f"{tuple(inputs.shape)}, got {tuple(x.shape)}")


class Fuzzer(Protocol):
    """A frozen dataclass of options, ``budget`` among them, that turns inputs into test inputs.

    ``inputs``: (S, C, H, W) in [0, 1]; ``labels``: their true classes (S,). Every iteration gives
    one example for each input. ``generator``: all that is random, on the CPU.
    """

    @property
    def budget(self) -> Budget: ...

    def run(self, model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor, *,
            iterations: int, generator: torch.Generator,
            watch: Watch | None = None) -> Campaign: ...


class Log:
    """Fills a :class:`Campaign`, iteration by iteration.

    ``inputs`` and ``labels`` are checked: ``ValueError`` or ``TypeError`` says what is wrong. Add
    to ``passes`` what the fuzzer sends through the model itself.
    """

    def __init__(self, model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor,
                 watch: Watch | None = None):
        checks.images(inputs, "inputs")
        self.inputs = fast_layout(inputs, ready(model, inputs))
        with torch.no_grad():  # how many classes there are; not a pass that the model's hooks count
            logits = model.forward(self.inputs[:1])
            classes_of(logits)
            as_logits(logits, model, self.inputs)
        self.labels = checks.labels(labels, len(inputs), logits.shape[1]).cpu()
        self.model, self.watch, self.passes = model, watch, 0
        self.start = time.perf_counter()
        self.rows: list[tuple[torch.Tensor, ...]] = []

    @torch.no_grad()
    def add(self, x: torch.Tensor, *, origin: torch.Tensor | None = None,
            predicted: torch.Tensor | None = None) -> torch.Tensor:
        """The examples (S, C, H, W) of one iteration; returns their classes (S,).

        ``origin``: default each from the input of its place. ``predicted``: classes, if the fuzzer
        knows them; else a pass is made. Raises :class:`Unbound` for other shapes than the
        inputs', and ``ValueError`` for a pixel that is not finite.
        """
        one_of_each(x, self.inputs)
        origin = torch.arange(len(x)) if origin is None else origin.cpu()
        moved = (x - self.inputs[origin.to(x.device)]).flatten(1)
        l2, linf = moved.norm(dim=1), moved.abs().amax(1)
        if not linf.isfinite().all():
            raise ValueError("examples: expected pixels that are finite numbers, got NaN or "
                             f"infinity in {int((~linf.isfinite()).sum())} of {len(x)} examples")
        if predicted is None:
            predicted = torch.cat([classes_of(self.model(part)) for part in x.split(2048)])
            self.passes += len(x)
        self.rows.append(tuple(v.cpu() for v in (predicted, origin, l2, linf)))
        self.last = x
        if self.watch is not None:
            self.watch(x)
        return predicted

    def campaign(self) -> Campaign:
        """What was added so far; ``ValueError`` if nothing was."""
        if not self.rows:
            raise ValueError("examples: expected those of at least one iteration, got none: does "
                             "run call Log.add?")
        predicted, origin, l2, linf = (torch.stack(column) for column in zip(*self.rows))
        images = self.last.detach().cpu().clone()
        return Campaign(self.labels, predicted, origin, l2, linf, images, self.passes,
                        time.perf_counter() - self.start)
