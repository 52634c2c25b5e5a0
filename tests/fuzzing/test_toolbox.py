"""PGD and Auto-PGD: every step that ART takes, within the budget, from the generator alone."""

import sys

import numpy as np
import pytest
import torch
from art.attacks.evasion import AutoProjectedGradientDescent, ProjectedGradientDescent
from art.estimators.classification import PyTorchClassifier
from torch import nn

from dnnlib.fuzzing import ArtAttack, Budget, Noise, toolbox

BUDGETS = [Budget(l2=0.8), Budget(linf=0.1)]


@pytest.fixture
def given(tiny_data, tiny_model):
    """A model, twelve images, and the classes that it gives them."""
    model, x = tiny_model(), tiny_data.images[:12]
    with torch.no_grad():
        return model, x, model(x).argmax(1)


@pytest.fixture
def go(given, generator):
    """``go(kind, budget)``: the campaign of five steps, and the examples of each."""
    def run(kind, budget=BUDGETS[0], *, seed=0, labels=None, iterations=5, **options):
        model, x, y = given
        shown = []
        found = ArtAttack(kind=kind, budget=budget, **options).run(
            model, x, y if labels is None else labels, iterations=iterations,
            generator=generator(seed), watch=lambda x: shown.append(x.clone()))
        return found, torch.stack(shown)
    return run


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("kind", toolbox.KINDS)
def test_each_step_is_an_example_within_the_budget(go, given, kind, budget):
    found, shown = go(kind, budget)
    assert found.predicted.shape == (5, 12) and shown.shape == (5, 12, 1, 8, 8)
    assert found.l2.max() <= (budget.l2 or 9) * (1 + 1e-5)
    assert found.linf.max() <= (budget.linf or 9) * (1 + 1e-5)
    assert 0 <= shown.min() and shown.max() <= 1
    with torch.no_grad():
        assert torch.equal(torch.stack([given[0](x).argmax(1) for x in shown]), found.predicted)
    assert len({*map(float, found.l2[:, 0])}) > 1  # it moves from step to step


@pytest.mark.parametrize("norm, budget", [(2, BUDGETS[0]), (np.inf, BUDGETS[1])])
def test_the_last_step_is_what_art_gives(go, given, norm, budget):
    model, x, y = given
    eps = budget.l2 or budget.linf
    plain = PyTorchClassifier(model, nn.CrossEntropyLoss(), (1, 8, 8), 3, clip_values=(0.0, 1.0))
    theirs = ProjectedGradientDescent(plain, norm=norm, eps=eps, eps_step=eps / 2,
                                      max_iter=5, verbose=False).generate(x.numpy(), y.numpy())
    found, shown = go("pgd", budget)
    assert torch.allclose(shown[-1], torch.from_numpy(theirs), atol=1e-5)
    # and the step before it is what ART gives for one step less
    theirs = ProjectedGradientDescent(plain, norm=norm, eps=eps, eps_step=eps / 2,
                                      max_iter=4, verbose=False).generate(x.numpy(), y.numpy())
    assert torch.allclose(shown[-2], torch.from_numpy(theirs), atol=1e-5)


@pytest.mark.parametrize("norm, budget", [(2, BUDGETS[0]), (np.inf, BUDGETS[1])])
def test_auto_pgd_is_arts(go, given, generator, norm, budget):
    """What ART gives of images that it fools is one of our steps: the last, or the best so far."""
    model, x, y = given
    eps = budget.l2 or budget.linf
    loss = nn.CrossEntropyLoss(reduction="sum")
    plain = PyTorchClassifier(model, loss, (1, 8, 8), 3, clip_values=(0.0, 1.0))
    attack = AutoProjectedGradientDescent(plain, norm=norm, eps=eps, eps_step=2 * eps,
                                          max_iter=5, nb_random_init=1, verbose=False)
    state = np.random.get_state()
    np.random.seed(int(torch.randint(2**32, (), generator=generator(0))))
    theirs = torch.from_numpy(attack.generate(x.numpy(), y.numpy()))
    np.random.set_state(state)
    found, shown = go("apgd", budget)
    with torch.no_grad():
        fooled = model(theirs).argmax(1) != y
    assert fooled.sum() > 3 and not found.errors[:, ~fooled].all(0).any()
    off = (shown - theirs).abs().flatten(2).amax(2)
    assert off.amin(0)[fooled].max() < 1e-5 and (off[-1, fooled] < 1e-5).any()


@pytest.mark.parametrize("kind", toolbox.KINDS)
def test_drawn_from_the_generator_and_nothing_else(go, kind):
    np.random.seed(5)
    before, seeded = np.random.get_state()[1].copy(), torch.random.get_rng_state()
    found, shown = go(kind)
    assert (np.random.get_state()[1] == before).all()
    assert torch.equal(torch.random.get_rng_state(), seeded)
    np.random.seed(6)
    assert torch.equal(go(kind)[1], shown)
    assert torch.equal(go(kind, seed=1)[1], shown) == (kind == "pgd")  # which begins at the input


def test_pgd_takes_the_same_steps_in_batches_of_any_size(go):
    assert torch.allclose(go("pgd", batch_size=5)[1], go("pgd")[1], atol=1e-6)


@pytest.mark.parametrize("kind", toolbox.KINDS)
def test_passes_are_what_the_model_was_shown(go, given, kind):
    sent = []
    given[0].register_forward_pre_hook(lambda module, images: sent.append(len(images[0])))
    found, _ = go(kind, iterations=4)
    assert found.passes == sum(sent) + 2 * 4 * 12  # a gradient counts as two more


@pytest.mark.parametrize("kind", toolbox.KINDS)
def test_the_model_stays_as_it_was(go, given, kind):
    model = given[0]
    weight = model[0].weight
    weight.grad = torch.ones_like(weight)
    go(kind)
    assert (weight.grad == 1).all() and weight.requires_grad


def test_what_is_wrong_already_is_left_by_auto_pgd(go, given):
    _, x, y = given
    labels = y.clone()
    labels[3] = (y[3] + 1) % 3
    found, shown = go("apgd", labels=labels)
    assert (shown[:, 3] == x[3]).all() and found.errors[:, 3].all()
    assert not (shown[:, 4] == x[4]).all()
    assert (go("apgd", labels=(y + 1) % 3)[1] == x).all()


def test_own_forward_of_a_sequential_counts(given, generator):
    """ART alone would run the layers one by one."""
    class Turned(nn.Sequential):
        def forward(self, x):
            return -super().forward(x)

    model, x, _ = given
    turned, linear = Turned(*model), Budget(linf=0.02)
    with torch.no_grad():
        y = turned(x).argmax(1)

    def loss(x):
        with torch.no_grad():
            return nn.functional.cross_entropy(turned(x), y).item()

    found = ArtAttack(budget=linear).run(turned, x, y, iterations=3, generator=generator())
    assert loss(found.images) > loss(x)


@pytest.mark.parametrize("kind", toolbox.KINDS)
def test_more_are_broken_than_by_noise(go, given, generator, kind):
    model, x, y = given
    noise = Noise(budget=BUDGETS[0]).run(model, x, y, iterations=5, generator=generator())
    assert go(kind)[0].errors.any(0).sum() > noise.errors.any(0).sum()


@pytest.mark.parametrize("budget, got", [(Budget(), "neither"), (Budget(l2=1, linf=0.1), "both")])
def test_one_distance(budget, got):
    with pytest.raises(ValueError, match=f"^apgd: ART's attacks keep to one .*, got {got}$"):
        ArtAttack(kind="apgd", budget=budget)


@pytest.mark.parametrize("options, words", [
    ({"kind": "fgsm"}, "unknown kind 'fgsm'"), ({"batch_size": 0}, "batch_size: expected")])
def test_options_that_make_no_sense(options, words):
    with pytest.raises(ValueError, match=words):
        ArtAttack(budget=Budget(l2=1), **options)


def test_without_art_one_line_says_what_to_install(monkeypatch, go):
    monkeypatch.setitem(sys.modules, "art", None)
    with pytest.raises(ModuleNotFoundError, match=r"^this needs adversarial-robustness-toolbox; "
                                                  r"install it with: pip install -e '.\[attacks\]'$"):
        go("pgd")
