"""DeepXplore, and what it shares with DLFuzz: neurons, coverage counts, ascent."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch import nn

from dnnlib import coverage as cov
from dnnlib import models
from dnnlib.fuzzing.ascent import Hits, ascent, layout, look, normalise, respond
from dnnlib.fuzzing.deepxplore import DeepXplore, blackout, inside, light, occlusion
from dnnlib.fuzzing.protocol import Budget
from dnnlib.neurons.activations import record


def linear(weights, size=3):
    """Images 1 x ``size`` x ``size`` to logits W x, whose neurons are the logits."""
    weights = torch.as_tensor(weights, dtype=torch.float32)
    model = nn.Sequential(nn.Flatten(), nn.Linear(size * size, len(weights), bias=False))
    model[1].weight.data = weights
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


def single(**options):
    return DeepXplore(reading="single", **options)


# ---- neurons within a pass

@pytest.mark.parametrize("name", ["lenet1", "lenet5"])
def test_neurons_are_those_that_are_recorded(generator, name):
    model, x = models.build(name), torch.rand(5, 1, 28, 28, generator=generator())
    answer = look(model, x, batch_size=2)
    torch.testing.assert_close(answer.raw, record(model, x).values)
    torch.testing.assert_close(answer.scaled, record(model, x, scale=True).values)
    torch.testing.assert_close(answer.logits, model(x).detach())


def test_raw_neurons_have_a_gradient_and_hooks_are_gone(tiny_model, inputs):
    model = tiny_model()
    found = ascent(model, inputs, lambda answer, rows: answer.raw[:, 6], batch_size=4)
    x = inputs.clone().requires_grad_()
    model[1](model[0](x))[:, 2].mean((1, 2)).sum().backward()
    torch.testing.assert_close(found, x.grad)
    assert found.abs().sum() > 0
    assert not any(module._forward_hooks for module in model.modules())


def test_in_place_layers_do_not_change_what_was_read(inputs):
    def make(inplace):
        torch.manual_seed(0)
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 5), nn.ReLU(inplace), nn.Linear(5, 3))
    answers = [respond(make(inplace), inputs) for inplace in (False, True)]
    assert (answers[0].raw[:, :5] < 0).any()
    for plain, changed in zip(*answers):
        assert torch.equal(plain, changed)


def test_a_constant_layer_is_scaled_to_zero():
    assert respond(linear(torch.ones(2, 9)), torch.rand(2, 1, 3, 3)).scaled.tolist() == [[0, 0]] * 2


def test_a_module_that_runs_twice_is_a_layer_each_time():
    again, x = nn.ReLU(), torch.rand(2, 1, 3, 3)
    first, last = nn.Linear(9, 4), nn.Linear(4, 3)
    model = nn.Sequential(nn.Flatten(), first, again, last, again)
    apart = nn.Sequential(nn.Flatten(), first, nn.ReLU(), last, nn.ReLU())
    for one, other in zip(respond(model, x), respond(apart, x)):
        assert torch.equal(one, other) and other.numel()


def test_layers_without_neurons_are_left_out(inputs):
    class Named(nn.Module):
        def forward(self, x):
            return {"x": x}

    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.named, self.last = Named(), nn.Linear(64, 3)

        def forward(self, x):
            return self.last(self.named(x.flatten(1))["x"])

    assert respond(Two(), inputs).raw.shape[1] == 3


def test_values_inside_a_model_that_are_not_finite(tiny_model, inputs):
    model = tiny_model()
    model[0].bias.data[1] = torch.nan
    with pytest.raises(ValueError, match="finite outputs"):
        respond(model, inputs)


def test_gradients_that_are_not_finite(inputs):
    class Root(nn.Module):
        def forward(self, x):
            return (0 * x).sqrt()

    model = nn.Sequential(Root(), nn.Flatten(), nn.Linear(64, 3))
    with pytest.raises(ValueError, match="finite gradients"):
        ascent(model, inputs, lambda answer, rows: answer.logits[:, 0], batch_size=8)


def test_the_objective_sees_the_places_of_its_images(tiny_model, inputs):
    labels = torch.tensor([0, 1, 2, 0, 1, 2])

    def objective(answer, rows):
        return answer.logits.gather(1, labels[rows, None])[:, 0]

    found = ascent(tiny_model(), inputs, objective, batch_size=4)
    for i, label in enumerate(labels):
        x = inputs[i:i + 1].clone().requires_grad_()
        tiny_model()(x)[0, label].backward()
        torch.testing.assert_close(found[i], x.grad[0])


def test_normalisation_divides_by_the_root_mean_square_of_each_image(generator):
    g = torch.randn(4, 2, 3, 3, generator=generator()) * torch.tensor([1, 10, 1e-5, 0]
                                                                      ).view(4, 1, 1, 1)
    for image, found in zip(g.double().numpy(), normalise(g)):
        expected = image / (math.sqrt(sum(v * v for v in image.flat) / 18) + 1e-5)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-9)


def test_coverage_is_that_of_the_criterion(generator):
    model = linear(torch.randn(11, 9, generator=generator(1)))
    first, rest = torch.rand(40, 1, 3, 3, generator=generator(2)).pow(9).split([2, 38])
    hits = Hits(torch.zeros(11, dtype=torch.int64), 0.5)
    hits.add(respond(model, first).scaled)
    flags = [cov.nac(record(model, part, scale=True).values, 0.5).bins >= 0
             for part in (first, rest)]
    assert hits.counts.tolist() == flags[0].sum(0).tolist()
    new = [(flag & ~flags[0].any(0)).sum() / 11 for flag in flags[1]]
    np.testing.assert_allclose(hits.gain(respond(model, rest).scaled), new, rtol=1e-6)
    assert max(new) > 0


def test_neurons_are_drawn_evenly_from_the_uncovered(generator):
    hits = Hits(torch.tensor([0, 3, 0, 1, 0]), 0.5)
    drawn = hits.uncovered(3000, generator()).bincount(minlength=5) / 3000
    np.testing.assert_allclose(drawn, [1 / 3, 0, 1 / 3, 0, 1 / 3], atol=0.04)


def test_any_neuron_is_drawn_where_all_are_covered(generator):
    drawn = Hits(torch.tensor([1, 3, 2]), 0.5).uncovered(300, generator())
    assert set(drawn.tolist()) == {0, 1, 2}


def test_weights_belong_to_the_neurons_they_lead_to():
    model = models.build("lenet4")
    found, none = layout(model, torch.zeros(1, 1, 28, 28)), [-math.inf]
    first, second, hidden, logits = (
        [rows.mean().item() for rows in module.weight]
        for module in model if isinstance(module, nn.Conv2d | nn.Linear))
    expected = (first + none * 6 + second + none * 16 + hidden + logits + none * 10)
    np.testing.assert_allclose(found.weights, expected, rtol=1e-4, atol=1e-7)
    assert found.maps.tolist() == [True] * 44 + [False] * 104


def test_weights_of_layers_that_count_themselves(tiny_model, inputs):
    model = tiny_model()
    found = layout(model, inputs)
    expected = [*model[0].weight.mean((1, 2, 3)).tolist(), *[-math.inf] * 4,
                *model[3].weight.mean(1).tolist()]
    np.testing.assert_allclose(found.weights, expected, rtol=1e-4, atol=1e-7)
    assert found.maps.tolist() == [True] * 8 + [False] * 3


# ---- constraints

def test_squares_are_where_their_corners_say():
    corners = [(0, 0), (2, 3), (1, 0)]
    found = inside(torch.tensor(corners), 3, (5, 6))
    for mask, (top, left) in zip(found[:, 0].numpy(), corners):
        expected = np.zeros((5, 6), bool)
        expected[top:top + 3, left:left + 3] = True
        np.testing.assert_array_equal(mask, expected)


def test_light_is_one_value_an_image(generator):
    g = torch.randn(3, 2, 4, 4, generator=generator())
    for image, found in zip(g, light(g)):
        torch.testing.assert_close(found, torch.full((2, 4, 4), image.mean().item()))


def test_occlusion_keeps_the_square(generator):
    g = torch.randn(1, 3, 5, 5, generator=generator())
    expected = torch.zeros_like(g)
    expected[:, :, 1:3, 2:4] = g[:, :, 1:3, 2:4]
    assert torch.equal(occlusion(g, inside(torch.tensor([[1, 2]]), 2, (5, 5))), expected)


def test_blackout_is_decided_inside_the_square_over_all_colours():
    g = torch.ones(2, 3, 4, 4)
    g[:, 0, :2, :2] = torch.tensor([-3.0, -1.0]).view(2, 1, 1)  # means -1/3 and 1/3 there
    expected = torch.zeros_like(g)
    expected[0, :, :2, :2] = -1
    assert torch.equal(blackout(g, inside(torch.tensor([[0, 0]]), 2, (4, 4))), expected)


def test_blackout_puts_one_square_anywhere(fuzz, generator):
    x = 0.2 + 0.6 * torch.rand(300, 1, 4, 4, generator=generator(1))
    model = linear([[1.0] * 16, [-1.0] * 16], 4)
    (after,), _ = fuzz(single(patch=2, lambda2=0), model, x, torch.zeros(300, dtype=torch.int64))
    places = set()
    for before, image in zip(x[:, 0], after[:, 0]):
        rows, columns = (image != before).nonzero().unbind(1)
        places.add((rows.min().item(), columns.min().item()))
        assert len(rows) == 4 and rows.max() == rows.min() + 1
        assert columns.max() == columns.min() + 1 and (image[rows, columns] == 0).all()
    assert places == set(itertools.product(range(3), repeat=2))


def test_blackout_never_brightens(fuzz, generator):
    x = torch.rand(20, 1, 4, 4, generator=generator(1))
    model = linear([[1.0] * 16, [-1.0] * 16], 4)
    (after,), _ = fuzz(single(patch=2, lambda2=0), model, x, torch.ones(20, dtype=torch.int64))
    assert torch.equal(after, x)


def test_blackened_squares_accumulate(fuzz, tiny_model, inputs):
    frames, _ = fuzz(single(patch=3), tiny_model(), inputs, torch.zeros(6, dtype=torch.int64), 8)
    black = (frames == 0).flatten(1).sum(1)
    assert (black.diff() >= 0).all() and black[-1] > black[0] > 0


# ---- the step

def expected_step(x, g, step):
    """One unprojected step, with loops: x + step g / (rms + 1e-5), in [0, 1]."""
    x, g = x.double().numpy(), g.double().numpy().reshape(x.shape)
    rms = math.sqrt(sum(v * v for v in g.flat) / g.size) + 1e-5
    return np.clip(x + step * g / rms, 0, 1)


@pytest.mark.parametrize("reading", ["differential", "single"])
def test_a_step_of_linear_models_is_that_of_the_equation(fuzz, generator, reading):
    w = torch.randn(3, 4, 9, generator=generator(5))  # three models of four classes
    x, labels = torch.rand(80, 1, 3, 3, generator=generator(6)), torch.arange(80) % 4
    tested, *others = map(linear, w)
    differential = reading == "differential"
    fuzzer = DeepXplore(reading=reading, others=others if differential else (), lambda1=0.7,
                        lambda2=3, step=0.05, threshold=2, constraint="occlusion", patch=3)
    (after,), _ = fuzz(fuzzer, tested, x, labels)
    used = set()
    for image, label, found in zip(x, labels, after):
        oracles = w[1, label] + w[2, label] if differential else 0
        errors = {}
        for chosen in itertools.product(range(4), repeat=3 if differential else 1):
            neurons = sum(w[k, n] for k, n in enumerate(chosen))
            g = oracles - 0.7 * w[0, label] + 3 * neurons
            errors[chosen] = np.abs(expected_step(image, g, 0.05) - found.numpy()).max()
        assert min(errors.values()) < 1e-6
        used.add(min(errors, key=errors.get))
    assert len(used) > (30 if differential else 3)


def test_light_moves_all_pixels_alike(fuzz, generator):
    w = torch.randn(2, 9, generator=generator(5))
    x = 0.4 + 0.2 * torch.rand(2, 1, 3, 3, generator=generator(6))
    (after,), _ = fuzz(single(constraint="light", lambda2=0, step=0.1), linear(w), x, [0, 1])
    for image, found, row in zip(x, after, w):
        by = -row.mean() / (row.square().mean().sqrt() + 1e-5) * 0.1
        torch.testing.assert_close(found, image + by)


@pytest.mark.parametrize("reading", ["differential", "single"])
def test_the_objective_rises(fuzz, tiny_model, inputs, reading):
    tested, other = tiny_model(0), tiny_model(1)
    labels = tested(inputs).argmax(1)
    differential = reading == "differential"
    fuzzer = DeepXplore(reading=reading, others=(other,) if differential else (), lambda2=0,
                        constraint="occlusion", patch=8, step=0.005)
    _, campaign = fuzz(fuzzer, tested, inputs, labels, 10)

    def objective(x):
        score = -tested(x)[range(6), labels]
        return score + other(x)[range(6), labels] if differential else score

    assert (objective(campaign.images) > objective(inputs)).all()


# ---- which neurons

BRIGHT = [0, 4, 7]  # pixels, hence neurons of the model that shows its input


def _bright(n):
    """``n`` images in which three pixels are bright, the first the brightest."""
    x = torch.full((n, 9), 0.2)
    x[:, BRIGHT] = 0.6
    x[:, 0] = 0.7
    return x.view(n, 1, 3, 3)


def _raised(before, after):
    return (after - before).flatten(1).argmax(1).tolist()


def _aiming(**options):
    """Only the neuron's activation counts, and the whole image may change."""
    return single(constraint="occlusion", patch=3, lambda1=0, threshold=0.5, **options)


def test_neurons_covered_by_test_errors_are_not_chosen(fuzz):
    x, wrong = _bright(200), torch.ones(200, dtype=torch.int64)
    (after,), _ = fuzz(_aiming(step=0.01), linear(torch.eye(9)), x, wrong)
    assert set(_raised(x, after)) == set(range(9)) - set(BRIGHT)


def test_images_without_an_error_cover_nothing(fuzz):
    x, right = _bright(200), torch.zeros(200, dtype=torch.int64)
    (after,), _ = fuzz(_aiming(step=0.01), linear(torch.eye(9)), x, right)
    assert set(_raised(x, after)) == set(range(9))


@pytest.mark.parametrize("shift, covers", [(0, False), (1, True)])
def test_models_that_differ_cover_their_neurons(fuzz, shift, covers):
    x = _bright(200)
    other = linear(torch.eye(9).roll(shift, 0))
    fuzzer = DeepXplore(others=(other,), constraint="occlusion", patch=3, lambda1=1, lambda2=50,
                        threshold=0.5, step=0.01)
    (after,), _ = fuzz(fuzzer, linear(torch.eye(9)), x, torch.zeros(200, dtype=torch.int64))
    tested = set(itertools.chain.from_iterable(
        (image > before + 1e-4).flatten().nonzero().flatten().tolist()
        for before, image in zip(x, after)))
    # the other's logit n shows pixel n - shift
    reach = {(n - shift) % 9 for n in range(9) if (n - shift) % 9 not in BRIGHT}
    expected = (set(range(9)) - set(BRIGHT)) | reach if covers else set(range(9))
    assert tested == expected


def test_a_neuron_is_kept_while_it_is_uncovered(fuzz):
    x, right = _bright(50), torch.zeros(50, dtype=torch.int64)
    frames, campaign = fuzz(_aiming(step=0.01), linear(torch.eye(9)), x, right, 3)
    assert not campaign.errors.any()
    aims = [_raised(*pair) for pair in itertools.pairwise([x, *frames])]
    assert aims[0] == aims[1] == aims[2]


def test_a_neuron_is_replaced_once_covered(fuzz):
    x, right = _bright(1), torch.zeros(1, dtype=torch.int64)
    for seed in range(10):
        frames, campaign = fuzz(_aiming(step=0.2), linear(torch.eye(9)), x, right, 3, seed)
        wrong = campaign.errors[:2, 0].tolist()
        aims = [_raised(*pair)[0] for pair in itertools.pairwise([x, *frames])]
        if aims[0] and wrong[0]:
            assert aims[1] != aims[0] and aims[1] not in BRIGHT
            break
    else:
        pytest.fail("no seed made an error in the first iteration")


# ---- as a fuzzer

@pytest.mark.parametrize("budget", [Budget(), Budget(l2=0.7), Budget(linf=0.1),
                                    Budget(l2=0.5, linf=0.2)])
@pytest.mark.parametrize("constraint", ["blackout", "light", "occlusion"])
def test_examples_stay_within_the_budget(fuzz, tiny_model, inputs, budget, constraint):
    patch = None if constraint == "light" else 4
    fuzzer = DeepXplore(others=(tiny_model(1),), constraint=constraint, patch=patch, budget=budget)
    frames, campaign = fuzz(fuzzer, tiny_model(), inputs, torch.zeros(6, dtype=torch.int64), 5)
    assert frames.min() >= 0 and frames.max() <= 1
    moved = (frames - inputs).flatten(2)
    torch.testing.assert_close(campaign.l2, moved.norm(dim=2))
    assert campaign.l2.max() <= (budget.l2 or math.inf) + 1e-5
    assert campaign.linf.max() <= (budget.linf or math.inf) + 1e-6
    assert campaign.l2.max() > 0


def test_all_iterations_run_and_are_classified(fuzz, tiny_model, inputs):
    model = tiny_model()
    frames, campaign = fuzz(single(patch=6, budget=Budget(l2=2)), model, inputs, [0, 1, 2] * 2, 7)
    assert campaign.errors[:-1].any() and len(frames) == 7
    for images, predicted in zip(frames, campaign.predicted):
        assert torch.equal(model(images).argmax(1), predicted)


def test_passes_are_counted(fuzz, tiny_model, inputs):
    sent = []
    pair = [tiny_model(0), tiny_model(1)]
    for model in pair:
        model.register_forward_hook(
            lambda module, inputs, y: sent.append(len(y) * (1 + 2 * y.requires_grad)))
    _, campaign = fuzz(DeepXplore(others=pair[1:], patch=4), pair[0], inputs, [0, 1, 2] * 2, 3)
    assert campaign.passes == sum(sent)


@pytest.mark.parametrize("constraint", ["blackout", "light", "occlusion"])
def test_runs_repeat_and_seeds_matter(fuzz, tiny_model, inputs, constraint):
    patch = None if constraint == "light" else 4
    fuzzer = DeepXplore(others=(tiny_model(1),), constraint=constraint, patch=patch, step=0.05,
                        threshold=2)
    before = inputs.clone()
    runs = [fuzz(fuzzer, tiny_model(), inputs, [0, 1, 2] * 2, 3, seed)[0] for seed in (1, 1, 2)]
    assert torch.equal(runs[0], runs[1]) and not torch.equal(runs[0], runs[2])
    assert torch.equal(inputs, before)


def test_many_seeds_are_as_one_by_one(fuzz, tiny_model, inputs):
    fuzzer = DeepXplore(others=(tiny_model(1),), constraint="occlusion", patch=5, lambda2=0,
                        corner=(2, 3), step=0.1, budget=Budget(l2=1))
    labels = torch.tensor([0, 1, 2] * 2)
    together, _ = fuzz(fuzzer, tiny_model(), inputs, labels, 4)
    alone = [fuzz(fuzzer, tiny_model(), inputs[i:i + 1], labels[i:i + 1], 4)[0] for i in range(6)]
    torch.testing.assert_close(together, torch.cat(alone, 1))


def test_the_batch_size_changes_nothing(fuzz, tiny_model, inputs):
    runs = [fuzz(DeepXplore(others=(tiny_model(1),), patch=4, batch_size=size), tiny_model(),
                 inputs, [0, 1, 2] * 2, 4)[0] for size in (4, 256)]
    torch.testing.assert_close(*runs)


# ---- bad input

@pytest.mark.parametrize("options, kind, words", [
    ({}, ValueError, "others: expected at least one model"),
    ({"reading": "single", "others": (nn.ReLU(),)}, ValueError, "no model if reading='single'; got 1"),
    ({"others": nn.Sequential(nn.ReLU())}, TypeError, "expected a tuple of models, got Sequential"),
    ({"others": ("lenet1",)}, TypeError, "expected a tuple of models"),
    ({"reading": "diferential"}, ValueError, "did you mean 'differential'"),
    ({"reading": "single", "constraint": "black"}, ValueError, "unknown constraint 'black'"),
    ({"reading": "single", "patch": 0}, ValueError, "patch: expected a whole number"),
    ({"reading": "single", "patch": 3, "constraint": "light"}, ValueError, "no square; got 3"),
    ({"reading": "single", "step": -1}, ValueError, "step: .* got -1"),
    ({"reading": "single", "lambda2": math.nan}, ValueError, "lambda2: .* got nan"),
    ({"reading": "single", "batch_size": 0}, ValueError, "batch_size"),
])
def test_bad_options(options, kind, words):
    with pytest.raises(kind, match=words):
        DeepXplore(**options)


@pytest.mark.parametrize("fuzzer, change, words", [
    (single(), {"iterations": 0}, "iterations: expected a whole number"),
    (single(), {"labels": [0, 1]}, "labels: expected 6 integers"),
    (single(), {"labels": [3] * 6}, "labels: expected classes 0 to 2"),
    (single(), {"inputs": torch.full((6, 1, 8, 8), 2.0)}, r"inputs: expected values in \[0, 1\]"),
    (single(patch=9), {}, "fits into images of 8 x 8, got 9"),
    (single(constraint="occlusion"), {}, "fits into images of 8 x 8, got 10"),
    (single(constraint="occlusion", patch=4, corner=(5, 0)), {}, r"4 pixels a side at \(5, 0\)"),
    (DeepXplore(others=(linear(torch.ones(4, 64), 8),)), {}, r"as many classes .* 3, got \[4\]"),
])
def test_bad_runs(tiny_model, inputs, generator, fuzzer, change, words):
    arguments = {"inputs": inputs, "labels": [0] * 6, "iterations": 1} | change
    with pytest.raises(ValueError, match=words):
        fuzzer.run(tiny_model(), generator=generator(), **arguments)


def test_a_model_is_no_oracle_for_itself(tiny_model, inputs, generator):
    model = tiny_model()
    with pytest.raises(ValueError, match="got the model under test"):
        DeepXplore(others=(model,)).run(model, inputs, [0] * 6, iterations=1, generator=generator())


def test_oracles_lie_where_the_model_does(tiny_model, inputs, generator):
    with pytest.raises(ValueError, match="expected models on cpu.* got one on meta"):
        DeepXplore(others=(tiny_model().to("meta"),)).run(
            tiny_model(), inputs, [0] * 6, iterations=1, generator=generator())


# ---- clipping

@pytest.mark.parametrize("clip, classes", [("step", [1] * 5), ("judging", [1] * 5),
                                           ("saving", [1, 1, 2, 2, 2])])
def test_a_class_beyond_the_range_of_pixels_is_found_by_judging_unclipped(fuzz, clip, classes):
    """Each step makes the one pixel brighter by 1; from 2.5 on the third class wins."""
    model = linear([[-1.0], [0.0], [2.0]], size=1)
    model[1].bias = nn.Parameter(torch.tensor([0.5, 0.0, -5.0]))
    frames, found = fuzz(single(constraint="light", lambda2=0.0, step=1.0, clip=clip), model,
                         torch.zeros(1, 1, 1, 1), torch.tensor([0]), 5)
    assert found.predicted[:, 0].tolist() == classes
    assert frames.min() >= 0 and frames.max() <= 1  # what is saved is an image


@pytest.mark.parametrize("clip, pixels", [("step", [1, 1, 1, 1]), ("judging", [1, 0, 1, 0])])
def test_a_walk_goes_on_from_where_it_was_or_from_its_image(fuzz, clip, pixels):
    """The gradient points to 1.5, from either side; steps are of 2."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 2))
    model[1].weight.data, model[1].bias.data = torch.tensor([[1.0], [-1]]), torch.tensor([-1.5, 1.5])
    model[3].weight.data, model[3].bias.data = torch.tensor([[1.0, 1], [0, 0]]), torch.zeros(2)
    frames, _ = fuzz(single(constraint="light", lambda2=0.0, step=2.0, clip=clip), model.eval(),
                     torch.zeros(1, 1, 1, 1), torch.tensor([0]), 4)
    assert frames.flatten().round(decimals=3).tolist() == pixels


def test_unclipped_images_have_no_budget():
    with pytest.raises(ValueError, match="^budget: expected none with clip='saving'"):
        single(clip="saving", budget=Budget(l2=1.0))
