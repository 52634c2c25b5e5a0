"""Layers that Keras has and PyTorch has not: modules of their own, so that they can be hooked."""

import torch
from torch import nn

EPSILON = 1e-3  # Keras's default in BatchNormalization


_OF_WEIGHTS = {"parametrizations", "_packed_params"}  # of a parametrised, of a quantised module


def with_parts(module: nn.Module) -> bool:
    """Whether other modules run within a module; what makes or holds a weight is no part.

    >>> linear = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
    >>> any(linear.children()), with_parts(linear), with_parts(nn.Sequential(linear))
    (True, False, True)
    """
    return any(name not in _OF_WEIGHTS for name, _ in module.named_children())


def modules_that_run(model: nn.Module) -> dict[str, nn.Module]:
    """The modules by name, without those that make or hold a weight."""
    return {name: module for name, module in model.named_modules()
            if _OF_WEIGHTS.isdisjoint(name.split("."))}


class SameConv2d(nn.Conv2d):
    """Convolution with TensorFlow's "same" padding, whose odd pixel goes right and below.

    (N, C, H, W) -> (N, K, ceil(H / stride), ceil(W / stride)).

    >>> SameConv2d(3, 8, 3, stride=2)(torch.zeros(1, 3, 32, 32)).shape
    torch.Size([1, 8, 16, 16])
    """

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        margins = []
        for size, kernel, stride in zip(x.shape[:1:-1], self.kernel_size[::-1], self.stride[::-1]):
            total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
            margins += [total // 2, total - total // 2]
        return super().forward(nn.functional.pad(x, margins))


class InputScale(nn.Module):
    """[0, 1] to [-1, 1]: what Keras's MobileNet expects. Preparation, hence without neurons."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * x - 1


class Reshape(nn.Module):
    """(N, ...) to (N, ...) of another ``shape``."""

    def __init__(self, *shape: int):
        super().__init__()
        self.shape = shape

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(len(x), *self.shape)

    def extra_repr(self) -> str:
        return str(self.shape)


class Add(nn.Module):
    """The sum in which a residual block ends."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y


def same_conv(before: int, after: int, kernel: int, *, stride: int = 1, groups: int = 1,
              bias: bool = True) -> nn.Conv2d:
    """A convolution with "same" padding and an odd kernel; symmetric unless it strides."""
    if stride == 1:
        return nn.Conv2d(before, after, kernel, padding=kernel // 2, groups=groups, bias=bias)
    return SameConv2d(before, after, kernel, stride, groups=groups, bias=bias)


def convolved(before: int, after: int, kernel: int, stride: int = 1) -> list[nn.Module]:
    """A convolution with "same" padding and its BatchNorm."""
    return [same_conv(before, after, kernel, stride=stride), nn.BatchNorm2d(after, EPSILON)]


def at_least(size: int, least: int, network: str) -> None:
    """``ValueError`` unless the images have ``least`` pixels a side."""
    if size < least:
        raise ValueError(f"size: {network} needs images of at least {least} x {least}, "
                         f"got {size} x {size}")
