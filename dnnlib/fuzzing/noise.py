"""Guided by nothing: random noise, and the fitnesses that tell a swarm nothing."""

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import ClassVar

import torch
from torch import nn

from dnnlib import checks
from dnnlib.fuzzing.guided import Score
from dnnlib.fuzzing.numbers import fractions, numbered
from dnnlib.fuzzing.protocol import Budget, Campaign, Log, Watch, reach


@dataclass(frozen=True, kw_only=True)
class Noise:
    """Gaussian noise on every pixel, as far as the budget on the L2 distance allows.

    Guided by nothing: the "Random" of DeepSensor, IV.C.

    - ``budget``: with a bound on the L2 distance every example is at that distance, as near as
      pixels in [0, 1] allow: noise that is cut to [0, 1] is scaled until it is, within the bound
      on the L-infinity distance if there is one.
    - ``scale``: the standard deviation, without a bound on the L2 distance. The paper gives none:
      0.1 is ours, an L2 distance near 2.8 at 28 x 28 pixels.

    Raises ``ValueError`` for a scale that is not finite and above 0.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    >>> found = Noise(budget=Budget(l2=0.5)).run(
    ...     model, torch.full((3, 1, 2, 2), 0.5), torch.tensor([0, 1, 1]), iterations=5,
    ...     generator=torch.Generator().manual_seed(0))
    >>> found.predicted.shape, bool(((found.l2 - 0.5).abs() < 0.001).all())
    (torch.Size([5, 3]), True)
    """

    budget: Budget = field(default_factory=Budget)
    scale: float = 0.1

    def __post_init__(self):
        checks.finite(self.scale, "scale", above=0)

    @torch.no_grad()
    def run(self, model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor, *,
            iterations: int, generator: torch.Generator, watch: Watch | None = None) -> Campaign:
        checks.generator(generator)
        iterations = checks.positive(iterations, "iterations")
        log = Log(model, inputs, labels, watch)
        x = log.inputs
        for _ in range(iterations):
            step = torch.randn(x.shape, generator=generator)
            log.add(self._within(x + self.scale * step.to(x.device), x))
        return log.campaign()

    def _within(self, x: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        if self.budget.l2 is None:
            return self.budget.project(x, inputs)
        far = reach(inputs, x - inputs, torch.full((len(x),), self.budget.l2))
        return self.budget.project(far, inputs)


@dataclass(frozen=True, kw_only=True)
class Constant:
    """A swarm's fitness, always 0: each input's best position stays its first particle's start.

    >>> Constant()(None, None, None)(torch.zeros(2, 1, 1, 1), torch.tensor([0, 0])).tolist()
    [0.0, 0.0]
    """

    blind: ClassVar[bool] = True

    def __call__(self, model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor) -> Score:
        return lambda x, of: torch.zeros(len(x), device=x.device)


@dataclass(frozen=True, kw_only=True)
class RandomFitness:
    """A swarm's fitness, uniform in [0, 1) whatever the image.

    The numbers of an input follow from ``seed`` and its pixels, one after the other, whatever other
    inputs there are and however many images are scored at once.

    >>> x = torch.rand(2, 1, 2, 2)
    >>> first, again = (RandomFitness(seed=1)(None, x, None) for _ in range(2))
    >>> torch.equal(first(x[[0, 0, 1]], torch.tensor([0, 0, 1])), again(
    ...     x[[0, 1, 0]], torch.tensor([0, 1, 0]))[[0, 2, 1]])
    True
    """

    seed: int = 0
    blind: ClassVar[bool] = True

    def __call__(self, model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor) -> Score:
        names = [blake2b(image.contiguous().numpy().tobytes(), digest_size=8).digest()
                 for image in inputs.cpu()]
        keys = numbered(torch.tensor([int.from_bytes(name, "little", signed=True)
                                      for name in names]), torch.tensor(self.seed))
        keys = keys.to(inputs.device)
        scored = torch.zeros_like(keys)  # images of each input so far

        def score(x: torch.Tensor, of: torch.Tensor) -> torch.Tensor:
            order = of.argsort(stable=True)
            ranked = of[order]
            place = torch.empty_like(of)  # among those of the same input
            place[order] = (torch.arange(len(of), device=of.device)
                            - torch.searchsorted(ranked, ranked))
            found = fractions(numbered(keys[of], scored[of] + place))[::2]
            scored.add_(of.bincount(minlength=len(keys)))
            return found

        return score
