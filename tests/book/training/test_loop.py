import copy
import functools
import re
from dataclasses import replace

import pytest
import torch
from torch import nn

from dnnbook import training
from dnnbook.chapters import folders
from dnnbook.data import Dataset, load
from dnnbook.training import Recipe, faulty, fit, fitted, loop, trained
from dnnlib import models
from dnnlib.inference import accuracy

PLAIN = Recipe(0.1, 16, 4)
MOMENTUM = replace(PLAIN, momentum=0.9, weight_decay=1e-3, schedule="cosine")


@pytest.fixture
def train(monkeypatch, tiny_data, tiny_model):
    """``train(**changes)``: the tiny network on the tiny data, by way of the cache."""
    monkeypatch.setitem(models.SPECS, "tiny", models.Spec(
        lambda channels, size, classes: tiny_model(torch.initial_seed()), (1, 8, 8), 3))
    monkeypatch.setattr(loop, "load", lambda name, split: tiny_data)
    monkeypatch.setitem(training.RECIPES, "plain", {"tiny": PLAIN})
    return lambda **changes: trained("tiny", "tiny",
                                     **{"recipe_name": "plain"} | changes)


def weights(model):
    return b"".join(v.contiguous().numpy().tobytes() for v in model.state_dict().values())


def changes_of(steps):
    return {"momentum": steps.momentum, "weight_decay": steps.weight_decay,
            "schedule": steps.schedule, "precision": steps.precision}


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_same_seed_same_bytes(train, folders, monkeypatch, precision):
    first = weights(train(seed=1, precision=precision))
    other = weights(train(seed=2, precision=precision))
    monkeypatch.setenv("DNNLIB_CACHE", str(folders / "another"))
    torch.manual_seed(99)  # the caller's random state is no part of it
    assert weights(train(seed=1, precision=precision)) == first
    assert other != first


@pytest.mark.parametrize("change", [{}, {"seed": 7}])
def test_order_alone_depends_on_the_seed_too(tiny_model, tiny_data, change):
    first, second = tiny_model(), tiny_model()
    fit(first, tiny_data, PLAIN, seed=0)
    fit(second, tiny_data, PLAIN, **{"seed": 0} | change)
    assert (weights(first) == weights(second)) == (not change)


@pytest.mark.parametrize("steps", [PLAIN, MOMENTUM], ids=["plain", "momentum"])
@pytest.mark.parametrize("stop", [0, 3, 7, 11])  # batches done; three to an epoch
def test_resumed_ends_with_the_same_weights(train, folders, monkeypatch, steps, stop):
    whole = weights(train(**changes_of(steps)))
    monkeypatch.setenv("DNNLIB_CACHE", str(folders / "another"))
    done = []
    step = torch.optim.SGD.step

    def interrupted(self, *args):
        if len(done) == stop:
            raise KeyboardInterrupt
        done.append(1)
        return step(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(torch.optim.SGD, "step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train(**changes_of(steps))
    assert not [*(folders / "another").rglob("*.safetensors")]
    kept = loop._keep
    epochs = []
    monkeypatch.setattr(loop, "_keep", lambda *a: epochs.append(a[-1]) or kept(*a))
    assert weights(train(**changes_of(steps))) == whole
    assert epochs == list(range(stop // 3 + 1, 5))  # whole epochs are not done again
    assert not [*(folders / "another").rglob("*.partial")]


def test_damaged_unfinished_training_names_the_file(tiny_model, tiny_data, folders):
    path = folders / "one.partial"
    path.write_bytes(b"broken")
    with pytest.raises(ValueError, match="one.partial"):
        fit(tiny_model(), tiny_data, PLAIN, unfinished=path)


def test_checkpoint_is_used_again(train, monkeypatch):
    first = train()
    assert not first.training

    @functools.wraps(fit)  # the same code, as the kept network's key has it
    def no_training(*args, **kwargs):
        raise AssertionError("trained a second time")

    monkeypatch.setattr(loop, "fit", no_training)
    assert weights(train()) == weights(first)
    for changes in ({"learning_rate": 0.2}, {"seed": 1}, {"epochs": 5}, {"precision": "bfloat16"}):
        with pytest.raises(AssertionError, match="second time"):
            train(**changes)


def test_others_are_all_but_the_model_itself(monkeypatch):
    monkeypatch.setattr(loop, "trained", lambda *args, **options: (*args, options))
    found = training.others("lenet1 lenet4 lenet5", "lenet4", "mnist", seed=2)
    assert found == (("lenet1", "mnist", {"seed": 2}), ("lenet5", "mnist", {"seed": 2}))
    assert training.others("lenet4", "lenet4", "mnist") == ()
    assert training.others("", "lenet4", "mnist") == ()  # as the sweep file has it for ResNet-20


def test_any_dataset_is_fitted_by_its_fingerprint(train, tiny_data, monkeypatch, folders):
    named = weights(train(seed=3))
    assert weights(fitted("tiny", tiny_data, PLAIN, seed=3)) == named
    assert len([*folders.rglob("*.safetensors")]) == 1  # one checkpoint, found by both
    other = replace(tiny_data, labels=2 - tiny_data.labels, fingerprint="tiny-1")
    assert weights(fitted("tiny", other, PLAIN, seed=3)) != named
    monkeypatch.setattr(loop, "fit", functools.wraps(fit)(
        lambda *args, **kwargs: pytest.fail("trained again")))
    fitted("tiny", other, PLAIN, seed=3)


@pytest.mark.parametrize("part", [1, 3, 5, 16, 128])
def test_parts_of_a_batch_make_its_whole_step(tiny_model, tiny_data, monkeypatch, part):
    model, by_hand, sizes = tiny_model(), tiny_model(), []
    monkeypatch.setattr(loop, "PART", part)
    model.register_forward_hook(lambda module, x, y: sizes.append(len(y)))
    fit(model, tiny_data, replace(PLAIN, batch_size=40, epochs=1))
    assert max(sizes) == min(part, 40) and sum(sizes) == 40
    nn.functional.cross_entropy(by_hand(tiny_data.images), tiny_data.labels).backward()
    for a, b in zip(model.parameters(), by_hand.parameters()):
        assert torch.allclose(a, b - 0.1 * b.grad, atol=1e-7)


def test_batch_norm_sees_whole_batches(tiny_data, monkeypatch):
    monkeypatch.setattr(loop, "PART", 4)
    model, sizes = nn.Sequential(nn.BatchNorm2d(1), nn.Flatten(), nn.Linear(64, 3)), []
    model.register_forward_hook(lambda module, x, y: sizes.append(len(y)))
    fit(model, tiny_data, replace(PLAIN, epochs=1))
    assert sizes == [16, 16, 8]


def test_an_epoch_is_plain_gradient_descent(tiny_model, tiny_data):
    """Three epochs with momentum, decay and cosine against the update rules written out."""
    model = tiny_model()
    by_hand = copy.deepcopy(model)
    steps = replace(MOMENTUM, epochs=3)
    fit(model, tiny_data, steps, seed=4)
    velocity = [torch.zeros_like(p) for p in by_hand.parameters()]
    for epoch, rate in enumerate((0.1, 0.075, 0.025)):  # 0.1 (1 + cos(pi e / 3)) / 2
        order = torch.randperm(40, generator=torch.Generator().manual_seed(4 * 100_003 + epoch))
        for batch in order.split(16):
            loss = nn.functional.cross_entropy(by_hand(tiny_data.images[batch]),
                                               tiny_data.labels[batch])
            gradients = torch.autograd.grad(loss, [*by_hand.parameters()])
            with torch.no_grad():
                for p, v, g in zip(by_hand.parameters(), velocity, gradients):
                    v.mul_(0.9).add_(g + 1e-3 * p)
                    p.sub_(rate * v)
    for a, b in zip(model.parameters(), by_hand.parameters()):
        assert torch.allclose(a, b, atol=1e-5)


def test_training_learns(tiny_model, tiny_data):
    model = tiny_model()
    fit(model, tiny_data, replace(MOMENTUM, learning_rate=0.05, epochs=40))
    assert accuracy(model, tiny_data.images, tiny_data.labels) > 0.95


def test_divergence_is_an_error_and_leaves_no_checkpoint(train, folders):
    with pytest.raises(ValueError, match="diverged in epoch .*lower the learning rate"):
        train(learning_rate=1e30)
    assert not [*folders.rglob("*.safetensors")]


def test_labels_must_be_known(tiny_model, tiny_data):
    flat = Dataset("flat", "train", tiny_data.images, torch.full((40,), -1), (), "flat-0")
    with pytest.raises(ValueError, match="labels"):
        fit(tiny_model(), flat, PLAIN)


def test_recipes():
    with pytest.raises(ValueError, match="unknown recipe 'nstap'; did you mean 'nsatp'"):
        training.recipe("nstap", "mnist")
    gray, colour = training.recipe("nsatp", "mnist"), training.recipe("nsatp", "cifar10")
    assert (gray.learning_rate, gray.batch_size, gray.epochs) == (0.1, 512, 20)  # NSATP Table II
    assert (colour.learning_rate, colour.batch_size, colour.epochs) == (0.01, 512, 60)
    for dataset in ("cifar10", "cifar100"):  # the table's numbers, and momentum alone
        plain = training.recipe("nsatp", dataset)
        assert training.recipe("nsatp_momentum", dataset) == replace(plain, momentum=0.9)
    own = training.recipe("nss", "cifar10", "vgg16")
    assert own != training.recipe("nss", "cifar10") == training.recipe("nss", "cifar10", "resnet20")
    assert faulty.recipe("well_trained", "vgg16", "cifar10", recipe_name="nss") == own
    assert training.recipe("nsatp", "digits") == training.recipe("default", "mnist")
    with pytest.raises(TypeError, match="learning_rat"):
        trained("net2", "digits", learning_rat=0.1)


def test_training_goes_on_from_a_network_that_stays_as_it_is():
    data = load("digits", "train")
    first = fitted("lenet1", data, Recipe(0.05, 64, 1))
    before = {name: value.clone() for name, value in first.state_dict().items()}
    still = fitted("lenet1", data, Recipe(1e-9, 512, 1), start=first)
    for name, value in still.state_dict().items():
        assert torch.equal(first.state_dict()[name], before[name])
        assert torch.allclose(value, before[name], atol=1e-5)
    anew = fitted("lenet1", data, Recipe(1e-9, 512, 1))  # not what the cache has of the start
    assert not torch.allclose(next(anew.parameters()), next(first.parameters()), atol=1e-3)


def test_a_network_on_data_of_ones_own_says_how_well_it_does(tmp_path, capsys):
    for split in ("train", "test"):
        folders.save_photos(load("digits", limit=40), tmp_path / "fruit" / split)
    trained("lenet1", str(tmp_path / "fruit"), epochs=1)
    said, errors = capsys.readouterr()
    assert re.search(r"^lenet1 on fruit gets \d+\.\d% of 40 test images right$", said, re.M)
    assert "gets" not in errors  # a notebook would show it in red
