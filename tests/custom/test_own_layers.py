"""The layers whose neurons count, of a model that nobody here wrote."""

import pytest
import torch
from torch import nn

from dnnlib import custom, models
from dnnlib.neurons.layers import layers_of


def test_sizes_follow_from_the_modules():
    model = nn.Sequential(nn.Conv2d(3, 5, 3), nn.ReLU(), nn.Flatten(), nn.Linear(5 * 6 * 6, 7),
                          nn.ReLU(), nn.Linear(7, 4))
    found = custom.counted_layers(model, size=8)
    assert found.shape == (3, 8, 8)
    assert [(row["output"], row["neurons"], row["units"]) for row in found.rows] == [
        ("5 x 6 x 6", 5, 180), ("5 x 6 x 6", 5, 180), ("7", 7, 7), ("7", 7, 7), ("4", 4, 4)]
    assert (found.total("neurons"), found.total("units")) == (28, 378)
    assert found.left == {"2": "only moves values"}


def test_a_pattern_leaves_the_others_out():
    every, some = (custom.counted_layers(models.build("lenet5"), match=match)
                   for match in (None, ["1*"]))
    assert 0 < len(some.rows) < len(every.rows)
    assert [row for row in every.rows if str(row["layer"]).startswith("1")] == some.rows
    with pytest.raises(ValueError, match="nothing matches 'none"):
        custom.counted_layers(models.build("lenet5"), match=["none*"])


def test_a_model_that_does_not_say_its_images_needs_a_size():
    with pytest.raises(ValueError, match="--size: expected the pixels a side"):
        custom.counted_layers(nn.Sequential(nn.Conv2d(3, 2, 3), nn.Flatten(), nn.Linear(72, 2)))


def test_a_network_by_name_keeps_its_neurons_when_its_images_are_prepared():
    """Batch normalisations are none; as of any model they would count with the rest."""
    plain = models.build("resnet20")
    prepared = custom.prepare(plain, mean=(0.5,) * 3, std=(0.2,) * 3)
    assert custom.counted_layers(prepared) == custom.counted_layers(plain)
    assert models.count(prepared) == models.count(plain)
    assert models.count(custom.prepare(prepared, resize=40)) == models.count(plain)


def test_the_size_asked_for_or_prepared_comes_before_the_networks_own():
    plain = models.build("resnet20")
    assert custom.counted_layers(custom.prepare(plain, resize=48, crop=40)).shape == (3, 40, 40)
    assert custom.counted_layers(plain, size=48).shape == (3, 48, 48)


def test_a_network_by_name_has_its_neurons_whatever_makes_its_weights():
    plain, made, small = models.build("resnet20"), models.build("resnet20"), models.build("lenet5")
    for module in made.modules():
        if isinstance(module, nn.Conv2d):
            nn.utils.parametrizations.weight_norm(module)
    assert models.count(made).neurons == models.count(plain).neurons
    quantised = custom.prepare(torch.ao.quantization.quantize_dynamic(small, {nn.Linear}),
                               mean=(0.5,), std=(0.2,))
    assert (custom.counted_layers(quantised).total("neurons")
            == custom.counted_layers(small).total("neurons"))


def test_a_network_by_name_with_another_head_has_the_neurons_of_that():
    model = models.build("lenet5")
    model[-1] = nn.Linear(model[-1].in_features, 3)
    assert models.count(model).neurons == custom.counted_layers(model).total("neurons") == 254


def test_a_network_by_name_that_ends_in_a_softmax_is_as_any_other():
    ended = models.build("lenet5").append(nn.Softmax(1))
    wrapped = custom.Classifier(ended, probabilities=True)
    assert wrapped.spec is None
    assert [*layers_of(wrapped, torch.rand(1, 1, 28, 28))][-2:] == ["11", "12"]
