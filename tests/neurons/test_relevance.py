import copy

import numpy as np
import pytest
import torch
from torch import nn

from dnnlib import models
from dnnlib.inference import predict
from dnnlib.models.layers import Add, InputScale, Reshape, SameConv2d
from dnnlib.models.resnet import Residual
from dnnlib.neurons.layers import layers_of, left_out
from dnnlib.neurons.relevance import propagate

LINEAR = (nn.Conv2d, nn.Linear, nn.AvgPool2d, nn.AdaptiveAvgPool2d)


def seeded(*modules):
    """A Sequential whose weights, and BatchNorm's moments, are drawn from one seed."""
    model = nn.Sequential(*modules)
    generator = torch.Generator().manual_seed(0)
    for values in model.state_dict().values():
        if values.is_floating_point():
            values.copy_(torch.randn(values.shape, generator=generator) * 0.5)
    for module in model:
        if isinstance(module, nn.BatchNorm2d):
            module.running_var.abs_().add_(0.5)
    return model.eval()


NETWORKS = {
    "dense": lambda: seeded(nn.Flatten(), nn.Linear(50, 7), nn.ReLU(), nn.Linear(7, 6), nn.ReLU(),
                            nn.Linear(6, 3)),
    "max-pools": lambda: seeded(
        nn.Conv2d(2, 3, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True),
        nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True),
        nn.Flatten(), nn.Linear(16, 3)),
    "average pools and tanh": lambda: seeded(
        nn.Conv2d(2, 3, 3, padding=1), nn.Tanh(), nn.AvgPool2d(2),
        nn.Conv2d(3, 4, 2), nn.Tanh(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3)),
    "strides, groups and BatchNorm": lambda: seeded(
        InputScale(), SameConv2d(2, 4, 3, stride=2), nn.BatchNorm2d(4), nn.ReLU(),
        nn.Conv2d(4, 4, 2, groups=4), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(),
        nn.Conv2d(4, 3, 1), nn.AdaptiveAvgPool2d(1), Reshape(3)),
}


@pytest.fixture
def x(generator):
    return torch.rand(5, 2, 5, 5, generator=generator(3))


def matrix(module, shape):
    """A linear module without its bias, from what it does to unit vectors: (outputs, inputs)."""
    with torch.no_grad():
        units = torch.eye(int(np.prod(shape))).reshape(-1, *shape)
        return (module(units) - module(torch.zeros_like(units))).flatten(1).T.double().numpy()


def beta_rule(weights, inputs, relevance, beta):
    received = [0.0] * len(inputs)
    for row, r in zip(weights, relevance):
        z = [w * a for w, a in zip(row, inputs)]
        plus, minus = sum(v for v in z if v > 0), sum(v for v in z if v < 0)
        for i, v in enumerate(z):
            if v > 0:
                received[i] += (1 + beta if minus else 1) * v / plus * r
            elif v < 0:
                received[i] += (-beta if plus else 1) * v / minus * r
    return received


def to_the_largest(pool, values, relevance):
    """A pool with kernel 2, stride 2 and no padding, window by window."""
    channels, height, width = values.shape
    received, k = torch.zeros_like(values, dtype=torch.float64), 0
    for c in range(channels):
        for top in range(0, height if pool.ceil_mode else height - 1, 2):
            for left in range(0, width if pool.ceil_mode else width - 1, 2):
                window = [(i, j) for i in (top, top + 1) for j in (left, left + 1)
                          if i < height and j < width]
                i, j = max(window, key=lambda place: values[c, *place])
                received[c, i, j] += relevance[k]
                k += 1
    return received.flatten().tolist()


@torch.no_grad()
def by_loops(model, image, beta):
    """The relevance of channels at every activation function: one row, layer after layer."""
    values, ran = image[None], []
    for module in model:
        before, values = values, module(values)
        ran.append((module, before[0], values[0]))
    relevance = [float(i == values[0].argmax()) for i in range(len(values[0]))]
    found = []
    for module, before, after in reversed(ran):
        if isinstance(module, (nn.ReLU, nn.Tanh)):
            found.insert(0, np.reshape(relevance, (len(after), -1)).sum(1))
        elif isinstance(module, LINEAR):
            relevance = beta_rule(matrix(module, before.shape).tolist(),
                                  before.flatten().tolist(), relevance, beta)
        elif isinstance(module, nn.MaxPool2d):
            relevance = to_the_largest(module, before, relevance)
    return np.concatenate(found)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("beta, batch_size", [(0.5, 128), (0.5, 2), (0, 5), (1, 5)])
def test_against_loops(x, name, beta, batch_size):
    model = NETWORKS[name]()
    found = propagate(model, x, beta=beta, batch_size=batch_size)
    expected = np.stack([by_loops(model, image, beta) for image in x])
    np.testing.assert_allclose(found.values.numpy(), expected, rtol=1e-3, atol=1e-4)
    assert torch.equal(found.predicted, predict(model, x).argmax(1)) and found.classes == 3


def dense(*weights):
    """ReLU layers with these weights, in front of which an image is flattened; no bias."""
    layers = [nn.Flatten()]
    for rows in weights:
        layer = nn.Linear(len(rows[0]), len(rows), bias=False)
        layer.weight.data = torch.tensor(rows)
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


TWO = torch.tensor([1.0, 0.5]).view(1, 1, 1, 2)


def test_worked_example():
    """h = (2, 2), then (2 - 1, 1 + 2) = (1, 3), and the logit is 1 + 3."""
    model = dense([[1.0, 2.0], [2.0, 0.0]], [[1.0, -0.5], [0.5, 1.0]], [[1.0, 1.0], [2.0, -1.0]])
    found = propagate(model, TWO)
    assert found.layers == ("2", "4") and found.widths == (2, 2)
    second = [1 / 4, 3 / 4]
    first = [1.5 * 1 / 4 + 1 / 3 * 3 / 4, -0.5 * 1 / 4 + 2 / 3 * 3 / 4]
    assert found.values[0].tolist() == pytest.approx(first + second)


@pytest.mark.parametrize("weights, expected", [
    # 2 and 6 to 1 + 6 = 7 and 1 + 2 = 3, of which the logit is the sum
    ([[0.0, 3.0], [1.0, 0.0]], [0.7 * 1 / 7 + 0.3 * 1 / 3, 0.7 * 6 / 7 + 0.3 * 2 / 3]),
    # the branch takes 0.5 from the first: signs differ
    ([[0.0, -0.25], [0.0, 0.0]], [0.2 * 1.5, 0.2 * -0.5 + 0.8])])
def test_sums_of_branches_share_by_contribution(weights, expected):
    main = nn.Linear(2, 2, bias=False)
    main.weight.data = torch.tensor(weights)
    ends = dense([[1.0, 0.0], [1.0, 2.0]], [[1.0, 1.0], [0.0, 0.0]])  # x to (1, 2)
    model = nn.Sequential(*ends[:3], Residual(main, None), ends[3])
    found = propagate(model, TWO)
    assert found.layers == ("2", "3.relu")
    assert found.values[0, :2].tolist() == pytest.approx(expected)


@pytest.mark.parametrize("name", ["dense", "max-pools", "average pools and tanh"])
def test_relevance_is_conserved(x, name):
    """Not past BatchNorm: it can make something of a channel to which nothing contributes."""
    found = propagate(NETWORKS[name](), x)
    for layer in found.values.split(found.widths, 1):
        torch.testing.assert_close(layer.sum(1), torch.ones(len(x)), rtol=0, atol=1e-3)


def test_average_pool_is_a_convolution_of_equal_weights(x):
    conv = nn.Conv2d(3, 3, 2, stride=2, groups=3, bias=False)
    ends = seeded(nn.Conv2d(2, 3, 2), nn.Tanh(), nn.Flatten(), nn.Linear(12, 3))
    nn.init.constant_(conv.weight, 0.25)
    models_ = [nn.Sequential(*ends[:2], pool, *ends[2:]) for pool in (nn.AvgPool2d(2), conv)]
    pooled, convolved = (propagate(model, x).values for model in models_)
    signs = ends[:2](x).sign().unfold(2, 2, 2).unfold(3, 2, 2).sum((4, 5))
    assert (signs.abs() < 4).any()  # some windows hold both
    torch.testing.assert_close(pooled, convolved)


class Branches(nn.Module):
    """A forward pass of one's own: the first convolution's channels in two parts, joined."""

    def __init__(self, conv, rest):
        super().__init__()
        self.parts = nn.ModuleList(nn.Conv2d(3, 2, 2) for _ in range(2))
        for i, part in enumerate(self.parts):
            part.weight.data = conv.weight.data[2 * i:2 * i + 2]
            part.bias.data = conv.bias.data[2 * i:2 * i + 2]
        self.rest = rest

    def forward(self, x):
        return self.rest(torch.cat([part(x) for part in self.parts], 1))


def test_concatenated_branches_are_one_layer(x):
    first = seeded(nn.Conv2d(2, 3, 2), nn.ReLU())
    conv, *rest = seeded(nn.Conv2d(3, 4, 2), nn.ReLU(), nn.Flatten(), nn.Linear(36, 3))
    whole = propagate(nn.Sequential(*first, conv, *rest), x)
    parts = propagate(nn.Sequential(*first, Branches(conv, nn.Sequential(*rest))), x)
    assert parts.layers == ("1", "2.rest.0")
    torch.testing.assert_close(parts.values, whole.values)


@pytest.mark.parametrize("name, widths, joins", [
    ("lenet1", (4, 12), None), ("lenet5", (6, 16, 120, 84), None),
    ("vgg16", (64,) * 2 + (128,) * 2 + (256,) * 3 + (512,) * 6 + (4096,) * 2, None),
    ("resnet20", (16,) * 7 + (32,) * 6 + (64,) * 6, slice(0, None, 2))])
def test_networks_of_the_papers(generator, name, widths, joins):
    model = models.build(name)
    x = torch.rand(2, *model.spec.shape, generator=generator())
    before = predict(model, x)
    found = propagate(model, x)
    assert found.widths == widths and found.values.isfinite().all()
    assert torch.equal(found.predicted, before.argmax(1))
    # a layer within a residual block shares its relevance with the shortcut
    for layer in found.values.split(widths, 1)[joins or slice(None)]:
        torch.testing.assert_close(layer.sum(1), torch.ones(2), rtol=0, atol=1e-3)
    assert torch.equal(predict(model, x), before)


def test_layers_by_name(x):
    model = NETWORKS["max-pools"]()
    both, first = propagate(model, x), propagate(model, x, layers=["1"])
    chosen = propagate(model, x, layers=["4", "2"])
    assert chosen.layers == ("4", "2") and chosen.widths == (4, 3)
    assert torch.equal(both.values[:, :3], first.values)
    # a max-pool hands the relevance of its channels on
    torch.testing.assert_close(chosen.values, both.values[:, [3, 4, 5, 6, 0, 1, 2]])


def test_biases_of_the_logits_change_no_relevance(x):
    model = NETWORKS["max-pools"]()
    before = propagate(model, x).values
    model[-1].bias.data -= 100
    assert predict(model, x).isfinite().all() and torch.equal(propagate(model, x).values, before)


def test_activations_in_place(x):
    layers = [nn.Conv2d(2, 3, 2), nn.ReLU(), nn.BatchNorm2d(3), nn.ReLU(), nn.Conv2d(3, 3, 2),
              nn.ReLU(), nn.Flatten(), nn.Linear(27, 3)]
    model, names = seeded(*layers), [["0", "1", "3", "5"], ["2"]]
    expected = [propagate(model, x, layers=chosen).values for chosen in names]
    for module in (model[1], model[3], model[5]):
        module.inplace = True
    for chosen, values in zip(names, expected):
        assert torch.equal(propagate(model, x, layers=chosen).values, values)


def test_padding_without_signal_divides_nothing_by_zero():
    """A black image and no bias: no contribution anywhere, and nothing to share."""
    model = dense([[1.0, 2.0], [2.0, 0.0]], [[1.0, 0.5], [0.0, 1.0]], [[1.0, 1.0], [2.0, -1.0]])
    assert propagate(model, TWO * 0).values.tolist() == [[0] * 4]


def test_rounding_is_no_contribution():
    """Below a millionth of the largest sum; as if the second weight were 0, not of other sign."""
    model = dense([[1.0, 0.0], [0.0, 1.0]], [[1.0, -1e-9], [0.0, 0.0]])
    assert propagate(model, TWO).values.tolist() == [[1, 0]]


@pytest.mark.parametrize("broken", [False, True])
def test_model_is_left_as_it_was(x, broken):
    model = NETWORKS["max-pools"]()
    if broken:
        model.append(nn.Softplus())
    model[0].weight.requires_grad_(False)
    flags = [p.requires_grad for p in model.parameters()]
    weights = {name: values.clone() for name, values in model.state_dict().items()}
    if broken:
        with pytest.raises(ValueError):
            propagate(model, x)
    else:
        propagate(model, x)
    assert [p.requires_grad for p in model.parameters()] == flags
    assert not any("forward" in vars(module) for module in model.modules())
    assert all(torch.equal(values, weights[name]) for name, values in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())


class Custom(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.conv, self.relu, self.head = nn.Conv2d(2, 2, 1), nn.ReLU(), nn.Linear(50, 3)
        self.function = function

    def forward(self, x):
        return self.head(self.function(self, self.relu(self.conv(x))).flatten(1))


def custom(function, **modules):
    torch.manual_seed(0)
    model = Custom(function)
    for name, module in modules.items():
        setattr(model, name, module)
    return model.eval()


@pytest.mark.parametrize("function, by_modules, modules", [
    (lambda self, h: h + self.conv(h), lambda self, h: self.add(h, self.conv(h)), {"add": Add()}),
    (lambda self, h: torch.tanh(self.conv(h)), lambda self, h: self.tanh(self.conv(h)),
     {"tanh": nn.Tanh()}),
    (lambda self, h: nn.functional.relu(self.conv(h), inplace=True),
     lambda self, h: self.act(self.conv(h)), {"act": nn.ReLU()}),
    (lambda self, h: h.mean((2, 3), keepdim=True).expand_as(h),
     lambda self, h: self.pool(h).expand_as(h), {"pool": nn.AdaptiveAvgPool2d(1)}),
    (lambda self, h: 2 * h / 4 + 3, lambda self, h: self.same(h / 2 + 3), {"same": nn.Dropout()}),
    (lambda self, h: self.conv(h) * self.pool(h).sigmoid(),
     lambda self, h: self.conv(h) * self.pool(h).detach().sigmoid(),
     {"pool": nn.AdaptiveAvgPool2d(1)})])
def test_what_runs_between_modules_has_the_rule_of_the_module(x, function, by_modules, modules):
    """Sums, activations, means, weights, and gates, which get nothing."""
    found, expected = (propagate(custom(f, **modules), x, layers=["relu"])
                       for f in (function, by_modules))
    assert found.values.any() and torch.equal(found.predicted, expected.predicted)
    torch.testing.assert_close(found.values, expected.values)


def test_each_call_of_a_module_has_its_relevance(x):
    twice = custom(lambda self, h: self.relu(self.conv(h)))
    apart = custom(lambda self, h: self.second(self.conv(h)), second=nn.ReLU())
    found, expected = propagate(twice, x), propagate(apart, x)
    assert found.layers == ("relu", "relu#2") and expected.layers == ("relu", "second")
    assert torch.equal(found.values, expected.values)
    some = propagate(twice, x, layers=["relu#2"])
    assert some.layers == ("relu#2",) and torch.equal(some.values, expected.values[:, 2:])


@pytest.mark.parametrize("function, words", [
    (lambda self, h: h.exp(), "between its layers: no rule for the operation Exp"),
    (lambda self, h: h * h.sigmoid(), "between its layers: no rule for the operation Mul"),
    (lambda self, h: h.softmax(3) @ h, "model: no rule for attention"),
    (lambda self, h: self.attention(*[h.flatten(2)] * 3)[0],
     "layer 'attention': no rule for attention")])
def test_operations_without_a_rule(x, function, words):
    attention = nn.MultiheadAttention(25, 1, batch_first=True)
    with pytest.raises(ValueError, match=words):
        propagate(custom(function, attention=attention), x)


@pytest.mark.parametrize("change, options, words", [
    (lambda model: model.insert(5, nn.Softplus()),
     {}, r"layer '5' \(Softplus\): no rule for the operation Softplus; there are rules for the "
         "modules Conv2d, Linear, AvgPool2d"),
    (lambda model: None, {"layers": ["9"]}, "unknown layer '9'"),
    (lambda model: None, {"layers": []}, "at least one name"),
    (lambda model: None, {"layers": ["1", "1"]}, "none twice"),
    (lambda model: model[0].bias.data.fill_(torch.nan), {}, "finite"),
    (lambda model: [model.pop(-1) for _ in range(2)], {}, "expected logits"),
    (lambda model: None, {"beta": -0.1}, "beta"), (lambda model: None, {"beta": True}, "beta"),
    (lambda model: None, {"beta": torch.inf}, "beta"),
    (lambda model: None, {"batch_size": 0}, "batch_size")])
def test_bad_models_and_options(x, change, options, words):
    model = NETWORKS["max-pools"]()
    change(model)
    with pytest.raises(ValueError, match=words):
        propagate(model, x, **options)


def test_bad_input(x):
    model = NETWORKS["dense"]()
    spare = Custom(lambda self, h: h)
    spare.spare = nn.ReLU()
    assert propagate(spare, x).layers == ("relu",)
    with pytest.raises(ValueError, match="'spare' does not run"):
        propagate(spare, x, layers=["relu", "spare"])
    with pytest.raises(ValueError, match="is an activation function with a rule"):
        propagate(nn.Sequential(nn.Flatten(), nn.Linear(50, 3)), x)
    with pytest.raises(TypeError, match="list of names"):
        propagate(model, x, layers="2")
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        propagate(model, x + 1)
    with pytest.raises(ValueError, match="at least one image"):
        propagate(model, x[:0])


def test_additions_of_three_are_two_additions(x):
    """Relevance that reaches an output from two sides adds up."""
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = Add(), Add()

        def forward(self, h):
            return self.second(self.first(h, h), h)

    ends = NETWORKS["max-pools"]()
    ends[-1].bias.data.zero_()  # three times the logits are then of the same class
    once, twice = ends, nn.Sequential(*ends[:5], Twice(), *ends[5:])
    torch.testing.assert_close(propagate(twice, x).values, propagate(once, x).values)


@pytest.mark.parametrize("norm", [nn.utils.parametrizations.weight_norm,
                                  nn.utils.parametrizations.spectral_norm])
def test_a_parametrised_layer_is_the_layer_with_the_weight_that_it_makes(norm):
    torch.manual_seed(0)
    x = torch.rand(3, 1, 6, 6)
    made = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)).eval()
    plain = copy.deepcopy(made)
    for place in (0, 3):
        norm(made[place])
        with torch.no_grad():
            plain[place].weight.copy_(made.eval()[place].weight)
    assert not left_out(plain, x) == {} and left_out(made, x) == left_out(plain, x)
    assert [*layers_of(made, x)] == [*layers_of(plain, x)]
    found, expected = (propagate(model.eval(), x) for model in (made, plain))
    assert found.layers == expected.layers
    torch.testing.assert_close(found.values, expected.values)
