"""A network as data that the browser can run: the kinds of layers, and all weights in one array."""

import torch
from torch import nn

from dnnbook.interactive.block import packed
from dnnlib.models.layers import SameConv2d

POINTWISE = {nn.ReLU: "relu", nn.Sigmoid: "sigmoid", nn.Tanh: "tanh"}
IDLE = (nn.Identity, nn.Dropout, nn.Dropout2d)  # nothing happens in evaluation
READABLE = ("Conv2d, Linear, MaxPool2d, AvgPool2d, ReLU, Sigmoid, Tanh, Flatten, Dropout and "
            "Identity in a Sequential")


def exported(model: nn.Module, shape: tuple[int, int, int]) -> dict:
    """``model`` for images of ``shape`` (C, H, W), as JSON: layers, their shapes and weights.

    'weights' holds every layer's weight and bias in the order of the layers: float32, little
    endian, in base64. ``model`` is a Sequential, others in it included, of the layers that
    :data:`READABLE` names, and gives logits (N, classes). Raises ``ValueError`` naming a layer that
    the browser cannot run, or a setting of one, before anything is computed.

    >>> from dnnlib import models
    >>> found = exported(models.build("lenet1"), (1, 28, 28))
    >>> [layer["kind"] for layer in found["layers"]]
    ['conv', 'relu', 'max', 'conv', 'relu', 'max', 'flatten', 'linear']
    """
    steps = [(name, layer, _described(name, layer)) for name, layer in _leaves(model, "")
             if not isinstance(layer, IDLE)]
    device = next(model.parameters()).device
    layers, arrays = [], []
    x = torch.zeros(1, *shape, device=device)
    with torch.no_grad():
        for name, layer, about in steps:
            before, x = x, layer(x)
            if "padding" in about and isinstance(layer, SameConv2d):
                about["padding"] = _margins(layer, before.shape[2:])
            held = [part.detach().cpu().float().flatten() for part in (
                getattr(layer, "weight", None), getattr(layer, "bias", None)) if part is not None]
            if held and len(held) == 1:
                held.append(torch.zeros(x.shape[1]))
            arrays += held
            layers.append({"name": name, **about, "from": list(before.shape[1:]),
                           "to": list(x.shape[1:]), "held": [len(part) for part in held]})
    if x.ndim != 2:
        raise ValueError(f"model: expected logits (N, classes), got shape {tuple(x.shape)}")
    weights = torch.cat(arrays) if arrays else torch.zeros(0)
    return {"shape": list(shape), "layers": layers, "weights": packed(weights.numpy())}


def runs(model: nn.Module) -> bool:
    """Whether the browser can run ``model``: see :func:`exported`.

    >>> from dnnlib import models
    >>> runs(models.build("lenet5")), runs(models.build("resnet20"))
    (True, False)
    """
    try:
        for name, layer in _leaves(model, ""):
            if not isinstance(layer, IDLE):
                _described(name, layer)
    except ValueError:
        return False
    return True


def _leaves(module: nn.Module, name: str) -> list[tuple[str, nn.Module]]:
    """The layers of nested Sequentials, in the order in which they run, with their names."""
    if not isinstance(module, nn.Sequential):
        return [(name, module)]
    return [leaf for part, child in module.named_children()
            for leaf in _leaves(child, f"{name}.{part}".lstrip("."))]


def _described(name: str, layer: nn.Module) -> dict:
    """Kind and settings of a layer; ``ValueError`` if the browser has no such layer."""
    refused = f"model: the browser cannot run layer {name!r}, {layer}"
    if type(layer) in POINTWISE:
        return {"kind": POINTWISE[type(layer)]}
    if isinstance(layer, nn.Flatten) and (layer.start_dim, layer.end_dim) == (1, -1):
        return {"kind": "flatten"}
    if isinstance(layer, nn.Linear):
        return {"kind": "linear"}
    if isinstance(layer, nn.Conv2d):
        if (layer.groups != 1 or _pair(layer.dilation) != [1, 1] or layer.padding_mode != "zeros"
                or isinstance(layer.padding, str)):
            raise ValueError(f"{refused}; expected groups and dilation of 1 and a number of zeros "
                             "as padding")
        return {"kind": "conv", "kernel": _pair(layer.kernel_size), "stride": _pair(layer.stride),
                "padding": _pair(layer.padding)}
    if isinstance(layer, nn.MaxPool2d | nn.AvgPool2d):
        largest = isinstance(layer, nn.MaxPool2d)
        plain = _pair(layer.dilation) == [1, 1] if largest else (
            _pair(layer.padding) == [0, 0] and not layer.ceil_mode and not layer.divisor_override)
        if not plain:
            raise ValueError(f"{refused}; expected a dilation of 1, and averages without padding, "
                             "ceil_mode and divisor_override")
        return {"kind": "max" if largest else "mean", "kernel": _pair(layer.kernel_size),
                "stride": _pair(layer.stride), "padding": _pair(layer.padding)}
    raise ValueError(f"{refused}; expected {READABLE}")


def _pair(value: int | tuple[int, int]) -> list[int]:
    return [value, value] if isinstance(value, int) else list(value)


def _margins(layer: SameConv2d, size: torch.Size) -> list[int]:
    """Zeros above and on the left; those below and on the right follow from the output's size."""
    return [max((-(-n // stride) - 1) * stride + kernel - n, 0) // 2
            for n, kernel, stride in zip(size, layer.kernel_size, layer.stride)]
