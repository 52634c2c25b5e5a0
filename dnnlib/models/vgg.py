"""VGG16 for CIFAR-10, with BatchNorm after every convolution and every dense layer.

Simonyan and Zisserman, ICLR 2015. BatchNorm follows the output layer too: only then are there
the 33,663,070 parameters of DeepSensor's model tables.
"""

from torch import nn

from dnnlib.models.layers import EPSILON, at_least, same_conv

STAGES = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))


def vgg16(channels: int, size: int, classes: int) -> nn.Module:
    """Thirteen 3 x 3 convolutions in five stages, each with a 2 x 2 pool; twice 4,096 units.

    (N, C, H, W) in [0, 1], at least 32 x 32 -> logits (N, classes).
    """
    at_least(size, 32, "VGG16")
    layers: list[nn.Module] = []
    for stage in STAGES:
        for after in stage:
            layers += [same_conv(channels, after, 3), nn.BatchNorm2d(after, EPSILON), nn.ReLU()]
            channels = after
        layers.append(nn.MaxPool2d(2))
    layers.append(nn.Flatten())
    before = channels * (size // 32) ** 2
    for after in (4096, 4096):
        layers += [nn.Linear(before, after), nn.BatchNorm1d(after, EPSILON), nn.ReLU()]
        before = after
    return nn.Sequential(*layers, nn.Linear(before, classes), nn.BatchNorm1d(classes, EPSILON))
