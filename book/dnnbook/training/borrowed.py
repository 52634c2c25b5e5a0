"""Networks that others trained: nothing is trained here, and all seeds share their weights."""

from collections.abc import Callable

import torch
from torch import nn

from dnnlib import custom, files, models

_PARTS = "weight", "bias", "running_mean", "running_var"


def pretrained(model_name: str, dataset: str) -> nn.Module:
    """Network ``model_name`` with weights that others trained for ``dataset``, in evaluation mode.

    - 'mobilenet' on 'imagenet': of width 0.75, with Keras's weights, see
      :func:`models.load_keras_weights`.
    - 'resnet20' on 'cifar10': He et al.'s variant with the weights of
      ``akamaster/pytorch_resnet_cifar10``, ``weights/resnet20_cifar10.safetensors`` in the data
      folder: 91.73 % of the test images as published.
    - 'resnet50' on 'imagenet': torchvision's variant, with weights under torchvision's names in
      ``weights/resnet50_imagenet.safetensors``.

    Raises ``ValueError`` for any other, and ``FileNotFoundError`` if the file is missing.

    >>> pretrained("net2", "mnist")
    Traceback (most recent call last):
    ValueError: pretrained: expected mobilenet on imagenet or resnet20 on cifar10 or resnet50 on \
imagenet, got net2 on mnist
    """
    if (model_name, dataset) not in PRETRAINED:
        known = " or ".join(map(" on ".join, PRETRAINED))
        raise ValueError(f"pretrained: expected {known}, got {model_name} on {dataset}")
    return PRETRAINED[model_name, dataset]().eval()


def _mobilenet() -> nn.Module:
    return models.load_keras_weights(models.build("mobilenet", width=0.75))


def _resnet20() -> nn.Module:
    places = {"0": "conv1", "1": "bn1", "14": "linear"}
    for block in range(9):
        there, here = f"layer{block // 3 + 1}.{block % 3}", f"{3 + block}.main"
        places |= {f"{here}.0": f"{there}.conv1", f"{here}.1": f"{there}.bn1",
                   f"{here}.3": f"{there}.conv2", f"{here}.4": f"{there}.bn2"}
    return _prepared(models.build("resnet20", variant="he"), "resnet20_cifar10", places)


def _resnet50() -> nn.Module:
    places = {"1": "conv1", "2": "bn1", "23": "fc"}
    there = [f"layer{stage}.{i}" for stage, n in enumerate((3, 4, 6, 3), 1) for i in range(n)]
    for here, block in enumerate(there, 5):
        for place, i in enumerate((1, 2, 3)):
            places |= {f"{here}.main.{3 * place}": f"{block}.conv{i}",
                       f"{here}.main.{3 * place + 1}": f"{block}.bn{i}"}
        if block.endswith(".0"):
            places |= {f"{here}.shortcut.{i}": f"{block}.downsample.{i}" for i in (0, 1)}
    return _prepared(models.build("resnet50", variant="torchvision"), "resnet50_imagenet", places)


def _prepared(model: nn.Module, name: str, places: dict[str, str]) -> nn.Module:
    """The model with the weights of that file, and ImageNet's mean and deviation taken off first.

    ``places``: what each of our modules is called there. Convolutions there have no bias.
    """
    path = files.data_dir() / "weights" / f"{name}.safetensors"
    theirs, state = models.weights.read(path), model.state_dict()
    ours = {f"{here}.{part}": theirs[f"{there}.{part}"]
            for here, there in places.items() for part in _PARTS if f"{there}.{part}" in theirs}
    ours |= {name: torch.zeros_like(value) for name, value in state.items()
             if name.endswith(".bias") and name not in ours
             and isinstance(model.get_submodule(name.rpartition(".")[0]), nn.Conv2d)}
    models.weights.assign(model, ours, path)
    return custom.prepare(model, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))


PRETRAINED: dict[tuple[str, str], Callable[[], nn.Module]] = {
    ("mobilenet", "imagenet"): _mobilenet, ("resnet20", "cifar10"): _resnet20,
    ("resnet50", "imagenet"): _resnet50}
