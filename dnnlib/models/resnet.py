"""ResNet-20 for CIFAR, ResNet-50 for ImageNet and ResNet-34 for speech, as in Keras 2.

He et al., CVPR 2016. ResNet-20 follows Keras's CIFAR-10 example (version 1), ResNet-50
``keras.applications``: every convolution has a bias, and the stride of a bottleneck stands in
its first 1 x 1 convolution. Their variants take the weights of other networks. ResNet-34 is the
one with the sizes in Table 1 of the second DeepSensor paper, parameters, neurons and layers: no
biases, a projection in the first block of each of its stages, and zero padding as layers of their
own.
"""

import math
from collections.abc import Sequence

import torch
from torch import nn

from dnnlib import checks
from dnnlib.models.layers import EPSILON, Add, at_least, convolved, same_conv


class Residual(nn.Module):
    """ReLU(main(x) + shortcut(x)); without a ``shortcut``, x itself is added.

    ``relu``: another activation in the place of the ReLU.
    """

    def __init__(self, main: nn.Module, shortcut: nn.Module | None,
                 relu: nn.Module | None = None):
        super().__init__()
        self.main, self.shortcut = main, shortcut
        self.add, self.relu = Add(), relu or nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x if self.shortcut is None else self.shortcut(x)
        return self.relu(self.add(self.main(x), y))


class Padded(nn.Module):
    """He et al.'s shortcut A, without parameters: every second pixel, and zeros as new channels.

    (N, C, H, W) -> (N, C + 2 ``margin``, ceil(H / 2), ceil(W / 2)); as many zeros on both sides.

    >>> Padded(8)(torch.ones(1, 16, 32, 32)).shape
    torch.Size([1, 32, 16, 16])
    """

    def __init__(self, margin: int):
        super().__init__()
        self.margin = margin

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.margin, self.margin))


VARIANTS = {"resnet20": ("keras", "he"), "resnet50": ("keras", "torchvision")}


def resnet20(channels: int, size: int, classes: int, *, variant: str = "keras") -> nn.Module:
    """Three stages of three basic blocks, of 16, 32 and 64 channels.

    ``variant``: 'keras', its CIFAR-10 example: where the channels change, a convolution as shortcut
    and padding to the right and below; or 'he', as most networks that others trained on CIFAR-10:
    :class:`Padded` shortcuts, symmetric padding, and an epsilon of 1e-5 in BatchNorm.
    (N, C, H, W) in [0, 1], at least 8 x 8 -> logits (N, classes).
    """
    at_least(size, 8, "ResNet-20")
    he = checks.known(variant, VARIANTS["resnet20"], "variant") == "he"
    layers = [*convolved(channels, 16, 3), nn.ReLU()]
    before = 16
    for after in (16, 32, 64):
        for block in range(3):
            stride = 2 if after > 16 and block == 0 else 1
            main = nn.Sequential(*convolved(before, after, 3, stride), nn.ReLU(),
                                 *convolved(after, after, 3))
            shortcut: nn.Module | None = None
            if before != after and he:
                main[0] = nn.Conv2d(before, after, 3, stride, padding=1)
                shortcut = Padded((after - before) // 2)
            elif before != after:  # the example's is a bare convolution, without BatchNorm
                shortcut = same_conv(before, after, 1, stride=stride)
            layers.append(Residual(main, shortcut))
            before = after
    model = nn.Sequential(*layers, *_head(before, classes))
    return _torchs_epsilon(model) if he else model


def resnet50(channels: int, size: int, classes: int, *, variant: str = "keras") -> nn.Module:
    """Four stages of 3, 4, 6 and 3 bottlenecks that end in 256, 512, 1024 and 2048 channels.

    ``variant``: 'keras', as in ``keras.applications``; or 'torchvision', whose bottlenecks have the
    stride in the 3 x 3 convolution, whose first pool pads by 1, and whose BatchNorm has an epsilon
    of 1e-5. (N, C, H, W) in [0, 1], at least 32 x 32 -> logits (N, classes).
    """
    at_least(size, 32, "ResNet-50")
    theirs = checks.known(variant, VARIANTS["resnet50"], "variant") == "torchvision"
    layers = [nn.ZeroPad2d(3), nn.Conv2d(channels, 64, 7, 2), nn.BatchNorm2d(64, EPSILON),
              nn.ReLU(), nn.MaxPool2d(3, 2, 1 if theirs else 0)]
    before = 64
    for narrow, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        wide = 4 * narrow
        for block in range(blocks):
            stride = 2 if narrow > 64 and block == 0 else 1
            main = nn.Sequential(*convolved(before, narrow, 1, stride), nn.ReLU(),
                                 *convolved(narrow, narrow, 3), nn.ReLU(),
                                 *convolved(narrow, wide, 1))
            if theirs:
                main[0] = nn.Conv2d(before, narrow, 1)
                main[3] = nn.Conv2d(narrow, narrow, 3, stride, padding=1)
            shortcut = nn.Sequential(*convolved(before, wide, 1, stride)) if block == 0 else None
            layers.append(Residual(main, shortcut))
            before = wide
    model = nn.Sequential(*layers, *_head(before, classes))
    return _torchs_epsilon(model) if theirs else model


def resnet34(channels: int, size: int, classes: int, *, width: float = 1.0) -> nn.Module:
    """Four stages of 3, 4, 6 and 3 basic blocks, of 64, 128, 256 and 512 channels.

    ``width`` scales every channel count. (N, C, H, W) in [0, 1], at least 32 x 32 -> logits
    (N, classes). Raises ``ValueError`` for a width that leaves no channel.
    """
    at_least(size, 32, "ResNet-34")
    stages = scaled((64, 128, 256, 512), width)
    before = stages[0]
    layers = [same_conv(channels, before, 7, stride=2, bias=False),
              nn.BatchNorm2d(before, EPSILON), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    for stage, (after, blocks) in enumerate(zip(stages, (3, 4, 6, 3))):
        for block in range(blocks):
            stride = 2 if stage and block == 0 else 1
            main = nn.Sequential(*_padded(before, after, stride), nn.ReLU(), *_padded(after, after))
            shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False),
                                     nn.BatchNorm2d(after, EPSILON)) if block == 0 else None
            layers.append(Residual(main, shortcut))
            before = after
    return nn.Sequential(*layers, *_head(before, classes))


def scaled(channels: Sequence[int], width: float) -> tuple[int, ...]:
    """``width`` times as many channels, rounded down; ``ValueError`` where none is left.

    >>> scaled((64, 128), 0.25)
    (16, 32)
    """
    least = min(channels)
    if not math.isfinite(width) or int(least * width) < 1:
        raise ValueError(f"width: expected a finite factor of at least 1/{least}, got {width!r}")
    return tuple(int(count * width) for count in channels)


def _padded(before: int, after: int, stride: int = 1) -> list[nn.Module]:
    return [nn.ZeroPad2d(1), nn.Conv2d(before, after, 3, stride, bias=False),
            nn.BatchNorm2d(after, EPSILON)]


def _torchs_epsilon(model: nn.Module) -> nn.Module:
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eps = 1e-5
    return model


def _head(before: int, classes: int) -> list[nn.Module]:
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes)]
