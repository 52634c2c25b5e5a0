"""Net-1 and Net-2 of NSATP (Table I), and Net-1 as PEACEPACT draws it (Table II).

Neither paper gives padding or stride. Without padding, two 3 x 3 pools of stride 3 shrink
28 x 28 to nothing, so the pools of Net-1 overlap with stride 2. PEACEPACT's three convolutions
do not fit even then; there, "same" padding is the least that works.
Each ReLU stands after its pool: the two commute, and the pooled map is smaller.
"""

from torch import nn

from dnnlib.models.layers import at_least


def net1(channels: int, size: int, classes: int) -> nn.Module:
    """Three 5 x 5 x 64 convolutions, two pools, 512 and 192 units (NSATP Table I)."""
    at_least(size, 27, "Net-1")
    side = _pooled(_pooled(size - 4) - 8)
    return nn.Sequential(
        nn.Conv2d(channels, 64, 5), nn.MaxPool2d(3, 2), nn.ReLU(),
        nn.Conv2d(64, 64, 5), nn.ReLU(),
        nn.Conv2d(64, 64, 5), nn.MaxPool2d(3, 2), nn.ReLU(),
        nn.Flatten(),
        nn.Linear(64 * side * side, 512), nn.ReLU(),
        nn.Linear(512, 192), nn.ReLU(),
        nn.Linear(192, classes),
    )


def net1_peacepact(channels: int, size: int, classes: int) -> nn.Module:
    """Three 5 x 5 x 64 convolutions, each with a pool, 512, 512, 192 units (PEACEPACT Table II).

    The table ends at the 192 units; the output layer is ours.
    """
    at_least(size, 15, "Net-1")
    side = _pooled(_pooled(_pooled(size)))
    layers = []
    for before in (channels, 64, 64):
        layers += [nn.Conv2d(before, 64, 5, padding=2), nn.MaxPool2d(3, 2), nn.ReLU()]
    return nn.Sequential(
        *layers, nn.Flatten(),
        nn.Linear(64 * side * side, 512), nn.ReLU(),
        nn.Linear(512, 512), nn.ReLU(),
        nn.Linear(512, 192), nn.ReLU(),
        nn.Linear(192, classes),
    )


def net2(channels: int, size: int, classes: int) -> nn.Module:
    """Two 3 x 3 x 32 convolutions, each with a 2 x 2 pool, then 512 units (NSATP Table I)."""
    at_least(size, 10, "Net-2")
    side = ((size - 2) // 2 - 2) // 2
    return nn.Sequential(
        nn.Conv2d(channels, 32, 3), nn.MaxPool2d(2), nn.ReLU(),
        nn.Conv2d(32, 32, 3), nn.MaxPool2d(2), nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * side * side, 512), nn.ReLU(),
        nn.Linear(512, classes),
    )


def _pooled(size: int) -> int:
    return (size - 3) // 2 + 1
