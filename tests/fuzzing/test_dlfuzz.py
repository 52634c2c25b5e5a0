import itertools
import math

import numpy as np
import pytest
import torch
from torch import nn

from dnnlib import models
from dnnlib.fuzzing.ascent import layout
from dnnlib.fuzzing.dlfuzz import STRATEGIES, DLFuzz, draw, heavy, near
from dnnlib.fuzzing.protocol import Budget
from dnnlib.neurons.activations import record

SHOWN = {"runner_up_weight": 0, "neuron_weight": 1000, "step": 0.01, "runners_up": 1}


def linear(weights):
    """Images 1 x 3 x 3 to logits W x, whose neurons are the logits."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(9, len(weights), bias=False))
    model[1].weight.data = torch.as_tensor(weights, dtype=torch.float32)
    return model.eval()


@pytest.fixture
def inputs(tiny_data):
    return tiny_data.images[:6]


@pytest.fixture
def fuzz(generator):
    """``fuzz(fuzzer, model, ...)``: the images of every iteration, and the campaign."""
    def fuzz(fuzzer, model, inputs, labels, iterations=1, seed=0):
        frames = []
        campaign = fuzzer.run(model, inputs, labels, iterations=iterations,
                              generator=generator(seed), watch=lambda x: frames.append(x.clone()))
        return torch.stack(frames), campaign
    return fuzz


@pytest.fixture
def raised(fuzz):
    """How often each of 9 neurons, one for each pixel, was raised; the sets, image by image."""
    def raised(strategy, x, neurons=1, **options):
        fuzzer = DLFuzz(strategy=strategy, neurons=neurons, **SHOWN, **options)
        (after,), _ = fuzz(fuzzer, linear(torch.eye(9)), x, torch.zeros(len(x), dtype=int))
        moved = (after - x).flatten(1) > 1e-4
        return moved.sum(0), [tuple(row.nonzero().flatten().tolist()) for row in moved]
    return raised


def shares(counts):
    """600 images, in which neuron i is above the threshold in ``counts[i]`` hundreds of them."""
    x = torch.full((600, 9), 0.3)
    x[:, 8], x[:, 7] = 0.2, 0.8  # the least and the greatest scale all others
    for neuron, hundreds in enumerate(counts):
        x[:100 * hundreds, neuron] = 0.7
    return x.view(600, 1, 3, 3)


# ---- strategies

def test_draws_are_in_proportion_and_without_replacement(generator):
    weights = [1.0, 0.0, 2.0, 5.0]
    drawn = draw(torch.tensor(weights), 20000, 2, generator())
    assert (drawn.sum(1) == 2).all()
    for pair in itertools.combinations(range(4), 2):
        expected = sum(weights[i] / 8 * weights[j] / (8 - weights[i])
                       for i, j in (pair, pair[::-1]))
        share = drawn[:, list(pair)].all(1).float().mean().item()
        assert share == pytest.approx(expected, abs=0.015)


def test_fewer_candidates_than_neurons_are_all_taken(generator):
    assert draw(torch.tensor([0, 2, 0, 1]), 3, 4, generator()).int().tolist() == [[0, 1, 0, 1]] * 3


def test_without_a_candidate_all_are_equal(generator):
    drawn = draw(torch.zeros(4), 8000, 2, generator())
    assert (drawn.sum(1) == 2).all()
    np.testing.assert_allclose(drawn.float().mean(0), [0.5] * 4, atol=0.03)


COUNTS = [6, 3, 1, 0, 0, 0, 2, 6, 0]  # in hundreds; neuron 7 always, 8 never


def test_frequent_neurons_are_drawn_as_often_as_they_were_covered(raised):
    found, _ = raised("frequent", shares(COUNTS[:7]))
    np.testing.assert_allclose(found / 600, np.divide(COUNTS, sum(COUNTS)), atol=0.06)


def test_rare_neurons_are_drawn_as_seldom_as_they_were_covered(raised):
    found, _ = raised("rare", shares(COUNTS[:7]))
    weights = 6 - np.array(COUNTS)
    np.testing.assert_allclose(found / 600, weights / weights.sum(), atol=0.06)


def test_none_draws_the_uncovered(raised):
    found, sets = raised("none", shares(COUNTS[:7]), neurons=3)
    assert found[[0, 1, 2, 6, 7]].sum() == 0
    assert set(sets) == set(itertools.combinations([3, 4, 5, 8], 3))


def test_none_takes_the_few_that_are_uncovered(raised):
    _, sets = raised("none", shares(COUNTS[:7]), neurons=9)
    assert set(sets) == {(3, 4, 5, 8)}


def test_weight_takes_the_neurons_of_the_largest_weights(fuzz):
    weights = torch.eye(9)
    weights[5, 5] = 1.5
    x = torch.full((40, 1, 3, 3), 0.4)
    (after,), _ = fuzz(DLFuzz(strategy="weight", neurons=3, **SHOWN), linear(weights), x, [0] * 40)
    assert ((after - x).flatten(1).argmax(1) == 5).all()


def test_high_weights_are_a_tenth_rounded_up_and_positive():
    model = models.build("lenet1")
    weights = layout(model, torch.zeros(1, 1, 28, 28)).weights
    ranked = sorted((w for w in weights.tolist() if w > 0), reverse=True)
    found = heavy(weights)
    assert sorted(weights[found].tolist(), reverse=True) == ranked[:math.ceil(52 / 10)]
    assert not heavy(-weights.abs()).any()


def test_weight_has_fewer_candidates_than_neurons_on_lenet1(fuzz, generator):
    model, x = models.build("lenet1"), torch.rand(2, 1, 28, 28, generator=generator(3))
    chosen = heavy(layout(model, x).weights)
    assert chosen.sum() < 10
    part = x.clone().requires_grad_()
    logits = model(part)
    a = [model[:stop](part) for stop in (2, 3, 5, 6)]  # the ReLUs and the pools
    raw = torch.cat([*(layer.mean((2, 3)) for layer in a), logits, logits.softmax(1)], 1)
    (3 * raw[:, chosen].sum() - logits[:, 0].sum()).backward()
    rms = part.grad.square().mean((1, 2, 3), keepdim=True).sqrt() + 1e-5
    expected = (x + 0.02 * part.grad / rms).clamp(0, 1)
    fuzzer = DLFuzz(strategy="weight", neurons=10, neuron_weight=3, runner_up_weight=0)
    (after,), _ = fuzz(fuzzer, model, x, [0, 0])
    torch.testing.assert_close(after, expected)


def test_near_neurons_are_pushed_away_from_the_threshold():
    scaled = torch.tensor([[.50, .55, .74, .60, .76, .49, .31, .45, .29, .40],
                           [.10, .20, .90, .95, .00, .35, .10, .10, .60, .10]])
    everywhere = torch.ones(10, dtype=torch.bool)
    assert near(scaled, 0.5, 5, everywhere).tolist() == [[0, 1, 1, 0, 0, -1, -1, -1, 0, 0],
                                                          [0, 0, 0, 0, 0, -1, 0, 0, 1, 0]]
    maps = everywhere.clone()
    maps[[1, 5]] = False
    assert near(scaled, 0.5, 4, maps).tolist() == [[0, 0, 1, 1, 0, 0, -1, -1, 0, 0],
                                                   [0, 0, 0, 0, 0, 0, 0, 0, 1, 0]]


def test_threshold_leaves_dense_layers_alone(fuzz, generator):
    x = torch.rand(6, 1, 3, 3, generator=generator())
    labels, model = [0, 1, 2] * 2, linear(torch.randn(3, 9, generator=generator(1)))
    runs = [fuzz(DLFuzz(strategy="threshold", neurons=3, runners_up=2, neuron_weight=weight),
                 model, x, labels)[0] for weight in (0, 50)]
    assert torch.equal(*runs)


# ---- the step

def test_a_step_of_a_linear_model_is_that_of_the_equation(fuzz, generator):
    w = torch.randn(5, 9, generator=generator(5))
    x = torch.rand(30, 1, 3, 3, generator=generator(6))
    labels = torch.arange(30) % 5
    fuzzer = DLFuzz(strategy="none", neurons=5, threshold=2, runners_up=2, runner_up_weight=0.6,
                    neuron_weight=0.3, step=0.1)  # none is above 2: all five are drawn
    (after,), _ = fuzz(fuzzer, linear(w), x, labels)
    for image, label, found in zip(x, labels.tolist(), after):
        logits = (w @ image.flatten()).tolist()
        others = sorted((j for j in range(5) if j != label), key=lambda j: -logits[j])[:2]
        g = (0.6 * (w[others[0]] + w[others[1]]) - w[label] + 0.3 * sum(w)).double().numpy()
        step = 0.1 * g / (math.sqrt(sum(v * v for v in g) / 9) + 1e-5)
        expected = np.clip(image.double().numpy() + step.reshape(1, 3, 3), 0, 1)
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_objective_rises(fuzz, tiny_model, inputs):
    model, labels = tiny_model(), torch.tensor([0, 1, 2] * 2)
    _, campaign = fuzz(DLFuzz(runners_up=2, neuron_weight=0, step=0.005), model, inputs, labels, 10)

    def objective(x):
        z, mine = model(x), model(x)[range(6), labels]
        return 0.5 * (z.sum(1) - mine) - mine

    assert (objective(campaign.images) > objective(inputs)).all()


def chosen(scaled, t, m):
    """Strategy 4 with loops, for a network whose first 8 neurons are channels of maps."""
    up = [n for n in range(8) if t < scaled[n] < t + 0.25][:m // 2]
    down = [n for n in range(8) if t - 0.2 < scaled[n] < t][:m - m // 2]
    return up, down


@pytest.mark.parametrize("threshold", [0.4, 0.6])
@pytest.mark.parametrize("gain, within, joins", [
    (0.01, 0.8, True), (0.4, 0.8, True), (0.01, 0.03, False), (2.0, 0.8, False)])
def test_a_campaign_is_that_of_loops(fuzz, tiny_model, tiny_data, threshold, gain, within, joins):
    """All of it, seed by seed: classes, neurons, and when both are chosen anew."""
    model, x0 = tiny_model(2), tiny_data.images[:8] ** 4
    labels = model(x0).argmax(1).tolist()
    frames, _ = fuzz(DLFuzz(strategy="threshold", neurons=4, runners_up=1, neuron_weight=2,
                            threshold=threshold, gain=gain, within=within, step=0.05,
                            budget=Budget(l2=3)), model, x0, labels, 12)

    def look(x):
        return model(x).tolist(), record(model, x, scale=True).values.tolist()

    def aim(logits, scaled, label):
        rival = max((j for j in range(3) if j != label), key=lambda j: logits[j])
        return rival, chosen(scaled, threshold, 4)

    logits, scaled = look(x0)
    covered = {n for row in scaled for n, a in enumerate(row) if a > threshold}
    aims = [aim(*seed) for seed in zip(logits, scaled, labels)]
    x, joined, changed, gained = x0.clone(), 0, 0, 0
    for frame in frames:
        for i, (rival, (up, down)) in enumerate(aims):
            part = x[i:i + 1].clone().requires_grad_()
            z, maps = model(part)[0], [model[0](part), model[:2](part)]
            raw = torch.cat([layer.mean((2, 3)) for layer in maps], 1)[0]
            (0.5 * z[rival] - z[labels[i]] + 2 * (raw[up].sum() - raw[down].sum())).backward()
            g = part.grad / (part.grad.square().mean().sqrt() + 1e-5)
            step = part.detach() + 0.05 * g - x0[i]
            step *= min(1, 3 / step.norm().item())
            x[i] = (x0[i] + step).clamp(0, 1)
        torch.testing.assert_close(frame, x)
        logits, scaled = look(x)
        fresh = [{n for n, a in enumerate(row) if a > threshold} - covered for row in scaled]
        for i, new in enumerate(fresh):
            gained += bool(new)
            near_by = (x[i] - x0[i]).norm() / x0[i].norm() < within
            if len(new) / 11 > gain / (i + 1) and near_by:
                before, aims[i] = aims[i], aim(logits[i], scaled[i], labels[i])
                joined, changed = joined + 1, changed + (aims[i] != before)
        covered |= set().union(*fresh)
    # else the example would test nothing of the rule
    assert gained and bool(joined) == bool(changed) == joins


# ---- as a fuzzer

@pytest.fixture
def tiny():
    """``tiny(...)``: options for the tiny model, which has 3 classes and 11 neurons."""
    return lambda **options: DLFuzz(**{"runners_up": 2, "neurons": 4} | options)


def test_by_default_four_rivals_or_all_that_a_model_has(fuzz, tiny_model, inputs):
    def moved(**options):
        return fuzz(DLFuzz(neurons=4, **options), tiny_model(), inputs, [0] * 6, 2)[0]
    torch.testing.assert_close(moved(), moved(runners_up=2))
    assert not torch.equal(moved(), moved(runners_up=1))
    logits = torch.arange(10.0)[None]
    assert DLFuzz()._rivals(logits, torch.tensor([9])).tolist() == [[8, 7, 6, 5]]


@pytest.mark.parametrize("budget", [Budget(), Budget(l2=0.7), Budget(linf=0.1),
                                    Budget(l2=0.5, linf=0.2)])
def test_examples_stay_within_the_budget(fuzz, tiny, tiny_model, inputs, budget):
    frames, campaign = fuzz(tiny(budget=budget, step=0.2), tiny_model(), inputs, [0] * 6, 5)
    assert frames.min() >= 0 and frames.max() <= 1
    torch.testing.assert_close(campaign.l2, (frames - inputs).flatten(2).norm(dim=2))
    assert campaign.l2.max() <= (budget.l2 or math.inf) + 1e-5
    assert campaign.linf.max() <= (budget.linf or math.inf) + 1e-6
    assert campaign.linf.max() > 0.09


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_iteration_gives_an_example_for_each_seed(fuzz, tiny, tiny_model, inputs, strategy):
    model = tiny_model()
    frames, campaign = fuzz(tiny(strategy=strategy, step=0.1), model, inputs, [0, 1, 2] * 2, 6)
    assert frames.shape == (6, *inputs.shape)
    for images, predicted in zip(frames, campaign.predicted):
        assert torch.equal(model(images).argmax(1), predicted)
    assert torch.equal(campaign.images, frames[-1])


def test_errors_are_those_against_the_label_of_the_seed(fuzz, tiny, tiny_model, inputs):
    """An image that is wrong from the start, and is led further away from its label."""
    model = tiny_model()
    labels = (model(inputs).argmax(1) + 1) % 3
    _, campaign = fuzz(tiny(neuron_weight=0, step=0.1), model, inputs, labels, 6)
    assert campaign.errors.all()


def test_passes_are_counted(fuzz, tiny, tiny_model, inputs):
    sent, model = [], tiny_model()
    model.register_forward_hook(
        lambda module, inputs, y: sent.append(len(y) * (1 + 2 * y.requires_grad)))
    _, campaign = fuzz(tiny(batch_size=4), model, inputs, [0, 1, 2] * 2, 3)
    assert campaign.passes == sum(sent)


@pytest.mark.parametrize("strategy", ["none", "frequent", "rare", "weight"])
def test_runs_repeat_and_seeds_matter(fuzz, tiny_model, inputs, strategy):
    model, before = tiny_model(), inputs.clone()
    model[0].weight.data.abs_()
    model[3].weight.data.abs_()  # so that 'weight' has two candidates
    fuzzer = DLFuzz(strategy=strategy, neurons=1, runners_up=2, threshold=0.4, neuron_weight=5)
    runs = [fuzz(fuzzer, model, inputs, [0, 1, 2] * 2, 3, seed)[0] for seed in (1, 1, 2)]
    assert torch.equal(runs[0], runs[1]) and not torch.equal(runs[0], runs[2])
    assert torch.equal(inputs, before)


def test_many_seeds_are_as_one_by_one(fuzz, tiny, tiny_model, inputs):
    fuzzer = tiny(neuron_weight=0, within=0, step=0.1, budget=Budget(l2=1))
    labels = torch.tensor([0, 1, 2] * 2)
    together, _ = fuzz(fuzzer, tiny_model(), inputs, labels, 4)
    alone = [fuzz(fuzzer, tiny_model(), inputs[i:i + 1], labels[i:i + 1], 4)[0] for i in range(6)]
    torch.testing.assert_close(together, torch.cat(alone, 1))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_batch_size_changes_nothing(fuzz, tiny, tiny_model, inputs, strategy):
    runs = [fuzz(tiny(strategy=strategy, batch_size=size), tiny_model(), inputs, [0, 1, 2] * 2,
                 4)[0] for size in (4, 256)]
    torch.testing.assert_close(*runs)


def test_black_seeds_never_join_the_list(fuzz, tiny, tiny_model):
    x = torch.zeros(2, 1, 8, 8)
    frames, _ = fuzz(tiny(gain=0), tiny_model(), x, [0, 1], 3)
    assert frames.isfinite().all()


# ---- bad input

@pytest.mark.parametrize("options, words", [
    ({"strategy": "frequnt"}, "did you mean 'frequent'"), ({"strategy": 1}, "unknown strategy 1"),
    ({"neurons": 0}, "neurons: expected a whole number"), ({"neurons": 2.5}, "neurons"),
    ({"runners_up": 0}, "runners_up"), ({"batch_size": 0}, "batch_size"),
    ({"step": -0.1}, "step: .* got -0.1"), ({"threshold": math.nan}, "threshold: .* got nan"),
    ({"gain": math.inf}, "gain: .* got inf"), ({"within": -1}, "within"),
    ({"neuron_weight": -1}, "neuron_weight"), ({"runner_up_weight": -1}, "runner_up_weight"),
])
def test_bad_options(options, words):
    with pytest.raises(ValueError, match=words):
        DLFuzz(**options)


@pytest.mark.parametrize("options, change, words", [
    ({"neurons": 12}, {}, "neurons: expected at most the model's 11, got 12"),
    ({"runners_up": 3}, {}, "runners_up: expected at most 2, for a model of 3 classes, got 3"),
    ({}, {"iterations": 0}, "iterations: expected a whole number"),
    ({}, {"labels": [0, 1]}, "labels: expected 6 integers"),
    ({}, {"labels": [-1] * 6}, "labels: expected classes 0 to 2"),
    ({}, {"inputs": torch.zeros(6, 8, 8)}, "inputs: expected shape"),
])
def test_bad_runs(tiny, tiny_model, inputs, generator, options, change, words):
    arguments = {"inputs": inputs, "labels": [0] * 6, "iterations": 1} | change
    with pytest.raises(ValueError, match=words):
        tiny(**options).run(tiny_model(), generator=generator(), **arguments)
