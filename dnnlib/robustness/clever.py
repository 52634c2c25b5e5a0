"""CLEVER: how far an input is from another class, by extreme values of gradients (ICLR 2018).

Weng et al., "Evaluating the robustness of neural networks: an extreme value theory approach",
arXiv:1801.10578. An estimate, not a bound: the largest gradient may be anywhere in the ball.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from scipy import optimize, stats
from torch import nn

from dnnlib import checks
from dnnlib.inference import as_logits, checked, fast_layout, leaves_modes, ready, size_for
from dnnlib.progress import progress

DUAL = {"l1": math.inf, "l2": 2, "linf": 1}  # q of the gradients for p of the ball
RADII = {"l1": 30.0, "l2": 2.0, "linf": 0.1}
SAMPLINGS = ("ball", "ibm", "sphere")
OUTPUTS = ("logits", "probabilities")
FITS = ("ibm", "art", "maximum")
_AT_ONCE = 64  # points drawn
_STARTS = (0.1, 1, 5, 10, 20, 50, 100)  # shapes, as in IBM's code


@dataclass(frozen=True, eq=False)
class Clever:
    """What :func:`clever` found for N images and n classes, on the CPU.

    ``predicted``: int64 (N,), the class c. ``margins``: float64 (N, n), f_c - f_j. ``lipschitz``:
    float64 (N, n), the estimate of the largest gradient norm of f_c - f_j in the ball.
    ``targeted``: float64 (N, n), the score for each class j, a distance in the norm of the ball;
    infinite for j = c. ``fitted``: bool (N, n), False where no distribution fitted, or none was
    asked for, and the largest sample stands for the location.
    """

    predicted: torch.Tensor
    margins: torch.Tensor
    lipschitz: torch.Tensor
    targeted: torch.Tensor
    fitted: torch.Tensor

    @property
    def untargeted(self) -> torch.Tensor:
        """The least score over all other classes, float64 (N,)."""
        return self.targeted.amin(1)


@leaves_modes
def clever(model: nn.Module, x: torch.Tensor, *, norm: str = "l2", radius: float | None = None,
           batches: int = 500, samples: int = 1024, pool: int | None = 10_240,
           sampling: str = "ball", output: str = "logits", fit: str = "ibm", cap: bool = True,
           seed: int = 0, batch_size: int = 256) -> Clever:
    r"""CLEVER scores of images x (N, C, H, W) in [0, 1], by class j (Weng et al., Algorithm 1).

    .. math:: \min\left(\frac{f_c(x) - f_j(x)}{L_j}, \ R\right)

    c is the predicted class, so select the images that are classified correctly first.
    :math:`L_j` is the location of the reverse Weibull distribution of the largest norms of the
    gradient of :math:`f_c - f_j` in a ball of radius R around x.

    - ``norm``: of the ball, 'l1', 'l2' or 'linf'.
    - ``radius``: default 2 for L2, since DeepSensor gives none and 10, in its authors' code, leads
      far out of any image; 30 for L1 and 0.1 for L-infinity, as in IBM's code.
    - ``batches``, ``samples``: N_b maxima of N_s gradient norms each; 500 and 1024 in DeepSensor
      and in IBM's code.
    - ``pool``: gradients computed once for each image; every batch takes some of them with
      replacement (ART); None computes N_b x N_s, as IBM's code does, at 50 times the cost. Batches
      of a pool share their maxima, which no continuous distribution fits: with 500 of them expect
      ``fitted`` to be rare, and L to be the largest gradient seen.
    - ``sampling``: 'ball', 'ibm' or 'sphere': see :func:`perturbations`; points are clipped to
      [0, 1].
    - ``output``: what f is, 'logits' (the paper, IBM) or 'probabilities', as DeepSensor's authors
      have it by their Keras wrapper; the scales differ.
    - ``fit``: 'ibm', 'art' or 'maximum': see :func:`location`, which says why 'ibm' is the default.
    - ``cap``: no score above the radius, beyond which no point was seen (the paper, ART; not IBM).
    - ``seed``: of the points.
    - ``batch_size``: points in a pass on a CPU; elsewhere :func:`inference.size_for` says how many.

    An image's score depends on ``seed`` and its place and, apart from rounding, neither on
    ``batch_size`` nor on the other images. Raises ``ValueError`` for an option that
    makes no sense, for outputs that are probabilities, and for outputs or gradients that are not
    finite.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2, bias=False))
    >>> model[1].weight.data = torch.tensor([[1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
    >>> found = clever(model, torch.full((1, 1, 2, 2), 0.25), batches=5, samples=4, pool=8)
    >>> found.margins.tolist(), found.lipschitz.tolist(), found.targeted.tolist()
    ([[0.0, 1.0]], [[0.0, 2.0]], [[inf, 0.5]])
    """
    checks.images(x)
    checks.known(norm, DUAL, "norm")
    checks.known(fit, FITS, "fit")
    for value, name in ((batches, "batches"), (samples, "samples"), (batch_size, "batch_size")):
        checks.positive(value, name)
    if pool is not None and checks.positive(pool, "pool") < samples:
        raise ValueError(f"pool: expected at least samples={samples} points, got {pool}")
    radius = RADII[norm] if radius is None else radius
    if norm == "linf":
        checks.of_a_pixel(radius, "radius")
    points = batches * samples if pool is None else pool
    draws = torch.randint(2**62, (len(x),), generator=torch.Generator().manual_seed(
        checks.seed(seed))).tolist()  # an image's points do not depend on the others
    outputs = _outputs(model, x, output, batch_size)
    predicted = outputs.argmax(1)
    margins = outputs.gather(1, predicted[:, None]) - outputs
    lipschitz, fitted = torch.zeros_like(margins), torch.zeros(margins.shape, dtype=torch.bool)
    size = size_for(model, x, batch_size, rows=points, times=4)
    for i, image in enumerate(progress(x, desc="CLEVER", leave=False)):
        c, generator = int(predicted[i]), torch.Generator().manual_seed(draws[i])
        moves = perturbations(points, image.shape, norm=norm, radius=radius, sampling=sampling,
                              generator=generator, batch_size=size)
        norms = torch.cat([gradient_norms(model, (image.cpu() + move).clamp(0, 1), c, norm=norm,
                                          output=output) for move in moves])
        if pool is None:
            maxima = norms.view(batches, samples, -1).amax(1)
        else:
            maxima = torch.stack([norms[torch.randint(pool, (samples,), generator=generator)]
                                  .amax(0) for _ in range(batches)])
        for j in range(norms.shape[1]):
            if j != c:
                lipschitz[i, j], fitted[i, j] = location(maxima[:, j], fit=fit)
    # a class that no gradient leads to is infinitely far
    targeted = torch.where(margins > 0, margins / lipschitz, 0)
    targeted = targeted.clamp(max=radius) if cap else targeted
    targeted.scatter_(1, predicted[:, None], math.inf)
    return Clever(predicted, margins, lipschitz, targeted, fitted)


def perturbations(count: int, shape: tuple[int, ...], *, norm: str = "l2", radius: float = 2.0,
                  sampling: str = "ball", generator: torch.Generator,
                  batch_size: int = 256) -> Iterator[torch.Tensor]:
    """Random points of a ball around 0, float32 (<= batch_size, \\*shape) at a time.

    ``sampling``: 'ball', uniform in it; 'ibm', with distances uniform in [0, radius], as IBM's
    code has them for L1 and L2 (its L2 points are a factor of U^(1/d) nearer, on average 0.999
    for d = 784), and uniform for L-infinity; 'sphere', all at the radius. In hundreds of
    dimensions a ball is nearly all surface, so that 'ball' draws no point near x. Raises
    ``ValueError`` for an unknown ``norm`` or ``sampling``, or a radius that is not above 0.

    >>> points, = perturbations(100, (3, 3), norm="l1", generator=torch.Generator())
    >>> points.shape, bool(points.abs().sum((1, 2)).max() <= 2)
    (torch.Size([100, 3, 3]), True)
    """
    checks.known(norm, DUAL, "norm")
    checks.known(sampling, SAMPLINGS, "sampling")
    checks.finite(radius, "radius", above=0)
    drawn = _drawn(count, math.prod(shape), norm, radius, sampling, generator)
    kept: list[torch.Tensor] = []  # joined once a batch: every time would copy them all
    for part in drawn:
        kept.append(part)
        if sum(map(len, kept)) >= batch_size:
            *full, rest = torch.cat(kept).split(batch_size)
            full, rest = ([*full, rest], rest[:0]) if len(rest) == batch_size else (full, rest)
            yield from (points.view(-1, *shape) for points in full)
            kept = [rest]
    if sum(map(len, kept)):
        yield torch.cat(kept).view(-1, *shape)


def _drawn(count: int, d: int, norm: str, radius: float, sampling: str,
           generator: torch.Generator) -> Iterator[torch.Tensor]:
    """The same points whatever the batches: PyTorch draws 16 normal numbers at a time."""
    u = torch.rand(count, 1, generator=generator)
    share = u if sampling == "ibm" and norm != "linf" else u ** (1 / d)
    distances = radius * (torch.ones_like(u) if sampling == "sphere" else share)
    for part in distances.split(_AT_ONCE):
        if norm == "l2":
            v = torch.randn(len(part), d, generator=generator)
        else:
            v = torch.rand(len(part), d, generator=generator) * 2 - 1
        if norm == "l1":  # Laplace, by inversion; the draw of -1 would be infinite
            v = v.sign() * -torch.log1p(-v.abs().clamp(max=1 - 2 ** -24))
        p = float(norm[1:])
        v *= part / torch.linalg.vector_norm(v, p, dim=1, keepdim=True)
        yield v


@torch.enable_grad()
def gradient_norms(model: nn.Module, points: torch.Tensor, c: int, *, norm: str = "l2",
                   output: str = "logits") -> torch.Tensor:
    """||grad (f_c - f_j)||_q at points (B, C, H, W), for all classes j: float32 (B, n), CPU.

    q is the dual of ``norm``, 1/p + 1/q = 1. One pass forward serves all n - 1 backward; column
    c is 0. Raises ``ValueError`` for gradients that are not finite.
    """
    points = fast_layout(points, ready(model, points)).detach().requires_grad_()
    f = model(points)
    f = f.softmax(1) if output == "probabilities" else f
    norms = torch.zeros_like(f, requires_grad=False)
    others = [j for j in range(f.shape[1]) if j != c]
    for j in others:
        gradient, = torch.autograd.grad((f[:, c] - f[:, j]).sum(), points,
                                        retain_graph=j != others[-1])
        norms[:, j] = torch.linalg.vector_norm(gradient, DUAL[norm], dim=(1, 2, 3))
    if not norms.isfinite().all():
        raise ValueError("model: expected finite gradients, got NaN or infinity")
    return norms.float().cpu()


def location(maxima, *, fit: str = "ibm") -> tuple[float, bool]:
    """The right end of the distribution of maxima (N_b,), and whether a fit has given it.

    ``fit``: 'ibm', reverse Weibull by maximum likelihood from seven shapes, the scale penalised
    a little (where the code says "shape"), by the best p-value of a Kolmogorov-Smirnov test; the
    largest maximum where that is under 0.001. 'art': as ART, the Weibull distribution of the
    negated maxima, one start, no penalty, no test. 'maximum': the largest, as DeepSensor prints it.

    'ibm' is the default, as the nearest to the end of 50 or 500 maxima whose end is known, from
    reverse Weibull distributions of shapes 2, 5 and 20: it is about half as far off as the largest,
    where ART's stays near the largest. Of 10 maxima any fit is poor: take the largest.

    Maxima that differ by rounding only are not fitted. Raises ``ValueError`` for values that are
    negative or not finite.

    >>> location(torch.tensor([1.0, 3.0, 2.0]), fit="maximum")
    (3.0, False)
    """
    checks.known(fit, FITS, "fit")
    maxima = checks.array(maxima, float)
    if maxima.ndim != 1 or not len(maxima) or not (np.isfinite(maxima) & (maxima >= 0)).all():
        raise ValueError("maxima: expected finite numbers (N_b,) of at least 0")
    largest, span = float(maxima.max()), float(np.ptp(maxima))
    if fit == "maximum" or span <= 1e-5 * largest:
        return largest, False
    with np.errstate(all="ignore"):  # the search tries impossible parameters
        if fit == "art":
            _, loc, _ = stats.weibull_min.fit(-maxima, 1.0, optimizer=optimize.fmin)
            return -float(loc), True
        scaled = (maxima - largest) / span
        found = [stats.weibull_max.fit(scaled, c, optimizer=_penalised) for c in _STARTS]
        p_values = [stats.kstest(scaled, "weibull_max", args=each).pvalue for each in found]
    best = int(np.nanargmax(p_values)) if not np.isnan(p_values).all() else 0
    if not p_values[best] >= 0.001:
        return largest, False
    return largest + span * float(found[best][1]), True


def _penalised(likelihood, start, args=(), disp=0):
    """Keeps Nelder and Mead's search from wandering off to ever larger parameters."""
    return optimize.fmin(lambda theta, *data: likelihood(theta, *data) + 0.01 * theta[2] ** 2,
                         start, args=args, disp=disp)


@torch.no_grad()
def _outputs(model: nn.Module, x: torch.Tensor, output: str, batch_size: int) -> torch.Tensor:
    """f of every image, float64 (N, n)."""
    checks.known(output, OUTPUTS, "output")
    device = ready(model, x)
    f = torch.cat([checked(model(fast_layout(part, device)))
                   for part in x.split(size_for(model, x, batch_size))])
    f = as_logits(f, model, x).cpu().double()
    if f.shape[1] < 2:
        raise ValueError(f"model: expected outputs (N, n) for at least two classes, got "
                         f"{tuple(f.shape)}")
    if not f.isfinite().all():
        raise ValueError("model: expected finite outputs, got NaN or infinity")
    return f.softmax(1) if output == "probabilities" else f
