"""PGD and AutoAttack's Auto-PGD as fuzzers, by the Adversarial Robustness Toolbox (ART)."""

import copy
from contextlib import nullcontext
from dataclasses import dataclass, field
from importlib.util import find_spec

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from dnnlib import checks
from dnnlib.fuzzing.protocol import Budget, Campaign, Log, Watch
from dnnlib.inference import fast_layout, global_seed

KINDS = ("pgd", "apgd")


def installed() -> None:
    """``ModuleNotFoundError`` with what to install, if ART is not there; it is not imported yet."""
    if find_spec("art") is None:
        with checks.extra("attacks"):
            raise ModuleNotFoundError(name="adversarial-robustness-toolbox")


def norm_of(budget: Budget, name: str) -> tuple[str, float]:
    """The one distance that an attack of ART keeps to, 'l2' or 'linf', and how far it is.

    >>> norm_of(Budget(l2=2), "pgd")
    ('l2', 2.0)
    """
    given = [(norm, float(eps)) for norm, eps in (("l2", budget.l2), ("linf", budget.linf))
             if eps is not None]
    if len(given) != 1:
        raise ValueError(f"{name}: ART's attacks keep to one distance; give l2 or linf, got "
                         f"{'both' if given else 'neither'}")
    return given[0]


@dataclass(frozen=True, kw_only=True)
class ArtAttack:
    """Steps up the gradient of the cross-entropy within the budget, as ART takes them.

    The example of an iteration is what its step led to. A step is 2.5 times the bound shared out
    among the iterations, at most the bound, and with 'apgd' twice the bound at first (Croce and
    Hein).

    - ``kind``: 'pgd', ART's ``ProjectedGradientDescent`` (Madry et al., 2018), from the input
      itself, as is ART's default, so that the first examples are near it; or 'apgd', its
      ``AutoProjectedGradientDescent`` (Croce and Hein, 2020), which begins at a random point
      within the budget and shortens its steps by itself. AutoAttack's other losses and attacks are
      left out. An input that the model gets wrong stays as it is with 'apgd'.
    - ``budget``: a bound on the L2 or on the L-infinity distance; ART knows no two at once.
    - ``batch_size``: images in a pass; it does not change what is looked for.

    ART draws from NumPy's global generator: it is seeded from ``generator`` for the while, then as
    it was. ART works on a copy of the model. All its passes count. Raises ``ValueError`` naming the
    option, and ``ModuleNotFoundError`` without ART (the extra 'attacks').

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 3))
    >>> found = ArtAttack(budget=Budget(l2=0.5)).run(
    ...     model, torch.full((2, 1, 2, 2), 0.5), torch.tensor([0, 1]), iterations=4,
    ...     generator=torch.Generator().manual_seed(0))
    >>> found.predicted.shape, found.l2.max().item() <= 0.5 * (1 + 1e-5)
    (torch.Size([4, 2]), True)
    """

    kind: str = "pgd"
    budget: Budget = field(default_factory=Budget)
    batch_size: int = 64

    def __post_init__(self):
        checks.known(self.kind, KINDS, "kind")
        norm_of(self.budget, self.kind)
        checks.positive(self.batch_size, "batch_size")

    def run(self, model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor, *, iterations: int,
            generator: torch.Generator, watch: Watch | None = None) -> Campaign:
        """See :class:`protocol.Fuzzer`."""
        checks.generator(generator)
        iterations = checks.positive(iterations, "iterations")
        installed()
        log = Log(model, inputs, labels, watch)
        x = log.inputs
        with torch.no_grad():
            classes = model.forward(x[:1]).shape[1]
        onehot = F.one_hot(log.labels, classes).float().numpy()
        seed = int(torch.randint(2**32, (), generator=generator))
        gpu = torch.cuda.device(x.device) if x.device.type == "cuda" else nullcontext()
        with gpu, global_seed(seed), torch.enable_grad():
            seen = _watched(model, tuple(x.shape[1:]), classes, x.device.type)
            attack = self._attack(seen, iterations)
            parts = [self._steps(attack, seen, part.cpu().contiguous().numpy(), y, iterations)
                     for part, y in zip(x.split(self.batch_size),
                                        np.split(onehot, range(self.batch_size, len(x),
                                                               self.batch_size)))]
        log.passes += seen.passes
        for examples in zip(*parts):
            moved = torch.from_numpy(np.concatenate(examples)).to(x.device)
            log.add(fast_layout(self.budget.project(moved, x), x.device))
        return log.campaign()

    def _attack(self, estimator, iterations: int):
        from art.attacks import evasion

        norm, eps = norm_of(self.budget, self.kind)
        shared = {"norm": 2 if norm == "l2" else np.inf, "eps": eps, "max_iter": iterations,
                  "batch_size": self.batch_size, "verbose": False}
        if self.kind == "apgd":
            return evasion.AutoProjectedGradientDescent(
                estimator, eps_step=2 * eps, nb_random_init=1, **shared)
        return evasion.ProjectedGradientDescent(
            estimator, eps_step=min(eps, 2.5 * eps / iterations), **shared)

    def _steps(self, attack, seen, x: np.ndarray, y: np.ndarray,
               iterations: int) -> list[np.ndarray]:
        """The examples (B, C, H, W) of each iteration."""
        seen.begin()
        last = attack.generate(x, y)
        if self.kind == "pgd":  # a gradient at each point but the last, which is the result
            return [*seen.climbed[1:], last]
        examples, rows = [], (seen.predicted[0] == y.argmax(1)).nonzero()[0]
        for g in range(iterations):  # a loss at the start, then at what each step led to
            example = x.copy()
            if len(rows):  # ART ends early where the loss is 0 everywhere
                example[rows] = seen.judged[min(g + 1, len(seen.judged) - 1)]
            examples.append(example)
        return examples


def _watched(model: nn.Module, shape: tuple[int, ...], classes: int, device: str):
    """ART's classifier around a copy of the model, which notes where it is looked at."""
    with checks.extra("attacks"):
        from art.estimators.classification import PyTorchClassifier

    class Watched(PyTorchClassifier):
        passes = 0

        def begin(self) -> None:
            self.climbed: list[np.ndarray] = []  # where gradients were asked for
            self.judged: list[np.ndarray] = []  # where losses were
            self.predicted: list[np.ndarray] = []  # the classes that were asked for

        def loss_gradient(self, x, y, training_mode=False, **more):
            self.passes += 3 * len(x)  # a gradient counts as two more
            self.climbed.append(_array(x))
            return super().loss_gradient(x, y, training_mode, **more)

        def compute_loss(self, x, y, reduction="none", **more):
            self.passes += len(x)
            self.judged.append(_array(x))
            return super().compute_loss(x, y, reduction, **more)

        def predict(self, x, batch_size=128, training_mode=False, **more):
            self.passes += len(x)
            found = super().predict(x, batch_size, training_mode, **more)
            self.predicted.append(found.argmax(1))
            return found

    # a sum, so that no image's gradient depends on how many others there are
    made = Watched(_Whole(copy.deepcopy(model).requires_grad_(False)),
                   loss=nn.CrossEntropyLoss(reduction="sum"), input_shape=shape, nb_classes=classes,
                   clip_values=(0.0, 1.0), device_type="gpu" if device == "cuda" else "cpu")
    made.begin()
    return made


class _Whole(nn.Module):
    """A model as one piece: of an ``nn.Sequential`` ART runs the layers, not its ``forward``."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x)


def _array(x) -> np.ndarray:
    return x.detach().cpu().numpy().copy() if isinstance(x, torch.Tensor) else x.copy()
