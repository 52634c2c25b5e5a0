"""Weights that others trained, in our network, on our reader: what they published comes out."""

import io
import os
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from torchvision.transforms.v2.functional import pil_to_tensor, to_pil_image

from dnnbook.data import known, load
from dnnlib import custom, files, inference, models

# akamaster/pytorch_resnet_cifar10, resnet20: 91.73 % of CIFAR-10's test images, as published there
PUBLISHED = 91.73
AS_JPEG = 81.00  # of the same pictures, stored as JPEG (Pillow, quality 75): book/running.md
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def as_ours(theirs):
    """Their names as ours; convolutions have no bias there."""
    ours = {}

    def take(ours_name, conv, norm):
        ours[f"{ours_name[0]}.weight"] = theirs[f"{conv}.weight"]
        ours[f"{ours_name[0]}.bias"] = torch.zeros(len(theirs[f"{conv}.weight"]))
        for part in ("weight", "bias", "running_mean", "running_var"):
            ours[f"{ours_name[1]}.{part}"] = theirs[f"{norm}.{part}"]

    take(("0", "1"), "conv1", "bn1")
    for block in range(9):
        there, here = f"layer{block // 3 + 1}.{block % 3}", f"{3 + block}.main"
        take((f"{here}.0", f"{here}.1"), f"{there}.conv1", f"{there}.bn1")
        take((f"{here}.3", f"{here}.4"), f"{there}.conv2", f"{there}.bn2")
    return ours | {f"14.{part}": theirs[f"linear.{part}"] for part in ("weight", "bias")}


def as_jpeg(images):
    again = []
    for image in images:
        to_pil_image(image).save(file := io.BytesIO(), "JPEG", quality=75)
        again.append(pil_to_tensor(Image.open(file)) / 255)
    return torch.stack(again)


OWN = Path(os.environ.get("DNNLIB_DATA", "data"))  # as the person who runs the tests has it


def test_a_resnet_that_others_trained_gets_what_they_published(monkeypatch):
    path = OWN / "weights" / "resnet20_cifar10.safetensors"
    monkeypatch.setattr(files, "data_dir", lambda: OWN)
    if not path.exists() or not any((OWN / name).exists()
                                    for name in ("cifar10", "cifar-10-batches-py")):
        pytest.skip("needs weights/resnet20_cifar10.safetensors and CIFAR-10 under DNNLIB_DATA")
    data = load("cifar10")
    assert known.known(data.fingerprint) == ("cifar10", "test", "")
    model = models.build("resnet20", variant="he")
    models.weights.assign(model, as_ours(load_file(path)), path)
    prepared = custom.prepare(model, mean=MEAN, std=STD)
    accuracy = inference.accuracy(prepared, data.images, data.labels)
    assert round(100 * accuracy, 2) == PUBLISHED
    accuracy = inference.accuracy(prepared, as_jpeg(data.images), data.labels)
    assert round(100 * accuracy, 2) == pytest.approx(AS_JPEG, abs=0.2)  # as libjpeg has it


def test_the_shortcut_without_parameters_is_the_one_of_he_et_al():
    model = models.build("resnet20", variant="he")
    ours = models.build("resnet20")
    assert sum(p.numel() for p in ours.parameters()) - sum(
        p.numel() for p in model.parameters()) == 16 * 32 + 32 + 32 * 64 + 64
    x = torch.arange(2 * 16 * 6 * 6.).reshape(2, 16, 6, 6)
    y = model[6].shortcut(x)
    assert torch.equal(y[:, 8:24], x[:, :, ::2, ::2]) and not y[:, :8].any() and not y[:, 24:].any()
    with pytest.raises(ValueError, match="unknown variant 'hee'; did you mean 'he'?"):
        models.build("resnet20", variant="hee")
