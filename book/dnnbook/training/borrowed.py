"""Networks that others trained: nothing is trained here, and all seeds share their weights."""

from collections.abc import Callable

import torch
from torch import nn

from dnnlib import custom, files, models

_STATISTICS = "weight", "bias", "running_mean", "running_var"  # of a batch normalisation


def pretrained(model_name: str, dataset: str) -> nn.Module:
    """Network ``model_name`` with weights that others trained for ``dataset``, in evaluation mode.

    - 'mobilenet' on 'imagenet': of width 0.75, with Keras's weights, see
      :func:`models.load_keras_weights`.
    - 'resnet20' on 'cifar10': He et al.'s variant with the weights of
      ``akamaster/pytorch_resnet_cifar10``, ``weights/resnet20_cifar10.safetensors`` in the data
      folder: 91.73 % of the test images as published.

    Raises ``ValueError`` for any other, and ``FileNotFoundError`` if the file is missing.

    >>> pretrained("net2", "mnist")
    Traceback (most recent call last):
    ValueError: pretrained: expected mobilenet on imagenet or resnet20 on cifar10, got net2 on mnist
    """
    if (model_name, dataset) not in PRETRAINED:
        known = " or ".join(map(" on ".join, PRETRAINED))
        raise ValueError(f"pretrained: expected {known}, got {model_name} on {dataset}")
    return PRETRAINED[model_name, dataset]().eval()


def _mobilenet() -> nn.Module:
    return models.load_keras_weights(models.build("mobilenet", width=0.75))


def _resnet20() -> nn.Module:
    path = files.data_dir() / "weights" / "resnet20_cifar10.safetensors"
    model = models.build("resnet20", variant="he")
    models.weights.assign(model, _as_ours(models.weights.read(path)), path)
    return custom.prepare(model, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))


def _as_ours(theirs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors of that repository under our names; its convolutions have no bias."""
    places = {"0": "conv1", "1": "bn1"}
    for block in range(9):
        there, here = f"layer{block // 3 + 1}.{block % 3}", f"{3 + block}.main"
        places |= {f"{here}.0": f"{there}.conv1", f"{here}.1": f"{there}.bn1",
                   f"{here}.3": f"{there}.conv2", f"{here}.4": f"{there}.bn2"}
    ours = {f"14.{part}": theirs[f"linear.{part}"] for part in ("weight", "bias")}
    for here, there in places.items():
        norm = f"{there}.bias" in theirs
        ours |= {f"{here}.{part}": theirs[f"{there}.{part}"]
                 for part in (_STATISTICS if norm else ("weight",))}
        if not norm:
            ours[f"{here}.bias"] = torch.zeros(len(theirs[f"{there}.weight"]))
    return ours


PRETRAINED: dict[tuple[str, str], Callable[[], nn.Module]] = {
    ("mobilenet", "imagenet"): _mobilenet, ("resnet20", "cifar10"): _resnet20}
