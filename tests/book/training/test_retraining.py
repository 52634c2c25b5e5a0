import copy
import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from dnnbook.training import Recipe, retraining
from dnnbook.training.retraining import (
    BEFORE,
    RECIPE,
    all_right,
    gains,
    lead,
    retrained,
    success_lead,
)
from dnnlib.inference import predict


@pytest.fixture
def sets(tiny_data):
    """Benign images, and two sets of examples with labels of their own."""
    benign = replace(tiny_data, images=tiny_data.images[:10], labels=tiny_data.labels[:10])
    return benign, {"a": (tiny_data.images[10:16], tiny_data.labels[10:16]),
                    "b": (tiny_data.images[20:30], (tiny_data.labels[20:30] + 1) % 3)}


def by_hand(model, x, y, steps, seed):
    """Gradient descent with momentum, written out; the order is that of ``training.fit``."""
    model = copy.deepcopy(model).train()
    velocity = [torch.zeros_like(p) for p in model.parameters()]
    for epoch in range(steps.epochs):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed * 100_003 + epoch)
            order = torch.randperm(len(x))
        for batch in order.split(steps.batch_size):
            loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
            gradients = torch.autograd.grad(loss, list(model.parameters()))
            with torch.no_grad():
                for p, v, g in zip(model.parameters(), velocity, gradients):
                    v.mul_(steps.momentum).add_(g)
                    p.sub_(steps.learning_rate * v)
    return model.eval()


def test_a_copy_is_trained_on_with_the_benign_images_and_its_own_examples(tiny_model, sets):
    model, (benign, examples) = tiny_model(), sets
    steps = Recipe(0.05, 4, 3, momentum=0.9)
    found = retrained(model, benign, examples, steps, seed=5)
    assert list(found) == ["a", "b"]
    for name, (images, labels) in examples.items():
        expected = by_hand(model, torch.cat([benign.images, images]),
                           torch.cat([benign.labels, labels]), steps, seed=5)
        for p, q in zip(found[name].parameters(), expected.parameters(), strict=True):
            torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-6)


def test_the_model_itself_is_left_as_it_was(tiny_model, sets):
    model, (benign, examples) = tiny_model(), sets
    weights = copy.deepcopy(model.state_dict())
    found = retrained(model, benign, examples, Recipe(0.1, 4, 2))
    assert not model.training and not any(each.training for each in found.values())
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, weights[name])
        assert not torch.equal(tensor, found["a"].state_dict()[name])


def test_a_set_does_not_depend_on_the_others(tiny_model, sets):
    benign, examples = sets
    both = retrained(tiny_model(), benign, examples, Recipe(0.1, 4, 2))["b"]
    alone = retrained(tiny_model(), benign, {"b": examples["b"]}, Recipe(0.1, 4, 2))["b"]
    for p, q in zip(both.parameters(), alone.parameters()):
        assert torch.equal(p, q)


def test_the_papers_epochs_and_batches():
    assert (RECIPE.epochs, RECIPE.batch_size) == (20, 32)


@pytest.mark.parametrize("images, labels, message", [
    (torch.rand(3, 1, 4, 4), [0, 1, 2], r"bad: expected images of \(1, 8, 8\)"),
    (torch.rand(3, 1, 8, 8) + 1, [0, 1, 2], r"bad: expected values in \[0, 1\]"),
    (torch.rand(0, 1, 8, 8), [], "bad: expected at least one image"),
    (torch.rand(3, 1, 8, 8), [0, 1], "bad's labels: expected 3 integers"),
    (torch.rand(3, 1, 8, 8), [0, 1, 3], "bad's labels: expected classes 0 to 2"),
])
def test_examples_that_do_not_fit_are_named(tiny_model, sets, monkeypatch, images, labels, message):
    benign, examples = sets
    monkeypatch.setattr(retraining, "fit", lambda *_, **__: pytest.fail("trained before checking"))
    with pytest.raises(ValueError, match=message):
        retrained(tiny_model(), benign, examples | {"bad": (images, torch.tensor(labels).long())})


def test_no_set_is_called_before(tiny_model, sets):
    benign, examples = sets
    with pytest.raises(ValueError, match="names other than 'before'"):
        retrained(tiny_model(), benign, {BEFORE: examples["a"]})


def test_all_right_are_those_that_no_model_gets_wrong(tiny_model, tiny_data):
    several = [tiny_model(seed) for seed in range(3)]
    # a label that some model gives, so that some are right everywhere and some are not
    labels = predict(several[0], tiny_data.images).argmax(1)
    expected = [all(int(predict(model, image[None]).argmax()) == label for model in several)
                for image, label in zip(tiny_data.images, labels)]
    assert all_right(several[:1], tiny_data.images, labels).all()
    assert all_right(several, tiny_data.images, labels).tolist() == expected
    assert not all(expected)


def test_all_right_needs_a_model(tiny_data):
    with pytest.raises(ValueError, match="models: expected at least one"):
        all_right([], tiny_data.images, tiny_data.labels)


def test_gains_of_what_rises_and_of_what_falls():
    values = {"noise": 90.0, BEFORE: 96.0, "benign": 99.0}
    assert gains(values) == {"noise": -6.0, "benign": 3.0}
    assert gains(values, falls=True) == {"noise": 6.0, "benign": -3.0}


def test_gains_are_over_before():
    with pytest.raises(ValueError, match="values: expected one of 'before'"):
        gains({"noise": 1.0})


def test_a_lead_is_over_the_best_of_the_others():
    found = {"own": -1.0, "x": -4.0, "y": -2.0, "z": 9.0}
    assert lead(found, "own", ["x", "y"]) == 1.0
    assert lead(found, "own", ["x", "z"]) == -10.0


@pytest.mark.parametrize("own, others, message", [
    ("own", ["x", "w"], r"gains of \['w'\]"), ("v", ["x"], r"gains of \['v'\]"),
    ("own", [], "others: expected at least one")])
def test_a_lead_over_what_is_missing(own, others, message):
    with pytest.raises(ValueError, match=message):
        lead({"own": 1.0, "x": 0.0}, own, others)


def test_where_an_attack_always_succeeds_no_lead_can_be_told():
    rates = {BEFORE: 100.0, "own": 100.0, "x": 100.0}
    assert math.isnan(success_lead(rates, "own", ["x"]))
    assert success_lead(rates | {"x": 98.0}, "own", ["x"]) == -2.0
    assert success_lead(rates | {BEFORE: 50.0}, "own", ["x"]) == 0.0
    assert success_lead(dict.fromkeys(rates, 40.0), "own", ["x"]) == 0.0
