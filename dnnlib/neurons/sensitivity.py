"""Neuron sensitivity (DeepSensor, Eqs. 1 and 2), and the share of sensitive neurons as a fitness.

NSS has a sensitivity of its own, summed over pairs of inputs: :mod:`dnnlib.selection.nss`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from dnnlib import checks
from dnnlib.inference import device_of
from dnnlib.neurons.activations import channel_means, record, scaled_channel_means
from dnnlib.neurons.layers import SOFTMAX, layers_of, watched

SCALES = ("none", "activations", "difference")
_BATCH = 512  # inputs in a pass


def neuron_sensitivity(before, after, distance=None, *, signed: bool = True) -> torch.Tensor:
    r"""The change of every neuron's activation for each unit of distance moved (DeepSensor, Eq. 1).

    .. math:: NS_n(x, \Delta x) = \frac{\varphi_n(x + \Delta x) - \varphi_n(x)}{\|\Delta x\|_2}

    ``before``, ``after``: activations (..., neurons) of x and x + dx, of shapes that broadcast.
    ``distance``: the denominator, of the leading shape (...); 0 gives a sensitivity of 0, as III.C
    has it, not 0/0. None: not divided (released code). ``signed``: Eq. 1 as printed, by which a
    neuron that falls silent is not sensitive; else the absolute change. Returns (..., neurons).
    Raises ``ValueError`` for shapes that do not fit, and values that are not finite or distances
    below 0.

    >>> neuron_sensitivity([0.5, 0.5], [[1.5, 0.0], [0.5, 0.5]], [2.0, 0.0]).tolist()
    [[0.5, -0.25], [0.0, 0.0]]
    """
    before, after = (checks.tensor(values) for values in (before, after))
    if not before.ndim or not after.ndim or before.shape[-1] != after.shape[-1]:
        raise ValueError("after: expected activations (..., neurons) of as many neurons as before, "
                         f"{tuple(before.shape)}, got {tuple(after.shape)}")
    moved = after - before
    if not moved.isfinite().all():
        raise ValueError("before, after: expected finite activations, got NaN or infinity")
    if not signed:
        moved = moved.abs()
    if distance is None:
        return moved
    distance = torch.as_tensor(distance, device=moved.device)
    if distance.shape != moved.shape[:-1]:
        raise ValueError(f"distance: expected shape {tuple(moved.shape[:-1])}, one for each input, "
                         f"got {tuple(distance.shape)}")
    if not (distance.isfinite() & (distance >= 0)).all():
        raise ValueError("distance: expected finite L2 distances of at least 0, got "
                         f"{distance.min().item():g} to {distance.max().item():g}")
    distance = distance.unsqueeze(-1)
    return (moved / distance).masked_fill(distance == 0, 0)


def sensitive_share(sensitivity, threshold: float = 0.5) -> torch.Tensor:
    r"""The share of N neurons whose sensitivity (..., N) is above a threshold (DeepSensor, Eq. 2).

    .. math:: \mathrm{Fitness} = \frac{|\{n : NS_n > \lambda\}|}{N}

    Returns float32 (...), in [0, 1]. Raises ``ValueError`` for no neurons or NaN.

    >>> sensitive_share([[0.6, 0.5, -2.0, 1.0], [0.0, 0.0, 0.0, 0.0]]).tolist()
    [0.5, 0.0]
    """
    sensitivity = checks.tensor(sensitivity)
    if not sensitivity.ndim or not sensitivity.numel():
        raise ValueError("sensitivity: expected shape (..., neurons) with at least one neuron, "
                         f"got {tuple(sensitivity.shape)}")
    if sensitivity.isnan().any():
        raise ValueError("sensitivity: expected numbers, got NaN")
    return (sensitivity > threshold).float().mean(-1)


@dataclass(frozen=True, kw_only=True)
class SensitiveNeurons:
    """DeepSensor's fitness, the share of sensitive neurons; neurons are channels.

    - ``threshold``: lambda, the sensitivity above which a neuron counts; finite.
    - ``scale``: 'none' (default: the paper names none), 'activations', each input's to [0, 1] layer
      by layer as in DeepXplore, or 'difference', the released code's: the change itself to [0, 1]
      layer by layer, which forgets how large it was.
    - ``signed``: Eq. 1 as printed, or the absolute change: see :func:`neuron_sensitivity`.
    - ``divide``: whether by ||dx||_2; the released code does not.
    - ``layers``: names of modules, default all that count: see :func:`activations.record`.
    - ``logits``: whether they count as neurons; in the released code they do not.

    Called with a model, inputs (S, C, H, W) and their labels, it gives the function
    ``score(x, of)`` that a swarm maximises: images (N, C, H, W), and which input each came from,
    int64 (N,), to float32 (N,). What the inputs themselves activate is computed once, except for
    'difference', where whole maps would have to be kept: there each call sends its inputs along.

    >>> from dnnlib import models
    >>> model, inputs = models.build("lenet1"), torch.zeros(1, 1, 28, 28)
    >>> score = SensitiveNeurons(threshold=0.01)(model, inputs, torch.tensor([3]))
    >>> score(inputs, torch.tensor([0])).tolist(), score(inputs + 1, torch.tensor([0])).item() > 0
    ([0.0], True)
    """

    threshold: float = 0.5
    scale: str = "none"
    signed: bool = True
    divide: bool = True
    layers: tuple[str, ...] | None = None
    logits: bool = True

    def __post_init__(self):
        checks.known(self.scale, SCALES, "scale")
        checks.finite(self.threshold, "threshold")

    def names(self, model: nn.Module, inputs: torch.Tensor) -> tuple[str, ...]:
        """The layers whose channels count; ``ValueError`` for an unknown or missing one."""
        last = [name for name in layers_of(model, inputs) if name != SOFTMAX][-1]
        found = record(model, inputs[:1], layers=self.layers).layers
        found = tuple(name for name in found if self.logits or name != last)
        if not found:
            raise ValueError(f"layers: expected one besides the logits with logits=False, "
                             f"got {self.layers}")
        return found

    def __call__(self, model: nn.Module, inputs: torch.Tensor,
                 labels: torch.Tensor) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
        inputs = inputs.to(device_of(model))
        layers = self.names(model, inputs)
        reduce = channel_means if self.scale == "none" else scaled_channel_means
        together = self.scale == "difference"
        if not together:
            with torch.no_grad():
                clean = torch.cat([responses(model, part, layers, reduce)
                                   for part in inputs.split(_BATCH)])

        def score(x: torch.Tensor, of: torch.Tensor) -> torch.Tensor:
            x, of = x.to(inputs.device), of.to(inputs.device)
            if together:
                some, place = of.unique(return_inverse=True)
                n = len(some)
                after = responses(model, torch.cat([inputs[some], x]), layers,
                                  lambda a: scaled_channel_means(a[n:] - a[:n][place]))
                before = torch.zeros_like(after)
            else:
                before, after = clean[of], responses(model, x, layers, reduce)
            distance = (x - inputs[of]).flatten(1).norm(dim=1) if self.divide else None
            moved = neuron_sensitivity(before, after, distance, signed=self.signed)
            return sensitive_share(moved, self.threshold)

        return score


def responses(model: nn.Module, x: torch.Tensor, layers: Sequence[str],
              reduce: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """``reduce`` of every layer's output for one batch, side by side, on the model's device.

    ``layers``: see :func:`layers.layers_of`. Images and activations are not checked.

    >>> from dnnlib import models
    >>> responses(models.build("lenet1"), torch.zeros(2, 1, 28, 28), ["1", "7"],
    ...           channel_means).shape
    torch.Size([2, 14])
    """
    with watched(model, layers_of(model, x, layers), reduce) as parts:
        model(x)
    return torch.cat([parts[name] for name in layers], 1)
