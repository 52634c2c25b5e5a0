"""Models that nobody here wrote: from libraries, from files, with outputs of every kind."""

import logging
import os
import sys
from collections import namedtuple
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch import nn
from torchvision import transforms
from torchvision.models import EfficientNet_B0_Weights, get_model, get_model_weights
from torchvision.transforms import v2

from dnnlib import custom, inference
from dnnlib.cli.options import read
from dnnlib.custom import preparation
from dnnlib.custom.formats import OutputsOnly
from dnnlib.neurons.layers import layers_of
from tests.custom.changed import Changed


@dataclass
class Output:
    logits: torch.Tensor
    loss: None = None


Named = namedtuple("Named", ["loss", "logits"])


@pytest.fixture
def x(tiny_data):
    return tiny_data.images[:8]


# ---- outputs


@pytest.mark.parametrize("change", [
    lambda z: (z, None), lambda z: [z], lambda z: {"logits": z}, Output, lambda z: Named(None, z)])
def test_outputs_that_hold_logits(tiny_model, x, change):
    model = tiny_model()
    assert torch.equal(custom.classifier(Changed(model, change), x)(x), model(x))


@pytest.mark.parametrize("change", [lambda z: z[:, :1] * 9, lambda z: z[:, 0] * 9])
def test_one_logit_is_that_of_the_second_of_two_classes(tiny_model, x, change):
    model = Changed(tiny_model(), change)
    expected = (tiny_model()(x)[:, 0] * 9).sigmoid()
    torch.testing.assert_close(custom.classifier(model, x)(x).softmax(1)[:, 1], expected)
    p = Changed(model, lambda z: z.sigmoid())
    fit = custom.classifier(p, x, probabilities=True)
    torch.testing.assert_close(fit(x).softmax(1)[:, 1], expected)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_models_of_every_precision(tiny_model, x, kind):
    fit = custom.classifier(tiny_model().to(kind), x)
    logits = fit(x)
    assert logits.dtype == torch.float32
    torch.testing.assert_close(logits, tiny_model()(x), atol=0.02, rtol=0.02)
    photos = custom.Photos(x, tuple(map(str, range(8))), {}, 0)
    table = custom.rank(tiny_model().to(kind), photos, "gini,nac,nss,dsa", top=2,
                        reference=1 - x)
    assert sorted(table["nss_rank"]) == [*range(1, 9)]


def test_layers_have_the_names_that_they_have_in_the_model(tiny_model, x):
    fit = custom.classifier(nn.Sequential(tiny_model(), nn.Softmax(1)), x, probabilities=True)
    assert list(layers_of(fit, x)) == ["0.0", "0.1", "0.3", "1"]
    assert dict(fit.named_parameters()).keys() == {"0.0.weight", "0.0.bias", "0.3.weight",
                                                    "0.3.bias"}


# ---- models by name and from files


def test_torchvision_with_weights_of_ones_own(folders):
    torch.manual_seed(0)
    trained = get_model("resnet18", weights=None, num_classes=4).eval()
    torch.save({"state_dict": {f"module.{k}": v for k, v in trained.state_dict().items()}},
               folders / "w.pth")
    model = custom.load_model("torchvision:resnet18", folders / "w.pth", classes=4)
    assert model.preparation.described.startswith("scaled to 256 (bilinear), cropped to 224, norm")
    x = torch.rand(2, 3, 64, 64)
    mean, std = (torch.tensor(v).view(3, 1, 1) for v in ((0.485, 0.456, 0.406),
                                                         (0.229, 0.224, 0.225)))
    with torch.no_grad():
        torch.testing.assert_close(model(x), trained((x - mean) / std))


def test_weights_that_could_run_code_are_refused(folders):
    torch.save({"weight": SimpleNamespace()}, folders / "w.pt")
    with pytest.raises(ValueError, match="holds more than tensors"):
        custom.load_model("torchvision:resnet18", folders / "w.pt", classes=4)


def test_script_and_export_give_what_the_model_gave(tiny_model, x, folders):
    model = tiny_model()
    torch.jit.trace(model, x[:2]).save(folders / "m.pt")
    batch = torch.export.Dim("batch", min=1, max=1024)
    torch.export.save(torch.export.export(model, (x[:2],), dynamic_shapes=({0: batch},)),
                      folders / "m.pt2")
    photos = custom.Photos(x, tuple(map(str, range(8))), {}, 0)
    expected = custom.rank(model, photos, "gini,ats", top=2)
    for name in ("m.pt", "m.pt2"):
        loaded = custom.load_model(str(folders / name))
        assert isinstance(loaded, OutputsOnly) and not loaded.training
        assert custom.rank(loaded, photos, "gini,ats", top=2)["path"].equals(expected["path"])
        for by in ("nac", "nss", "excitable"):
            with pytest.raises(ValueError, match=f"^{by}: looks into the layers"):
                custom.rank(loaded, photos, f"gini,{by}", top=2)
        found = custom.fuzz(loaded, photos, folders / f"f{name}",
                            custom.Options(by="noise", l2=2.0, iterations=2))
        assert len(found.inputs) == 8
        for by, does in (("dlfuzz", "looks into the layers"), ("pgd", "follows the gradient"),
                         ("apgd", "follows the gradient")):
            with pytest.raises(ValueError, match=f"^{by}: {does} of a model, and .* outputs only"):
                custom.fuzz(loaded, photos, folders / "no", custom.Options(by=by, l2=2.0))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_program_exported_for_a_number_of_images_takes_any(tiny_model, x, folders, size):
    """As by torch.export without dynamic shapes; whatever the batch holds, the last one is full."""

    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = tiny_model()

        def forward(self, x):
            logits = self.net(x)
            return {"logits": logits, "twice": 2 * logits}

    model = Two().eval()
    torch.export.save(torch.export.export(model, (x[:size],)), folders / "m.pt2")
    loaded = custom.load_model(str(folders / "m.pt2"))
    with torch.no_grad():
        for n in (1, 7, 8):
            found, expected = loaded(x[:n]), model(x[:n])
            assert found.keys() == expected.keys()
            for name in found:
                torch.testing.assert_close(found[name], expected[name])
    photos = custom.Photos(x, tuple(map(str, range(8))), {}, 0)
    assert custom.rank(loaded, photos, "gini", top=8)["path"].equals(
        custom.rank(model.net, photos, "gini", top=8)["path"])


@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("file", ["m.pt", "m.pt2"])
def test_files_of_other_precision_get_images_of_theirs(tiny_model, x, folders, kind, file):
    model = tiny_model().to(kind)
    if file == "m.pt":
        torch.jit.trace(model, x[:1].to(kind)).save(folders / file)
    else:
        torch.export.save(torch.export.export(model, (x.to(kind),)), folders / file)
    loaded = custom.load_model(str(folders / file))
    assert custom.rank(loaded, x, "gini")["gini_score"].equals(custom.rank(model, x, "gini")["gini_score"])


def test_a_state_dict_is_no_script(tiny_model, folders):
    torch.save(tiny_model().state_dict(), folders / "w.pt")
    with pytest.raises(ValueError, match="not a model saved by TorchScript; a state dict goes to"):
        custom.load_model(str(folders / "w.pt"))


@pytest.mark.parametrize("shape", [[3, 1, 8, 8], [3, 8, 8, 1]], ids=["channels first", "last"])
def test_onnx_through_its_runtime(tiny_model, x, folders, monkeypatch, shape):
    """The runtime is not installed for the tests: one that has its interface stands in."""
    model, sizes = tiny_model(), []

    class Session:
        def __init__(self, path, providers):
            assert path.endswith("m.onnx") and providers == ["CPUExecutionProvider"]

        def get_inputs(self):
            return [SimpleNamespace(name="images", type="tensor(float)", shape=shape)]

        def get_outputs(self):
            return [SimpleNamespace(name="scores")]

        def run(self, outputs, given):
            assert outputs == ["scores"] and list(given["images"].shape) == shape
            sizes.append(len(given["images"]))
            images = torch.from_numpy(given["images"])
            return [model(images.permute(0, 3, 1, 2) if shape[3] == 1 else images).detach().numpy()]

    (folders / "m.onnx").write_bytes(b"onnx")
    monkeypatch.setitem(sys.modules, "onnxruntime", SimpleNamespace(InferenceSession=Session))
    loaded = custom.load_model(str(folders / "m.onnx"))
    torch.testing.assert_close(loaded(x), model(x).detach())
    assert sizes == [3, 3, 3]  # eight images, in batches of the size exported


@pytest.mark.parametrize("names, taken", [
    (["features", "logits"], "logits"), (["logits", "features"], "logits"), (["y"], "y"),
    (["features", "scores"], None)])
def test_the_output_called_logits_is_taken(x, folders, monkeypatch, names, taken):
    """Of an ONNX file with several; with none called so nobody knows."""
    class Session:
        def __init__(self, path, providers):
            pass

        def get_inputs(self):
            return [SimpleNamespace(name="images", type="tensor(float)", shape=["n", 1, 8, 8])]

        def get_outputs(self):
            return [SimpleNamespace(name=name) for name in names]

        def run(self, outputs, given):
            asked.extend(outputs)
            return [given["images"].reshape(-1, 64)[:, :3]]

    asked: list = []
    (folders / "m.onnx").write_bytes(b"onnx")
    monkeypatch.setitem(sys.modules, "onnxruntime", SimpleNamespace(InferenceSession=Session))
    if taken is None:
        with pytest.raises(ValueError, match="or one called logits, got features, scores"):
            custom.load_model(str(folders / "m.onnx"))
        return
    custom.load_model(str(folders / "m.onnx"))(x)
    assert asked == [taken]


@pytest.mark.parametrize("name, library", [("timm:resnet18", "timm"), ("m.onnx", "onnxruntime")])
def test_libraries_that_are_not_installed(folders, monkeypatch, name, library):
    (folders / "m.onnx").write_bytes(b"onnx")
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.chdir(folders)
    with pytest.raises(ModuleNotFoundError, match=f"pip install {library}"):
        custom.load_model(name)


# ---- the images' preparation


def test_two_versions_of_a_model_have_a_helper_each(tmp_path):
    """Modules beside a file are its own, in one Python session too."""
    for version in (1, 2):
        for name in ("layers.py", "parts/head.py"):
            path = tmp_path / f"v{version}" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"from torch import nn\nclass Net(nn.Linear):\n    version = {version}\n")
        (tmp_path / f"v{version}" / "net.py").write_text(
            "import layers, parts.head\ndef build():\n    return layers.Net(2, 3)\n"
            "def other():\n    return parts.head.Net(2, 3)\n")
    found = [custom.load_model(f"{tmp_path}/v{version}/net.py:{name}").version
             for version in (1, 2, 1) for name in ("build", "other")]
    assert found == [1, 1, 2, 2, 1, 1]


def test_a_file_that_changes_the_working_directory_and_the_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "net.py").write_text("import os, sys\nfrom torch import nn\nos.chdir('in')\n"
                                            "sys.path[:] = sys.path[1:]\n"
                                            "def build():\n    return nn.Linear(2, 3)\n")
    custom.load_model("in/net.py:build")
    assert os.getcwd() == str(tmp_path)


def test_function_may_return_model_and_transform(folders):
    (folders / "own.py").write_text(
        "import torch\nfrom torch import nn\nfrom torchvision import transforms as t\n"
        "def build():\n"
        "    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16, 3))\n"
        "    return model, t.Compose([t.Resize(6), t.CenterCrop(4), t.ToTensor(),\n"
        "                             t.Normalize([.5, .4, .3], [.2, .2, .2])])\n")
    (folders / "photos").mkdir()
    for i in range(3):
        pixels = np.random.default_rng(i).integers(0, 256, (9, 12, 3), np.uint8)
        Image.fromarray(pixels).save(folders / "photos" / f"{i}.png")
    model = custom.load_model(f"{folders}/own.py:build")
    photos = custom.read_photos(folders / "photos", model)
    assert photos.images.shape == (3, 3, 4, 4) and 0 <= photos.images.min()
    with Image.open(folders / "photos" / "1.png") as image:
        t = v2
        whole = t.Compose([t.Resize(6), t.CenterCrop(4), t.ToImage(), t.ToDtype(torch.float32, True),
                           t.Normalize([.5, .4, .3], [.2] * 3)])(image)
    with torch.no_grad():
        torch.testing.assert_close(model(photos.images[1:2]), model.model(whole[None]))


@pytest.mark.parametrize("options, words", [
    ({"resize": 0}, "resize: expected"), ({"resize": 8, "crop": 9}, "crop: expected at most"),
    ({"mean": (0.5,)}, "mean, std: expected both"), ({"mean": (0.5, 1), "std": (1,)}, "1 or 3"),
    ({"mean": (0.5,), "std": (0,)}, "std: expected a finite number above 0")])
def test_preparations_that_make_no_sense(options, words):
    with pytest.raises(ValueError, match=words):
        custom.Preparation(**options)


def waves(width, height):
    """A picture with detail at every scale, so that another way to scale it shows."""
    y, x = np.mgrid[0:height, 0:width] / 300
    parts = [np.sin(40 * x + 7 * y + c) + np.sin(90 * y * x + 2 * c) for c in range(3)]
    return Image.fromarray(np.uint8(np.clip(np.stack(parts, -1) * 60 + 128, 0, 255)))


SIZES = [(301, 253), (300, 417), (640, 427), (257, 256), (100, 70)]


def pixels(found, image):
    return torch.from_numpy(np.array(found.apply(image))).permute(2, 0, 1)


@pytest.mark.parametrize("name, way", [
    ("resnet18", "scaled to 256 (bilinear), cropped to 224"),
    ("efficientnet_b0", "scaled to 256 (bicubic), cropped to 224"),
    ("efficientnet_b1", "scaled to 256 (bicubic), cropped to 240"),
    ("vit_b_16", "scaled to 256 (bilinear), cropped to 224"),
    ("swin_t", "scaled to 232 (bicubic), cropped to 224")])
@pytest.mark.parametrize("size", SIZES)
def test_published_presets_to_the_pixel(name, way, size):
    """What the model gets is what torchvision's own preset gives, its normalisation included."""
    theirs, image = next(iter(get_model_weights(name))).transforms(), waves(*size)
    found = preparation.prepared(theirs)
    model = custom.Classifier(nn.Flatten(), preparation=found)
    given = pixels(found, image)
    torch.testing.assert_close(model.returned(given[None] / 255)[0], theirs(image).flatten(),
                               atol=1e-6, rtol=0)
    assert found.described.startswith(f"{way}, normalised by mean 0.485, 0.456")
    assert found.fitted(size) == tuple(given.shape[1:])


@pytest.mark.parametrize("size", SIZES)
def test_a_pipeline_as_timms_to_the_pixel(size):
    """Bicubic, not square, in the middle of steps: what it does is done, not what it looks like."""
    theirs = transforms.Compose([
        transforms.Resize((60, 80), transforms.InterpolationMode.BICUBIC),
        transforms.CenterCrop((48, 72)), transforms.ToTensor(),
        transforms.Normalize(torch.tensor([0.5, 0.4, 0.3]), torch.tensor([0.2, 0.3, 0.4]))])
    found, image = preparation.prepared(theirs), waves(*size)
    model = custom.Classifier(nn.Flatten(), preparation=found)
    given = pixels(found, image)
    assert given.shape == (3, 48, 72)
    torch.testing.assert_close(model.returned(given[None] / 255)[0], theirs(image).flatten(),
                               atol=1e-6, rtol=0)
    assert found.described.startswith("by the transform given, normalised by mean 0.5, 0.4, 0.3")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("way", ["bilinear", "bicubic"])
def test_a_size_is_scaled_and_cropped_as_by_torchvision(size, way):
    image = waves(*size)
    theirs = transforms.Compose([transforms.Resize(66, transforms.InterpolationMode(way)),
                                 transforms.CenterCrop(57), transforms.PILToTensor()])
    found = preparation.Preparation(resize=66, crop=57, interpolation=way)
    assert torch.equal(pixels(found, image), theirs(image))
    whole = preparation.Preparation(resize=66)
    assert whole.fitted(size) == whole.apply(image).shape[1::-1]


def test_a_size_of_ones_own_replaces_the_published_one():
    found = preparation.prepared(EfficientNet_B0_Weights.DEFAULT.transforms())
    other = found.with_options(resize=64, crop=60)
    assert other.described.startswith("scaled to 64 (bicubic), cropped to 60, normalised")
    assert other.transform is None and other.apply(waves(301, 253)).shape == (60, 60, 3)


@pytest.mark.parametrize("given, side", [({}, 224), ({"size": 48}, 48),
                                         ({"resize": 50, "crop": 40}, 40)])
def test_a_published_preparation_is_replaced_with_a_word(folders, caplog, given, side):
    """As the commands read model and images."""
    (folders / "photos").mkdir()
    for i in range(3):
        waves(90 + i, 70).save(folders / "photos" / f"{i}.png")
    torch.save(get_model("resnet18", num_classes=4).state_dict(), folders / "w.pth")
    options = dict.fromkeys(["size", "resize", "crop", "channels", "width"]) | given
    _, photos, _ = read("torchvision:resnet18", str(folders / "w.pth"), str(folders / "photos"), "",
                        mean="", std="", device="cpu", classes=4, **options)
    assert photos.shape == (3, side, side)
    said = [words for words in map(logging.LogRecord.getMessage, caplog.records)
            if "the model came with: scaled to 256 (bilinear), cropped to 224, norm" in words]
    assert len(said) == bool(given)
    assert all(f"cropped to {side}, normalised" in words.split(", as asked for")[0]
               for words in said)


def test_devices():
    assert inference.device("cpu") == torch.device("cpu")
    if not torch.cuda.is_available():
        assert inference.device("auto") == torch.device("cpu")
        with pytest.raises(ValueError, match="device: cuda is not there"):
            inference.device("cuda")


# ---- outputs that were saved


def test_outputs_alone_are_ranked_as_with_the_model(tiny_model, x, folders):
    photos = custom.Photos(x, tuple("abcdefgh"), {}, 0)
    model, by = tiny_model(), "gini,ats,margin,random"
    expected = custom.rank(model, photos, by, top=3, seed=4)
    p = inference.predict(model, x).numpy()
    np.save(folders / "p.npy", p)
    pd.DataFrame(p).assign(path=list("abcdefgh")).to_csv(folders / "p.csv", index=False)
    logits = folders / "z.npy"
    np.save(logits, model(x).detach().numpy())
    for name, options in [("p.npy", {}), ("p.csv", {}), ("z.npy", {"probabilities": False})]:
        read = custom.read_outputs(folders / name, **options)
        found = custom.rank_outputs(read.probabilities, read.names, by, top=3, seed=4)
        assert (found.index == expected.index).all()
        for method in by.split(","):
            assert found[f"{method}_rank"].equals(expected[f"{method}_rank"])
    assert custom.read_outputs(folders / "p.csv").names == list("abcdefgh")
    with pytest.raises(ValueError, match="are these logits"):
        custom.read_outputs(logits)
    with pytest.raises(ValueError, match="nss: needs a model and images"):
        custom.rank_outputs(read.probabilities, read.names, "gini,nss")


def test_a_script_traced_for_one_image_says_so_with_its_own_reason(folders):
    class One(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = nn.Linear(64, 3)

        def forward(self, x):
            return self.last(x.view(1, 64))

    torch.jit.trace(One(), torch.rand(1, 1, 8, 8)).save(str(folders / "one.ts"))
    with pytest.raises(ValueError, match="takes one image, and not 12 at once; was it traced .*"
                                         r"shape '\[1, 64\]' is invalid for input of size 768$"):
        custom.rank(custom.load_model(str(folders / "one.ts")), torch.rand(12, 1, 8, 8), "gini")


@pytest.mark.parametrize("mode, made", [("RGB", 1), ("L", 3)])
def test_a_transform_may_make_other_channels_than_the_files_have(folders, mode, made):
    (folders / "photos").mkdir()
    for i in range(6):
        image = np.random.default_rng(i).integers(0, 256, (8, 8, 3), np.uint8)
        Image.fromarray(image).convert(mode).save(folders / "photos" / f"{i}.png")
    model = custom.Classifier(nn.Sequential(nn.Flatten(), nn.Linear(64 * made, 3)),
                              preparation=preparation.prepared(v2.Grayscale(made)))
    table = custom.rank(model, folders / "photos", "gini")
    assert len(table) == 6 and not table.attrs["unread"]
