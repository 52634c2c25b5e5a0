import math

import pytest
import torch
from torch import nn

from dnnlib import models
from dnnlib.neurons.activations import record
from dnnlib.neurons.sensitivity import (
    SensitiveNeurons,
    channel_means,
    neuron_sensitivity,
    responses,
    scaled_channel_means,
    sensitive_share,
)


@pytest.fixture
def x(generator):
    return torch.rand(6, 1, 8, 8, generator=generator(3))


def by_hand(model, seed, image, *, threshold, signed=True, divide=True):
    """Eqs. 1 and 2 in loops, on activations recorded one image at a time."""
    before, after = (record(model, i[None]).values[0].tolist() for i in (seed, image))
    distance = math.sqrt(sum(d * d for d in (image - seed).flatten().tolist()))
    sensitive = 0
    for a, b in zip(before, after):
        moved = b - a if signed else abs(b - a)
        if divide:
            moved = moved / distance if distance else 0.0
        sensitive += moved > threshold
    return sensitive / len(before)


# ---- Eqs. 1 and 2

def test_sensitivity_of_a_worked_example():
    before, after = torch.tensor([0.2, 0.5, 0.1]), torch.tensor([[0.8, 0.1, 0.1], [0.4, 0.5, 1.1]])
    found = neuron_sensitivity(before, after, torch.tensor([0.5, 2.0]))
    assert found.flatten().tolist() == pytest.approx([1.2, -0.8, 0, 0.1, 0, 0.5])
    assert sensitive_share(found, 0.4).tolist() == pytest.approx([1 / 3, 1 / 3])


def test_a_neuron_that_falls_silent_counts_only_when_unsigned():
    before, after = [[1.0, 0.0]], [[0.0, 0.1]]
    shares = [sensitive_share(neuron_sensitivity(before, after, [1.0], signed=signed)).item()
              for signed in (True, False)]
    assert shares == [0.0, 0.5]


def test_the_threshold_itself_is_not_above():
    assert sensitive_share([0.25, 0.26], 0.25).item() == 0.5


def test_no_perturbation_is_no_sensitivity():
    assert neuron_sensitivity([[1.0, 2.0]], [[1.0, 2.5]], [0.0]).tolist() == [[0.0, 0.0]]


def test_undivided_is_the_change():
    assert neuron_sensitivity([1.0, 2.0], [1.5, 1.0]).tolist() == [0.5, -1.0]


def test_shapes_of_swarms_broadcast(generator):
    before, after = torch.rand(4, 1, 5, generator=generator(1)), torch.rand(4, 3, 5)
    distance = torch.rand(4, 3) + 0.1
    found = neuron_sensitivity(before, after, distance)
    one = (after[2, 1, 3] - before[2, 0, 3]) / distance[2, 1]
    assert found.shape == (4, 3, 5) and found[2, 1, 3].item() == pytest.approx(one.item())


@pytest.mark.parametrize("arguments, words", [
    (([1.0, 2.0], [1.0]), r"as before, \(2,\), got \(1,\)"),
    (([1.0], [math.nan]), "finite activations"),
    (([[1.0]], [[2.0]], [1.0, 2.0]), r"distance: expected shape \(1,\)"),
    (([[1.0]], [[2.0]], [-1.0]), "distance: expected finite L2 distances"),
    (([[1.0]], [[2.0]], [math.nan]), "distance: expected finite L2 distances")])
def test_bad_activations(arguments, words):
    with pytest.raises(ValueError, match=words):
        neuron_sensitivity(*arguments)


def test_bad_sensitivities():
    with pytest.raises(ValueError, match="at least one neuron"):
        sensitive_share(torch.zeros(3, 0))
    with pytest.raises(ValueError, match="NaN"):
        sensitive_share([0.1, math.nan])


# ---- activations while a swarm runs

@pytest.mark.parametrize("name", ["lenet1", "resnet20"])
@pytest.mark.parametrize("reduce, scale", [(channel_means, False), (scaled_channel_means, True)])
def test_responses_are_the_recorded_activations(name, reduce, scale):
    model = models.build(name, shape=(1, 8, 8))
    x = torch.rand(3, 1, 8, 8)
    expected = record(model, x, scale=scale)
    with torch.no_grad():
        found = responses(model, x, expected.layers, reduce)
    assert torch.allclose(found, expected.values, atol=1e-6)
    assert not any(module._forward_hooks for module in model.modules())


def test_an_in_place_layer_does_not_change_the_one_before():
    model = nn.Sequential(nn.Conv2d(1, 2, 1), nn.Flatten(), nn.Linear(8, 3), nn.ReLU(inplace=True))
    model[2].bias.data.fill_(-9)
    with torch.no_grad():
        found = responses(model, torch.zeros(1, 1, 2, 2), ["2", "3"], channel_means)
    assert (found[0, :3] < -5).all() and (found[0, 3:] == 0).all()


def test_a_constant_layer_scales_to_zero():
    assert scaled_channel_means(torch.full((1, 2, 3, 3), 7.0)).tolist() == [[0.0, 0.0]]


def test_hooks_go_when_the_model_fails(tiny_model):
    model = tiny_model()
    with pytest.raises(RuntimeError):
        responses(model, torch.zeros(1, 3, 8, 8), ["0"], channel_means)
    assert not any(module._forward_hooks for module in model.modules())


# ---- the fitness

@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("divide", [True, False])
def test_fitness_against_loops(tiny_model, x, signed, divide):
    model, inputs, images = tiny_model(), x[:2], x[2:]
    of = torch.tensor([1, 0, 0, 1])
    options = {"threshold": 0.01, "signed": signed, "divide": divide}
    with torch.no_grad():
        found = SensitiveNeurons(**options)(model, inputs, torch.zeros(2))(images, of)
    expected = [by_hand(model, inputs[i], image, **options) for i, image in zip(of, images)]
    assert 0 < max(expected) and found.tolist() == pytest.approx(expected)


def test_scaled_difference_is_the_released_codes(tiny_model, x):
    """scale(f(x*) - f(x)) layer by layer, then the channel's mean (PSO_MNIST.py)."""
    model, inputs, images, of = tiny_model(), x[:2], x[2:5], torch.tensor([1, 0, 1])
    expected = []
    for image, i in zip(images, of):
        sensitive = []
        for end in (1, 2, 4):  # the convolution, its ReLU, the logits
            with torch.no_grad():
                change = model[:end](image[None])[0] - model[:end](inputs[i, None])[0]
            change = (change - change.min()) / (change.max() - change.min())
            sensitive += [channel.mean().item() > 0.45 for channel in change]
        expected.append(sum(sensitive) / len(sensitive))
    fitness = SensitiveNeurons(threshold=0.45, scale="difference", divide=False)
    with torch.no_grad():
        score = fitness(model, inputs, torch.zeros(2))
        assert score(images, of).tolist() == pytest.approx(expected)
        assert score(inputs, torch.arange(2)).tolist() == [0.0, 0.0]
    assert len(set(expected)) > 1


def test_scaled_activations_ignore_the_size_of_the_output(tiny_model, x):
    model, larger = tiny_model(), tiny_model()
    for values in (larger[0].weight, larger[0].bias, larger[3].bias):
        values.data.mul_(8)
    scores = []
    for network in (model, larger):
        fitness = SensitiveNeurons(threshold=0.02, scale="activations", divide=False)
        with torch.no_grad():
            scores.append(fitness(network, x[:1], torch.zeros(1))(x[1:], torch.zeros(5).long()))
    assert torch.equal(*scores) and scores[0].max() > 0


def test_released_layers_of_lenet5(generator):
    model, x = models.build("lenet5"), torch.rand(1, 1, 28, 28, generator=generator(1))
    layers = SensitiveNeurons(logits=False).names(model, x)
    with torch.no_grad():
        assert responses(model, x, layers, channel_means).shape[1] == 258


def test_only_the_layers_named_count(tiny_model, x):
    model = tiny_model()
    with torch.no_grad():
        score = SensitiveNeurons(threshold=0.0, divide=False, layers=("3",))(model, x[:1], None)
        found = score(x[1:2], torch.tensor([0]))
        rises = (model(x[1:2]) > model(x[:1])).float().mean()
    assert found.item() == pytest.approx(rises.item())


def test_seeds_pass_once(tiny_model, x):
    model, seen = tiny_model(), []
    model.register_forward_pre_hook(lambda module, inputs: seen.append(len(inputs[0])))
    with torch.no_grad():
        score = SensitiveNeurons()(model, x[:3], torch.zeros(3))
        seen.clear()
        for _ in range(4):
            score(x[3:], torch.arange(3))
    assert seen == [3] * 4


@pytest.mark.parametrize("options, words", [
    ({"scale": "layer"}, "unknown scale 'layer'"), ({"threshold": math.nan}, "threshold")])
def test_bad_options(options, words):
    with pytest.raises(ValueError, match=words):
        SensitiveNeurons(**options)


def test_bad_layers(tiny_model, x):
    with pytest.raises(ValueError, match="Known: 0, 1, 2, 3"):
        SensitiveNeurons(layers=("conv",))(tiny_model(), x, None)
    with pytest.raises(ValueError, match="besides the logits"):
        SensitiveNeurons(layers=("3",), logits=False)(tiny_model(), x, None)
