"""What neurons do on training data, which coverage criteria compare with."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import torch

from dnnlib import checks

ROWS = 256  # worked on at once: a chunk in double precision stays in the processor's cache


@dataclass(frozen=True, eq=False)
class Boundaries:
    """Each neuron's boundaries on ``count`` training inputs (DeepGauge), float64 (neurons,) each.

    ``low``, ``high``: the least and greatest activation. ``squares``: the summed squared deviations
    from ``mean``. Made by :func:`boundaries`; those of two parts of the data :meth:`merge` into
    those of the whole.
    """

    count: int
    low: torch.Tensor
    high: torch.Tensor
    mean: torch.Tensor
    squares: torch.Tensor

    @property
    def std(self) -> torch.Tensor:
        """The standard deviation over all inputs seen (divided by N, not N - 1)."""
        return (self.squares / self.count).sqrt()

    def merge(self, other: "Boundaries") -> "Boundaries":
        """The boundaries of both parts (Chan, Golub and LeVeque's update of the deviations).

        DeepHunter starts its deviations anew with every part, which makes them depend on it.
        """
        if len(self.low) != len(other.low):
            raise ValueError(f"other: expected boundaries of {len(self.low)} neurons, "
                             f"got {len(other.low)}")
        count, apart = self.count + other.count, other.mean - self.mean
        return Boundaries(count, self.low.minimum(other.low), self.high.maximum(other.high),
                       self.mean + apart * (other.count / count),
                       self.squares + other.squares
                       + apart.square() * (self.count * other.count / count))


def boundaries(values) -> Boundaries:
    """The boundaries and deviation of every neuron over training activations (N, neurons).

    Raises ``ValueError`` unless there is at least one input and neuron and all is finite.

    >>> seen = boundaries([[0.0, 1.0], [2.0, 1.0]])
    >>> seen.low.tolist(), seen.high.tolist(), seen.std.tolist()
    ([0.0, 1.0], [2.0, 1.0], [1.0, 0.0])
    """
    def of(part: torch.Tensor) -> Boundaries:
        part = part.double()
        mean = part.mean(0)
        return Boundaries(len(part), *part.aminmax(dim=0), mean, (part - mean).square().sum(0))

    return reduce(Boundaries.merge, map(of, matrix(values).split(ROWS)))


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
