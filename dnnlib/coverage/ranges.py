"""What neurons do on training data, which coverage criteria compare with."""

from collections.abc import Callable
from typing import NamedTuple

import torch

from dnnlib import checks

ROWS = 256  # worked on at once: a chunk in double precision stays in the processor's cache


class Boundaries(NamedTuple):
    """Each neuron's least and greatest activation on training inputs, float64 (neurons,) each."""

    low: torch.Tensor
    high: torch.Tensor


def boundaries(values) -> Boundaries:
    """The boundaries of every neuron over training activations (N, neurons).

    Raises ``ValueError`` unless there is at least one input and neuron and all is finite.

    >>> seen = boundaries([[0.0, 1.0], [2.0, 1.0]])
    >>> seen.low.tolist(), seen.high.tolist()
    ([0.0, 1.0], [2.0, 1.0])
    """
    return Boundaries(*(side.double() for side in matrix(values).aminmax(dim=0)))


def matrix(values, seen: Boundaries | None = None) -> torch.Tensor:
    """Finite floating-point activations (N, neurons), as many neurons as in ``seen``.

    Float32, or float64 if they were, on the CPU. Raises ``ValueError`` for anything else.
    """
    values = checks.tensor(values)
    if values.ndim != 2 or 0 in values.shape or not values.is_floating_point():
        raise ValueError("values: expected floating-point activations (N, neurons) of at least "
                         f"one input and neuron, got {values.dtype} of shape "
                         f"{tuple(values.shape)}")
    # one sum tells quickly; it may overflow where no value is infinite
    if not values.sum().isfinite() and not values.isfinite().all():
        column = int((~values.isfinite()).any(0).nonzero()[0, 0])
        raise ValueError("values: expected finite activations, got NaN or infinity in column "
                         f"{column}")
    if seen is not None and values.shape[1] != len(seen.low):
        raise ValueError(f"values: expected {len(seen.low)} neurons, as in the boundaries, "
                         f"got {values.shape[1]}")
    return (values if values.dtype == torch.float64 else values.float()).detach().cpu()


def by_rows(function: Callable[[torch.Tensor], torch.Tensor],
            values: torch.Tensor) -> torch.Tensor:
    """``function`` of the values in double precision, some rows at a time."""
    return torch.cat([function(part.double()) for part in values.split(ROWS)])
