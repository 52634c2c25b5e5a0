"""What ``dnnlib fuzz`` can be asked for, and the fuzzer that stands for it."""

from dataclasses import dataclass

import torch

from dnnlib import checks
from dnnlib.fuzzing import Budget, DeepHunter, DeepXplore, DLFuzz, Fuzzer, Noise, Swarm
from dnnlib.neurons.sensitivity import SensitiveNeurons

METHODS = ("sensitivity", "noise", "dlfuzz", "deepxplore", "deephunter")
LABELS = ("prediction", "folders")


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to look for failing inputs, within an L2 or L-infinity distance of their seeds, or both.

    ``by``: 'sensitivity', DeepSensor's swarm of ``population`` particles to a seed (default 100),
    'noise', 'dlfuzz', 'deepxplore' in its reading 'single', or 'deephunter', which needs training
    images. ``labels``: 'prediction', the model's own for the seed, so that an error is a changed
    prediction, or 'folders', the sub-folders in order of name, one for each of the model's
    classes. ``limit``: seeds, evenly spread over the images that the model gets right; default
    all. ``layers``: modules whose channels are the neurons, for 'sensitivity' and 'deephunter'.

    ``block``: seeds fuzzed at once and kept at once, dealt by ``seed``; default 4 for a swarm's,
    which cost the most, else 32: DLFuzz, DeepXplore and DeepHunter share what a block covers, and
    DLFuzz does badly on few seeds of one class. ``batch_size``: images in a pass. Raises
    ``ValueError`` naming the option.

    >>> Options(by="noise")
    Traceback (most recent call last):
    ValueError: l2, linf: expected at least one; without a bound, an example is unlike its seed
    """

    by: str = "sensitivity"
    l2: float | None = None
    linf: float | None = None
    iterations: int = 20
    population: int | None = None
    labels: str = "prediction"
    limit: int | None = None
    seed: int = 0
    layers: tuple[str, ...] | None = None
    block: int | None = None
    batch_size: int = 64

    def __post_init__(self):
        checks.known(self.by, METHODS, "method")
        checks.known(self.labels, LABELS, "labels")
        for name in ("iterations", "batch_size"):
            checks.positive(getattr(self, name), name)
        for name in ("population", "limit", "block"):
            if getattr(self, name) is not None:
                checks.positive(getattr(self, name), name)
        if isinstance(self.seed, bool) or not isinstance(self.seed, int):
            raise ValueError(f"seed: expected a whole number, got {self.seed!r}")
        if self.budget == Budget():
            raise ValueError("l2, linf: expected at least one; without a bound, an example is "
                             "unlike its seed")
        if self.population is not None and self.by != "sensitivity":
            raise ValueError(f"population: only with sensitivity, got {self.by}")
        if self.layers is not None and self.by not in ("sensitivity", "deephunter"):
            raise ValueError(f"layers: only with sensitivity and deephunter, got {self.by}")

    @property
    def budget(self) -> Budget:
        """The two distances, as fuzzers take them."""
        return Budget(l2=self.l2, linf=self.linf)

    @property
    def at_once(self) -> int:
        """Seeds in a block."""
        return self.block or (4 if self.by == "sensitivity" else 32)

    def check_reference(self, given: bool) -> None:
        """``ValueError`` unless training images are there for 'deephunter', and for it only."""
        if given != (self.by == "deephunter"):
            raise ValueError("reference: expected training images (--reference) with deephunter, "
                             f"and only with it; got {'some' if given else 'none'} with {self.by}")

    def fuzzer(self, classes: int, reference: torch.Tensor | None = None) -> Fuzzer:
        """The fuzzer for a model of so many classes; ``reference``: training images (M, C, H, W).

        >>> Options(by="dlfuzz", l2=1.0).fuzzer(3).runners_up  # 4 in the paper, of 10 classes
        2
        """
        self.check_reference(reference is not None)
        shared = {"budget": self.budget, "batch_size": self.batch_size}
        match self.by:
            case "sensitivity":
                return Swarm(fitness=SensitiveNeurons(layers=self.layers),
                             population=self.population or Swarm.population, **shared)
            case "noise":
                return Noise(budget=self.budget)
            case "dlfuzz":
                return DLFuzz(runners_up=min(DLFuzz.runners_up, classes - 1), **shared)
            case "deepxplore":
                return DeepXplore(reading="single", **shared)
            case _:  # deephunter
                return DeepHunter(reference=reference, layers=self.layers, **shared)
