"""LeNet-1, LeNet-4 and LeNet-5 as in DeepXplore, whose sizes DeepSensor's model tables repeat.

"Same" padding, ReLU and max-pools, against LeCun's tanh and averages (Proc. IEEE 86, 1998).
NSS (Table I) tests other LeNets: what it calls their neurons, 3,350 and 44,426, are parameters.
"""

from torch import nn

from dnnlib.models.layers import at_least, same_conv


def lenet1(channels: int, size: int, classes: int) -> nn.Module:
    """5 x 5 convolutions of 4 and 12 channels, each with a 2 x 2 pool."""
    return _lenet(channels, size, classes, (4, 12), ())


def lenet4(channels: int, size: int, classes: int) -> nn.Module:
    """5 x 5 convolutions of 6 and 16 channels, each with a 2 x 2 pool, and 84 units."""
    return _lenet(channels, size, classes, (6, 16), (84,))


def lenet5(channels: int, size: int, classes: int) -> nn.Module:
    """5 x 5 convolutions of 6 and 16 channels, each with a 2 x 2 pool, 120 and 84 units."""
    return _lenet(channels, size, classes, (6, 16), (120, 84))


def _lenet(channels: int, size: int, classes: int, maps: tuple[int, ...],
           units: tuple[int, ...]) -> nn.Module:
    """(N, C, H, W) in [0, 1] -> logits (N, classes)."""
    at_least(size, 4, "LeNet")
    layers: list[nn.Module] = []
    for after in maps:
        # ceil_mode: "same" for a 2 x 2 pool
        layers += [same_conv(channels, after, 5), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True)]
        channels, size = after, -(-size // 2)
    layers.append(nn.Flatten())
    before = channels * size * size
    for after in units:
        layers += [nn.Linear(before, after), nn.ReLU()]
        before = after
    return nn.Sequential(*layers, nn.Linear(before, classes))
