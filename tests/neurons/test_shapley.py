from itertools import combinations
from math import factorial

import pytest
import torch
from captum.attr import ShapleyValueSampling
from torch import nn

from dnnlib import models
from dnnlib.neurons import shapley
from dnnlib.neurons.shapley import Game, diagonal, exact, leave_one_out, permutation


class Additive:
    """Every player adds a number; two inputs."""

    players = 4
    worths = torch.tensor([[1.0, -2.0, 0.0, 0.5], [0.0, 3.0, 1.0, 1.0]], dtype=torch.float64)

    def value(self, gates):
        gates = torch.as_tensor(gates, dtype=torch.float64)
        return (gates * self.worths.unsqueeze(1)).sum(2)


class Weighted:
    """Wins with more than half of the votes; votes 4, 3, 2, 1."""

    players = 4
    votes = torch.tensor([4, 3, 2, 1])

    def value(self, gates):
        return ((gates.long() * self.votes).sum(-1) > 5).double().view(1, -1)


class Polynomial:
    """A multilinear game of degree 3 of five players, of whom the last is null."""

    players = 5

    def value(self, gates):
        a, b, c, d, _ = torch.as_tensor(gates, dtype=torch.float64).unbind(-1)
        return (2 * a + 3 * a * b - 6 * b * c * d + c * d).view(1, -1)


POLYNOMIAL = [2 + 1.5, 1.5 - 2, -2 + 0.5, -2 + 0.5, 0]


def two_layers(seed=0, symmetric=False, dead=False):
    """2 x 2 images to 3 classes by 3 + 4 ReLUs: with the logits, 10 players."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 4), nn.ReLU(),
                          nn.Linear(4, 3)).eval()
    with torch.no_grad():
        for layer in (1, 3, 5):
            model[layer].weight.mul_(3)
            model[layer].bias.fill_(0.5)  # so that most fire
        if symmetric:  # units 0 and 2 of the first hidden layer do the same
            model[1].weight[2], model[1].bias[2] = model[1].weight[0], model[1].bias[0]
            model[3].weight[:, 2] = model[3].weight[:, 0]
        if dead:  # unit 1 of it never fires
            model[1].weight[1], model[1].bias[1] = 0, -1
    return model


LAYERS = ("2", "4", "5")


def game_of(model, generator, inputs=2, **options):
    clean, perturbed = torch.rand(2, inputs, 1, 2, 2, generator=generator)
    return Game(model, clean, perturbed, torch.tensor([0, 2, 1])[:inputs],
                **{"layers": LAYERS} | options)


def worth_by_hand(model, clean, perturbed, label, on):
    """Eq. 3 for one input, of the neurons in the set ``on`` of a model of :func:`two_layers`."""
    losses = []
    for image in (clean, perturbed):
        a, neuron = image.flatten(), 0
        for layer in (1, 3, 5):
            a = model[layer].weight @ a + model[layer].bias
            if layer < 5:
                a = a.clamp(min=0)
            a = torch.stack([v if neuron + i in on else 0 * v for i, v in enumerate(a)])
            neuron += len(a)
        losses.append(-a.double().log_softmax(0)[label].item())
    return losses[1] - losses[0]


def definition_2(worth, n):
    """Eq. 5 over subsets that hold the player, with the weight of the paper."""
    psi = []
    for i in range(n):
        others, total = [j for j in range(n) if j != i], 0.0
        for size in range(n):
            for some in combinations(others, size):
                weight = factorial(size) * factorial(n - size - 1) / factorial(n)
                total += weight * (worth({*some, i}) - worth(set(some)))
        psi.append(total)
    return psi


# ---- games whose values are known

@pytest.mark.parametrize("estimator", [exact, permutation, diagonal, leave_one_out])
def test_players_who_add_get_what_they_add(estimator, generator):
    options = {"generator": generator(0)} if estimator is permutation else {}
    found = estimator(Additive(), **options)
    assert torch.allclose(found.values, Additive.worths.float())
    assert found.total.tolist() == [-0.5, 5.0] and found.gap.abs().max() < 1e-6


def test_a_weighted_majority():
    """24 orders counted: who brings the votes from at most 5 to more."""
    assert exact(Weighted()).values[0].tolist() == pytest.approx([5 / 12, 3 / 12, 3 / 12, 1 / 12])


def test_a_simple_majority_shares_alike():
    class Majority:
        players = 7

        def value(self, gates):
            return (gates.sum(-1) > 3).double().view(1, -1)

    assert exact(Majority()).values[0].tolist() == pytest.approx([1 / 7] * 7)


def test_sixteen_players_are_not_too_many():
    class Squared:  # s squared: by symmetry 16 each
        players = 16

        def value(self, gates):
            return gates.double().sum(-1).square().view(1, -1)

    assert exact(Squared()).values[0].tolist() == pytest.approx([16] * 16)


def test_one_player_gets_all(generator):
    class Alone:
        players = 1

        def value(self, gates):
            return 3.0 * torch.as_tensor(gates, dtype=torch.float64).view(1, -1)

    drawn = {"generator": generator(0)}
    for found in (exact(Alone()), permutation(Alone(), **drawn), diagonal(Alone()),
                  leave_one_out(Alone())):
        assert found.values.tolist() == [[3.0]]


@pytest.mark.parametrize("points", [2, 3, 8])
def test_the_diagonal_is_exact_where_gates_act_linearly(points):
    found = diagonal(Polynomial(), points=points)
    assert found.values[0].tolist() == pytest.approx(POLYNOMIAL, abs=1e-6)
    assert torch.allclose(found.values, exact(Polynomial()).values, atol=1e-6)


def test_one_point_is_the_midpoint():
    found = diagonal(Polynomial(), points=1).values[0].tolist()
    assert found == pytest.approx([2 + 1.5, 1.5 - 6 / 4, -6 / 4 + 0.5, -6 / 4 + 0.5, 0])


def test_what_is_missed_without_one():
    found = leave_one_out(Polynomial())
    assert found.values[0].tolist() == pytest.approx([5, 3 - 6, -6 + 1, -6 + 1, 0])
    assert found.gap.item() == pytest.approx(-8)


# ---- permutations

def test_many_orders_reach_the_exact_values_with_the_errors_of_a_draw(generator):
    orders = 20_000
    found = permutation(Weighted(), permutations=orders, antithetic=False, generator=generator(3))
    p = exact(Weighted()).values[0]
    # a marginal contribution is 1 with probability p, else 0
    assert torch.allclose(found.error[0], (p * (1 - p) / orders).sqrt(), rtol=0.05)
    assert ((found.values[0] - p) / found.error[0]).abs().max() < 4


def test_pairs_of_reversed_orders_are_exact_for_pairs_of_players(generator):
    class Pairs:
        players = 6

        def value(self, gates):
            count = gates.double().sum(-1)
            return (count * (count - 1) / 2).view(1, -1)

    found = permutation(Pairs(), permutations=4, generator=generator(1))
    assert found.values[0].tolist() == pytest.approx([2.5] * 6)
    assert found.error.abs().max() < 1e-6
    alone = permutation(Pairs(), permutations=4, antithetic=False, generator=generator(1))
    assert alone.error.min() > 0.1


def test_error_is_the_spread_of_the_pairs(generator, monkeypatch):
    """Against pairs drawn one at a time, also where they are held one at a time."""
    game = game_of(two_layers(), generator(4))
    one, singles = generator(5), []
    for _ in range(6):
        single = permutation(game, permutations=2, generator=one)
        assert single.error is None
        singles.append(single.values)
    singles = torch.stack(singles)
    for held in (2**22, 10):
        monkeypatch.setattr(shapley.estimators, "_HELD", held)
        found = permutation(game, permutations=12, generator=generator(5))
        assert torch.allclose(found.values, singles.mean(0), atol=1e-6)
        assert torch.allclose(found.error, singles.std(0) / 6**0.5, atol=1e-6)


def test_the_same_seed_gives_the_same_values(generator):
    game = game_of(two_layers(), generator(1))
    found = [permutation(game, generator=generator(seed)).values for seed in (0, 0, 1)]
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])


def test_an_input_does_not_depend_on_the_others(generator):
    model = two_layers()
    both = game_of(model, generator(1))
    alone = Game(model, both.clean[1:], both.perturbed[1:], both.labels[1:], layers=LAYERS)
    found = [permutation(game, generator=generator(0)).values[-1] for game in (both, alone)]
    assert torch.allclose(*found, atol=1e-6)


# ---- the game of neurons

def test_worth_of_coalitions_against_single_passes(generator):
    model = two_layers()
    game = game_of(model, generator(1), inputs=3, batch_size=7)
    on = torch.rand(6, 10, generator=generator(2)) > 0.4
    expected = [[worth_by_hand(model, *pair, label, {i for i in range(10) if row[i]})
                 for row in on] for *pair, label in zip(game.clean, game.perturbed, game.labels)]
    assert torch.allclose(game.value(on), torch.tensor(expected, dtype=torch.float64), atol=1e-5)
    own = torch.stack([on, on.flip(0), ~on])
    expected = torch.stack([game.value(some)[i] for i, some in enumerate(own)])
    assert torch.allclose(game.value(own), expected, atol=1e-6)


def test_exact_values_of_a_network_against_definition_2(generator):
    model = two_layers()
    game = game_of(model, generator(1), layers=("2", "4"))
    found = exact(game)
    for i, (clean, perturbed, label) in enumerate(zip(game.clean, game.perturbed, game.labels)):
        logits = {7, 8, 9}  # no players, always on
        expected = definition_2(lambda on: worth_by_hand(model, clean, perturbed, label,
                                                         on | logits), 7)
        assert found.values[i].tolist() == pytest.approx(expected, abs=1e-5)
    assert found.values.abs().max() > 0.1


@pytest.mark.parametrize("seed", range(3))
def test_efficiency_symmetry_and_null_player(seed, generator):
    game = game_of(two_layers(seed, symmetric=True, dead=True), generator(seed))
    assert game.value(torch.zeros(1, 10)).abs().max() < 1e-6  # logits off: ln 3
    for found, most in ((exact(game), 1e-5), (diagonal(game, points=64), 5e-3)):  # kinks of ReLUs
        assert found.gap.abs().max() < most and found.values.abs().sum() > 0.1
        assert torch.allclose(found.values[:, 0], found.values[:, 2], atol=1e-5)
        assert (found.values[:, 1] == 0).all()
    sampled = permutation(game, permutations=2, antithetic=False, generator=generator(seed))
    assert sampled.gap.abs().max() < 1e-5 and (sampled.values[:, 1] == 0).all()
    assert (leave_one_out(game).values[:, 1] == 0).all()


def test_permutations_of_a_network_reach_the_exact_values(generator):
    game = game_of(two_layers(), generator(1))
    found, target = permutation(game, permutations=600, generator=generator(2)), exact(game)
    z = (found.values - target.values) / found.error.clamp(min=1e-6)  # 0: a dead neuron
    assert z.abs().max() < 4 and 0.3 < z.square().mean() < 3
    assert (found.error < 0.2 * target.values.abs().max()).all()


def test_permutation_against_captum(tiny_model, generator):
    model = tiny_model()
    clean, perturbed = torch.rand(2, 1, 1, 8, 8, generator=generator(1))
    game = Game(model, clean, perturbed, torch.tensor([1]))
    orders = 150
    found = permutation(game, permutations=orders, antithetic=False, generator=generator(2))

    def change(gates):
        found = []
        for row in gates:
            a = [model[1](model[0](x) * row[:4, None, None]) * row[4:8, None, None]
                 for x in (clean, perturbed)]
            logits = torch.cat([model[3](v.flatten(1)) * row[8:] for v in a])
            loss = nn.functional.cross_entropy(logits, torch.tensor([1, 1]), reduction="none")
            found.append(loss[1] - loss[0])
        return torch.stack(found)

    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        other = ShapleyValueSampling(change).attribute(torch.ones(1, 11), n_samples=orders,
                                                       perturbations_per_eval=11)
    z = (found.values - other) / (2**0.5 * found.error).clamp(min=1e-6)
    assert z.abs().max() < 4 and found.values.abs().max() > 10 * found.error.mean()


def test_diagonal_of_a_network_against_finite_differences(generator):
    game = game_of(two_layers(), generator(1), inputs=3, batch_size=4)
    expected, step, points = torch.zeros(3, 10, dtype=torch.float64), 1e-3, 5
    for t, weight in zip(*shapley.nodes(points)):
        for i in range(10):
            ends = torch.full((2, 10), t.item(), dtype=torch.float64)
            ends[:, i] += torch.tensor([step, -step])
            up, down = game.value(ends).unbind(1)
            expected[:, i] += weight * (up - down) / (2 * step)
    assert torch.allclose(diagonal(game, points=points).values.double(), expected, atol=2e-3)


def test_nodes_are_those_of_gauss_and_legendre():
    at, weights = shapley.nodes(3)
    for degree in range(6):
        assert (weights * at**degree).sum().item() == pytest.approx(1 / (degree + 1))


def test_passes_are_two_for_each_input_and_coalition(generator):
    game = game_of(two_layers(), generator(1))
    assert exact(game).passes == 2 * 2 * 2**10
    assert permutation(game, permutations=4, generator=generator(0)).passes == 4 * (4 * 9 + 2)
    assert diagonal(game, points=3).passes == 4 * (3 * 3 + 2)
    assert leave_one_out(game).passes == 4 * 12


def test_players_are_the_neurons_of_the_model(generator):
    clean, perturbed = torch.rand(2, 1, 1, 8, 8, generator=generator(1))
    model = models.build("lenet1", shape=(1, 8, 8))
    game = Game(model, clean, perturbed, torch.tensor([0]))
    assert game.players == models.count("lenet1").neurons - 10  # the softmax does not play
    assert game.layers == ("1", "2", "4", "5", "7") and game.where(9) == ("4", (1,))
    units = Game(model, clean, perturbed, torch.tensor([0]), layers=["2"], neuron="unit")
    assert units.players == 4 * 4 * 4 and units.where(17) == ("2", (1, 0, 1))


def test_values_of_a_residual_network_are_efficient(generator):
    model = models.build("resnet20", shape=(3, 8, 8))
    clean, perturbed = torch.rand(2, 2, 3, 8, 8, generator=generator(1))
    game = Game(model, clean, perturbed, torch.tensor([0, 1]), layers=["2", "3.relu", "5.add"])
    found = permutation(game, permutations=2, generator=generator(0))
    assert found.gap.abs().max() < 1e-5 * (1 + found.values.abs().max())


# ---- bad input

def test_exact_with_too_many_players(generator):
    clean, perturbed = torch.rand(2, 1, 1, 8, 8, generator=generator(1))
    game = Game(models.build("lenet1", shape=(1, 8, 8)), clean, perturbed, torch.tensor([0]))
    with pytest.raises(ValueError, match="at most 16 players, got 42; use permutation or diagonal"):
        exact(game)


def test_inputs_that_are_not_perturbed():
    clean = torch.rand(3, 1, 2, 2)
    perturbed = clean.clone()
    perturbed[1] = 1 - clean[1]
    with pytest.raises(ValueError, match=r"equal to clean for 2 of 3 inputs \(0, 2\)"):
        Game(two_layers(), clean, perturbed, torch.tensor([0, 1, 2]), layers=LAYERS)


class Unit(nn.Module):
    """Outputs of length one, as speaker embeddings are: with all neurons off, 0 / 0."""

    def forward(self, x):
        return x / x.norm(dim=1, keepdim=True)


def test_a_loss_that_is_not_finite_when_neurons_are_off(generator):
    model = two_layers().append(Unit())
    game = game_of(model, generator(1), layers=("5",))
    with pytest.raises(ValueError, match="finite loss whichever neurons are off.*name other"):
        exact(game)
    with pytest.raises(ValueError, match="finite loss whichever neurons are off"):
        game.slopes(torch.zeros(1, 3))


def test_a_game_without_gradient_has_no_diagonal():
    with pytest.raises(TypeError, match="diagonal needs a value that torch can differentiate"):
        diagonal(Weighted())


@pytest.mark.parametrize("changed, words", [
    ({"perturbed": torch.rand(2, 1, 2, 3)}, "perturbed: expected the shape of clean"),
    ({"perturbed": torch.full((2, 1, 2, 2), 1.5)}, r"perturbed: expected values in \[0, 1\]"),
    ({"labels": torch.tensor([0, 3])}, "labels: expected classes 0 to 2"),
    ({"labels": torch.tensor([0])}, "labels: expected 2 integers"),
    ({"layers": ["relu"]}, "unknown layer 'relu'"), ({"layers": ["2", "2"]}, "none twice"),
    ({"neuron": "map"}, "unknown neuron 'map'"), ({"batch_size": 0}, "batch_size")])
def test_bad_games(changed, words):
    given = {"clean": torch.zeros(2, 1, 2, 2), "perturbed": torch.ones(2, 1, 2, 2),
             "labels": torch.tensor([0, 1]), "layers": LAYERS} | changed
    with pytest.raises(ValueError, match=words):
        Game(two_layers(), **given)


def test_the_softmax_is_no_player(generator):
    clean, perturbed = torch.rand(2, 1, 1, 8, 8, generator=generator(1))
    with pytest.raises(ValueError, match="softmax cannot be a player"):
        Game(models.build("lenet1", shape=(1, 8, 8)), clean, perturbed, torch.tensor([0]),
             layers=["1", "softmax"])


@pytest.mark.parametrize("coalitions, words", [
    (torch.ones(2, 9), r"expected gates \(K, 10\)"), (torch.ones(3, 1, 10), r"\(2, K, 10\)"),
    (torch.ones(10), "got shape"), (torch.ones(0, 10), "got shape"),
    (torch.full((1, 10), 1.1), r"gates in \[0, 1\]"), (torch.full((1, 10), torch.nan), "gates in")])
def test_bad_coalitions(coalitions, words, generator):
    with pytest.raises(ValueError, match=words):
        game_of(two_layers(), generator(1)).value(coalitions)


@pytest.mark.parametrize("estimate, words", [
    (lambda game, g: permutation(game, permutations=5, generator=g), "an even number"),
    (lambda game, g: permutation(game, permutations=0, generator=g), "permutations"),
    (lambda game, g: diagonal(game, points=0), "points")])
def test_bad_options(estimate, words, generator):
    with pytest.raises(ValueError, match=words):
        estimate(Additive(), generator(0))


ESTIMATED = {"exact": exact, "permutation": lambda game: permutation(
    game, generator=torch.Generator().manual_seed(0)), "leave_one_out": leave_one_out}


@pytest.mark.parametrize("estimate", ESTIMATED)
@pytest.mark.parametrize("worth", [
    lambda gates: gates.double().sum(-1), lambda gates: gates.numpy().astype(float).sum(-1)[None],
    lambda gates: gates.numpy().astype("float32").sum(-1)])
def test_worths_of_one_game_as_they_come(estimate, worth):
    class Given:
        players = 3

        def value(self, gates):
            return worth(torch.as_tensor(gates))

    assert ESTIMATED[estimate](Given()).values.tolist() == [[1.0, 1.0, 1.0]]


@pytest.mark.parametrize("estimate", [*ESTIMATED, "diagonal"])
@pytest.mark.parametrize("worth, words", [
    (lambda gates: gates.double().sum(-1)[None] * torch.nan, "expected finite worths"),
    (lambda gates: torch.zeros(1, 9), r"expected worths \(B, \d\), or \(\d,\) of one game, got"),
    (lambda gates: 3.0, r"of one game, got shape \(\)")])
def test_worths_that_are_none(estimate, worth, words):
    class Given:
        players = 3

        def value(self, gates):
            return worth(torch.as_tensor(gates))

    with pytest.raises(ValueError, match=f"game: .*{words}"):
        (ESTIMATED | {"diagonal": diagonal})[estimate](Given())


def test_a_game_of_arrays_has_no_diagonal():
    class Arrays:
        players = 3

        def value(self, gates):
            return gates.numpy().astype(float).sum(-1)[None]

    with pytest.raises(TypeError, match="diagonal needs a value that torch can differentiate"):
        diagonal(Arrays())
