"""Selectors that cover neurons: NAC and KMNC, by additional coverage."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from dnnlib import checks
from dnnlib import coverage as cov
from dnnlib.neurons.activations import NEURONS, Want
from dnnlib.neurons.layers import layers_of
from dnnlib.selection.protocol import Selector

ACTIVATIONS = ("raw", "scaled", "sigmoid")


@dataclass(frozen=True, kw_only=True, eq=False)
class Covering(Selector):
    """What selectors by coverage have in common: :func:`coverage.cam`, and a random rest.

    NSS names neither. By total coverage nearly all candidates are equal for KMNC. A few cover all
    that NAC can, so that the rest decides: random as in ATS, whose subjects NSS shares.

    - ``layers``, ``neuron``: see :func:`activations.record`.
    - ``seed``: of all that is random.
    - ``batch_size``: images in a pass on a CPU; elsewhere :func:`inference.size_for` says how many.
    """

    layers: tuple[str, ...] | None = None
    neuron: str = "channel"
    seed: int = 0
    batch_size: int = 128

    def __post_init__(self):
        checks.known(self.neuron, NEURONS, "neuron")
        checks.positive(self.batch_size, "batch_size")

    def settled(self, model, x):
        return replace(self, layers=tuple(layers_of(model, x, self.layers)))

    @property
    def want(self):
        return Want(self.layers, self.neuron)

    def arrange(self, covered: cov.Covered, folder: Path | None = None) -> torch.Tensor:
        """The order of candidates that cover this; ``folder``: see :func:`coverage.cam`."""
        generator = torch.Generator().manual_seed(self.seed)
        return cov.cam(covered, generator=generator, folder=folder)


@dataclass(frozen=True, kw_only=True, eq=False)
class NAC(Covering):
    """Neuron activation coverage: neurons above ``threshold`` (Table IV of NSS: 0.5).

    ``activation``: 'raw' (default, as the words have it; dnn-tip), 'scaled' to [0, 1] layer by
    layer (DeepXplore), or 'sigmoid' of the raw one (DeepGini's and ATS's code), where 0.5 means
    above zero, as most neurons are.
    """

    threshold: float = 0.5
    activation: str = "raw"

    def __post_init__(self):
        super().__post_init__()
        checks.known(self.activation, ACTIVATIONS, "activation")

    @property
    def want(self):
        return Want(self.layers, self.neuron, self.activation == "scaled")

    def read(self, batch, known):
        values, sigmoid = batch.of(self.want), self.activation == "sigmoid"
        return cov.nac(values, self.threshold, sigmoid=sigmoid).bins

    def finish(self, rows, classes, known, *, folder=None, device="cpu"):
        return None, self.arrange(cov.Covered(rows, 1), folder)


@dataclass(frozen=True, kw_only=True, eq=False)
class KMNC(Covering):
    """K-multisection coverage, in ``sections`` of what neurons do on training images.

    - ``reference``: those images (M, C, H, W), M >= 1.
    - ``sections``: of each neuron's range; Table IV has 1000.
    - ``layers``, ``neuron``, ``seed``, ``batch_size``: see :class:`Covering`.
    """

    reference: torch.Tensor = field(repr=False)
    sections: int = 1000

    def __post_init__(self):
        super().__post_init__()
        checks.images(self.reference, "reference")
        checks.positive(self.sections, "sections")

    keeps = ("low", "high")

    def learn(self, batch):
        seen = cov.boundaries(batch.of(self.want))
        return {"low": seen.low[None], "high": seen.high[None]}

    def learned(self, rows):
        return {"low": rows["low"].amin(0), "high": rows["high"].amax(0)}

    def read(self, batch, known):
        seen = cov.Boundaries(known["low"], known["high"])
        return cov.kmnc(batch.of(self.want), seen, self.sections).bins

    def finish(self, rows, classes, known, *, folder=None, device="cpu"):
        return None, self.arrange(cov.Covered(rows, self.sections), folder)
