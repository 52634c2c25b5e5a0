import gc
import weakref

import pytest
import torch
from torch import nn
from torchvision import models as vision

from dnnlib import models
from dnnlib.neurons import shapley
from dnnlib.neurons.activations import record
from dnnlib.neurons.calls import calls
from dnnlib.neurons.layers import layers_of, left_out, matching


class Odd(nn.Module):
    """A ReLU used twice, a head that never runs, attention, and layers between containers."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 6, 4, stride=4), nn.ReLU(inplace=True))
        self.norm = nn.LayerNorm(6)
        self.attention = nn.MultiheadAttention(6, 2, batch_first=True)
        self.relu = nn.ReLU()
        self.auxiliary = nn.Linear(6, 3)
        self.head = nn.Linear(6, 3)
        self.passes = 0

    def forward(self, x):
        self.passes += 1
        tokens = self.norm(self.stem(x).flatten(2).transpose(1, 2))
        tokens = self.relu(tokens + self.attention(tokens, tokens, tokens)[0])
        return self.head(self.relu(tokens - 1).mean(1))


@pytest.fixture
def odd():
    torch.manual_seed(0)
    return Odd().eval()


@pytest.fixture
def x(tiny_data):
    return tiny_data.images[:5]


def test_every_call_is_a_layer_with_its_channels_first(odd, x):
    shapes = {name: layer.shape for name, layer in layers_of(odd, x).items()}
    assert shapes == {"stem.0": (6, 2, 2), "stem.1": (6, 2, 2), "norm": (6, 4),
                      "attention": (6, 4), "relu": (6, 4), "relu#2": (6, 4), "head": (3,)}
    assert left_out(odd, x) == {"auxiliary": "does not run",
                                "attention.out_proj": "counted with the module around it"}


def test_what_is_recorded_is_what_the_layer_gave(odd, x):
    tokens = odd.norm(odd.stem(x).flatten(2).transpose(1, 2))
    first = (tokens + odd.attention(tokens, tokens, tokens)[0]).relu()
    second = (first - 1).relu()
    assert not torch.allclose(first, second)
    found = record(odd, x)
    for name, expected in [("norm", tokens), ("relu", first), ("relu#2", second)]:
        torch.testing.assert_close(found.layer(name), expected.mean(1).detach())
    units = record(odd, x, layers=["relu#2"], neuron="unit")
    assert units.shapes == ((6, 4),)
    torch.testing.assert_close(units.values, second.transpose(1, 2).flatten(1).detach())


def test_a_container_is_a_layer_when_asked_for(odd, x):
    assert "stem" not in layers_of(odd, x)
    assert record(odd, x, layers=["stem"]).values.shape == (5, 6)


@pytest.mark.parametrize("names, kind, words", [
    (["relu#3"], ValueError, "unknown layer 'relu#3'; did you mean 'relu#2'"),
    (["auxiliary"], ValueError, "'auxiliary' does not run"),
    (["rleu"], ValueError, "did you mean 'relu'"), (["relu", "relu"], ValueError, "none twice")])
def test_names_that_cannot_be(odd, x, names, kind, words):
    with pytest.raises(kind, match=words):
        layers_of(odd, x, names)


def test_patterns(odd, x):
    assert matching(odd, x, ["relu*"]) == ("relu", "relu#2")
    assert matching(odd, x, ["head", "stem.*", "head"]) == ("head", "stem.0", "stem.1")
    assert matching(odd, x, ["stem"]) == ("stem",)
    with pytest.raises(ValueError, match=r"nothing matches 'layer3.\*'"):
        matching(odd, x, ["layer3.*"])


def test_a_model_is_tried_once_for_a_shape_and_anew_when_it_changed(odd, x):
    for _ in range(3):
        layers_of(odd, x)
    assert odd.passes == 1
    odd.relu = nn.GELU()
    assert isinstance(layers_of(odd, x)["relu"].module, nn.GELU) and odd.passes == 2
    layers_of(odd, torch.rand(1, 1, 12, 12))
    assert odd.passes == 3


def test_a_model_that_was_tried_can_be_freed(x):
    model = Odd().eval()
    calls(model, x)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("name", ["relu", "relu#2", "attention", "norm"])
def test_gates_switch_one_call_off(odd, x, name):
    """The worth of nobody is that of a pass in which the layer's output is 0."""
    labels, other = torch.tensor([0, 1, 2, 0, 1]), 1 - x
    game = shapley.Game(odd, x, other, labels, layers=[name])
    assert game.players == 6

    def loss(images):
        tokens = odd.norm(odd.stem(images).flatten(2).transpose(1, 2)) * (name != "norm")
        mixed = odd.attention(tokens, tokens, tokens)[0] * (name != "attention")
        first = (tokens + mixed).relu() * (name != "relu")
        logits = odd.head(((first - 1).relu() * (name != "relu#2")).mean(1)).double()
        return nn.functional.cross_entropy(logits, labels, reduction="none")

    with torch.no_grad():
        expected = loss(other) - loss(x)
    torch.testing.assert_close(game.value(torch.zeros(1, 6))[:, 0], expected, atol=1e-6, rtol=1e-5)
    total = game.slopes(torch.ones(1, 6))
    assert total.shape == (5, 1, 6) and (name == "relu#2" or total.any())


def test_channels_of_a_swin_block_lie_last():
    torch.manual_seed(0)
    model = vision.swin_t(num_classes=3).eval()
    found = layers_of(model, torch.rand(1, 3, 64, 64))
    assert found["features.1.0.norm1"].shape == (96, 16, 16)
    assert found["features.1.0.attn"].shape == (96, 16, 16)
    assert found["features.1.0.mlp.1"].shape == (384, 16, 16)
    assert found["norm"].shape == (768, 2, 2)


def test_resnet18_has_its_blocks_twice_and_names_of_torchvision():
    model = vision.resnet18(num_classes=3).eval()
    found = layers_of(model, torch.rand(1, 3, 64, 64))
    assert [name for name in found if name.startswith("layer1.0.")] == [
        "layer1.0.conv1", "layer1.0.bn1", "layer1.0.relu", "layer1.0.conv2", "layer1.0.bn2",
        "layer1.0.relu#2"]


def test_networks_of_the_papers_count_as_their_tables_say(x):
    model = models.build("resnet20")
    assert list(layers_of(model, torch.rand(1, 3, 32, 32))) == [*models.neuron_layers(model)]
