"""Corner cases of benign images, and what to compare them with (Fig. 1 of both DeepSensors)."""

import numpy as np
import torch
from torch import nn

from dnnlib import checks
from dnnlib.fuzzing.protocol import Fuzzer, reach

Pairs = dict[str, tuple[torch.Tensor, torch.Tensor]]


def with_noise(x: torch.Tensor, length: torch.Tensor, *, seed: int = 0) -> torch.Tensor:
    """Images (N, C, H, W) in [0, 1] under Gaussian noise that moves each by its L2 ``length`` (N,).

    A length that cannot be had gives the farthest image: see :func:`protocol.reach`. Raises
    ``ValueError`` for bad images, and for lengths that are not N finite numbers from 0 up.

    >>> x = torch.full((2, 1, 4, 4), 0.5)
    >>> moved = with_noise(x, torch.tensor([0.5, 1.0])) - x
    >>> moved.flatten(1).norm(dim=1).round(decimals=3).tolist()
    [0.5, 1.0]
    """
    checks.images(x)
    length = torch.as_tensor(length)
    if length.shape != (len(x),) or not (length.isfinite() & (length >= 0)).all():
        raise ValueError(f"length: expected {len(x)} finite numbers from 0 up, got "
                         f"{tuple(length.shape)}: {length.flatten()[:5].tolist()}")
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(seed)).to(x)
    return reach(x, noise, length)


def corner_cases(fuzzer: Fuzzer, model: nn.Module, benign: torch.Tensor, labels: torch.Tensor, *,
                 iterations: int = 20, seed: int = 0) -> Pairs:
    """Pairs (benign images, examples made of them) in three groups.

    - 'error': of every benign image (N, C, H, W) the first example by ``fuzzer`` that lost its
      class, if there is one;
    - 'noise': the same images under noise of the same length, see :func:`with_noise`;
    - 'right': of the examples of the same image that kept their class, the one nearest in length
      to its error, if there is one. Changes below half a level of 256 are left out: rounding.

    Neither paper says how its benign examples were perturbed; the last two are our readings. Raises
    what the fuzzer raises, and ``ValueError`` if no image lost its class.

    >>> from dnnlib.fuzzing import Noise
    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    >>> _ = model[1].weight.data.copy_(torch.tensor([[1.0, 0, 0, 0], [0, 1.0, 0, 0]]))
    >>> x = torch.full((3, 1, 2, 2), 0.5)  # noise decides which of two pixels is brighter
    >>> _ = model[1].bias.data.zero_()
    >>> list(corner_cases(Noise(), model, x, model(x).argmax(1), iterations=3))
    ['error', 'noise', 'right']
    """
    shown: list[torch.Tensor] = []
    campaign = fuzzer.run(model, benign, labels, iterations=iterations, watch=shown.append,
                          generator=torch.Generator().manual_seed(seed))
    examples = torch.stack(shown).to(benign)
    parent, first = np.unique(campaign.origin[campaign.errors], return_index=True)
    x, length = benign[parent], campaign.l2[campaign.errors][first]
    if not len(parent):
        raise ValueError(f"inputs: none of {len(benign)} lost its class in {iterations} "
                         "iterations, so there is no corner case; more inputs or iterations may "
                         "find one")
    kept = ~campaign.errors & (campaign.linf > 0.5 / 255)
    nearest, place = torch.stack([(campaign.l2 - l2).abs().masked_fill(
        ~kept | (campaign.origin != i), torch.inf) for i, l2 in zip(parent.tolist(), length)]
    ).flatten(1).min(1)
    twin = nearest.isfinite()
    return {"error": (x, examples[campaign.errors][first]),
            "noise": (x, with_noise(x, length, seed=seed)),
            "right": (x[twin], examples.flatten(0, 1)[place[twin]])}
