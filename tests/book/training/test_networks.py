"""A network of one's own in a chapter: built, trained, told apart from others."""

import pytest
import torch

from dnnbook import training
from dnnbook.chapters import declared, notebooks
from dnnbook.chapters.experiments import Experiment
from dnnbook.training import networks

FILE = '''
from torch import nn

def small(channels, side, classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(channels * side * side, 12), nn.ReLU(),
                         nn.Linear(12, classes))

def fixed():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))

def thousand(channels, side, classes):
    return small(channels, side, 1000)

def broken(channels, side, classes):
    return small(channels, side + 1, classes)

def nothing():
    small(1, 28, 10)

def two(a, b):
    return small(a, b, 10)

def alone(channels):
    return small(channels, 28, 10)

def softened(channels, side, classes):
    return nn.Sequential(small(channels, side, classes), nn.Softmax(1))
'''


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "net.py"
    path.write_text(FILE)
    return path


def test_a_name_of_the_papers_is_their_network():
    assert networks.called("lenet1") == "lenet1"
    model = networks.build("lenet1", (1, 28, 28), 10, seed=3)
    assert model.spec.classes == 10


def test_ones_own_is_trained_and_kept(file, tmp_path, monkeypatch):
    monkeypatch.setenv("DNNLIB_CACHE", str(tmp_path / "cache"))
    state = torch.random.get_rng_state()
    models = [training.trained(f"{file}:small", "digits", seed=seed, epochs=2) for seed in (0, 0, 1)]
    assert torch.equal(torch.random.get_rng_state(), state)
    first, again, other = (model[1].weight for model in models)
    assert torch.equal(first, again) and not torch.equal(first, other)
    assert len([*(tmp_path / "cache" / "checkpoints").glob("*.safetensors")]) == 2


def test_a_changed_file_is_another_network(file):
    before = networks.called(f"{file}:small")
    assert before.startswith("small ") and len(before) == len("small ") + 8
    moved = file.with_name("elsewhere.py")
    moved.write_bytes(file.read_bytes())
    assert networks.called(f"{moved}:small") == before
    file.write_text(FILE.replace("12", "13"))
    assert networks.called(f"{file}:small") != before


def test_a_module_that_the_file_imports_counts(file):
    helper = file.with_name("helper_of_a_network.py")
    helper.write_text("WIDTH = 12\n")
    file.write_text("from helper_of_a_network import WIDTH\n" + FILE.replace("12", "WIDTH"))
    before = networks.called(f"{file}:small")
    helper.write_text("WIDTH = 24\n")
    assert networks.called(f"{file}:small") != before


def test_a_function_that_takes_nothing(file):
    assert networks.build(f"{file}:fixed", (1, 8, 8), 10)(torch.zeros(3, 1, 8, 8)).shape == (3, 10)


@pytest.mark.parametrize("function, words", [
    ("thousand", r"expected logits \(N, 10\) of .*net.py:thousand, got \(2, 1000\)"),
    ("two", r"expected .*net.py:two to take channels, side and classes, or nothing, got \(a, b\)$"),
    ("broken", "net.py:broken does not take images of 1 x 28 x 28: "), ("nothing", "net.py:nothing to return a torch.nn.Module, got NoneType; did you forget `return`"),
    ("alone", r"net.py:alone to take channels, side and classes, or nothing, got \(channels\)"),
    ("softened", "got probabilities; leave the last softmax out"),
    ("smal", "did you mean 'small'")])
def test_what_will_not_do_is_told_before_a_kernel_starts(file, function, words):
    with pytest.raises(ValueError, match=words) as told:
        notebooks.typed(notebooks.find("nss/04"), {
            "model_name": f"{file}:{function}", "dataset": "digits"})
    assert "\n" not in str(told.value)


def test_no_such_file():
    with pytest.raises(FileNotFoundError, match="model_name: there is no file nowhere.py"):
        declared.check("nss/diversity", dataset="digits", model_name="nowhere.py:small")


def test_a_run_and_a_sweep_call_it_alike(file, monkeypatch):
    monkeypatch.chdir(file.parent)
    path = notebooks.find("nss/04")
    values = notebooks.typed(path, {"model_name": "net.py:small", "dataset": "digits"})
    assert values["model_name"] == f"{file}:small"  # the notebook runs in its own folder
    run = Experiment("nss/diversity", "embedded", model_name=values["model_name"], seed=0)
    assert run.parameters["model"] == notebooks.recorded(path, values)[1]["model"] == (
        networks.called(f"{file}:small"))
