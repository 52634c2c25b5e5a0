"""What ``dnnlib fuzz`` can be asked for, and the fuzzer that stands for it."""

from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Literal, TypedDict, get_args

import numpy as np
import torch

from dnnlib import checks
from dnnlib.custom.loading import in_file, of_file
from dnnlib.custom.own_code import class_of, made_of, own_code
from dnnlib.fuzzing import (
    ArtAttack,
    Budget,
    DeepHunter,
    DeepXplore,
    DLFuzz,
    Fuzzer,
    Noise,
    Swarm,
    toolbox,
)
from dnnlib.neurons.excitable import ExcitableNeurons
from dnnlib.neurons.sensitivity import SensitiveNeurons

SWARMS = ("deepsensor", "excitable")  # guided by sensitive and by excitable neurons
ATTACKS = toolbox.KINDS  # of the Adversarial Robustness Toolbox, an extra
Method = Literal["deepsensor", "excitable", "noise", "dlfuzz", "deepxplore", "deephunter", "pgd",
                 "apgd"]
METHODS: tuple[str, ...] = get_args(Method)
DEFAULT: Method = "dlfuzz"  # broke most near the inputs in the book, synthesis/02_fuzzers
Labels = Literal["prediction", "folders"]
LABELS: tuple[str, ...] = get_args(Labels)


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to look for failing inputs, near the images that they are made from.

    - ``by``: the fuzzer, by its name in :data:`fuzzing.FUZZERS`; 'excitable', DeepSensor's
      swarm guided by excitable neurons, 12 passes a particle instead of one; or 'pgd' or 'apgd',
      attacks of the Adversarial Robustness Toolbox, see :class:`fuzzing.ArtAttack`. 'deepxplore'
      is taken in its reading 'single', and 'deephunter' needs training images. Default 'dlfuzz':
      of the papers' fuzzers it broke most near the inputs in the book's records. Or a fuzzer of
      one's own: its class, or 'FILE.py:CLASS', called by its name in small letters, or an instance,
      which gets the budget and the batch size of these options.
    - ``l2``, ``linf``: greatest distances from the input, at pixels in [0, 1]; at least one of the
      two, and with 'pgd' and 'apgd' one.
    - ``iterations``: how many examples are made of each input.
    - ``population``: particles to an input, with the two swarms only; default 100.
    - ``labels``: what is right: 'prediction', the model's own for the input, so that an error is a
      changed prediction, or 'folders', the sub-folders in order of name, one for each of the
      model's classes.
    - ``limit``: how many inputs, evenly spread over the images that the model gets right; default
      all.
    - ``seed``: of all that is random.
    - ``layers``: layers whose channels are the neurons, by name or by pattern, see
      :func:`layers.matching`, with the swarms and 'deephunter'; default all.
    - ``block``: inputs fuzzed at once and kept at once, dealt by ``seed``; default 4 with the
      swarms, which cost the most, else 32: DLFuzz, DeepXplore and DeepHunter share
      what a block covers, and DLFuzz does badly on few inputs of one class.
    - ``batch_size``: images in a pass.
    - ``noise``: whether as many examples of noise at the same distance are made of each input too,
      to be told beside; not with 'noise' itself. An example costs two passes.

    Raises ``ValueError`` naming the option, and ``ModuleNotFoundError`` for 'pgd' and 'apgd' if the
    toolbox is not there.

    >>> Options(by="noise")
    Traceback (most recent call last):
    ValueError: l2, linf: expected at least one; without a bound, an example is unlike its input
    """

    by: Method | type[Fuzzer] | Fuzzer = DEFAULT
    l2: float | None = None
    linf: float | None = None
    iterations: int = 20
    population: int | None = None
    labels: Labels = "prediction"
    limit: int | None = None
    seed: int = 0
    layers: tuple[str, ...] | None = None
    block: int | None = None
    batch_size: int = 64
    noise: bool = True

    def __post_init__(self):
        for name in (field.name for field in fields(self)):
            if isinstance(value := getattr(self, name), np.generic):  # as of an array or a table
                object.__setattr__(self, name, value.item())
        if self.kind is None:
            checks.known(self.by, METHODS, "method")
        else:
            object.__setattr__(self, "by", self.kind)  # so that its file runs once
        checks.known(self.labels, LABELS, "labels")
        for name in ("iterations", "batch_size"):
            checks.positive(getattr(self, name), name)
        for name in ("population", "limit", "block"):
            if getattr(self, name) is not None:
                checks.positive(getattr(self, name), name)
        checks.seed(self.seed)
        if self.budget == Budget():
            raise ValueError("l2, linf: expected at least one; without a bound, an example is "
                             "unlike its input")
        if self.by in ATTACKS:
            toolbox.norm_of(self.budget, self.by)
            toolbox.installed()
        if self.population is not None and self.by not in SWARMS:
            raise ValueError(f"population: only with {' and '.join(SWARMS)}, got {self.by}")
        takes = (self.by in (*SWARMS, "deephunter") if self.kind is None
                 else "layers" in {field.name for field in fields(self.kind)})
        if self.layers is not None and not takes:
            raise ValueError(f"layers: only with {', '.join(SWARMS)} and deephunter, got "
                             f"{self.name}")

    @cached_property
    def kind(self) -> type[Fuzzer] | Fuzzer | None:
        """A person's own class, or an instance of it; None for a fuzzer of the package."""
        if isinstance(self.by, str) and not in_file(self.by):
            return None
        found = of_file(self.by, "fuzzer") if isinstance(self.by, str) else self.by
        if not (is_dataclass(found) and callable(getattr(found, "run", None))
                and "budget" in {field.name for field in fields(found)}):
            raise ValueError("fuzzer: expected a dataclass with a budget and a method run, got "
                             f"{self.by!r}")
        name = class_of(found).__name__.lower()
        if name in METHODS:
            raise ValueError(f"fuzzer: {self.by} would be called {name}, as one of the package is; "
                             "give the class another name")
        return found

    @property
    def name(self) -> str:
        """What the fuzzer is called."""
        return self.by if self.kind is None else class_of(self.kind).__name__.lower()

    @property
    def budget(self) -> Budget:
        """The two distances, as fuzzers take them."""
        return Budget(l2=self.l2, linf=self.linf)

    @property
    def beside(self) -> Noise | None:
        """The noise that the fuzzer is told beside, if it is to be."""
        return Noise(budget=self.budget) if self.noise and self.name != "noise" else None

    @property
    def at_once(self) -> int:
        """Inputs in a block."""
        return self.block or (4 if self.by in SWARMS else 32)

    def check_reference(self, given: bool) -> None:
        """``ValueError`` unless training images are there for 'deephunter', and for it only."""
        if given != (self.by == "deephunter"):
            raise ValueError("reference: expected training images (--reference) with deephunter, "
                             f"and only with it; got {'some' if given else 'none'} with "
                             f"{self.name}")

    def fuzzer(self, reference: torch.Tensor | None = None) -> Fuzzer:
        """The fuzzer; ``reference``: training images (M, C, H, W).

        >>> Options(by="dlfuzz", l2=1.0).fuzzer().budget.l2
        1.0
        """
        self.check_reference(reference is not None)
        shared = {"budget": self.budget, "batch_size": self.batch_size}
        if self.kind is not None:
            known = {field.name for field in fields(self.kind)}
            layers = {} if self.layers is None else {"layers": self.layers}
            with own_code(self.kind, f"{self.name}: "):
                return made_of(self.kind, {k: v for k, v in (shared | layers).items()
                                           if k in known})
        match self.by:
            case "deepsensor" | "excitable":
                fitness = SensitiveNeurons if self.by == "deepsensor" else ExcitableNeurons
                return Swarm(fitness=fitness(layers=self.layers),
                             population=self.population or Swarm.population, **shared)
            case "noise":
                return Noise(budget=self.budget)
            case "dlfuzz":
                return DLFuzz(**shared)
            case "deepxplore":
                return DeepXplore(reading="single", **shared)
            case "pgd" | "apgd":
                return ArtAttack(kind=self.by, **shared)
            case "deephunter":
                return DeepHunter(reference=reference, layers=self.layers, **shared)
            case _:
                raise ValueError(f"{self.by}: is in METHODS, and no fuzzer is made of it")


class Given(TypedDict, total=False):
    """The options of :class:`Options` by name, for type checkers."""

    by: Method | type[Fuzzer] | Fuzzer
    l2: float | None
    linf: float | None
    iterations: int
    population: int | None
    labels: Labels
    limit: int | None
    seed: int
    layers: tuple[str, ...] | None
    block: int | None
    batch_size: int
    noise: bool
