"""Folders in the format of Hugging Face: with `transformers` where it is installed, else a stand-in
that reads and checks the same files."""

import importlib.util
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import nn

from dnnlib import custom
from dnnlib.custom import hugging_face

REAL = importlib.util.find_spec("transformers") is not None
SIZES = [(301, 253), (300, 417), (257, 256), (100, 70)]
PROCESSOR = {"do_normalize": True, "do_rescale": True, "do_resize": True,
             "image_mean": [0.5, 0.4, 0.3], "image_std": [0.5, 0.25, 0.2],
             "image_processor_type": "ViTImageProcessor", "resample": 2,
             "rescale_factor": 0.00392156862745098, "size": {"height": 32, "width": 32}}
CONFIG = {"architectures": ["ViTForImageClassification"], "model_type": "vit", "hidden_size": 32,
          "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48,
          "image_size": 32, "patch_size": 8, "num_channels": 3,
          "id2label": {"0": "cat", "10": "owl", "1": "dog", **{str(i): f"c{i}" for i in range(2, 10)}},
          "label2id": {"cat": 0, "owl": 10, "dog": 1, **{f"c{i}": i for i in range(2, 10)}}}


class Small(nn.Module):
    """Gives what a model of transformers gives: a dict with logits, and more."""

    def __init__(self, classes):
        super().__init__()
        self.patches, self.classifier = nn.Conv2d(3, 6, 8, 8), nn.Linear(6, classes)

    def forward(self, pixel_values):
        hidden = self.patches(pixel_values).relu().flatten(2).mean(2)
        return {"loss": None, "logits": self.classifier(hidden), "hidden_states": (hidden,)}


class AutoModelForImageClassification:
    @staticmethod
    def from_pretrained(folder, *, local_files_only, output_loading_info):
        assert local_files_only and output_loading_info
        with open(f"{folder}/config.json") as file:
            model = Small(len(json.load(file)["id2label"]))
        found = model.load_state_dict(load_file(f"{folder}/model.safetensors"), strict=False)
        return model, {"missing_keys": {*found.missing_keys}, "mismatched_keys": set()}


@pytest.fixture(autouse=True)
def transformers(monkeypatch):
    if not REAL:
        monkeypatch.setitem(sys.modules, "transformers", SimpleNamespace(
            AutoModelForImageClassification=AutoModelForImageClassification))


@pytest.fixture
def save(tmp_path):
    """``save(config, processor)``: a folder with changes of either."""
    def write(config={}, processor={}):
        folder = tmp_path / "hf"
        torch.manual_seed(0)
        if REAL:
            from transformers import ViTConfig, ViTForImageClassification
            ViTForImageClassification(ViTConfig(**CONFIG)).save_pretrained(folder)
        else:
            folder.mkdir(exist_ok=True)
            save_file(Small(11).state_dict(), folder / "model.safetensors")
        for name, given in (("config", CONFIG | config), ("preprocessor_config",
                                                          PROCESSOR | processor)):
            whole = {k: v for k, v in given.items() if v is not None}
            (folder / f"{name}.json").write_text(json.dumps(whole))
        return folder
    return write


def waves(width, height):
    y, x = np.mgrid[0:height, 0:width] / 300
    parts = [np.sin(40 * x + 7 * y + c) + np.sin(90 * y * x + 2 * c) for c in range(3)]
    return Image.fromarray(np.uint8(np.clip(np.stack(parts, -1) * 60 + 128, 0, 255)))


def test_a_folder_is_fuzzed_and_ranked_with_its_labels_and_preparation(save, tmp_path):
    folder = save()
    (tmp_path / "photos").mkdir()
    for i, size in enumerate(SIZES):
        waves(*size).save(tmp_path / "photos" / f"{i}.png")
    model = custom.load_model(str(folder))
    photos = custom.read_photos(tmp_path / "photos", model)
    assert photos.shape == (3, 32, 32) and not model.training
    names = custom.published_names(str(folder))
    assert names[:3] == ("cat", "dog", "c2") and names[10] == "owl"
    # what the network gets: squeezed by Pillow, and normalised by the file's numbers
    seen = []
    model.model.register_forward_pre_hook(lambda module, given: seen.append(given[0]))
    with torch.no_grad():
        logits = model(photos.images)
    by_hand = torch.stack([torch.from_numpy(np.array(waves(*size).resize(
        (32, 32), Image.Resampling.BILINEAR))).permute(2, 0, 1) / 255 for size in SIZES])
    mean, std = (torch.tensor(PROCESSOR[key]).view(3, 1, 1) for key in ("image_mean", "image_std"))
    torch.testing.assert_close(seen[0], (by_hand - mean) / std)
    assert logits.shape == (4, 11)
    table = custom.rank(model, photos, "gini,nac", top=2, class_names=names)
    assert {*table["predicted_name"]} <= {*names}
    for by in ("dlfuzz", "pgd"):
        found = custom.fuzz(model, photos, tmp_path / by, by=by, l2=4.0, iterations=4,
                            class_names=names)
        assert {*found.inputs["label"]} <= {*names}


def test_class_names_of_numbers_alone_are_numbers(save):
    folder = save({"id2label": {str(i): f"LABEL_{i}" for i in range(11)}})
    assert custom.published_names(str(folder)) is None


# ---- preparations: what Pillow makes of it, done by hand


def cut(image, height, width):
    """From the centre, black where there is nothing."""
    top, left = int((image.height - height) / 2), int((image.width - width) / 2)
    return image.crop((left, top, left + width, top + height))


def short(image, side, way):
    w, h = image.size
    size = (side, int(side * h / w)) if w < h else (int(side * w / h), side)
    return image.resize(size, way)


BICUBIC = Image.Resampling.BICUBIC
KINDS = {
    "squeezed, bicubic": ({"resample": 3}, lambda i: i.resize((32, 32), BICUBIC)),
    "a number is both sides": ({"size": 40, "image_processor_type": None, "feature_extractor_type":
                                "ViTFeatureExtractor"},
                               lambda i: i.resize((40, 40), Image.Resampling.BILINEAR)),
    "no kind named": ({"size": 40, "image_processor_type": None},
                      lambda i: i.resize((40, 40), Image.Resampling.BILINEAR)),
    "DeiT": ({"image_processor_type": "DeiTImageProcessor", "resample": 3, "size": 48,
              "crop_size": {"height": 40, "width": 36}},
             lambda i: cut(i.resize((48, 48), BICUBIC), 40, 36)),
    "short side": ({"image_processor_type": "BitImageProcessor", "resample": 3,
                    "size": {"shortest_edge": 37}, "crop_size": 32, "do_convert_rgb": True},
                   lambda i: cut(short(i, 37, BICUBIC), 32, 32)),
    "crop beyond the picture": ({"image_processor_type": "CLIPImageProcessorFast", "resample": 3,
                                 "size": {"shortest_edge": 29}, "crop_size": 64},
                                lambda i: cut(short(i, 29, BICUBIC), 64, 64)),
    "ConvNext, small": ({"image_processor_type": "ConvNextFeatureExtractor", "resample": 3,
                         "size": 56, "crop_pct": 0.875},
                        lambda i: cut(short(i, 64, BICUBIC), 56, 56)),
    "ConvNext, large": ({"image_processor_type": "ConvNextImageProcessor", "resample": 3,
                         "size": {"shortest_edge": 384}}, lambda i: i.resize((384, 384), BICUBIC)),
    "as it is": ({"do_resize": False, "size": None}, lambda i: i)}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("changes, by_hand", KINDS.values(), ids=KINDS)
def test_preparations_to_the_pixel(save, changes, by_hand, size):
    found = hugging_face.read_preparation(save(processor=changes), CONFIG)
    image = waves(*size)
    assert (found.apply(image) == np.asarray(by_hand(image))).all()


@pytest.mark.parametrize("changes, mean, std", [
    ({}, (0.5, 0.4, 0.3), (0.5, 0.25, 0.2)), ({"do_normalize": False}, None, None),
    ({"do_rescale": False, "image_mean": [127.5] * 3, "image_std": [51.0] * 3},
     (0.5, 0.5, 0.5), (0.2, 0.2, 0.2)),
    ({"do_rescale": False, "do_normalize": False}, (0.0,), (1 / 255,))])
def test_the_network_sees_pixels_as_it_did(save, changes, mean, std):
    found = hugging_face.read_preparation(save(processor=changes), CONFIG)
    assert found.mean == (mean and pytest.approx(mean))
    assert found.std == (std and pytest.approx(std))


def test_described_says_what_is_done(save):
    found = hugging_face.read_preparation(save(processor={"resample": 3}), CONFIG)
    assert found.described.startswith("scaled to 32 x 32 (bicubic), normalised by mean 0.5, 0.4")


# ---- what cannot be


@pytest.mark.parametrize("config, processor, words", [
    ({"problem_type": "multi_label_classification"}, {},
     "has the head ViTForImageClassification for multi_label_classification"),
    ({"problem_type": "regression"}, {}, "for regression; expected one that gives an image one"),
    ({"id2label": {"0": "age"}}, {}, "for regression; expected one that gives an image one"),
    ({"architectures": ["ViTForMaskedImageModeling"]}, {}, "has the head ViTForMaskedImageModeling"),
    ({"architectures": ["DetrForObjectDetection"]}, {}, "has the head DetrForObjectDetection"),
    ({}, {"image_processor_type": "MobileViTImageProcessor"}, "kind MobileViTImageProcessor; exp"),
    ({"model_type": "levit"}, {"image_processor_type": None}, "that it does not name"),
    ({}, {"do_flip_channel_order": True}, "asks for do_flip_channel_order, which is not done"),
    ({}, {"rescale_factor": 0.5}, "expected rescale_factor 1/255, got 0.5"),
    ({}, {"image_mean": None}, "lacks image_mean"), ({}, {"resample": None}, "lacks resample"),
    ({}, {"resample": 9}, "expected resample from 0 to 5, got 9"),
    ({}, {"size": {"longest_edge": 9}}, "expected a size as height and width, or shortest_edge")])
def test_refused_in_one_line(save, config, processor, words):
    with pytest.raises(ValueError, match=words) as caught:
        custom.load_model(str(save(config, processor)))
    assert "\n" not in str(caught.value) and str(caught.value).startswith("model: ")


def test_weights_that_would_be_random(save):
    folder = save()
    held = {k: v for k, v in load_file(folder / "model.safetensors").items()
            if "classifier" not in k}
    save_file(held, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match="lacks weights, which would be random: classifier.bias"):
        custom.load_model(str(folder))


def test_files_that_are_not_there(save, tmp_path):
    folder = save()
    with pytest.raises(ValueError, match="weights: .*hf has its own"):
        custom.load_model(str(folder), "w.pth")
    with pytest.raises(ValueError, match="classes: only with a name"):
        custom.load_model(str(folder), classes=3)
    (folder / "preprocessor_config.json").unlink()
    with pytest.raises(FileNotFoundError, match="has no preprocessor_config.json"):
        custom.load_model(str(folder))
    with pytest.raises(FileNotFoundError, match="has no config.json; expected a folder as"):
        custom.load_model(str(tmp_path))
    (folder / "config.json").write_text("{")
    with pytest.raises(ValueError, match="config.json is no JSON"):
        custom.load_model(str(folder))


def test_without_transformers(save, monkeypatch):
    folder = save()
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ModuleNotFoundError, match="^this needs transformers; install it with: pip "
                                                  "install transformers$"):
        custom.load_model(str(folder))


# ---- dicts without logits


class Returns(nn.Module):
    def __init__(self, make):
        super().__init__()
        self.linear, self.make = nn.Linear(64, 6), make

    def forward(self, x):
        return self.make(self.linear(x.flatten(1)))


def test_the_only_tensor_of_classes_is_taken_and_told(tiny_data, caplog):
    model = Returns(lambda z: {"scores": z[:, :4], "features": z[:, :, None], "count": z[0]})
    fit = custom.classifier(model, tiny_data.images)
    assert torch.equal(fit(tiny_data.images), model.linear(tiny_data.images.flatten(1))[:, :4])
    told = [record.getMessage() for record in caplog.records]
    assert told == ["model: returns a dict without logits; its only tensor (N, classes), scores, is "
                    "taken for them"]


@pytest.mark.parametrize("make, words", [
    (lambda z: {"age": z[:, :4], "sex": z[:, 4:]}, "several tensors .N, classes.: age of 4, sex of 2"),
    (lambda z: {"boxes": z[:, :, None], "loss": None}, "without a tensor .N, classes.: boxes, loss")])
def test_several_heads_are_refused_by_name(tiny_data, make, words):
    with pytest.raises(TypeError, match=f"^model: returns a dict without logits, and .*{words}"):
        custom.classifier(Returns(make), tiny_data.images)
