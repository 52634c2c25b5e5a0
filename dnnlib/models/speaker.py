"""Deep Speaker (Li et al., arXiv:1705.02304): ResCNN, the network with residual blocks.

Layer for layer the Keras version of P. Remy (philipperemy/deep-speaker), which is the one that
has the sizes in Table 1 of the second DeepSensor paper.
"""

import torch
from torch import nn

from dnnlib.models.layers import Reshape, at_least, convolved
from dnnlib.models.resnet import Residual, scaled

CLIP = 20.0  # ReLU min(max(x, 0), 20), Section 3.1


class Normalised(nn.Module):
    """(N, K) -> (N, K), rows of length one: a voice is a direction (Section 3.3)."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.normalize(x)


def deep_speaker(channels: int, size: int, classes: int, *, width: float = 1.0) -> nn.Module:
    """Four stages of 64 to 512 channels, a mean over time, an embedding of 512, an output layer.

    A stage is a 5 x 5 convolution of stride 2 and three residual blocks. ``width`` scales every
    channel count and the embedding. (N, C, mels, frames) in [0, 1], at least 16 x 16 -> logits
    (N, classes). Raises ``ValueError`` for a width that leaves no channel.

    >>> deep_speaker(1, 64, 8, width=0.25).eval()(torch.zeros(2, 1, 64, 64)).shape
    torch.Size([2, 8])
    """
    at_least(size, 16, "Deep Speaker")
    layers: list[nn.Module] = []
    before, side = channels, size
    for after in scaled((64, 128, 256, 512), width):
        layers += [*convolved(before, after, 5, 2), nn.Hardtanh(0, CLIP)]
        for _ in range(3):
            main = nn.Sequential(*convolved(after, after, 3), nn.Hardtanh(0, CLIP),
                                 *convolved(after, after, 3))
            layers.append(Residual(main, None, nn.Hardtanh(0, CLIP)))
        before, side = after, -(-side // 2)
    embedding, = scaled((512,), width)
    return nn.Sequential(
        *layers,
        Reshape(before * side, 1, side),  # every channel and mel band by itself, over time
        nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(before * side, embedding), Normalised(),
        nn.Linear(embedding, classes))
