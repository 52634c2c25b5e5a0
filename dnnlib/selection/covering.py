"""Selectors that cover neurons: NAC and KMNC, by total or additional coverage."""

from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path

import torch
from torch import nn

from dnnlib import checks
from dnnlib import coverage as cov
from dnnlib.neurons.activations import NEURONS, record
from dnnlib.selection.protocol import beside, candidates

METHODS = ("cam", "ctm")
ACTIVATIONS = ("raw", "scaled", "sigmoid")
_REFERENCES = 4096  # whose activations are held at once


@dataclass(frozen=True, kw_only=True, eq=False)
class Covering:
    """What the two have in common; NSS names neither the method nor the fill.

    - ``method``: 'cam', by additional coverage, or 'ctm', by total coverage, under which all
      candidates are nearly equal for KMNC.
    - ``fill``, ``first``, ``search``: see :func:`coverage.cam`. A few candidates cover all that NAC
      can, so that ``fill`` decides: 'random' as in ATS, whose subjects NSS shares, or 'ctm' as in
      dnn-tip.
    - ``layers``, ``neuron``: see :func:`activations.record`.
    - ``seed``: of all that is random.
    - ``batch_size``: images in a pass on a CPU; elsewhere :func:`inference.size_for` says how many.
    """

    method: str = "cam"
    fill: str = "random"
    first: str = "most"
    search: str = "greedy"
    layers: tuple[str, ...] | None = None
    neuron: str = "channel"
    seed: int = 0
    batch_size: int = 128

    def __post_init__(self):
        checks.known(self.method, METHODS, "method")
        checks.known(self.fill, cov.FILLS, "fill")
        checks.known(self.first, cov.FIRST, "first")
        checks.known(self.search, cov.SEARCH, "search")
        checks.known(self.neuron, NEURONS, "neuron")
        checks.positive(self.batch_size, "batch_size")

    def covered(self, model: nn.Module, x: torch.Tensor) -> cov.Covered:
        """What every candidate covers."""
        raise NotImplementedError

    def order(self, model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return self.arrange(self.covered(model, candidates(x)))

    def arrange(self, covered: cov.Covered, folder: Path | None = None) -> torch.Tensor:
        """The order of candidates that cover this; ``folder``: see :func:`coverage.cam`."""
        if self.method == "ctm":
            return cov.ctm(covered)
        return cov.cam(covered, fill=self.fill, first=self.first, search=self.search,
                       generator=torch.Generator().manual_seed(self.seed), folder=folder)

    def _values(self, model: nn.Module, x: torch.Tensor, scale: bool = False) -> torch.Tensor:
        return record(model, x, layers=self.layers, neuron=self.neuron, scale=scale,
                      batch_size=self.batch_size).values


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

    def covered(self, model: nn.Module, x: torch.Tensor) -> cov.Covered:
        return self.bins(self._values(model, x, scale=self.activation == "scaled"))

    def bins(self, values: torch.Tensor) -> cov.Covered:
        """What candidates of these activations (N, neurons) cover."""
        return cov.nac(values, self.threshold, sigmoid=self.activation == "sigmoid")


@dataclass(frozen=True, kw_only=True, eq=False)
class KMNC(Covering):
    """K-multisection coverage, in ``sections`` of what neurons do on training images.

    - ``reference``: those images (M, C, H, W), M >= 1.
    - ``sections``: of each neuron's range; Table IV has 1000.
    - ``edges``, ``constant``, ``outer``: see :func:`coverage.kmnc`; default DeepGauge's closed
      range.
    - ``method``, ``fill``, ``first``, ``search``, ``layers``, ``neuron``, ``seed``, ``batch_size``:
      see :class:`Covering`.
    """

    reference: torch.Tensor = field(repr=False)
    sections: int = 1000
    edges: str = "both"
    constant: bool = False
    outer: bool = False

    def __post_init__(self):
        super().__post_init__()
        checks.images(self.reference, "reference")
        checks.positive(self.sections, "sections")
        checks.known(self.edges, cov.EDGES, "edges")

    def covered(self, model: nn.Module, x: torch.Tensor) -> cov.Covered:
        parts = beside(self.reference, x, "reference").split(_REFERENCES)
        seen = reduce(cov.Boundaries.merge, (cov.boundaries(self._values(model, part))
                                          for part in parts))
        return self.bins(self._values(model, x), seen)

    def bins(self, values: torch.Tensor, seen: cov.Boundaries) -> cov.Covered:
        """What candidates of these activations (N, neurons) cover of what was ``seen``."""
        return cov.kmnc(values, seen, self.sections, edges=self.edges,
                        constant=self.constant, outer=self.outer)
