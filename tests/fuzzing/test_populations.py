import math
from dataclasses import replace

import pytest
import torch
from scipy.optimize import differential_evolution

from dnnlib.fuzzing.noise import Constant
from dnnlib.fuzzing.numbers import Numbers
from dnnlib.fuzzing.populations import Ants, Differential, Genetic
from dnnlib.fuzzing.protocol import Budget

S, P = 3, 12
EVERY = [Genetic, Ants, Differential]


@pytest.fixture
def inputs(generator):
    return torch.rand(S, 1, 2, 2, generator=generator(5))


def towards(*target):
    """The fitness: minus the distance to one image of four pixels."""
    goal = torch.tensor(target)
    return lambda model, inputs, labels: lambda x, of: -(x.flatten(1) - goal).norm(dim=1)


def stream(seed):
    return Numbers(torch.tensor([seed]))


GOAL = (0.2, 0.9, 0.4, 0.6)


@pytest.mark.parametrize("kind", EVERY)
def test_the_best_so_far_is_shown_and_comes_near_the_goal(run, kind):
    campaign, examples = run(kind(population=40, fitness=towards(*GOAL)), iterations=60)
    far = (examples.flatten(2) - torch.tensor(GOAL)).norm(dim=2)
    assert (far.diff(dim=0) <= 1e-6).all()
    assert far[-1].max() < 0.1 < far[0].min()
    assert campaign.passes == 60 * S  # the fitness asks no model: the shown examples alone


@pytest.mark.parametrize("kind", EVERY)
def test_the_start_is_an_image(run, kind):
    _, examples = run(kind(population=P, fitness=Constant()), iterations=1)
    assert examples.min() >= 0 and examples.max() <= 1


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("budget", [Budget(l2=0.3), Budget(linf=0.1)])
def test_no_example_leaves_the_budget(run, kind, budget):
    campaign, _ = run(kind(population=P, budget=budget, fitness=towards(*GOAL)), iterations=20)
    assert campaign.l2.max() <= (budget.l2 or math.inf) + 1e-5
    assert campaign.linf.max() <= (budget.linf or math.inf) + 1e-5


@pytest.mark.parametrize("kind", EVERY)
def test_an_input_has_random_numbers_of_its_own(run, kind, generator):
    inputs = torch.rand(S, 1, 2, 2, generator=generator(5))
    fuzzer = kind(population=P, fitness=towards(*GOAL))
    _, whole = run(fuzzer, inputs)
    _, blocks = run(replace(fuzzer, batch_size=P), inputs)  # one input at a time
    _, first = run(fuzzer, inputs[:1])
    assert torch.equal(whole, blocks)
    assert torch.equal(whole[:, :1], first)
    assert not torch.equal(whole, run(fuzzer, inputs, seed=2)[1])


@pytest.fixture
def parents(generator):
    """Members (1, P, 1, 2, 2) whose pixels tell whose they are, and their fitness (1, P)."""
    members = (torch.arange(P * 4).view(1, P, 1, 2, 2) + 1) / 100
    return members, torch.rand(1, P, generator=generator(3))


def test_children_are_mixed_from_the_fitter_of_two_drawn(parents):
    members, fitness = parents
    fuzzer = Genetic(population=P, mutation=1e-9)
    draws = stream(8)
    children = fuzzer.children(members, fitness, stream(8))[0].flatten(1)
    rivals = (draws.uniform(2, 2, P)[0] * P).long()  # (parent, rival, child)
    mixed = draws.uniform(P, 1, 2, 2)[0].flatten(1) < 0.5
    for child in range(P):
        winners = [max(pair.tolist(), key=lambda i: float(fitness[0, i]))
                   for pair in (rivals[0, :, child], rivals[1, :, child])]
        for pixel in range(4):
            of = winners[0] if mixed[child, pixel] else winners[1]
            assert children[child, pixel] == members[0, of].flatten()[pixel]


def test_a_mutated_pixel_is_nobodys(parents):
    members, fitness = parents
    every = Genetic(population=P, mutation=1.0).children(members, fitness, stream(8))
    assert not torch.isin(every, members).any()
    usual = torch.cat([Genetic(population=P).children(members, fitness, stream(seed))
                       for seed in range(50)])
    assert torch.isin(usual, members).double().mean() == pytest.approx(0.75, abs=0.04)


def test_an_ant_is_drawn_around_whom_it_follows(parents):
    members, fitness = parents
    draws = stream(8)
    colony = Ants(population=P, locality=0.3, width=0.5)
    children = colony.children(members, fitness, stream(8))[0].flatten(1)
    ends = colony.weights().cumsum(0).tolist()
    followed = [next(rank for rank, end in enumerate(ends) if drawn < end)
                for drawn in draws.uniform(P)[0].tolist()]
    normal = draws.normal(P, 1, 2, 2)[0].flatten(1)
    ranked = members[0].flatten(1)[fitness[0].argsort(descending=True)].tolist()
    for ant, rank in enumerate(followed):
        for pixel in range(4):
            apart = sum(abs(other[pixel] - ranked[rank][pixel]) for other in ranked) / (P - 1)
            expected = ranked[rank][pixel] + 0.5 * apart * float(normal[ant, pixel])
            assert float(children[ant, pixel]) == pytest.approx(expected, abs=1e-5)


def test_ants_follow_by_the_rank_of_socha_and_dorigo():
    q, found = 0.5, Ants(population=5, locality=0.5).weights()
    by_hand = [1 / (q * 5 * math.sqrt(2 * math.pi)) * math.exp(-rank**2 / (2 * q**2 * 5**2))
               for rank in range(5)]
    assert found.tolist() == pytest.approx([each / sum(by_hand) for each in by_hand])
    assert Ants(population=50).weights().tolist() == [1.0] + 49 * [0.0]


def test_a_child_of_evolution_is_the_best_and_a_difference_of_others(parents):
    members, fitness = parents
    fuzzer = Differential(population=P, weight=(0.8, 0.8), recombination=1.0)
    children = fuzzer.children(members, fitness, stream(8))[0].flatten(1)
    best = members[0, fitness.argmax()].flatten()
    for trial in children:
        steps = ((trial - best) / 0.8 * 100).round()  # a member is one, two, ... times four apart
        assert len(set(steps.tolist())) == 1 and steps[0] % 4 == 0 and steps[0] != 0
    some = Differential(population=P, recombination=0.3).children(members, fitness, stream(8))
    assert torch.isclose(some, members).double().mean() == pytest.approx(0.7, abs=0.15)


def test_evolution_does_as_well_as_scipys(run):
    """A bowl of four pixels: both end within one hundredth of its bottom, or neither does."""
    goal = torch.tensor(GOAL)
    _, ours = run(Differential(population=16, fitness=towards(*GOAL)), iterations=80)
    theirs = differential_evolution(
        lambda x: float((torch.from_numpy(x).float() - goal).norm()), [(0, 1)] * 4, popsize=4,
        maxiter=79, tol=0, polish=False, seed=1)
    assert theirs.fun < 0.01
    assert (ours[-1].flatten(1) - goal).norm(dim=1).max() < 0.01


def test_a_parent_stays_where_its_child_is_worse(run):
    seen = []

    def fitness(model, inputs, labels):
        def score(x, of):
            seen.append(x.clone())
            return torch.full((len(x),), -float(len(seen)))  # worse every time
        return score

    _, examples = run(Differential(population=P, fitness=fitness), iterations=3)
    assert torch.equal(examples[0], examples[2])


@pytest.mark.parametrize("make, message", [
    (lambda: Genetic(mutation=0), "mutation: expected a share in"),
    (lambda: Ants(locality=0), "locality: expected a finite number above 0"),
    (lambda: Ants(width=math.nan), "width: expected a finite number above 0"),
    (lambda: Differential(population=2), "population: expected at least 3"),
    (lambda: Differential(weight=(-1, 0)), "weight: expected two finite numbers of at least 0"),
    (lambda: Differential(recombination=1.5), "recombination: expected a share"),
    (lambda: Genetic(population=0), "population: expected")])
def test_options_without_sense_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
