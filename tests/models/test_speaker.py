import pytest
import torch
import torchvision
from torch import nn

from dnnlib import models
from dnnlib.models import speaker

# second DeepSensor paper, Table 1; Keras averages over positions without a layer to flatten
PUBLISHED = {"resnet34": (21_315_166, 36_254, 158), "deep_speaker": (24_201_118, 28_190, 101)}


def leaves(model):
    return [m for m in model.modules() if not any(m.children())]


def noise(*shape):
    return torch.rand(shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", PUBLISHED)
def test_sizes_are_the_published_with_batchnorms_moving_statistics(name):
    with torch.device("meta"):
        model = models.build(name)
    size = models.count(name)
    moving = sum(b.numel() for k, b in model.named_buffers() if "running" in k)
    layers = [m for m in leaves(model) if not isinstance(m, nn.Flatten)]
    assert (size.parameters + moving, size.neurons, len(layers)) == PUBLISHED[name]
    assert tuple(models.SPECS[name].published.values()) == PUBLISHED[name][:2]


def test_resnet34_is_torchvisions_but_for_colour_and_the_first_stages_projection():
    with torch.device("meta"):
        ours = models.build("resnet34", classes=1000)
        theirs = torchvision.models.resnet34()
        theirs.conv1 = nn.Conv2d(1, 64, 7, 2, 3, bias=False)
    extra = {id(p) for p in ours[4].shortcut.parameters()}
    shapes = [tuple(p.shape) for p in ours.parameters() if id(p) not in extra]
    assert sorted(shapes) == sorted(tuple(p.shape) for p in theirs.parameters())


@pytest.mark.parametrize("place, before, after, stride", [(5, 64, 64, 1), (7, 64, 128, 2)])
def test_basic_block_computes_what_torchvisions_does(place, before, after, stride):
    ours = models.build("resnet34", shape=(1, 32, 32))[place]
    theirs = torchvision.models.resnet.BasicBlock(
        before, after, stride, ours.shortcut, norm_layer=lambda n: nn.BatchNorm2d(n, 1e-3))
    for i, (conv, norm) in enumerate(((1, 2), (5, 6)), start=1):
        getattr(theirs, f"conv{i}").weight = ours.main[conv].weight
        setattr(theirs, f"bn{i}", ours.main[norm])
    x = noise(2, before, 9, 9)
    torch.testing.assert_close(ours(x), theirs.eval()(x))


def test_deep_speaker_computes_what_its_equations_say():
    model = models.build("deep_speaker", shape=(2, 33, 33), classes=3, width=1 / 16)
    generator = torch.Generator().manual_seed(1)
    for key, value in model.state_dict().items():
        if "running" in key:  # else every BatchNorm is as good as none
            value.copy_(torch.rand(value.shape, generator=generator) + 0.5)
    weights = iter([v for k, v in model.state_dict().items() if "tracked" not in k])

    def convolved(x, stride):
        kernel, bias, scale, shift, mean, var = (next(weights) for _ in range(6))
        size, k = x.shape[-1], kernel.shape[-1]
        total = max((-(-size // stride) - 1) * stride + k - size, 0)
        low, high = total // 2, total - total // 2
        x = nn.functional.pad(x, (low, high, low, high))
        x = nn.functional.conv2d(x, kernel, bias, stride)
        mean, var, scale, shift = (v[:, None, None] for v in (mean, var, scale, shift))
        return scale * (x - mean) / (var + 1e-3).sqrt() + shift

    x = h = noise(2, 2, 33, 33)
    for _ in range(4):
        h = convolved(h, 2).clamp(0, 20)
        for _ in range(3):
            inner = convolved(h, 1).clamp(0, 20)
            h = (convolved(inner, 1) + h).clamp(0, 20)
    voice = h.mean(3).reshape(2, -1)  # over time: every channel and band by itself
    embedding = voice @ next(weights).T + next(weights)
    embedding = embedding / embedding.norm(dim=1, keepdim=True)
    expected = embedding @ next(weights).T + next(weights)
    assert not list(weights)
    with torch.inference_mode():
        torch.testing.assert_close(model(x), expected, rtol=1e-4, atol=1e-4)


def test_the_mean_is_over_time_not_over_frequency():
    tail = models.build("deep_speaker", width=1 / 16)[24:]
    x = noise(1, 32, 4, 4)
    torch.testing.assert_close(tail(x), tail(x.flip(3)))
    assert not torch.allclose(tail(x), tail(x.flip(2)))


def test_embeddings_have_length_one():
    rows = speaker.Normalised()(noise(5, 8) - 0.5)
    torch.testing.assert_close(rows.norm(dim=1), torch.ones(5))


def test_activations_are_clipped_at_twenty():
    clips = [m for m in models.build("deep_speaker", width=1 / 16).modules()
             if isinstance(m, nn.Hardtanh)]
    assert len(clips) == 4 * (1 + 3 * 2)
    assert all(c(torch.tensor([-3.0, 7, 21])).tolist() == [0, 7, 20] for c in clips)


@pytest.mark.parametrize("name", PUBLISHED)
def test_small_networks_have_a_quarter_of_the_channels(name):
    with torch.device("meta"):
        wide, small = models.build(name), models.build(f"{name}_s")
    for kind in (nn.Conv2d, nn.BatchNorm2d):
        pairs = zip(*([m for m in model.modules() if isinstance(m, kind)]
                      for model in (wide, small)), strict=True)
        assert all(4 * b.weight.shape[0] == a.weight.shape[0] for a, b in pairs)
    assert models.SPECS[f"{name}_s"].published == {}


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_weight_learns(name):
    model = models.build(name, classes=3, width=1 / 8).train()
    loss = nn.functional.cross_entropy(model(noise(4, 1, 64, 64)), torch.tensor([0, 1, 2, 0]))
    loss.backward()
    for key, p in model.named_parameters():
        assert p.grad is not None and p.grad.isfinite().all(), key
        assert p.ndim == 1 or p.grad.abs().max() > 0, key


@pytest.mark.parametrize("name, size", [("resnet34", 32), ("resnet34", 67),
                                        ("deep_speaker", 16), ("deep_speaker", 67)])
def test_other_channels_and_sizes(name, size):
    model = models.build(name, shape=(2, size, size), classes=3, width=1 / 16)
    with torch.inference_mode():
        assert model(noise(2, 2, size, size)).shape == (2, 3)


@pytest.mark.parametrize("name, least", [("resnet34", 32), ("deep_speaker", 16)])
def test_bad_arguments_are_named(name, least):
    with pytest.raises(ValueError, match=f"at least {least} x {least}, got {least - 1}"):
        models.build(name, shape=(1, least - 1, least - 1))
    for width in (0, -1, 0.01, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="width: expected .* at least 1/64"):
            models.build(name, width=width)
