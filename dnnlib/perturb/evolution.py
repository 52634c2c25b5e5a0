"""Patches found by differential evolution: what NSATP IV.B says of its perturbations.

The method is that of Su, Vargas and Sakurai's one-pixel attack, which NSATP cites, with the
2 x 2 block of :mod:`dnnlib.perturb.patches` for the pixel. It runs on all images at once, where
SciPy's differential evolution takes one after the other: a population is a small batch, so that
SciPy's takes 1.2 (ResNet-20) to 3 times (LeNet-1) as long, by ``benchmarks/bench_patches.py``.
"""

from typing import NamedTuple

import torch
from torch import nn

from dnnlib import checks
from dnnlib.inference import device_of, fast_layout, predict, size_for
from dnnlib.perturb import patches as patching
from dnnlib.perturb.patches import Patches
from dnnlib.progress import progress

POPULATION, WEIGHT = 20, 0.5  # patches of a generation, and of a difference in a child


class Evolved(NamedTuple):
    """``success``: bool (N, trials); ``best``: patches (N, 1); ``probability``: float64 (N,).

    ``probability`` is that of the class first predicted, with the best patch on the image.
    """

    success: torch.Tensor
    best: Patches
    probability: torch.Tensor


@torch.no_grad()
def evolve(model: nn.Module, x: torch.Tensor, *, trials: int = 100,
           generator: torch.Generator, batch_size: int = 200) -> Evolved:
    """Evolve, for each image, patches that lower the probability of its predicted class.

    ``x``: (N, C, H, W) in [0, 1]. A patch is a vector in [0, 1]^(2 + C): its corner, as shares
    of the places where it fits, and its colour. The first :data:`POPULATION` are uniform; then
    every member's child is r1 + :data:`WEIGHT` (r2 - r3), of three others at random, without
    crossover, clipped to [0, 1] (ours: Su et al. do not say what becomes of values out of
    range), and takes the member's place if it lowers the probability. ``success`` holds
    ``trials`` evaluations in the order they were made; they are not independent, as random
    patches are. ``batch_size``: images in a pass on a CPU; elsewhere :func:`inference.size_for`
    says how many. The draws do not depend on it.

    Raises ``ValueError`` if ``trials`` is not a multiple of :data:`POPULATION`, or the model's
    outputs are not finite.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(16, 2))
    >>> found = evolve(model, torch.rand(3, 1, 4, 4), trials=40,
    ...                generator=torch.Generator().manual_seed(0))
    >>> found.success.shape, found.best.colour.shape, found.probability.shape
    (torch.Size([3, 40]), torch.Size([3, 1, 1]), torch.Size([3]))
    """
    checks.images(x)
    checks.generator(generator)
    if checks.positive(trials, "trials") % POPULATION:
        raise ValueError(f"trials: expected a multiple of {POPULATION}, got {trials}")
    if min(x.shape[-2:]) < patching.SIDE:
        raise ValueError(f"x: expected images of at least {patching.SIDE} x {patching.SIDE}, "
                         f"got {x.shape[-2]} x {x.shape[-1]}")
    original = predict(model, x, batch_size=checks.positive(batch_size, "batch_size")).argmax(1)
    size = size_for(model, x, batch_size, rows=len(x) * POPULATION, times=2)
    members = torch.rand(len(x), POPULATION, 2 + x.shape[1], generator=generator)
    fitness = torch.full((len(x), POPULATION), torch.inf, dtype=torch.float64)
    children, success = members, []
    for generation in progress(range(trials // POPULATION), desc="generations", leave=False):
        if generation:
            children = _children(members, generator)
        p, flips = _evaluate(model, x, original, _decode(children, x.shape), size)
        success.append(flips)
        better = p < fitness
        members = torch.where(better[..., None], children, members)
        fitness = torch.where(better, p, fitness)
    probability, best = fitness.min(1, keepdim=True)
    best = _decode(members, x.shape)[torch.arange(len(x))[:, None], best]
    return Evolved(torch.cat(success, 1), best, probability[:, 0])


def _children(members: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    n, population, _ = members.shape
    order = torch.rand(n, population, population, generator=generator)
    order.diagonal(dim1=1, dim2=2).fill_(-1)  # a member is not among its own three
    chosen = order.topk(3, dim=2).indices
    r1, r2, r3 = (members[torch.arange(n)[:, None], chosen[..., i]] for i in range(3))
    return (r1 + WEIGHT * (r2 - r3)).clamp(0, 1)


def _decode(members: torch.Tensor, shape: torch.Size) -> Patches:
    places = torch.tensor(shape[-2:]) - patching.SIDE + 1
    corner = (members[..., :2] * places).long().minimum(places - 1)
    return Patches(corner[..., 0], corner[..., 1], members[..., 2:])


def _evaluate(model: nn.Module, x: torch.Tensor, original: torch.Tensor, patches: Patches,
              batch_size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Probability of the class ``original``, and whether the prediction left it: (N, M) each."""
    device, (n, m) = device_of(model), patches.top.shape
    parts = []
    for chunk in torch.arange(n).split(max(1, batch_size // m)):
        tried = patching.apply(x[chunk].to(device), patches[chunk]).flatten(0, 1)
        parts += [model(fast_layout(part, device)) for part in tried.split(batch_size)]
    logits = torch.cat(parts).cpu().double()  # in float32 a sure network's probabilities are all 1
    if not torch.isfinite(logits).all():
        raise ValueError("model: expected finite outputs, got NaN or infinity")
    original = original.repeat_interleave(m)
    p = logits.softmax(1).gather(1, original[:, None])
    return p.view(n, m), (logits.argmax(1) != original).view(n, m)
