import math

import pytest
import torch
from torch import nn

from dnnlib import fuzzing, models
from dnnlib.neurons import shapley
from dnnlib.neurons.excitable import SCALES, ExcitableNeurons, excitable


@pytest.fixture
def x(generator):
    return torch.rand(6, 1, 8, 8, generator=generator(3))


def test_excitable_is_above_the_threshold():
    psi = torch.tensor([[0.5, 0.51, -3.0], [0.0, 0.0, 0.0]])
    assert excitable(psi).tolist() == [[False, True, False], [False] * 3]
    assert excitable(psi, -0.1).tolist() == [[True, True, False], [True] * 3]


def test_scaled_by_the_total_an_average_neuron_is_one():
    psi = torch.tensor([[0.02, 0.01, -0.03, 0.04], [0.0, 0.0, 0.0, 0.0]])
    mean = 0.1 / 4
    for threshold in (-0.5, 0.3, 0.5, 1.0, 1.5):
        expected = [p / mean > threshold for p in psi[0].tolist()]
        assert excitable(psi, threshold, scale="total").tolist() == [expected, [False] * 4]
    assert torch.equal(excitable(100 * psi, scale="total"), excitable(psi, scale="total"))


@pytest.mark.parametrize("arguments, options, words", [
    ((torch.tensor([float("nan")]),), {}, "values: expected finite"),
    ((torch.zeros(2, 0),), {}, "at least one neuron"),
    ((torch.zeros(2, 3), float("inf")), {}, "threshold: expected a finite"),
    ((torch.zeros(2, 3),), {"scale": "sum"}, "unknown scale 'sum'")])
def test_bad_values(arguments, options, words):
    with pytest.raises(ValueError, match=words):
        excitable(*arguments, **options)


@pytest.mark.parametrize("scale, threshold", [("none", 0.01), ("total", 0.5)])
@pytest.mark.parametrize("points", [1, 3])
def test_fitness_is_the_share_by_the_diagonal(scale, threshold, points, tiny_model, x):
    model, inputs, labels = tiny_model(), x[:2], torch.tensor([2, 0])
    of = torch.tensor([1, 0, 0, 1])
    fitness = ExcitableNeurons(threshold=threshold, scale=scale, points=points)
    with torch.no_grad():
        found = fitness(model, inputs, labels)(x[2:], of)
    psi = shapley.diagonal(shapley.Game(model, inputs[of], x[2:], labels[of]), points=points).values
    shares = [sum(p > threshold * (1 if scale == "none" else sum(map(abs, row)) / len(row))
                  for p in row) / len(row) for row in psi.tolist()]
    assert found.tolist() == pytest.approx(shares) and len(set(shares)) > 1


@pytest.mark.parametrize("scale, threshold", [("none", 0.01), ("total", 0.5)])
def test_fitness_is_the_share_by_permutations(scale, threshold, tiny_model, x, generator):
    """The same orders for an image and its input, as in the game of the two."""
    model, inputs, labels = tiny_model(), x[:2], torch.tensor([2, 0])
    of = torch.tensor([1, 0, 0, 1])
    fitness = ExcitableNeurons(threshold=threshold, scale=scale, permutations=6, seed=4)
    found = fitness(model, inputs, labels)(x[2:], of)
    psi = shapley.permutation(shapley.Game(model, inputs[of], x[2:], labels[of]), permutations=6,
                              generator=generator(4)).values
    assert torch.equal(found, excitable(psi, threshold, scale=scale).float().mean(1))
    other = ExcitableNeurons(threshold=threshold, scale=scale, points=1)(model, inputs, labels)
    assert len(found.unique()) > 1 and not torch.equal(found, other(x[2:], of))


def test_a_swarm_counts_the_passes_of_permutations(tiny_model, x, generator):
    model, labels = tiny_model(), torch.tensor([0, 1])
    neurons, orders = shapley.Game(model, x[:1], x[1:2], labels[:1]).players, 4
    fitness = ExcitableNeurons(permutations=orders)
    found = fuzzing.Swarm(fitness=fitness, population=3).run(model, x[:2], labels, iterations=5,
                                                             generator=generator(0))
    each = orders * (neurons - 1) + 2
    scored, traced = 2 + 2 * 3 * 5, 1
    assert found.passes >= scored * each + 2 * 5
    assert found.passes <= scored * each + 2 * 5 + 4 * traced


def test_one_point_is_gate_times_gradient_at_one_half(tiny_model, x):
    """By hand, without hooks."""
    model, labels = tiny_model(), torch.tensor([1])
    slopes = []
    for image in (x[:1], x[1:2]):
        a = model[:2](image).detach().requires_grad_()
        logits = model[3]((a / 2).flatten(1))
        logits.retain_grad()
        nn.functional.cross_entropy(logits / 2, labels).backward()
        # d loss / d gate = (d loss / d a) * a / gate, summed over the channel's positions
        slopes.append(torch.cat([(a.grad * a * 2).sum((2, 3)), logits.grad * logits * 2], 1))
    psi = (slopes[1] - slopes[0]).detach()[0]
    for threshold in psi.sort().values.unfold(0, 2, 1).mean(1).tolist():
        fitness = ExcitableNeurons(threshold=threshold, points=1, layers=("1", "3"))
        found = fitness(model, x[:1], labels)(x[1:2], torch.tensor([0]))
        assert found.item() == pytest.approx((psi > threshold).float().mean().item())


@pytest.mark.parametrize("scale", SCALES)
def test_an_image_equal_to_its_seed_scores_nothing(scale, x, generator):
    """Also where passes of other sizes round otherwise."""
    model = models.build("lenet4", shape=(1, 8, 8))
    score = ExcitableNeurons(threshold=0.0, scale=scale)(model, x, torch.zeros(6).long())
    other = torch.rand(29, 1, 8, 8, generator=generator(5))
    found = score(torch.cat([x, other]), torch.arange(35) % 6)
    assert (found[:6] == 0).all() and (found[6:] > 0).any()


def test_seeds_pass_once(tiny_model, x):
    model, seen = tiny_model(), []
    model.register_forward_pre_hook(lambda module, inputs: seen.append(len(inputs[0])))
    score = ExcitableNeurons(points=2)(model, x[:3], torch.zeros(3).long())
    seen.clear()
    for _ in range(3):
        score(x[3:], torch.arange(3))
    assert seen == [3] * 2 * 3


def test_a_swarm_raises_the_share(tiny_model, x, generator):
    model, inputs, labels = tiny_model(), x[:3], torch.tensor([0, 1, 2])
    fitness = ExcitableNeurons(threshold=1.0, scale="total")
    swarm = fuzzing.Swarm(fitness=fitness, population=8, budget=fuzzing.Budget(linf=0.3))
    found = swarm.run(model, inputs, labels, iterations=6, generator=generator(0))
    score, of = fitness(model, inputs, labels), torch.arange(3)
    noise = 0.3 * (2 * torch.rand(20, *inputs.shape, generator=generator(1)) - 1)
    random = torch.stack([score((inputs + move).clamp(0, 1), of) for move in noise])
    assert (score(found.images, of) > random.mean(0)).all()
    assert not any(module._forward_hooks for module in model.modules())


def test_dead_neurons_are_not_excitable(tiny_model, x):
    model = tiny_model()
    with torch.no_grad():
        model[0].bias.fill_(-99)  # no ReLU fires, and no logit depends on the image
    score = ExcitableNeurons(threshold=0.0)(model, x[:1], torch.tensor([0]))
    assert score(x[1:], torch.zeros(5).long()).tolist() == [0.0] * 5


def test_only_the_layers_named_count(tiny_model, x):
    model, labels = tiny_model(), torch.tensor([0])
    score = ExcitableNeurons(threshold=0.0, points=1, layers=("3",))(model, x[:1], labels)
    psi = shapley.diagonal(shapley.Game(model, x[:1], x[1:2], labels, layers=["3"]), points=1)
    assert psi.values.shape == (1, 3)
    assert score(x[1:2], torch.tensor([0])).item() == (psi.values > 0).float().mean().item()


def test_a_loss_that_is_not_finite(tiny_model, x):
    class Unit(nn.Module):
        def forward(self, a):
            return a / (a.norm(dim=1, keepdim=True) > 1e9)

    with pytest.raises(ValueError, match="finite"):
        ExcitableNeurons(layers=("3",))(nn.Sequential(*tiny_model(), Unit()), x[:1],
                                        torch.tensor([0]))


@pytest.mark.parametrize("options, words", [
    ({"scale": "difference"}, "unknown scale 'difference'"), ({"points": 0}, "points"),
    ({"threshold": math.nan}, "threshold: expected a finite number"),
    ({"permutations": 0}, "permutations"), ({"permutations": 3}, "an even number"),
    ({"seed": -1}, "seed")])
def test_bad_options(options, words):
    with pytest.raises(ValueError, match=words):
        ExcitableNeurons(**options)


def test_bad_layers(tiny_model, x):
    labels = torch.tensor([0])
    with pytest.raises(ValueError, match="Known: 0, 1, 2, 3"):
        ExcitableNeurons(layers=("conv",))(tiny_model(), x[:1], labels)
    with pytest.raises(ValueError, match="softmax cannot be a player"):
        ExcitableNeurons(layers=("softmax",))(models.build("lenet1"), torch.zeros(1, 1, 28, 28),
                                              labels)


def test_the_fitness_and_the_selector_take_as_many_points():
    from dnnlib.selection.excitable import Excitable
    assert ExcitableNeurons().points == Excitable().points > 1
