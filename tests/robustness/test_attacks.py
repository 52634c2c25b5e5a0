import numpy as np
import pytest
import torch
from art.estimators.classification import PyTorchClassifier
from art.utils import compute_success
from torch import nn
from torch.nn import functional

from dnnlib.inference import predict
from dnnlib.robustness import (
    ATTACKS,
    FGSM,
    JSMA,
    PGD,
    Attacked,
    DeepFool,
    attack,
    attack_success_rate,
)

QUICK = {"fgsm": FGSM(eps=0.1), "pgd": PGD(eps=0.1, eps_step=0.03, iterations=10),
         "deepfool": DeepFool(overshoot=0.02), "jsma": JSMA(theta=0.2)}


@pytest.fixture
def x(tiny_data):
    return tiny_data.images


def classes(model, x):
    return predict(model, x).argmax(1)


def gradient(model, x, y):
    x = x.clone().requires_grad_()
    functional.cross_entropy(model(x), y, reduction="sum").backward()
    return x.grad


# ---- rates

def test_two_denominators():
    """Ten images, eight right before, five of these wrong after: 5 of 8, and 5 + 2 of 10."""
    correct = torch.arange(10) < 8
    found = Attacked(torch.zeros(10, 1, 2, 2), correct, torch.arange(10) < 5)
    assert found.rate() == 5 / 8
    assert found.rate("all") == 0.7
    with pytest.raises(ValueError, match="unknown of 'alle'; did you mean 'all'"):
        found.rate("alle")


@pytest.mark.parametrize("name", ATTACKS)
def test_only_correctly_classified_images_are_attacked_and_counted(tiny_model, x, name):
    model = tiny_model()
    before = classes(model, x[:8])
    y = before.clone()
    y[[1, 4]] = (before[[1, 4]] + 1) % 3
    found = attack_success_rate(model, x[:8], y, QUICK[name])
    assert found.correct.tolist() == [i not in (1, 4) for i in range(8)]
    changed = (found.images != x[:8]).flatten(1).any(1)
    assert changed.tolist() == found.correct.tolist()
    after = classes(model, found.images)
    assert found.fooled.tolist() == [
        bool(before[i] == y[i] and after[i] != y[i]) for i in range(8)]
    assert found.rate() == int(found.fooled.sum()) / 6
    assert found.images.min() >= 0 and found.images.max() <= 1


def test_rate_as_art_counts_it(tiny_model, x):
    """ART's rate: images whose class is no longer the label, of all, which are right here."""
    model = tiny_model()
    y = classes(model, x)
    found = attack_success_rate(model, x, y, PGD(eps=0.03, eps_step=0.01, iterations=5))
    classifier = PyTorchClassifier(model, loss=nn.CrossEntropyLoss(), input_shape=(1, 8, 8),
                                   nb_classes=3, clip_values=(0.0, 1.0), device_type="cpu")
    expected = compute_success(classifier, x.numpy(), functional.one_hot(y, 3).numpy(),
                               found.images.numpy())
    assert found.rate() == found.rate("all") == expected
    assert 0 < expected < 1


def test_no_step_fools_nobody(tiny_model, x):
    model = tiny_model()
    found = attack_success_rate(model, x, classes(model, x), FGSM(eps=0))
    assert found.rate() == 0 and torch.equal(found.images, x)


# ---- attacks

def test_fgsm_is_one_signed_step(tiny_model, x):
    model = tiny_model()
    y = classes(model, x)
    found = attack_success_rate(model, x, y, FGSM(eps=0.05))
    expected = (x + 0.05 * gradient(model, x, y).sign()).clamp(0, 1)
    assert torch.allclose(found.images, expected, atol=1e-6)


def test_pgd_is_projected_steps(tiny_model, x):
    model = tiny_model()
    y = classes(model, x)
    found = attack_success_rate(model, x, y, PGD(eps=0.2, eps_step=0.07, iterations=6,
                                                 random_starts=0))
    z = x.clone()
    for _ in range(6):
        move = (z + 0.07 * gradient(model, z, y).sign()).clamp(0, 1) - x
        z = x + move.clamp(-0.2, 0.2)
    assert torch.allclose(found.images, z, atol=1e-5)


def test_random_starts_move_within_the_ball(tiny_model, x):
    model = tiny_model()
    y = classes(model, x)
    options = {"eps": 0.05, "eps_step": 0.01, "iterations": 1}
    once, again, other = (attack_success_rate(model, x, y, PGD(**options, random_starts=2),
                                              seed=seed).images for seed in (0, 0, 1))
    assert torch.equal(once, again) and not torch.equal(once, other)
    still = attack_success_rate(model, x, y, PGD(**options, random_starts=0)).images
    assert not torch.equal(once, still)
    assert (once - x).abs().max() <= 0.05 + 1e-6


def test_deepfool_goes_straight_to_a_linear_boundary(generator):
    """For two linear classes the least perturbation is -f w / |w|^2 (the paper, Equation 3)."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(9, 2))
    w = torch.randn(9, generator=generator(0))
    model[1].weight.data, model[1].bias.data = torch.stack([w, 0 * w]), torch.zeros(2)
    x = 0.5 + 0.02 * torch.randn(6, 1, 3, 3, generator=generator(1))
    model[1].bias.data[0] = -0.5 * w.sum()
    y = classes(model, x)
    found = attack_success_rate(model, x, y, DeepFool(overshoot=0.02))
    f = (x - 0.5).flatten(1) @ w
    expected = x.flatten(1) - 1.02 * f[:, None] * w / w.square().sum()
    assert torch.allclose(found.images.flatten(1), expected, atol=1e-5)
    assert found.rate() == 1


def test_jsma_raises_two_pixels_by_theta(tiny_model, x):
    model = tiny_model()
    found = attack_success_rate(model, x, classes(model, x), JSMA(theta=0.2, gamma=1 / 64))
    moved = (found.images - x).flatten(1)
    assert moved.min() == 0  # only upwards
    assert ((moved > 0).sum(1) <= 2).all()  # one step is more than gamma allows already
    assert moved.max() <= 0.2 + 1e-6


def test_jsma_draws_a_target_for_every_image():
    """Images of one class go to both of the others, by the pixel that each is read from."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 3))
    model[1].weight.data = torch.eye(3, 4)
    model[1].bias.data = torch.tensor([0.5, 0.0, 0.0])
    x = torch.zeros(12, 1, 2, 2)
    y = torch.zeros(12, dtype=torch.int64)
    found = attack_success_rate(model, x, y, JSMA(theta=1.0), seed=0)
    assert found.rate() == 1 and set(classes(model, found.images).tolist()) == {1, 2}
    assert torch.equal(found.images, attack_success_rate(model, x, y, JSMA(theta=1.0)).images)
    other = attack_success_rate(model, x, y, JSMA(theta=1.0), seed=1)
    assert not torch.equal(found.images, other.images)


def test_names_stand_for_the_defaults(tiny_model, x):
    model = tiny_model()
    y = classes(model, x)
    assert ATTACKS.keys() == QUICK.keys()
    named, built = (attack_success_rate(model, x, y, a) for a in ("fgsm", FGSM(eps=0.3)))
    assert torch.equal(named.images, built.images)
    assert attack("pgd", eps=0.5) == PGD(eps=0.5, eps_step=0.1, iterations=100, random_starts=1)


# ---- behaviour

@pytest.mark.parametrize("name", ATTACKS)
def test_model_and_global_state_stay(tiny_model, x, name):
    model = tiny_model()
    y = classes(model, x[:4])
    model[0].weight.grad = torch.ones_like(model[0].weight)
    weights = {key: value.clone() for key, value in model.state_dict().items()}
    numbers, torch_state = np.random.get_state()[1].copy(), torch.get_rng_state()
    with torch.no_grad():
        attack_success_rate(model, x[:4], y, QUICK[name])
    assert all(torch.equal(weights[key], value) for key, value in model.state_dict().items())
    assert torch.equal(model[0].weight.grad, torch.ones_like(model[0].weight))
    assert model[3].weight.grad is None and all(p.requires_grad for p in model.parameters())
    assert np.array_equal(np.random.get_state()[1], numbers)
    assert torch.equal(torch.get_rng_state(), torch_state)


def test_nothing_is_printed(tiny_model, x, capfd):
    model = tiny_model()
    for options in QUICK.values():
        attack_success_rate(model, x[:4], classes(model, x[:4]), options)
    assert capfd.readouterr() == ("", "")


def test_bad_arguments(tiny_model, x):
    model = tiny_model()
    y = classes(model, x)
    with pytest.raises(ValueError, match="unknown attack 'pdg'; did you mean 'pgd'"):
        attack_success_rate(model, x, y, "pdg")
    with pytest.raises(TypeError, match="attack: expected a name or its options, got float"):
        attack_success_rate(model, x, y, 0.3)
    with pytest.raises(ValueError, match="y: expected 40 integers"):
        attack_success_rate(model, x, y[1:])
    with pytest.raises(ValueError, match="y: expected classes 0 to 2, got 3 to 5"):
        attack_success_rate(model, x, y.clamp(0, 0) + torch.arange(40) % 3 + 3)
    with pytest.raises(ValueError, match="at least one correctly classified image.*none of 40"):
        attack_success_rate(model, x, (y + 1) % 3)
    with pytest.raises(ValueError, match=r"values in \[0, 1\]"):
        attack_success_rate(model, 2 * x, y)
    with pytest.raises(ValueError, match="batch_size"):
        attack_success_rate(model, x, y, batch_size=0)


@pytest.mark.parametrize("name, options, message", [
    ("pgd", {"eps": 8 / 255}, "eps_step: expected a number above 0 and at most eps=0.0313725"),
    ("pgd", {"eps_step": 0}, "eps_step"), ("pgd", {"iterations": 0}, "iterations"),
    ("pgd", {"random_starts": -1}, "random_starts"),
    ("fgsm", {"eps": -0.1}, "eps: expected a finite number of at least 0, got -0.1"),
    ("fgsm", {"eps": float("nan")}, "eps"), ("fgsm", {"eps": "0.3"}, "eps"),
    ("deepfool", {"eps": 0.3}, "unknown option of 'deepfool' 'eps'"),
    ("deepfool", {"overshoot": -1}, "overshoot"),
    ("deepfool", {"iterations": 1.5}, "iterations"),
    ("jsma", {"theta": 0}, r"theta: expected a share in \(0, 1\]"),
    ("jsma", {"gamma": 1.1}, "gamma"), ("jsmaa", {}, "did you mean 'jsma'")])
def test_bad_options(name, options, message):
    with pytest.raises(ValueError, match=message):
        attack(name, **options)
