"""LeNet-1, LeNet-4 and LeNet-5 as in DeepXplore, whose sizes DeepSensor's model tables repeat.

"Same" padding, ReLU and max-pools, against LeCun's tanh and averages (Proc. IEEE 86, 1998).
NSS (Table I) tests other LeNets, without padding, whose parameters it prints as neurons.
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


def lenet1_nss(channels: int, size: int, classes: int) -> nn.Module:
    """LeNet-1 as in NSS's code: tanh and averages, 3,246 parameters, 192 units before the logits.

    Its first convolution counted twice gives the 3,350 of the paper's Table I.
    """
    at_least(size, 16, "LeNet-1 of NSS")
    side = _after(size)
    return nn.Sequential(
        nn.Conv2d(channels, 4, 5), nn.Tanh(), nn.AvgPool2d(2),
        nn.Conv2d(4, 12, 5), nn.Tanh(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(12 * side * side, classes))


def lenet5_nss(channels: int, size: int, classes: int) -> nn.Module:
    """LeNet-5 of NSS's Table I, by its 44,426 parameters: no padding, 256 units after the pools.

    The paper does not name the activation and the pools: ReLU and maximum, as in DeepXplore.
    """
    at_least(size, 16, "LeNet-5 of NSS")
    side = _after(size)
    return nn.Sequential(
        nn.Conv2d(channels, 6, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(16 * side * side, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
        nn.Linear(84, classes))


def _after(size: int) -> int:
    """Pixels a side after two unpadded 5 x 5 convolutions with their 2 x 2 pools."""
    return ((size - 4) // 2 - 4) // 2
