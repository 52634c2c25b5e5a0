"""DeepHunter's mutations, which should leave an image's class alone, and its bound on them.

The paper names eight: four that change pixels and four affine ones. Parameters are those of the
released code, which has a ninth, and counts contrast, brightness and blur as affine; see
:data:`PIXEL` and :data:`AFFINE`. Grey levels 0 to 255 are divided by 255. Readings: affine ones
are bilinear with zeros outside, scaling and rotation about the middle of the image, shearing
along the top row as in the released code; brightness adds to all channels; noise is that of
images in [0, 1], where the released code adds it to bytes, which wrap around.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch.nn import functional

from dnnlib import checks

PIXEL = {"paper": ("contrast", "brightness", "blur", "noise"), "released": ("pixels", "noise")}
AFFINE = {"paper": ("translate", "scale", "shear", "rotate"),
          "released": ("translate", "scale", "shear", "rotate", "contrast", "brightness", "blur")}
SMALLEST = 4  # pixels a side, for the reflected border of the widest blur
HALF_LEVEL = 0.5 / 255  # smaller changes vanish where images are bytes


@dataclass(frozen=True)
class Mutation:
    """``apply``: images, parameters float64 (N,) and a generator to images.

    ``values``: the parameters it is drawn from. ``whole``: others between them mean nothing.
    """

    apply: Callable[[torch.Tensor, torch.Tensor, torch.Generator | None], torch.Tensor]
    values: tuple[float, ...]
    whole: bool = False
    random: bool = False


def apply(x: torch.Tensor, names: str | Sequence[str], parameters, *,
          generator: torch.Generator | None = None) -> torch.Tensor:
    """Change every image by a mutation of :data:`MUTATIONS`, with a parameter of its own.

    ``x``: (N, C, H, W) in [0, 1], at least 4 x 4 pixels. ``names``, ``parameters``: one for all,
    or N. Parameters: translate, pixels to the right and down; scale, a factor; shear, pixels to
    the left for each row; rotate, degrees counter-clockwise; contrast, a factor; brightness, grey
    levels; blur, 1 to 9: mean of 3, 4, 5 pixels a side, Gaussian of 3, 5, 7, median of 3, 5,
    bilateral; pixels, how many change; noise, 1 to 3: Gaussian, salt and pepper, multiplicative.
    ``generator``: for pixels and noise, on the CPU. Returns (N, C, H, W) in [0, 1].

    Raises ``ValueError`` for parameters outside the range of a mutation's ``values``.

    >>> x = torch.eye(4).view(1, 1, 4, 4)
    >>> apply(x, "shear", 0.5)[0, 0].tolist()[2]
    [0.0, 1.0, 0.0, 0.0]
    """
    checks.images(x)
    if min(x.shape[2:]) < SMALLEST:
        raise ValueError(f"x: expected at least {SMALLEST} x {SMALLEST} pixels, got shape "
                         f"{tuple(x.shape)}")
    names = [names] * len(x) if isinstance(names, str) else list(names)
    p = torch.as_tensor(parameters, dtype=torch.float64, device="cpu")
    if len(names) != len(x) or p.shape not in ((), (len(x),)):
        raise ValueError(f"names, parameters: expected one or {len(x)}, got {len(names)} names and "
                         f"parameters of shape {tuple(p.shape)}")
    p, out = p.expand(len(x)), torch.empty_like(x)
    for name in dict.fromkeys(names):
        mutation = MUTATIONS[checks.known(name, MUTATIONS, "mutation")]
        rows = torch.tensor([i for i, other in enumerate(names) if other == name])
        low, high = min(mutation.values), max(mutation.values)
        if not ((p[rows] >= low) & (p[rows] <= high)).all() or (
                mutation.whole and (p[rows] % 1).any()):
            raise ValueError(f"parameters: expected {'whole ' if mutation.whole else ''}numbers "
                             f"from {low:g} to {high:g} for {name}, got {p[rows].tolist()}")
        if mutation.random and generator is None:
            raise ValueError(f"generator: expected a torch.Generator for {name}, got None")
        there = rows.to(x.device)
        out[there] = mutation.apply(x[there], p[rows], generator)
    return out.clamp(0, 1)


def draw(free: torch.Tensor, *, affine: str = "paper",
         generator: torch.Generator) -> tuple[list[str], torch.Tensor]:
    """A mutation for each image, and its parameter, float64 (N,); all equally likely.

    ``free``: bool (N,), whether it may be an affine one. ``affine``: 'paper' or 'released', see
    :data:`AFFINE`.

    >>> draw(torch.tensor([False]), affine="released",
    ...      generator=torch.Generator().manual_seed(0))[0][0] in PIXEL["released"]
    True
    """
    checks.known(affine, AFFINE, "affine")
    pixel, every = PIXEL[affine], PIXEL[affine] + AFFINE[affine]
    u = torch.rand(len(free), 2, generator=generator, dtype=torch.float64).tolist()
    names = [choices[int(a * len(choices))] for (a, _), choices in
             zip(u, (every if yes else pixel for yes in free.tolist()))]
    values = [MUTATIONS[name].values for name in names]
    return names, torch.tensor([v[int(b * len(v))] for (_, b), v in zip(u, values)],
                               dtype=torch.float64)


def distances(x: torch.Tensor, reference: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """L0 and L-infinity distances of images (N, C, H, W): int64 and float32 (N,), on the CPU.

    L0 counts values, of every channel, that differ by at least half a grey level.

    >>> distances(torch.tensor([[[[0.5, 0.001]]]]), torch.zeros(1, 1, 1, 2))
    (tensor([1]), tensor([0.5000]))
    """
    if x.shape != reference.shape:
        raise ValueError(f"reference: expected the shape of x, {tuple(x.shape)}, got "
                         f"{tuple(reference.shape)}")
    moved = (x - reference).abs().flatten(1)
    return (moved >= HALF_LEVEL).sum(1).cpu(), moved.amax(1).float().cpu()


def allowed(l0: torch.Tensor, linf: torch.Tensor, size: int, *, alpha: float = 0.02,
            beta: float = 0.2) -> torch.Tensor:
    """Whether a mutant is near enough, bool (N,): few values changed, or none by much (Eq. 1).

    L0 < ``alpha`` x ``size`` or L-infinity < ``beta``, for images of ``size`` = C x H x W values.

    >>> allowed(torch.tensor([15, 16, 784]), torch.tensor([1.0, 1.0, 0.1]), 784).tolist()
    [True, False, True]
    """
    return (l0 < alpha * size) | (linf < beta - 1e-6)  # 1 - 0.8 rounds to less than 0.2


def _warp(x: torch.Tensor, *inverse) -> torch.Tensor:
    """Rows of 2 x 3 matrices that lead from a new place to its old, in pixels from the middle."""
    height, width = x.shape[2:]
    entries = [torch.as_tensor(e, dtype=torch.float64).expand(len(x)) for e in inverse]
    unit = torch.tensor([1, height / width, 2 / width, width / height, 1, 2 / height])
    matrix = (torch.stack(entries, 1) * unit).view(-1, 2, 3).to(x)
    grid = functional.affine_grid(matrix, list(x.shape), align_corners=False)
    return functional.grid_sample(x, grid, align_corners=False)


def _shear(x, p, generator):
    return _warp(x, 1, p, p * (x.shape[2] - 1) / 2, 0, 1, 0)


def _rotate(x, p, generator):
    cos, sin = p.deg2rad().cos(), p.deg2rad().sin()
    return _warp(x, cos, -sin, 0, sin, cos, 0)


def _each(p, x):
    """(N,) beside ``x``."""
    return p.to(x).view(-1, 1, 1, 1)


def _by_value(x, p, functions):
    """The first function where the parameter is 1, and so on."""
    out = torch.empty_like(x)
    for value in p.unique().int().tolist():
        rows = (p == value).nonzero().squeeze(1).to(x.device)
        out[rows] = functions[value - 1](x[rows])
    return out


def _padded(x, before: int, after: int, mode: str = "reflect"):
    return functional.pad(x, (before, after, before, after), mode=mode)


def _smooth(x, weights: tuple[float, ...]):
    """A separable filter; one of even size reaches farther to the left and up, as OpenCV's."""
    size, channels = len(weights), x.shape[1]
    line = torch.tensor(weights).to(x) / sum(weights)
    kernel = torch.outer(line, line).expand(channels, 1, size, size)
    return functional.conv2d(_padded(x, size // 2, (size - 1) // 2), kernel, groups=channels)


def _median(x, size: int):
    windows = _padded(x, size // 2, size // 2, "replicate").unfold(2, size, 1).unfold(3, size, 1)
    # sorted, since a GPU's median has no deterministic way; the size is odd
    return windows.flatten(-2).sort(-1).values[..., size * size // 2]


def _bilateral(x):
    """Mean over a disc, weighted by nearness in place and in colour (OpenCV's, d = 6)."""
    radius, color, space = 3, 50 / 255, 50.0
    padded, (height, width) = _padded(x, radius, radius), x.shape[2:]
    total, norm = torch.zeros_like(x), torch.zeros_like(x[:, :1])
    reach = range(-radius, radius + 1)
    for i, j in ((i, j) for i in reach for j in reach if i * i + j * j <= radius * radius):
        near = padded[:, :, radius + i:radius + i + height, radius + j:radius + j + width]
        apart = (near - x).abs().sum(1, keepdim=True)
        weight = (-(i * i + j * j) / (2 * space**2) - apart.square() / (2 * color**2)).exp()
        total, norm = total + weight * near, norm + weight
    return total / norm


# the Gaussians are OpenCV's tables for small kernels
_SMOOTH = ((1,) * 3, (1,) * 4, (1,) * 5, (1, 2, 1), (1, 4, 6, 4, 1), (1, 3.5, 7, 9, 7, 3.5, 1))
_BLURS = (*(partial(_smooth, weights=w) for w in _SMOOTH),
          partial(_median, size=3), partial(_median, size=5), _bilateral)


def _pixels(x, p, generator):
    flat, rows = x.flatten(1).clone(), torch.arange(len(x))
    most = int(p.max())
    places = torch.randint(flat.shape[1], (len(x), most), generator=generator)
    levels = torch.randint(256, (len(x), most), generator=generator) / 255
    for i in range(most):  # a place drawn twice keeps the later value
        chosen = rows[p > i]
        flat[chosen.to(x.device), places[chosen, i].to(x.device)] = levels[chosen, i].to(x)
    return flat.view(x.shape)


def _noise(x, p, generator):
    def normal(x):
        return torch.randn(x.shape, generator=generator).to(x)

    def salt_and_pepper(x, share=0.004):
        flat, each = x.flatten(1).clone(), math.ceil(share / 2 * x[0].numel())
        places = torch.randint(flat.shape[1], (2, len(x), each), generator=generator).to(x.device)
        return flat.scatter_(1, places[0], 1).scatter_(1, places[1], 0).view(x.shape)

    return _by_value(x, p, (lambda x: x + math.sqrt(0.1) * normal(x), salt_and_pepper,
                            lambda x: x + x * normal(x)))


def _steps(start: int, stop: int, unit: int = 1) -> tuple[float, ...]:
    return tuple(i / unit for i in range(start, stop))


MUTATIONS = {
    "translate": Mutation(lambda x, p, _: _warp(x, 1, 0, -p, 0, 1, -p), _steps(-3, 3)),
    "scale": Mutation(lambda x, p, _: _warp(x, 1 / p, 0, 0, 0, 1 / p, 0), _steps(7, 12, 10)),
    "shear": Mutation(_shear, _steps(-6, 6, 10)),
    "rotate": Mutation(_rotate, _steps(-50, 50)),
    "contrast": Mutation(lambda x, p, _: x * _each(p, x), _steps(5, 13, 10)),
    "brightness": Mutation(lambda x, p, _: x + _each(p / 255, x), _steps(-20, 20)),
    "blur": Mutation(lambda x, p, _: _by_value(x, p, _BLURS), _steps(1, 10), whole=True),
    "pixels": Mutation(_pixels, _steps(1, 10), whole=True, random=True),
    "noise": Mutation(_noise, _steps(1, 4), whole=True, random=True),
}
