"""Weights that others trained, in our network, on our reader: what they published comes out."""

import io
import os
from pathlib import Path

import pytest
import torch
import torchvision
from PIL import Image
from torch.nn.functional import batch_norm, conv2d, pad, relu
from torchvision.transforms.v2.functional import normalize, pil_to_tensor, to_pil_image

from dnnbook import training
from dnnbook.data import known, load
from dnnlib import files, inference, models

# akamaster/pytorch_resnet_cifar10, resnet20: 91.73 % of CIFAR-10's test images, as published there
PUBLISHED = 91.73
AS_JPEG = 81.00  # of the same pictures, stored as JPEG (Pillow, quality 75): book/running.md
OWN = Path(os.environ.get("DNNLIB_DATA", "data"))  # as the person who runs the tests has it


def weights(model):
    return {name: value.tolist() for name, value in model.state_dict().items()}


def test_weights_are_those_of_the_file(monkeypatch, tmp_path):
    monkeypatch.setenv("DNNLIB_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="mobilenet_v1_0.75_224.safetensors"):
        training.trained("mobilenet", "imagenet", recipe_name="pretrained")
    given = models.build("mobilenet", width=0.75, seed=5)
    files.save_tensors(tmp_path / "weights" / "mobilenet_v1_0.75_224.safetensors",
                       given.state_dict())
    found = training.trained("mobilenet", "imagenet", recipe_name="pretrained", seed=1)
    assert weights(found) == weights(given) and not found.training


def drawn():
    """Tensors under the names of that repository, of the sizes of ResNet-20."""
    torch.manual_seed(3)
    found = {"linear.weight": torch.randn(10, 64), "linear.bias": torch.randn(10)}

    def block(conv, norm, before, after):
        found[f"{conv}.weight"] = torch.randn(after, before, 3, 3) / (3 * before ** 0.5)
        for part in ("weight", "bias", "running_mean"):
            found[f"{norm}.{part}"] = torch.randn(after) / 4
        found[f"{norm}.running_var"] = torch.rand(after) + 0.5

    block("conv1", "bn1", 3, 16)
    before = 16
    for stage, after in enumerate((16, 32, 64), 1):
        for i in range(3):
            block(f"layer{stage}.{i}.conv1", f"layer{stage}.{i}.bn1", before, after)
            block(f"layer{stage}.{i}.conv2", f"layer{stage}.{i}.bn2", after, after)
            before = after
    return found


def as_they_compute(t, x):
    """Their network in eval mode, written from the paper: He et al. 2016, shortcuts A."""
    def step(x, conv, norm, stride=1):
        x = conv2d(x, t[f"{conv}.weight"], stride=stride, padding=1)
        return batch_norm(x, t[f"{norm}.running_mean"], t[f"{norm}.running_var"],
                          t[f"{norm}.weight"], t[f"{norm}.bias"])

    mean, std = (torch.tensor(v)[:, None, None] for v in ((.485, .456, .406), (.229, .224, .225)))
    x = relu(step((x - mean) / std, "conv1", "bn1"))
    for stage in (1, 2, 3):
        for i in range(3):
            stride = 2 if stage > 1 and i == 0 else 1
            y = relu(step(x, f"layer{stage}.{i}.conv1", f"layer{stage}.{i}.bn1", stride))
            y = step(y, f"layer{stage}.{i}.conv2", f"layer{stage}.{i}.bn2")
            if stride == 2:
                quarter = x.shape[1] // 2
                x = pad(x[:, :, ::2, ::2], (0, 0, 0, 0, quarter, quarter))
            x = relu(x + y)
    return x.mean((2, 3)) @ t["linear.weight"].T + t["linear.bias"]


def test_resnet20_computes_what_its_authors_file_says(monkeypatch, tmp_path):
    monkeypatch.setenv("DNNLIB_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="resnet20_cifar10.safetensors"):
        training.pretrained("resnet20", "cifar10")
    tensors = drawn()
    files.save_tensors(tmp_path / "weights" / "resnet20_cifar10.safetensors", tensors)
    model = training.trained("resnet20", "cifar10", recipe_name="pretrained", seed=1)
    x = torch.rand(4, 3, 32, 32)
    with torch.no_grad():
        found, expected = model(x), as_they_compute(tensors, x)
    assert not model.training and torch.allclose(found, expected, atol=1e-4)


def test_neurons_of_resnet20_are_those_of_the_papers_network(monkeypatch, tmp_path):
    """Table I's 1,882, less the shortcuts' convolutions, which this variant does not have."""
    monkeypatch.setenv("DNNLIB_DATA", str(tmp_path))
    files.save_tensors(tmp_path / "weights" / "resnet20_cifar10.safetensors", drawn())
    model = training.pretrained("resnet20", "cifar10")
    assert not [layer for layer in models.neuron_layers(model).values()
                if isinstance(layer, torch.nn.BatchNorm2d)]
    assert models.count(model).neurons == 1882 - 32 - 64


def test_resnet50_is_torchvisions(monkeypatch, tmp_path):
    """Of drawn weights, with statistics of their own: the logits of both, and our neurons."""
    monkeypatch.setenv("DNNLIB_DATA", str(tmp_path))
    torch.manual_seed(4)
    theirs = torchvision.models.resnet50(weights=None).eval()
    for module in theirs.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            for value in (module.weight, module.running_var):
                value.data.uniform_(0.5, 1.5)
            for value in (module.bias, module.running_mean):
                value.data.normal_(std=0.1)
    files.save_tensors(tmp_path / "weights" / "resnet50_imagenet.safetensors", theirs.state_dict())
    model = training.trained("resnet50", "imagenet", recipe_name="pretrained", seed=1)
    x = torch.rand(2, 3, 224, 224)
    with torch.no_grad():
        found, expected = model(x), theirs(normalize(x, (.485, .456, .406), (.229, .224, .225)))
    assert not model.training and torch.allclose(found, expected, rtol=1e-3, atol=1e-4)
    assert models.count(model).neurons == 94_059  # of Table I, though the strides stand elsewhere


def test_a_file_that_lacks_a_layer_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("DNNLIB_DATA", str(tmp_path))
    tensors = drawn()
    del tensors["layer2.1.bn2.running_var"]
    files.save_tensors(tmp_path / "weights" / "resnet20_cifar10.safetensors", tensors)
    with pytest.raises(ValueError, match="resnet20_cifar10.*missing 7.main.4.running_var"):
        training.pretrained("resnet20", "cifar10")


def as_jpeg(images):
    again = []
    for image in images:
        to_pil_image(image).save(file := io.BytesIO(), "JPEG", quality=75)
        again.append(pil_to_tensor(Image.open(file)) / 255)
    return torch.stack(again)


def test_resnet20_gets_what_its_authors_published(monkeypatch):
    path = OWN / "weights" / "resnet20_cifar10.safetensors"
    monkeypatch.setattr(files, "data_dir", lambda: OWN)
    if not path.exists() or not any((OWN / name).exists()
                                    for name in ("cifar10", "cifar-10-batches-py")):
        pytest.skip("needs weights/resnet20_cifar10.safetensors and CIFAR-10 under DNNLIB_DATA")
    data = load("cifar10")
    assert known.known(data.fingerprint) == ("cifar10", "test", "")
    model = training.pretrained("resnet20", "cifar10")
    accuracy = inference.accuracy(model, data.images, data.labels)
    assert round(100 * accuracy, 2) == PUBLISHED
    accuracy = inference.accuracy(model, as_jpeg(data.images), data.labels)
    assert round(100 * accuracy, 2) == pytest.approx(AS_JPEG, abs=0.2)  # as libjpeg has it
