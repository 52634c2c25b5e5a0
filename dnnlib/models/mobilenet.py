"""MobileNet v1 (Howard et al., arXiv:1704.04861), layer for layer as in Keras 2."""

from pathlib import Path

from torch import nn

from dnnlib import files
from dnnlib.models.layers import EPSILON, InputScale, Reshape, at_least, same_conv
from dnnlib.models.resnet import scaled
from dnnlib.models.weights import assign, read

# channels and stride of the thirteen blocks (Table 1)
BLOCKS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1), (512, 1), (512, 1),
          (512, 1), (512, 1), (1024, 2), (1024, 1))


def mobilenet(channels: int, size: int, classes: int, *, width: float = 1.0) -> nn.Module:
    """Depthwise 3 x 3 and pointwise convolutions in turn; modules are named as in Keras.

    ``width`` scales every channel count. (N, C, H, W) in [0, 1], at least 32 x 32 -> logits
    (N, classes). Raises ``ValueError`` for a width that leaves no channel.

    >>> import torch
    >>> mobilenet(3, 32, 10, width=0.25).eval()(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """
    at_least(size, 32, "MobileNet")
    before, *pointwise = scaled((32, *(filters for filters, _ in BLOCKS)), width)
    model = nn.Sequential()
    model.add_module("input_scale", InputScale())

    def convolved(name: str, before: int, after: int, kernel: int, stride: int = 1,
                  groups: int = 1) -> None:
        model.add_module(name, same_conv(before, after, kernel, stride=stride, groups=groups,
                                         bias=False))
        model.add_module(f"{name}_bn", nn.BatchNorm2d(after, EPSILON))
        model.add_module(f"{name}_relu", nn.ReLU6())

    convolved("conv1", channels, before, 3, 2)
    for i, (after, (_, stride)) in enumerate(zip(pointwise, BLOCKS), start=1):
        convolved(f"conv_dw_{i}", before, before, 3, stride, groups=before)
        convolved(f"conv_pw_{i}", before, after, 1)
        before = after
    model.add_module("global_average_pooling2d_1", nn.AdaptiveAvgPool2d(1))
    model.add_module("reshape_1", Reshape(before, 1, 1))
    model.add_module("dropout", nn.Dropout(1e-3))
    model.add_module("conv_preds", nn.Conv2d(before, classes, 1))
    model.add_module("reshape_2", Reshape(classes))
    return model


def load_keras_weights(model: nn.Module, path: str | Path | None = None) -> nn.Module:
    """Put weights trained with Keras, under Keras's layer names, into a :func:`mobilenet`.

    ``path``: a safetensors file with tensors in PyTorch's order of axes, (K, C, H, W) for a
    convolution and (K, C) or (K, C, 1, 1) for ``conv_preds``; by default
    ``weights/mobilenet_v1_0.75_224.safetensors`` in the data folder, for ``width=0.75``.
    Raises ``FileNotFoundError``, or ``ValueError`` naming the tensors that do not fit.
    """
    path = Path(path or files.data_dir() / "weights" / "mobilenet_v1_0.75_224.safetensors")
    tensors = read(path)
    final = tensors.get("conv_preds.weight")
    if final is not None and final.ndim == 2:
        tensors["conv_preds.weight"] = final[:, :, None, None]
    return assign(model, tensors, path)
