import pytest
import torch
from torch import nn

from dnnlib import models
from dnnlib.neurons.activations import record
from dnnlib.neurons.calls import Layer
from dnnlib.neurons.gates import Gates


def gates_of(model, x, **options):
    names = options.pop("layers", None) or list(models.neuron_layers(model))
    found = record(model, x[:1], layers=names, **options)
    return Gates(model, found.layers, found.shapes, found.calls)


def by_hand(model, image, gates, layers):
    """One image under one row of gates: the outputs of the layers, multiplied in loops."""
    modules, start = dict(model.named_modules()), 0
    handles = []
    for name, shape in zip(*layers):
        size = torch.Size(shape).numel()
        own = gates[start:start + size].view(shape)
        start += size

        def hook(module, inputs, output, own=own):
            output = output.clone()
            for place in torch.cartesian_prod(*map(torch.arange, own.shape)).view(-1, own.ndim):
                output[0][tuple(place)] *= own[tuple(place)]
            return output

        handles.append(modules[name].register_forward_hook(hook))
    with torch.no_grad():
        logits = model(image[None])[0]
    for handle in handles:
        handle.remove()
    return logits


def rows(gates, k, generator, images=2):
    """Half-random gates in which neighbours agree in early columns now and then."""
    found = (torch.rand(k, gates.neurons, generator=generator) > 0.3).float()
    for i in range(1, k, 2):
        found[i, :gates.neurons // 2] = found[i - 1, :gates.neurons // 2]
    found[-1] *= torch.rand(gates.neurons, generator=generator)  # and gates that are half open
    return torch.arange(images).repeat_interleave(-(-k // images))[:k], found


class Skipping(nn.Module):
    """What comes before the gated layer is added after it."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 2, 3, padding=1), nn.Conv2d(2, 2, 3, padding=1)
        self.relu, self.last = nn.ReLU(), nn.Linear(128, 3)

    def forward(self, x):
        a = self.first(x)
        return self.last((a + self.relu(self.second(a))).flatten(1))


def built(name, tiny_model):
    if name == "tiny":
        return tiny_model()
    if name == "skipping":
        torch.manual_seed(0)
        return Skipping().eval()
    if name == "within a chain":
        torch.manual_seed(1)
        return nn.Sequential(nn.Sequential(nn.Conv2d(1, 1, 1), nn.Sigmoid()),
                             nn.Sequential(Skipping(), nn.ReLU()), nn.Linear(3, 3)).eval()
    return models.build(name, shape=(1, 8, 8), classes=3)


@pytest.mark.parametrize("name, layers", [
    ("tiny", None), ("tiny", ["3", "0"]), ("lenet4", None), ("resnet20", None),
    ("skipping", ["second", "relu"]), ("within a chain", ["0", "1.0", "1.0.relu", "2"])])
def test_gated_logits_against_single_passes(name, layers, tiny_model, generator):
    model, x = built(name, tiny_model), torch.rand(2, 1, 8, 8, generator=generator(1))
    gates = gates_of(model, x, layers=layers)
    of, given = rows(gates, 7, generator(2))
    with torch.no_grad():
        found = gates.logits(x, of, given)
    expected = [by_hand(model, x[i], g, (gates.layers, gates.shapes)) for i, g in zip(of, given)]
    assert torch.allclose(found, torch.stack(expected), atol=1e-5)
    assert found.std(0).max() > 1e-3


def test_units_are_gated_one_by_one(tiny_model, generator):
    model, x = tiny_model(), torch.rand(2, 1, 8, 8, generator=generator(1))
    gates = gates_of(model, x, neuron="unit")
    of, given = rows(gates, 4, generator(2))
    with torch.no_grad():
        found = gates.logits(x, of, given)
    expected = [by_hand(model, x[i], g, (gates.layers, gates.shapes)) for i, g in zip(of, given)]
    assert gates.neurons == 4 * 36 * 2 + 3 and torch.allclose(found, torch.stack(expected))


@pytest.mark.parametrize("layers", [["0"], ["0", "1"], ["1", "3"]])
def test_in_place_layers_change_nothing(layers, generator):
    torch.manual_seed(0)
    conv, last = nn.Conv2d(1, 2, 3), nn.Linear(72, 3)
    pair = [nn.Sequential(conv, nn.ReLU(inplace), nn.Flatten(), last).eval()
            for inplace in (False, True)]
    x, labels = torch.rand(2, 1, 8, 8, generator=generator(1)), torch.tensor([0, 2])
    found = []
    for model in pair:
        gates = gates_of(model, x, layers=layers)
        of, given = rows(gates, 6, generator(2))
        with torch.no_grad():
            found.append([gates.logits(x, of, given), gates.slopes(x, labels, given[:2])])
    for plain, in_place in zip(*found):
        assert torch.equal(plain, in_place)


def test_layers_before_the_first_gate_see_every_image_once(generator):
    model, x = models.build("lenet1"), torch.rand(2, 1, 28, 28, generator=generator(1))
    gates, seen = gates_of(model, x), {}
    for name in ("0", "3", "7"):
        model.get_submodule(name).register_forward_hook(
            lambda module, inputs, output, name=name: seen.update({name: len(output)}))
    chain = torch.ones(gates.neurons + 1, gates.neurons).tril(-1)  # one joins after the other
    with torch.no_grad():
        gates.logits(x, torch.zeros(len(chain), dtype=torch.int64), chain)
    # 4 channels and 4 of their pools stand before the second convolution, 42 players in all
    assert seen == {"0": 1, "3": 9, "7": 33}


def test_a_container_with_a_hook_is_kept_whole(tiny_model, generator):
    model, x = tiny_model(), torch.rand(1, 1, 8, 8, generator=generator(1))
    gates = gates_of(model, x)
    model.register_forward_pre_hook(lambda module, inputs: (1 - inputs[0],))
    with torch.no_grad():
        found = gates.logits(x, torch.tensor([0]), torch.ones(1, gates.neurons))
        assert torch.allclose(found, model(x))


def test_slopes_are_those_of_small_steps(tiny_model, generator):
    model, x = tiny_model().double(), torch.rand(2, 1, 8, 8, generator=generator(1)).double()
    gates, labels = gates_of(model, x), torch.tensor([0, 2])
    at = 0.2 + 0.6 * torch.rand(2, gates.neurons, generator=generator(2))
    with torch.no_grad():
        found = gates.slopes(x, labels, at)
    step = 1e-3
    for i in range(gates.neurons):
        moved = at.double().repeat(2, 1)
        moved[:2, i] += step
        moved[2:, i] -= step
        with torch.no_grad():
            loss = nn.functional.cross_entropy(gates.logits(x, torch.tensor([0, 1, 0, 1]), moved),
                                               labels.repeat(2), reduction="none")
        slope = (loss[:2] - loss[2:]) / (2 * step)
        assert torch.allclose(found[:, i].double(), slope, atol=1e-5)


def test_no_hook_and_no_gradient_stays(tiny_model):
    model, x = tiny_model(), torch.rand(2, 1, 8, 8)
    gates, on = gates_of(model, x), torch.ones(2, 11)
    gates.slopes(x, torch.tensor([0, 1]), on)
    with pytest.raises(RuntimeError), gates.applied(on):
        model(torch.zeros(2, 5, 8, 8))
    assert not any(module._forward_hooks for module in model.modules())
    assert all(p.grad is None for p in model.parameters())


def test_a_model_without_gradient(generator):
    class Hard(nn.Sequential):
        def forward(self, x):
            return super().forward(x).detach()

    model = Hard(nn.Flatten(), nn.Linear(4, 2))
    with pytest.raises(ValueError, match="can be differentiated"):
        Gates(model, ["1"], [(2,)], [Layer(model[1])]).slopes(
            torch.rand(1, 1, 2, 2), torch.tensor([0]), torch.ones(1, 2))
