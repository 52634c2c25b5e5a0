"""The perturbation of NSATP and PEACEPACT: one colour over a block of 2 x 2 pixels, or more."""

from dataclasses import dataclass

import torch

from dnnlib import checks

SIDE = 2  # pixels; NSATP IV.B, PEACEPACT IV.B


@dataclass(frozen=True)
class Patches:
    """``top``, ``left``: int64 of shape S; ``colour``: ``(*S, C)`` in [0, 1], None to invert;
    ``side``: of the block, in pixels."""

    top: torch.Tensor
    left: torch.Tensor
    colour: torch.Tensor | None
    side: int = SIDE

    def __getitem__(self, index) -> "Patches":
        colour = None if self.colour is None else self.colour[index]
        return Patches(self.top[index], self.left[index], colour, self.side)


def draw(n: int, trials: int, shape: tuple[int, int, int], *, invert: bool = False,
         side: int = SIDE, generator: torch.Generator) -> Patches:
    """Random patches for ``n`` images of ``shape`` (C, H, W), ``trials`` each.

    Corners are uniform over the places where the block fits, colours uniform in [0, 1]
    for each channel (PEACEPACT IV.B). With ``invert`` the pixels are reversed instead, as in
    both motivation sections (II.B). ``side``: of the block, in pixels.

    >>> patches = draw(3, 5, (1, 8, 8), generator=torch.Generator().manual_seed(0))
    >>> patches.top.shape, patches.colour.shape
    (torch.Size([3, 5]), torch.Size([3, 5, 1]))
    """
    channels, height, width = shape
    side = checks.positive(side, "side")
    if min(height, width) < side:
        raise ValueError(f"shape: expected images of at least {side} x {side}, "
                         f"got {height} x {width}")
    top = torch.randint(height - side + 1, (n, trials), generator=generator)
    left = torch.randint(width - side + 1, (n, trials), generator=generator)
    colour = None if invert else torch.rand(n, trials, channels, generator=generator)
    return Patches(top, left, colour, side)


def apply(x: torch.Tensor, patches: Patches) -> torch.Tensor:
    """Every patched copy of every image.

    ``x``: (N, C, H, W) in [0, 1]; patches of shape (N, M). Returns (N, M, C, H, W).

    >>> corner = torch.tensor([[0]]), torch.tensor([[1]])
    >>> apply(torch.zeros(1, 1, 3, 3), Patches(*corner, None))[0, 0, 0].tolist()
    [[0.0, 1.0, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0, 0.0]]
    """
    n, trials = patches.top.shape
    if len(x) != n:
        raise ValueError(f"patches: expected patches for {len(x)} images, got {n}")
    out = x.unsqueeze(1).repeat(1, trials, 1, 1, 1)
    block = torch.arange(patches.side, device=x.device)
    rows = patches.top.to(x.device)[..., None, None] + block[:, None]
    cols = patches.left.to(x.device)[..., None, None] + block
    image = torch.arange(n, device=x.device)[:, None, None, None]
    trial = torch.arange(trials, device=x.device)[None, :, None, None]
    # advanced indices around the channel slice put the channels last
    if patches.colour is None:
        out[image, trial, :, rows, cols] = 1 - out[image, trial, :, rows, cols]
    else:
        out[image, trial, :, rows, cols] = patches.colour.to(x)[:, :, None, None, :].expand(
            n, trials, patches.side, patches.side, -1)
    return out
