import copy

import pytest
import torch
import torchvision
from safetensors.torch import load_file
from torch import nn

from dnnbook import data
from dnnbook.data import sources
from dnnlib import files, inference, models
from dnnlib.models import layers, resnet, weights
from dnnlib.neurons.activations import record

# DeepSensor (sensitivity) Table I = DeepSensor (excitable) Table 1; lengths count a softmax of
# its own and Flatten, but not the input
PUBLISHED = {
    "lenet1": (7_206, 52, 7), "lenet4": (69_362, 148, 8), "lenet5": (107_786, 268, 9),
    "resnet20": (273_066, 1_882, 71), "vgg16": (33_663_070, 12_426, 17),
    "mobilenet": (4_231_976, 38_904, 87), "resnet50": (25_583_592, 94_059, 176),
}
INSIDE = {"lenet1": nn.ReLU, "lenet4": nn.ReLU, "lenet5": nn.ReLU, "resnet20": (),
          "vgg16": (nn.ReLU, nn.BatchNorm2d, nn.BatchNorm1d, nn.MaxPool2d),
          "mobilenet": layers.InputScale, "resnet50": ()}


def leaves(model):
    return [m for m in model.modules() if not any(m.children())]


def noise(*shape):
    return torch.rand(shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_and_neurons_are_the_published(name):
    assert models.count(name) == PUBLISHED[name][:2]
    assert tuple(models.SPECS[name].published.values()) == PUBLISHED[name][:2]


@pytest.mark.parametrize("name", PUBLISHED)
def test_number_of_layers_is_the_published(name):
    with torch.device("meta"):
        model = models.build(name)
    counted = [m for m in leaves(model) if not isinstance(m, INSIDE[name])]
    assert len(counted) + models.SPECS[name].softmax == PUBLISHED[name][2]


def test_resnet20_with_batchnorm_has_the_neurons_of_deephunter():
    model = models.build("resnet20")
    channels = sum(m.num_features for m in leaves(model) if isinstance(m, nn.BatchNorm2d))
    assert models.count(model).neurons + channels == 2_570  # DeepHunter, Table 1


def test_table_has_a_row_for_every_network():
    table = models.table()
    assert list(table.index) == list(models.SPECS)
    assert (table["note"].str.len() > 0).all()
    known = table.dropna().drop(["resnet34", "deep_speaker"])  # in test_speaker_models.py
    assert set(known.index) == set(PUBLISHED)
    assert (known["parameters"] == known["published parameters"]).all()
    assert (known["neurons"] == known["published neurons"]).all()


@pytest.mark.parametrize("name", models.SPECS)
def test_logits_of_the_shape_of_the_classes(name):
    model = models.build(name, classes=7)
    with torch.inference_mode():
        y = model(noise(2, *models.SPECS[name].shape))
    assert y.shape == (2, 7) and y.isfinite().all()


@pytest.mark.parametrize("name", ["lenet5", "resnet20", "vgg16", "mobilenet", "resnet50"])
def test_other_channels_and_sizes(name):
    model = models.build(name, shape=(2, 67, 67), classes=3)
    with torch.inference_mode():
        assert model(noise(2, 2, 67, 67)).shape == (2, 3)


@pytest.mark.parametrize("name", models.SPECS)
def test_activations_can_be_hooked(name):
    model = models.build(name)
    assert not any(getattr(m, "inplace", False) for m in model.modules())
    outputs = []
    for module in leaves(model):
        module.register_forward_hook(lambda module, _, y: outputs.append((module, y)))
    with torch.inference_mode():
        logits = model(noise(1, *models.SPECS[name].shape))
    # each runs once, and the last of the neuron layers gives the logits
    assert len(outputs) == len(leaves(model)) == len({id(module) for module, _ in outputs})
    last = list(models.neuron_layers(model).values())[-1]
    assert outputs[-1][0] is last and outputs[-1][1] is logits


@pytest.mark.parametrize("name, shape", [("lenet1", (1, 3, 3)), ("resnet20", (3, 7, 7)),
                                         ("vgg16", (3, 31, 31)), ("mobilenet", (3, 31, 31)),
                                         ("resnet50", (3, 31, 31)), ("net1", (1, 26, 26))])
def test_too_small_images_are_refused(name, shape):
    with pytest.raises(ValueError, match=f"at least .* got {shape[1]} x {shape[2]}"):
        models.build(name, shape=shape)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="square images, got 32 x 28"):
        models.build("lenet5", shape=(1, 32, 28))
    with pytest.raises(ValueError, match="classes: expected at least two"):
        models.build("lenet5", classes=1)
    with pytest.raises(ValueError, match="did you mean 'resnet20'"):
        models.build("resnet_20")
    with pytest.raises(ValueError, match="did you mean 'mobilenet'"):
        models.count("mobilnet")
    for width in (0, -1, 0.01, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="width"):
            models.build("mobilenet", width=width)
    with pytest.raises(ValueError, match="made by models.build"):
        models.count(nn.Linear(2, 3))


def test_count_of_a_model_leaves_it_as_it_was():
    model = models.build("resnet20", classes=5).train()
    before = copy.deepcopy(model.state_dict())
    # 64 weights and a bias for each of the 5 classes that are not there
    assert models.count(model) == (273_066 - 5 * 65, 1_882 - 5)
    assert model.training and not any(m._forward_hooks for m in model.modules())
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())


def test_same_seed_same_weights():
    one, same, other = (models.build("resnet20", seed=s).state_dict() for s in (1, 1, 2))
    assert all(torch.equal(one[k], same[k]) for k in one)
    assert not torch.equal(one["0.weight"], other["0.weight"])


def test_resnet50_is_torchvisions_but_for_the_biases_of_its_convolutions():
    with torch.device("meta"):
        ours, theirs = models.build("resnet50"), torchvision.models.resnet50()
    biases = [m.bias for m in ours.modules() if isinstance(m, nn.Conv2d)]
    assert sum(p.numel() for p in theirs.parameters()) == 25_557_032
    assert sum(b.numel() for b in biases) == 25_583_592 - 25_557_032

    shapes = [tuple(p.shape) for p in ours.parameters() if not any(p is b for b in biases)]
    assert sorted(shapes) == sorted(tuple(p.shape) for p in theirs.parameters())


def test_bottleneck_computes_what_torchvisions_does():
    # without a stride the two versions of the bottleneck agree
    ours = models.build("resnet50", shape=(3, 32, 32))[5]
    theirs = torchvision.models.resnet.Bottleneck(
        64, 64, downsample=ours.shortcut, norm_layer=lambda n: nn.BatchNorm2d(n, 1e-3))
    for i, (conv, norm) in enumerate(((0, 1), (3, 4), (6, 7)), start=1):
        setattr(theirs, f"conv{i}", ours.main[conv])
        setattr(theirs, f"bn{i}", ours.main[norm])
    x = noise(2, 64, 8, 8)
    torch.testing.assert_close(ours(x), theirs.eval()(x))


def test_residual_adds_its_input():
    x = noise(1, 2, 3, 3) - 0.5
    torch.testing.assert_close(resnet.Residual(nn.Identity(), None)(x), (2 * x).clamp(min=0))


@pytest.mark.parametrize("size, stride, margins", [
    (8, 2, (0, 1, 0, 1)), (7, 2, (1, 1, 1, 1)), (8, 1, (1, 1, 1, 1)), (7, 3, (1, 1, 1, 1)),
    (8, 3, (0, 1, 0, 1))])
def test_same_padding_is_tensorflows(size, stride, margins):
    # TensorFlow: total = max((ceil(n/s) - 1) s + k - n, 0), the smaller half first
    conv = layers.SameConv2d(2, 3, 3, stride)
    x = noise(2, 2, size, size)
    expected = nn.functional.conv2d(nn.functional.pad(x, margins), conv.weight, conv.bias, stride)
    torch.testing.assert_close(conv(x), expected)


def test_same_padding_of_a_long_kernel_on_a_wide_image():
    conv = layers.SameConv2d(1, 1, (1, 5), (1, 2))
    x = noise(1, 1, 4, 9)
    padded = nn.functional.pad(x, (2, 2, 0, 0))
    torch.testing.assert_close(
        conv(x), nn.functional.conv2d(padded, conv.weight, conv.bias, (1, 2)))


def test_weights_there_and_back(tmp_path):
    model = models.build("resnet20", seed=1)
    path = tmp_path / "w.safetensors"
    files.save_tensors(path, model.state_dict(), key={"seed": 1})
    other = weights.assign(models.build("resnet20", seed=2), weights.read(path), path)
    x = noise(2, 3, 32, 32)
    assert torch.equal(inference.predict(model, x), inference.predict(other, x))


@pytest.mark.parametrize("change, message", [
    (lambda w: w.pop("7.bias"), r"missing 7\.bias$"),
    (lambda w: w.update(extra=torch.zeros(1)), r"unexpected extra$"),
    (lambda w: w.update({"7.bias": torch.zeros(3)}), r"shapes 7\.bias \(3,\) for \(10,\)$")])
def test_weights_that_do_not_fit_are_named_and_not_loaded(change, message):
    tensors = models.build("lenet1", seed=1).state_dict()
    change(tensors)
    model = models.build("lenet1", seed=2)
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(ValueError, match=message):
        weights.assign(model, tensors, "w.safetensors")
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())


def test_weights_of_another_network_are_listed_in_short():
    tensors = models.build("mobilenet", width=0.25).state_dict()
    with pytest.raises(ValueError, match=r"missing 0\.weight.* and \d+ more; unexpected conv"):
        weights.assign(models.build("resnet20"), tensors, "w.safetensors")


def test_damaged_or_absent_weights(tmp_path):
    with pytest.raises(FileNotFoundError, match="no weights at"):
        weights.read(tmp_path / "none.safetensors")
    (tmp_path / "w.safetensors").write_bytes(b"not weights")
    with pytest.raises(ValueError, match="not a whole safetensors file"):
        weights.read(tmp_path / "w.safetensors")


DATA = files.data_dir()  # the user's: every test is given a folder of its own
WEIGHTS = DATA / "weights" / "mobilenet_v1_0.75_224.safetensors"
pretrained = pytest.mark.skipif(not WEIGHTS.is_file(), reason=f"needs {WEIGHTS}")


@pretrained
def test_pretrained_mobilenet_refuses_another_width():
    with pytest.raises(ValueError, match=r"shapes conv1\.weight \(24, 3, 3, 3\) for \(32, 3"):
        models.load_keras_weights(models.build("mobilenet"), WEIGHTS)


@pretrained
def test_pretrained_mobilenet_computes_what_its_equations_say():
    w, x = load_file(WEIGHTS), noise(2, 3, 224, 224)

    def convolved(x, name, stride, groups=1):
        kernel = w[f"{name}.weight"]
        if kernel.shape[-1] == 3:
            x = nn.functional.pad(x, (1, 1, 1, 1) if stride == 1 else (0, 1, 0, 1))
        x = nn.functional.conv2d(x, kernel, stride=stride, groups=groups)
        mean, var, scale, shift = (w[f"{name}_bn.{k}"][:, None, None] for k in
                                   ("running_mean", "running_var", "weight", "bias"))
        return (scale * (x - mean) / (var + 1e-3).sqrt() + shift).clamp(0, 6)

    h = convolved(2 * x - 1, "conv1", 2)
    for i in range(1, 14):
        h = convolved(h, f"conv_dw_{i}", 2 if i in (2, 4, 6, 12) else 1, groups=h.shape[1])
        h = convolved(h, f"conv_pw_{i}", 1)
    expected = h.mean((2, 3)) @ w["conv_preds.weight"].T + w["conv_preds.bias"]
    model = models.load_keras_weights(models.build("mobilenet", width=0.75), WEIGHTS)
    with torch.inference_mode():
        torch.testing.assert_close(model(x), expected, rtol=1e-4, atol=1e-4)


@pretrained
@pytest.mark.skipif(sources.locate("imagenet", "test") is None, reason="needs ImageNet images")
def test_pretrained_mobilenet_knows_its_images(monkeypatch):
    monkeypatch.setenv("DNNLIB_DATA", str(DATA))
    images = data.load("imagenet", "test")
    if len(images.classes) != 1000:
        pytest.skip("needs all the 1,000 classes of ImageNet")
    model = models.load_keras_weights(models.build("mobilenet", width=0.75))
    assert inference.accuracy(model, images.images, images.labels, batch_size=50) > 0.84


def test_a_users_model_may_have_a_spec_of_its_own():
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    model.spec = "x"
    assert models.spec_of(model) is None
    assert list(models.neuron_layers(model)) == ["1", "2", "3"]
    assert record(model, torch.rand(2, 1, 2, 2)).layers == ("1", "2", "3")
    with pytest.raises(ValueError, match="^network: expected a name"):
        models.count(model)


def test_the_shortcut_of_resnet20_without_parameters_is_the_one_of_he_et_al():
    model = models.build("resnet20", variant="he")
    ours = models.build("resnet20")
    assert sum(p.numel() for p in ours.parameters()) - sum(
        p.numel() for p in model.parameters()) == 16 * 32 + 32 + 32 * 64 + 64
    x = torch.arange(2 * 16 * 6 * 6.).reshape(2, 16, 6, 6)
    y = model[6].shortcut(x)
    assert torch.equal(y[:, 8:24], x[:, :, ::2, ::2]) and not y[:, :8].any() and not y[:, 24:].any()
    with pytest.raises(ValueError, match="unknown variant 'hee'; did you mean 'he'?"):
        models.build("resnet20", variant="hee")
