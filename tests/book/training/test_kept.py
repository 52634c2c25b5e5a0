import functools
import inspect
import re
from types import FunctionType

import pytest
import torch
from torch import nn

from dnnbook.training import Recipe, fit, fitted, kept, loop
from dnnlib import files, models
from dnnlib.models import lenet

STEPS = Recipe(0.1, 16, 1, momentum=0.5)


@pytest.fixture
def train(monkeypatch, tiny_data, capsys):
    """``train()``: LeNet-1 on few images, and what was said; ``train.times``: how often really."""
    times = []

    def counted(*arguments, **options):
        times.append(1)
        return fit(*arguments, **options)

    data = tiny_data.__class__(**vars(tiny_data) | {"images": torch.rand(40, 1, 28, 28)})

    def train():
        with monkeypatch.context() as patch:
            patch.setattr(loop, "fit", functools.wraps(loop.fit)(counted))
            model = fitted("lenet1", data, STEPS)
        lines = capsys.readouterr().err.splitlines()
        return model, "\n".join(line for line in lines  # but for the bars
                                if line.strip() and not line.startswith("training:"))

    train.times = times
    return train


def rewritten(function: FunctionType, tmp_path, *changes: tuple[str, str]) -> FunctionType:
    """A function from its own text with some of it changed, in a file of its own."""
    source = inspect.getsource(inspect.unwrap(function))
    for old, new in changes:
        assert re.search(old, source), old
        source = re.sub(old, new, source)
    path = tmp_path / "changed.py"
    path.write_text(source)
    made: dict = {}
    exec(compile(source, str(path), "exec"), inspect.unwrap(function).__globals__, made)
    return made[function.__name__]


def test_a_kept_network_is_used_again_without_a_word(train):
    (first, _), (second, said) = train(), train()
    assert len(train.times) == 1 and not said and not second.training
    assert all(map(torch.equal, first.parameters(), second.parameters()))


def test_other_code_of_the_network_is_noticed(train, monkeypatch):
    train()
    build = models.build

    def with_tanh(*arguments, **options):
        model = build(*arguments, **options)
        for module in list(model.modules()):
            for name, child in module.named_children():
                if isinstance(child, nn.ReLU):
                    setattr(module, name, nn.Tanh())
        return model

    assert "ReLU" in inspect.getsource(lenet)
    monkeypatch.setattr(models, "build", with_tanh)
    _, said = train()
    assert len(train.times) == 2
    assert said.strip() == ("lenet1 on tiny is trained again: its code gives other answers than "
                            "when it was kept")
    assert not train()[1] and len(train.times) == 2


def test_a_network_of_other_weights_is_noticed(train, monkeypatch):
    train()
    monkeypatch.setattr(models, "build", lambda *a, **o: nn.Sequential(nn.Flatten(),
                                                                      nn.Linear(784, 3)))
    assert "its code builds a network of other weights" in train()[1] and len(train.times) == 2


@pytest.mark.parametrize("name, change", [
    ("fit", ("momentum=recipe.momentum", "momentum=0.9")),
    ("fit", (r"= _rate\(recipe, epoch\)", "= 2 * _rate(recipe, epoch)")),
    ("_rate", ("0.5 \\* recipe", "1.0 * recipe")),
    ("_epoch", (r"\.split\(recipe.batch_size\)", ".split(2 * recipe.batch_size)")),
    ("_step", ("optimizer.step\\(\\)", "optimizer.step(); optimizer.step()"))],
    ids=["momentum", "learning rate", "schedule", "batch", "two steps"])
def test_a_changed_loop_is_noticed(train, monkeypatch, tmp_path, name, change):
    train()
    monkeypatch.setattr(loop, name, rewritten(getattr(loop, name), tmp_path, change))
    _, said = train()
    assert said.strip().endswith("is trained again: the code of the training has changed")
    assert "\n" not in said and len(train.times) == 2


def test_a_changed_size_of_parts_is_noticed(train, monkeypatch):
    train()
    monkeypatch.setattr(loop, "PART", 8)
    assert "has changed" in train()[1]


@pytest.mark.parametrize("name, change", [
    ("_epoch", (r"\bbatch\b", "some_images")), ("_rate", ("quarter", "part")),
    ("_step", ("( +)optimizer.step", r"\1# a comment\n\1optimizer.step")),
    ("fit", ("Train ``model`` in place", "Trains ``model``")),
    ("fit", ("training diverged", "no training")), ("_rate", (" -> float", ""))],
    ids=["variable", "another variable", "comment", "docstring", "message", "annotation"])
def test_what_changes_nothing_throws_nothing_away(train, monkeypatch, tmp_path, name, change):
    train()
    monkeypatch.setattr(loop, name, rewritten(getattr(loop, name), tmp_path, change))
    assert not train()[1] and len(train.times) == 1


def test_a_checkpoint_from_before_is_trained_again_and_says_so(train):
    model, _ = train()
    path, = files.cache_dir().glob("checkpoints/*.safetensors")
    files.save_tensors(path, model.state_dict(), key={})
    assert train()[1].strip() == ("lenet1 on tiny is trained again: it was kept without answers "
                                  "to compare")
    assert not train()[1] and len(train.times) == 2


def test_an_unfinished_training_of_another_loop_does_not_go_on(tiny_model, tiny_data, tmp_path,
                                                               monkeypatch):
    half, whole, model = tmp_path / "x.partial", tiny_model(), tiny_model()
    fit(tiny_model(), tiny_data, Recipe(0.5, 16, 1), unfinished=half)
    monkeypatch.setattr(loop, "PART", 64)
    fit(model, tiny_data, Recipe(0.1, 16, 2), unfinished=half)
    fit(whole, tiny_data, Recipe(0.1, 16, 2))
    assert all(map(torch.equal, model.parameters(), whole.parameters()))


def test_answers_do_not_change_the_network(tiny_model, tiny_data):
    model = tiny_model()
    assert kept.answers(model, tiny_data.images).shape == (8, 3)
    assert not model.training
