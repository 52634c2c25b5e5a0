"""CLEVER as the experiments call it: a record that rests on it says in which revision."""

from torch import Tensor, nn

from dnnbook import reproducible
from dnnlib.robustness import clever as engine
from dnnlib.robustness.clever import FITS, location, perturbations

__all__ = ["FITS", "clever", "location", "perturbations"]


def clever(model: nn.Module, x: Tensor, **options) -> engine.Clever:
    """:func:`dnnlib.robustness.clever.clever`, noted for :func:`reproducible.settings`."""
    reproducible.note("clever")
    return engine.clever(model, x, **options)
