"""What ``dnnlib fuzz`` can be asked for, and the fuzzer that stands for it."""

from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cached_property
from typing import Literal, TypedDict, get_args

import numpy as np
import torch

from dnnlib import checks
from dnnlib.custom.loading import in_file, of_file
from dnnlib.custom.own_code import class_of, made_of, own_code
from dnnlib.fuzzing import FUZZERS, ArtAttack, Budget, Fuzzer, Noise, Swarm, toolbox
from dnnlib.neurons.excitable import ExcitableNeurons
from dnnlib.neurons.sensitivity import SensitiveNeurons

SWARMS = {"deepsensor": SensitiveNeurons, "excitable": ExcitableNeurons}  # by what guides them
ATTACKS = toolbox.KINDS  # of the Adversarial Robustness Toolbox, an extra
METHODS: tuple[str, ...] = (*dict.fromkeys([*SWARMS, *FUZZERS, *ATTACKS]),)
SET = {"deepxplore": {"reading": "single"}, **{name: {"kind": name} for name in ATTACKS}}
DEFAULT = "dlfuzz"  # broke most near the inputs in the book, synthesis/02_fuzzers
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
    - ``l2``: greatest L2 distance from the input, at pixels in [0, 1].
    - ``linf``: greatest change of a pixel in [0, 1]; at least one of the two bounds, and with
      'pgd' and 'apgd' one.
    - ``iterations``: how many examples fuzzers make of each input.
    - ``population``: particles to an input, with 'deepsensor' and 'excitable'; default 100.
    - ``labels``: what is right: 'prediction', the model's own for the input, so that an error is a
      changed prediction; or 'folders', with the names of the classes, or one for each class in
      order of name. See :func:`classes_named`.
    - ``limit``: inputs, evenly spread over the images that the model gets right; default all.
    - ``seed``: of all that is random.
    - ``layers``: layers whose channels are the neurons, by name or pattern, with 'deepsensor',
      'excitable' and 'deephunter'; default all. See :func:`layers.matching`.
    - ``block``: inputs fuzzed at once and kept at once, all that a run that is killed does again;
      default 4 with 'deepsensor' and 'excitable', which cost the most, else 32. They are dealt by
      ``seed``. DLFuzz, DeepXplore and DeepHunter share what a block covers, and DLFuzz does badly
      on few inputs of one class.
    - ``batch_size``: images in one pass.
    - ``noise``: tell beside how many of the inputs noise at the same distance breaks, with as many
      examples; not with 'noise' itself. An example costs two passes, where one by 'dlfuzz' costs
      five.

    Raises ``ValueError`` naming the option, and ``ModuleNotFoundError`` for 'pgd' and 'apgd' if the
    toolbox is not there.

    >>> Options(by="noise")
    Traceback (most recent call last):
    ValueError: l2, linf: expected at least one; without a bound, an example is unlike its input
    """

    by: str | type[Fuzzer] | Fuzzer = DEFAULT
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
        if self.population is not None and self.name not in SWARMS:
            raise ValueError(f"population: only with {' and '.join(SWARMS)}, got {self.by}")
        if self.layers is not None and self.name not in SWARMS and "layers" not in self.takes:
            with_layers = [name for name in METHODS if name in SWARMS or "layers" in _takes(name)]
            raise ValueError(f"layers: only with {', '.join(with_layers)}, got "
                             f"{self.name}")

    @cached_property
    def kind(self) -> type[Fuzzer] | Fuzzer | None:
        """A person's own class, or an instance of it; None for a fuzzer of the package."""
        if isinstance(self.by, str) and not in_file(self.by):
            return None
        found = of_file(self.by, "fuzzer") if isinstance(self.by, str) else self.by
        lacks = [what for what, there in (
            ("no dataclass", is_dataclass(found)),
            ("without a method run", callable(getattr(found, "run", None))),
            ("without a field budget", is_dataclass(found) and "budget" in _takes(found)),
        ) if not there]
        if lacks:
            raise ValueError("fuzzer: expected a dataclass with a budget and a method run, got "
                             f"{self.by!r}, {lacks[0]}")
        name = class_of(found).__name__.lower()
        if name in METHODS:
            raise ValueError(f"fuzzer: {self.by} would be called {name}, as one of the package is; "
                             "give the class another name")
        return found

    @property
    def takes(self) -> dict[str, Field]:
        """The options of the fuzzer's class, by name."""
        return _takes(self.by if self.kind is None else self.kind)

    @property
    def needs_reference(self) -> bool:
        """Whether the fuzzer compares with training images, as deephunter does."""
        field = self.takes.get("reference")
        return field is not None and MISSING is field.default is field.default_factory

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
        return self.block or (4 if self.name in SWARMS else 32)

    def check_reference(self, given: bool) -> None:
        """``ValueError`` unless training images are there for a fuzzer that needs them, and only
        for one."""
        if given != self.needs_reference:
            raise ValueError("reference: expected training images (--reference) with a fuzzer that "
                             "needs them, as deephunter, and only with one; got "
                             f"{'some' if given else 'none'} with {self.name}")

    def fuzzer(self, reference: torch.Tensor | None = None) -> Fuzzer:
        """The fuzzer; ``reference``: training images (M, C, H, W).

        >>> Options(by="dlfuzz", l2=1.0).fuzzer().budget.l2
        1.0
        """
        self.check_reference(reference is not None)
        shared = {"budget": self.budget, "batch_size": self.batch_size}
        if self.name in SWARMS:
            return Swarm(fitness=SWARMS[self.name](layers=self.layers),
                         population=self.population or Swarm.population, **shared)
        given = shared | ({} if self.layers is None else {"layers": self.layers})
        given |= {} if reference is None else {"reference": reference}
        kind = self.kind or _kind(self.name)
        with own_code(kind, f"{self.name}: "):
            return made_of(kind, {name: value for name, value in given.items()
                                  if name in self.takes} | SET.get(self.name, {}))


def _kind(name: str) -> type:
    """The class of a fuzzer of the package, by its name in :data:`METHODS`."""
    return Swarm if name in SWARMS else ArtAttack if name in ATTACKS else FUZZERS[name]


def _takes(of) -> dict[str, Field]:
    """The fields of a fuzzer, by name: of one by its name, of a class, or of an instance."""
    return {field.name: field for field in fields(_kind(of) if isinstance(of, str) else of)}


class Given(TypedDict, total=False):
    """The options of :class:`Options` by name, for type checkers."""

    by: str | type[Fuzzer] | Fuzzer
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
