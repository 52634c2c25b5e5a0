import pytest
import torch
from torch import nn

from dnnlib import models
from dnnlib.neurons.activations import Activations, record


@pytest.fixture
def x(tiny_data):
    return tiny_data.images[:7]


def handles(model):
    return sum(len(module._forward_hooks) for module in model.modules())


def outputs(model, x):
    """What every module of a Sequential gives, one image at a time."""
    found = []
    for image in x:
        values, row = image[None], []
        for module in model:
            values = module(values)
            row.append(values.detach().clone()[0])
        found.append(row)
    return found


def by_hand(layer, scale):
    """One image's layer: nested loops over channels."""
    low, high = layer.min(), layer.max()
    if scale:
        layer = (layer - low) / (high - low) if high > low else torch.zeros_like(layer)
    return [layer[channel].mean().item() for channel in range(len(layer))]


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("batch_size", [1, 3, 512])
def test_channels_are_means_over_positions(tiny_model, x, scale, batch_size):
    model = tiny_model()
    found = record(model, x, scale=scale, batch_size=batch_size)
    assert found.layers == ("0", "1", "3") and found.offsets == (0, 4, 8, 11)
    expected = [sum((by_hand(row[i], scale) for i in (0, 1, 3)), []) for row in outputs(model, x)]
    torch.testing.assert_close(found.values, torch.tensor(expected), rtol=0, atol=1e-6)
    assert found.values.dtype == torch.float32


@pytest.mark.parametrize("scale", [False, True])
def test_units_are_all_scalars_row_by_row(tiny_model, x, scale):
    model = tiny_model()
    found = record(model, x, layers=["1"], neuron="unit", scale=scale)
    assert found.values.shape == (7, 4 * 6 * 6) and found.shapes == ((4, 6, 6),)
    layer = torch.stack([row[1] for row in outputs(model, x)])
    if scale:
        layer = torch.stack([(a - a.min()) / (a.max() - a.min()) for a in layer])
    torch.testing.assert_close(found.values, layer.flatten(1), rtol=0, atol=1e-6)
    name, place = found.where(4 * 36 - 8)
    assert (name, place) == ("1", (3, 4, 4))
    torch.testing.assert_close(found.values[:, 136], layer[(slice(None), *place)])


def test_scaling_is_of_each_input_and_layer(tiny_model, x):
    model = tiny_model()
    mixed = torch.cat([x[:1] * 0.01, x[1:2], torch.zeros_like(x[:1])])
    together = record(model, mixed, scale=True).values
    for image, row in zip(mixed, together):
        alone = record(model, image[None], scale=True).values[0]
        torch.testing.assert_close(row, alone, rtol=0, atol=1e-6)
    units = record(model, mixed, neuron="unit", scale=True)
    for layer in units.layers:
        assert torch.equal(units.layer(layer).amin(1), torch.zeros(3))
        assert torch.equal(units.layer(layer).amax(1), torch.ones(3))


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_constant_layer_is_zero_when_scaled(tiny_model, x, value):
    model = tiny_model()
    nn.init.zeros_(model[0].weight)
    nn.init.constant_(model[0].bias, value)
    found = record(model, x, layers=["1"], scale=True)
    assert torch.equal(found.values, torch.zeros(7, 4))
    raw = record(model, x, layers=["1"])
    assert torch.equal(raw.values, torch.full((7, 4), value))


@pytest.mark.parametrize("neuron", ["channel", "unit"])
def test_in_place_relu_does_not_change_what_came_before(x, neuron):
    torch.manual_seed(0)
    dense = nn.Sequential(nn.Flatten(), nn.Linear(64, 6), nn.ReLU(), nn.Linear(6, 3)).eval()
    convolution = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))
    for model, place in [(dense, 2), (convolution.eval(), 1)]:
        expected = record(model, x, neuron=neuron)
        assert (expected.layer(expected.layers[0]) < 0).any()
        model[place].inplace = True
        assert torch.equal(record(model, x, neuron=neuron).values, expected.values)


def test_lenets_have_the_columns_of_the_tables(generator):
    x = torch.rand(3, 1, 28, 28, generator=generator())
    for name, neurons in [("lenet1", 52), ("lenet4", 148), ("lenet5", 268)]:
        assert record(models.build(name), x).values.shape == (3, neurons)
    model = models.build("lenet1")
    found = record(model, x)
    assert found.layers[-1] == "softmax"
    torch.testing.assert_close(found.layer("softmax"), found.layer("7").softmax(1))
    assert found.where(52 - 11) == ("7", (9,)) and found.where(42) == ("softmax", (0,))


def test_resnet_counts_as_the_registry_does(generator):
    x = torch.rand(1, 3, 32, 32, generator=generator())
    found = record(models.build("resnet20"), x)
    assert found.values.shape[1] == models.count("resnet20").neurons


def test_layers_come_in_the_order_asked_for(generator):
    model, x = models.build("lenet1"), torch.rand(2, 1, 28, 28, generator=generator())
    whole, some = record(model, x), record(model, x, layers=["softmax", "1"])
    assert some.layers == ("softmax", "1") and some.offsets == (0, 10, 14)
    assert torch.equal(some.values, torch.cat([whole.layer("softmax"), whole.layer("1")], 1))


def test_softmax_is_no_layer_of_other_networks(tiny_model, x):
    with pytest.raises(ValueError, match="unknown layer 'softmax'"):
        record(tiny_model(), x, layers=["softmax"])


def test_values_are_ordinary_tensors(tiny_model, x):
    values = record(tiny_model(), x).values
    assert not values.is_inference() and not values.requires_grad
    values += 1  # an inference tensor would refuse


def test_every_column_can_be_traced():
    found = Activations(torch.zeros(1, 13), ("a", "b", "c"), ((2,), (2, 2, 2), (3,)))
    assert [found.where(column) for column in (0, 1, 2, 9, 10, 12)] == [
        ("a", (0,)), ("a", (1,)), ("b", (0, 0, 0)), ("b", (1, 1, 1)), ("c", (0,)), ("c", (2,))]
    for column in (-1, 13):
        with pytest.raises(IndexError, match="0 to 12"):
            found.where(column)
    with pytest.raises(ValueError, match="unknown layer"):
        found.layer("d")


class Named(nn.Module):
    def forward(self, x):
        return {"x": x}


class Parts(nn.Module):
    """Layers that a classifier may have and that can't be read as neurons."""

    def __init__(self, fault: str):
        super().__init__()
        self.fault = fault
        self.first = nn.Linear(64, 4)
        self.relu = nn.ReLU()
        self.unused = nn.Linear(4, 4)
        self.parts = Named()
        self.flat = nn.Flatten(0)
        self.last = nn.Linear(4, 3)

    def forward(self, x):
        x = self.relu(self.first(x.flatten(1)))
        if self.fault == "dict":
            self.parts(x)
        if self.fault == "shape":
            self.flat(x)
        if self.fault == "crash":
            raise RuntimeError("crash")
        if self.fault == "nan":
            x = x * float("nan")
        return self.last(x)


@pytest.mark.parametrize("fault, layers, kind, words", [
    ("unused", ["first", "unused"], ValueError, "'unused' does not run"),
    ("dict", ["parts"], TypeError, "'parts'.*got dict"),
    ("shape", ["first", "flat"], TypeError, r"'flat'.*\(8,\)"),
    ("crash", ["first"], RuntimeError, "crash"),
    ("nan", ["first", "last"], ValueError, "'last'.*in 21 of 7 x 3")])
@pytest.mark.parametrize("scale", [False, True])
def test_faults_are_told_and_hooks_removed(x, fault, layers, kind, words, scale):
    model = Parts(fault)
    with pytest.raises(kind, match=words):
        record(model, x, layers=layers, scale=scale)
    assert handles(model) == 0
    model.fault = None
    assert record(model, x, layers=["first"]).values.shape == (7, 4)
    assert handles(model) == 0


@pytest.mark.parametrize("scale", [False, True])
def test_infinity_is_not_hidden_by_a_constant_layer(tiny_model, x, scale):
    model = tiny_model()
    nn.init.constant_(model[0].bias, float("inf"))
    with pytest.raises(ValueError, match="layer '0'.*infinity"):
        record(model, x, scale=scale)


@pytest.mark.parametrize("arguments, kind, words", [
    ({"layers": ["00"]}, ValueError, "did you mean '0'"),
    ({"layers": []}, ValueError, "at least one name"),
    ({"layers": ["1", "1"]}, ValueError, "none twice"),
    ({"layers": "1"}, TypeError, "list of names"),
    ({"neuron": "unti"}, ValueError, "did you mean 'unit'"),
    ({"batch_size": 0}, ValueError, "batch_size"),
    ({"x": torch.rand(0, 1, 8, 8)}, ValueError, "got none"),
    ({"x": torch.rand(1, 8, 8)}, ValueError, r"\(N, C, H, W\)"),
    ({"x": torch.full((1, 1, 8, 8), float("nan"))}, ValueError, "NaN"),
])
def test_bad_arguments(tiny_model, x, arguments, kind, words):
    with pytest.raises(kind, match=words):
        record(tiny_model(), **{"x": x} | arguments)
