import math
from dataclasses import FrozenInstanceError, replace

import pytest
import torch
from torch import nn

from dnnlib.fuzzing import guided
from dnnlib.fuzzing.noise import Constant, Noise, RandomFitness
from dnnlib.fuzzing.numbers import Numbers
from dnnlib.fuzzing.protocol import Budget
from dnnlib.fuzzing.swarm import Swarm
from dnnlib.neurons.sensitivity import SensitiveNeurons

S, T = 4, 6


@pytest.fixture
def inputs(generator):
    return torch.rand(S, 1, 2, 1, generator=generator(5))


def towards(*target):
    """The fitness: minus the distance to one image of two pixels."""
    goal = torch.tensor(target)
    return lambda model, inputs, labels: lambda x, of: -(x.flatten(1) - goal).norm(dim=1)


def spy(fitness, into):
    """``fitness``, keeping the images and inputs that are scored, in every call."""
    def watched(model, inputs, labels):
        score = fitness(model, inputs, labels)

        def keep(x, of):
            into.append((x.clone(), of.clone()))
            return score(x, of)
        return keep
    return watched


def scalar_swarm(swarm, seed, draw, value, iterations):
    """One swarm over two pixels in plain loops: Algorithm 1 with Eqs. 3 to 5."""
    def numbers(*shape):
        return draw.uniform(*shape)[0].tolist()

    n, (low, high) = swarm.population, swarm.velocity
    if swarm.start == "random":
        start = numbers(n, 1, 2, 1)
        x = [[rows[0][p][0] for p in range(2)] for rows in start]
    else:
        x = [list(seed) for _ in range(n)]
    v = [[low + rows[0][p][0] * (high - low) for p in range(2)] for rows in numbers(n, 1, 2, 1)]
    personal, best = [None] * n, None
    scored, examples = [], []
    first, end = swarm.inertia
    for g in range(iterations):
        scored.append([list(particle) for particle in x])
        for i in range(n):
            fitness = value(x[i])
            if personal[i] is None or fitness > personal[i][0]:
                personal[i] = (fitness, list(x[i]))
                if best is None or fitness > best[0]:
                    best = personal[i]
        examples.append(list(best[1]))
        inertia = (first - end) * (iterations - g) / iterations + end
        if swarm.compound:
            first = inertia
        if swarm.random == "pixel":
            r = numbers(2, n, 1, 2, 1)
        else:
            r = [[[[[u[0][0][0]]] * 2] for u in term] for term in numbers(2, n, 1, 1, 1)]
        for i in range(n):
            for p in range(2):
                v[i][p] = (inertia * v[i][p]
                           + swarm.c1 * r[0][i][0][p][0] * (personal[i][1][p] - x[i][p])
                           + swarm.c2 * r[1][i][0][p][0] * (best[1][p] - x[i][p]))
                x[i][p] = min(max(x[i][p] + v[i][p], 0), 1)
                if swarm.clamp is not None:
                    v[i][p] = min(max(v[i][p], -swarm.clamp), swarm.clamp)
    return scored, examples


# ---- the update

def assert_as_in_scalar_loops(run, inputs, swarm, value):
    calls = []
    _, examples = run(replace(swarm, fitness=spy(swarm.fitness, calls)))
    keys = torch.randint(2**62, (S,), generator=torch.Generator().manual_seed(1)).tolist()
    for s, key in enumerate(keys):
        scored, expected = scalar_swarm(swarm, inputs[s].flatten().tolist(),
                                        Numbers(torch.tensor([key])), value, T)
        found = torch.stack([x[of == s].flatten(1) for x, of in calls])
        assert torch.allclose(found, torch.tensor(scored), atol=1e-5)
        assert torch.allclose(examples[:, s].flatten(1), torch.tensor(expected), atol=1e-5)


@pytest.mark.parametrize("options", [
    {}, {"random": "pixel"}, {"start": "input"}, {"inertia": (0.9, 0.4), "c1": 1.0},
    {"clamp": 0.05, "velocity": (0.0, 0.7)}, {"compound": True, "population": 1},
    {"population": 1, "start": "input", "c2": 0.5}])
def test_update_against_scalar_loops(run, inputs, options):
    swarm = Swarm(**{"fitness": towards(0.3, 0.6), "population": 5, "velocity": (-0.2, 0.3),
                     "epsilon": math.inf} | options)
    assert_as_in_scalar_loops(run, inputs, swarm,
                              lambda x: -math.hypot(x[0] - 0.3, x[1] - 0.6))


def test_equals_do_not_replace_the_best(run, inputs):
    swarm = Swarm(fitness=Constant(), population=5, velocity=(-0.2, 0.3))
    assert_as_in_scalar_loops(run, inputs, swarm, lambda x: 0)


def test_the_first_of_equals_stays_the_swarms_best(run):
    calls = []

    def fitness(model, inputs, labels):  # the second of three particles first, then all
        return lambda x, of: (torch.arange(len(x)) % 3 == 1).float() if len(calls) == 1 \
            else torch.ones(len(x))

    _, examples = run(Swarm(fitness=spy(fitness, calls), population=3))
    assert torch.equal(examples, calls[0][0][1::3].expand_as(examples))


def test_inertia_is_linear_and_the_released_one_compounds():
    paper, released = Swarm.paper().inertias(10), Swarm.released().inertias(20)
    assert paper == pytest.approx([0.4 + 0.05 * g for g in range(10)])
    # what is left to the end shrinks by (20 - t) / 20 at every t
    assert released == pytest.approx([2 - 1.8 * math.perm(20, t + 1) / 20 ** (t + 1)
                                      for t in range(20)])


def test_velocity_without_numbers_is_the_change_of_the_start(run, inputs):
    calls = []
    swarm = Swarm(fitness=spy(Constant(), calls), population=3, c1=0, c2=0, inertia=(0.5, 0.5),
                  budget=Budget(linf=0.2))
    run(swarm, iterations=2)
    (first, of), (second, _) = calls
    expected = swarm.budget.project(first + 0.5 * (first - inputs[of]), inputs[of])
    assert torch.allclose(second, expected, atol=1e-6)


# ---- what it finds

@pytest.mark.parametrize("start", ["random", "input"])
def test_it_climbs_to_the_target(run, inputs, start):
    swarm = Swarm(fitness=towards(0.25, 0.75), population=40, start=start, velocity=(-0.5, 0.5),
                  inertia=(0.9, 0.4))
    _, examples = run(swarm, iterations=40)
    away = (examples.flatten(2) - torch.tensor([0.25, 0.75])).norm(dim=2)
    assert (away[-1] < 0.02).all()
    assert (away[1:] <= away[:-1]).all()


def test_current_examples_are_each_iterations_fittest(run):
    calls = []
    swarm = Swarm(fitness=spy(towards(0.5, 0.5), calls), population=4, report="current")
    _, examples = run(swarm)
    away = [(x.flatten(1) - 0.5).norm(dim=1).view(S, 4).argmin(1) for x, _ in calls]
    for (x, _), example, who in zip(calls, examples, away):
        assert torch.equal(example, x.view(S, 4, 1, 2, 1)[torch.arange(S), who])


def test_constant_fitness_keeps_the_first_start(run):
    calls = []
    _, examples = run(Swarm(fitness=spy(Constant(), calls), population=3))
    assert torch.equal(examples, calls[0][0][::3].expand_as(examples))
    assert not torch.equal(calls[0][0], calls[-1][0])


def test_random_fitness_repeats_by_its_seed(run):
    found = [run(Swarm(fitness=RandomFitness(seed=seed), population=3))[1] for seed in (1, 1, 2)]
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])


def test_sensitive_neurons_rise(tiny_model, tiny_data, generator):
    model, inputs, fitness = tiny_model(), tiny_data.images[:3], SensitiveNeurons(threshold=0.02)
    examples = []
    Swarm(fitness=fitness, population=10, budget=Budget(l2=1)).run(
        model, inputs, tiny_data.labels[:3], iterations=8, generator=generator(),
        watch=lambda x: examples.append(x.clone()))
    with torch.no_grad():
        score = fitness(model, inputs, None)
        shares = torch.stack([score(x, torch.arange(3)) for x in examples])
    assert (shares[1:] >= shares[:-1]).all() and (shares[-1] > shares[0]).any()


# ---- start, budget, stopping

def test_random_start_fills_the_box_around_the_seed(run, inputs):
    calls = []
    run(Swarm(fitness=spy(Constant(), calls), population=400, budget=Budget(linf=0.1)),
        iterations=1)
    x, of = calls[0]
    low, high = (inputs - 0.1).clamp_min(0), (inputs + 0.1).clamp_max(1)
    place = (x - low[of]) / (high - low)[of]
    assert -1e-5 < place.min() < 0.02 and 0.98 < place.max() < 1 + 1e-5
    assert abs(place.mean() - 0.5) < 0.02


def test_random_start_without_a_budget_is_anywhere(run):
    calls = []
    run(Swarm(fitness=spy(Constant(), calls), population=400), iterations=1)
    x = calls[0][0]
    assert 0 <= x.min() < 0.01 and 0.99 < x.max() <= 1 and abs(x.mean() - 0.5) < 0.03


@pytest.mark.parametrize("budget", [Budget(l2=0.1), Budget(linf=0.05), Budget(l2=0.1, linf=0.08)])
@pytest.mark.parametrize("make", [
    lambda budget: Swarm(fitness=towards(2.0, 2.0), population=5, budget=budget),
    lambda budget: Swarm.released(fitness=towards(2.0, 2.0), budget=budget),
    lambda budget: Noise(budget=budget)])
def test_every_example_is_within_the_budget(run, make, budget):
    campaign, examples = run(make(budget))
    assert campaign.l2.max() <= (budget.l2 or 9) + 1e-6
    assert campaign.linf.max() <= (budget.linf or 9) + 1e-6
    assert campaign.l2.max() > 0.04
    assert examples.min() >= 0 and examples.max() <= 1


def test_a_swarm_stops_above_epsilon(run, inputs):
    """Seeds reach the goal at different times: who has, is scored no more, and stays."""
    calls, epsilon = [], -0.15
    swarm = Swarm(fitness=spy(towards(0.5, 0.5), calls), population=2, epsilon=epsilon)
    campaign, examples = run(swarm, iterations=12)
    fit = -(examples.flatten(2) - 0.5).norm(dim=2)
    active = torch.ones(S, dtype=torch.bool)
    for g in range(12):
        scored = set(calls[g][1].tolist()) if g < len(calls) else set()
        assert scored == set(active.nonzero()[:, 0].tolist())
        if g:
            assert torch.equal(examples[g][~active], examples[g - 1][~active])
        active &= fit[g] <= epsilon
    assert not active.all()
    assert campaign.predicted.shape == (12, S)


def test_stopped_swarms_leave_the_others_alone(run, inputs):
    def all_but(stopped):
        def fitness(model, inputs, labels):
            return lambda x, of: x.flatten(1).mean(1) + 5 * torch.isin(of, stopped)
        return fitness

    found = [run(Swarm(fitness=all_but(torch.tensor(stopped)), population=3, epsilon=1.0))[1]
             for stopped in ([], [0, 2])]
    assert torch.equal(found[0][:, [1, 3]], found[1][:, [1, 3]])
    assert not torch.equal(found[0][:, [0, 2]], found[1][:, [0, 2]])


def test_a_share_never_stops_at_one(run, inputs):
    full = run(Swarm(fitness=lambda *_: lambda x, of: torch.ones(len(x)), population=3))[0]
    over = run(Swarm(fitness=lambda *_: lambda x, of: torch.ones(len(x)), population=3,
                     epsilon=0.9))[0]
    assert torch.equal(full.predicted, over.predicted)
    calls = []
    run(Swarm(fitness=spy(Constant(), calls), population=3, epsilon=0.0))
    assert len(calls) == T


def test_swarms_do_not_depend_on_the_batch_size(run, inputs):
    calls = []
    swarm = Swarm(fitness=spy(towards(0.1, 0.9), calls), population=3)
    whole = run(swarm)[1]
    assert torch.equal(run(replace(swarm, batch_size=2))[1], whole)
    assert max(len(x) for x, _ in calls[T:]) == 2


def test_passes_are_counted(tiny_model, tiny_data, generator):
    images, labels = tiny_data.images[:5], tiny_data.labels[:5]
    counts = [Swarm(fitness=fitness, population=7).run(
        tiny_model(), images, labels, iterations=3, generator=generator()).passes
        for fitness in (Constant(), SensitiveNeurons())]
    judged, clean, layers = 3 * 5, 5, 1  # one image tells the layers
    assert counts == [judged, judged + clean + layers + 3 * 5 * 7]


def test_a_gradient_counts_as_two_passes_more(tiny_model, tiny_data, generator):
    def steepness(model, inputs, labels):
        def score(x, of):
            with torch.enable_grad():
                x = x.clone().requires_grad_()
                return torch.autograd.grad(model(x).sum(), x)[0].abs().amax((1, 2, 3))
        return score

    found = Swarm(fitness=steepness, population=7).run(
        tiny_model(), tiny_data.images[:5], tiny_data.labels[:5], iterations=3,
        generator=generator())
    assert found.passes == 3 * 5 * 7 * 3 + 3 * 5


# ---- presets, repeatability, colour

def test_presets():
    paper, released = Swarm.paper(), Swarm.released()
    assert (paper.population, paper.start, paper.c1, paper.c2, paper.inertia, paper.epsilon) == \
        (100, "random", 2, 2, (0.4, 0.9), 1)
    assert paper.fitness == SensitiveNeurons(threshold=0.5)
    assert (released.population, released.start, released.velocity, released.clamp) == \
        (1, "input", (0, 0.7), 0.7)
    assert released.fitness == SensitiveNeurons(threshold=0.2, scale="difference", divide=False,
                                                logits=False)
    assert (Swarm.paper(population=8).population, Swarm.released(clamp=None).clamp) == (8, None)


def test_released_starts_at_the_seed_and_brightens(run, inputs):
    calls = []
    run(Swarm.released(fitness=spy(towards(0.5, 0.5), calls)), iterations=2)
    assert torch.equal(calls[0][0], inputs) and (calls[1][0] >= inputs).all()


@pytest.mark.parametrize("fuzzer", [
    Swarm(population=3, fitness=towards(0.1, 0.2)), Swarm.released(fitness=towards(0.1, 0.2)),
    Swarm(population=3, random="pixel", fitness=towards(0.1, 0.2)), Noise()])
def test_the_same_seed_gives_the_same_campaign(run, inputs, fuzzer):
    before = inputs.clone()
    found = [run(fuzzer, seed=seed)[1] for seed in (1, 1, 2)]
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])
    assert torch.equal(inputs, before)


def test_colour_images_keep_their_pixels_in_place(generator):
    model = nn.Sequential(nn.Conv2d(3, 2, 1), nn.Flatten(), nn.Linear(40, 3)).eval()
    inputs, calls = torch.rand(2, 3, 4, 5, generator=generator(2)), []
    Swarm.released(fitness=spy(SensitiveNeurons(), calls), velocity=(0.0, 1e-9), c1=0, c2=0).run(
        model, inputs, torch.tensor([0, 1]), iterations=2, generator=generator())
    assert all(torch.allclose(x, inputs) for x, _ in calls)


# ---- noise

def test_fresh_noise_has_its_scale(run, generator):
    inputs = torch.full((1, 1, 60, 60), 0.5)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3600, 2))
    seen = []
    Noise(scale=0.05).run(model, inputs, torch.tensor([0]), iterations=2, generator=generator(),
                          watch=seen.append)
    assert (torch.stack(seen) - 0.5).std().item() == pytest.approx(0.05, rel=0.05)


def test_noise_at_the_papers_budget_is_cut_to_it(generator):
    inputs = torch.full((2, 1, 28, 28), 0.5)
    found = Noise(budget=Budget(l2=1)).run(
        nn.Sequential(nn.Flatten(), nn.Linear(784, 2)), inputs, torch.tensor([0, 1]), iterations=3,
        generator=generator())
    assert torch.allclose(found.l2, torch.ones(3, 2), atol=1e-5)
    assert found.passes == 6


# ---- bad input

@pytest.mark.parametrize("options, words", [
    ({"population": 0}, "population: expected a whole number of at least 1, got 0"),
    ({"batch_size": 0}, "batch_size: expected a whole number of at least 1, got 0"),
    ({"start": "randm"}, "unknown start 'randm'; did you mean 'random'"),
    ({"random": "image"}, "unknown random"), ({"report": "last"}, "unknown report"),
    ({"velocity": (0.5, 0.1)}, "low <= high"), ({"velocity": (0.0, math.inf)}, "velocity"),
    ({"start": "input"}, "never move"), ({"start": "input", "velocity": (0, 0)}, "never move"),
    ({"inertia": (0.4, math.nan)}, "inertia: expected two finite"),
    ({"inertia": (-0.1, 0.9)}, "inertia: .* at least 0"), ({"c1": -1.0}, "c1, c2"),
    ({"clamp": 0}, "clamp"), ({"epsilon": math.nan}, "epsilon")])
def test_bad_options(options, words):
    with pytest.raises(ValueError, match=words):
        Swarm(**options)


def test_bad_noise():
    with pytest.raises(ValueError, match="scale: expected"):
        Noise(scale=0)


def test_fitness_that_is_no_function():
    with pytest.raises(TypeError, match="fitness: expected a function"):
        Swarm(fitness="sensitive")


@pytest.mark.parametrize("value, words", [
    (lambda x: torch.full((len(x),), math.nan), "fitness: expected finite numbers, got NaN"),
    (lambda x: torch.zeros(len(x), 1), r"fitness: expected 12 numbers, .* shape \(12, 1\)")])
def test_bad_fitness(run, model, value, words):
    with pytest.raises(ValueError, match=words):
        run(Swarm(fitness=lambda *_: lambda x, of: value(x), population=3))
    assert not model._forward_pre_hooks


@pytest.mark.parametrize("fuzzer", [Swarm(population=2), Noise()])
def test_bad_arguments(run, fuzzer, inputs):
    with pytest.raises(ValueError, match="iterations"):
        run(fuzzer, iterations=0)
    with pytest.raises(ValueError, match="inputs: expected values"):
        run(fuzzer, inputs + 1)
    with pytest.raises(ValueError, match="inputs: expected at least one"):
        run(fuzzer, inputs[:0])


def test_options_do_not_change():
    with pytest.raises(FrozenInstanceError):
        Swarm().population = 3


# ---- an input on its own

@pytest.mark.parametrize("fitness", [towards(0.1, 0.9), Constant(), RandomFitness(seed=3)])
@pytest.mark.parametrize("options", [{}, {"random": "pixel"}, {"velocity": (-0.2, 0.3)}])
def test_an_input_flies_the_same_alone_in_any_block_and_order(model, inputs, fitness, options):
    swarm = Swarm(fitness=fitness, population=3, **options)
    keys = torch.arange(S) + 40

    def flown(*blocks):
        score = fitness(model, inputs, None)
        examples = torch.empty(T, *inputs.shape)
        for rows in map(torch.tensor, blocks):
            shown = swarm.fly(lambda x, rows: score(x.flatten(0, 1), rows.repeat_interleave(3)).view(
                -1, 3), inputs[rows], rows, Numbers(keys[rows]), T)
            for t, x in enumerate(shown):
                examples[t, rows] = x
        return examples

    whole = flown([0, 1, 2, 3])
    for blocks in ([[3], [1], [0], [2]], [[2, 0], [3, 1]], [[3, 2, 1, 0]]):
        assert torch.equal(flown(*blocks), whole)


@pytest.mark.parametrize("free, largest", [(10**9, S * 3), (200, 1)])
def test_a_gpus_free_memory_sizes_passes_and_changes_nothing(run, monkeypatch, free, largest):
    calls = []
    swarm = Swarm(fitness=spy(towards(0.1, 0.9), calls), population=3)
    whole = run(swarm)[1]
    calls.clear()
    monkeypatch.setattr(guided, "free_memory", lambda device: free)
    assert torch.equal(run(swarm)[1], whole)
    assert max(len(x) for x, _ in calls) == largest


def test_what_sends_nothing_needs_no_room_for_passes(model, inputs, monkeypatch):
    monkeypatch.setattr(guided, "free_memory", lambda device: 10**6)
    size, held = Swarm(fitness=Constant()).sizes(model, inputs)
    assert size == held == 10**6 // 4 // (10 * 2 * 4)
    assert Swarm(fitness=towards(0, 0)).sizes(model, inputs) == (10**6 // 4 // (3 * (2 + 5) * 4), held)


def test_random_fitness_does_not_depend_on_the_batch_size(run):
    swarm = Swarm(fitness=RandomFitness(), population=3)
    assert torch.equal(run(replace(swarm, batch_size=2))[1], run(swarm)[1])


def test_random_fitness_is_uniform_and_anew_for_every_image():
    x = torch.rand(2, 1, 2, 2, generator=torch.Generator().manual_seed(0))
    score, of = RandomFitness()(None, x, None), torch.arange(2).repeat_interleave(500)
    drawn = torch.cat([score(x[of], of) for _ in range(4)])
    assert len(drawn.unique()) > 3990 and 0 <= drawn.min() and drawn.max() < 1
    assert drawn.mean().item() == pytest.approx(0.5, abs=0.02)
