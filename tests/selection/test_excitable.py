import math

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from dnnlib import models
from dnnlib.inference import predict
from dnnlib.neurons.excitable import ExcitableNeurons
from dnnlib.perturb.mutations import mutate
from dnnlib.selection import Excitable, selector


@pytest.fixture
def x(generator):
    return torch.rand(9, 1, 4, 4, generator=generator(2))


@pytest.fixture
def small(generator):
    """Two hidden neurons, counted before and after the ReLU, and two logits: six players."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 2, bias=False), nn.ReLU(),
                          nn.Linear(2, 2, bias=False))
    with torch.no_grad():
        model[1].weight.zero_()[:, :4] = torch.tensor([[2.0, 0, 0, 0], [0, 0, 3.0, 1.5]])
        model[3].weight.copy_(torch.tensor([[2.0, -1.0], [-1.0, 1.5]]))
    return model


@pytest.fixture
def lenet():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return models.build("lenet1").eval()


@pytest.fixture
def digits(generator):
    return torch.rand(7, 1, 28, 28, generator=generator(3))


def slopes_by_hand(model, image, label):
    """d loss / d gate of the six neurons with every gate at a half."""
    on = torch.full((6,), 0.5, requires_grad=True)
    hidden = (model[1](image.flatten()) * on[:2]).relu() * on[2:4]
    loss = cross_entropy((model[3](hidden) * on[4:])[None], label[None])
    return torch.autograd.grad(loss, on)[0]


@pytest.mark.parametrize("scale, threshold", [("none", 0.05), ("none", -0.02), ("total", 0.5)])
def test_the_score_counts_what_a_naive_loop_counts(small, x, scale, threshold):
    chosen = Excitable(mutation="contrast", scale=scale, threshold=threshold, points=1, seed=5)
    expected = []
    for image, other in zip(x, mutate(x, "contrast", seed=5).images):
        given = small(image[None]).argmax()
        psi = slopes_by_hand(small, other, given) - slopes_by_hand(small, image, given)
        unit = float(psi.abs().mean()) if scale == "total" else 1.0
        expected.append(sum(v > threshold * unit for v in psi.tolist()))
    assert len(set(expected)) > 1
    assert chosen.score(small, x).tolist() == expected
    falling = sorted(range(len(x)), key=lambda i: -expected[i])
    assert chosen.order(small, x).tolist() == falling


def test_the_score_is_the_fitness_of_the_swarm_times_the_neurons(lenet, digits):
    """Under pseudo-labels, with the mutations as particles."""
    given = predict(lenet, digits).argmax(1)
    share = ExcitableNeurons(scale="total", threshold=1.0, points=3)(lenet, digits, given)(
        mutate(digits, seed=7).images, torch.arange(len(digits)))
    score = Excitable(scale="total", threshold=1.0, points=3, seed=7).score(lenet, digits)
    assert score.dtype == torch.float64
    assert torch.allclose(score, share.double() * 42)


def test_the_score_does_not_depend_on_the_batch(lenet, digits):
    whole, parts = (Excitable(scale="total", batch_size=size).score(lenet, digits)
                    for size in (128, 2))
    assert torch.equal(whole, parts)


def test_an_unchanged_candidate_scores_nothing_and_the_others_as_before(small, x):
    black = torch.zeros_like(x[:1])  # no change of contrast changes it
    chosen = Excitable(mutation="contrast", scale="total", threshold=-1.0)
    score = chosen.score(small, torch.cat([x, black]))
    assert score[-1] == 0 and (score[:-1] > 0).all()
    assert torch.equal(score[:-1], chosen.score(small, x))
    assert chosen.score(small, torch.cat([black, black])).tolist() == [0, 0]


def test_another_seed_draws_other_mutations(lenet, digits):
    scores = [Excitable(scale="total", seed=seed).score(lenet, digits) for seed in (1, 1, 2)]
    assert torch.equal(scores[0], scores[1]) and not torch.equal(scores[0], scores[2])


def test_an_infinite_loss_is_refused(small, x):
    with torch.no_grad():
        small[3].weight.mul_(float("inf"))
    with pytest.raises(ValueError, match="finite"):
        Excitable().score(small, x)


@pytest.mark.parametrize("bad, word", [
    ({"scale": "nats"}, "scale"), ({"points": 0}, "points"), ({"threshold": math.nan}, "threshold"),
    ({"mutation": "rotat"}, "rotation"),
    ({"batch_size": 0}, "batch_size"), ({"lambda_": 1}, "lambda_")])
def test_bad_options_are_named(bad, word):
    with pytest.raises(ValueError, match=word):
        selector("excitable", **bad)


def test_one_candidate_cannot_be_ordered(small, x):
    with pytest.raises(ValueError, match="at least two"):
        Excitable().order(small, x[:1])
