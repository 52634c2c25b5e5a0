"""Weights as people keep them: taken if they fit, whatever wraps them."""

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from dnnlib.models.weights import assign, fitting, misfits


def net(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(72, 3))


def named(prefix, seed=0):
    return {prefix + name: value for name, value in net(seed).state_dict().items()}


@pytest.mark.parametrize("wrap, words", [
    (named(""), ""), (named("module."), "without 'module.'"),
    (named("_orig_mod."), "without '_orig_mod.'"),
    (named("module._orig_mod."), "without 'module.' and '_orig_mod.'"),
    (named("_orig_mod.module."), "without 'module.' and '_orig_mod.'"),
    ({"state_dict": named("model.net."), "epoch": 3}, "'state_dict', without 'model.net.'"),
    ({"ema": named(""), "epoch": 3, "optimizer": {"state": {}, "lr": 0.1}}, "'ema'"),
    ({"a": {"b": named("")}}, "'a.b'")])
def test_weights_that_fit_are_found_and_it_is_said_where(wrap, words):
    model = net(1)
    found, where = fitting(model, wrap)
    assert where == words and not misfits(model, found)
    assign(model, found, "w.pth")
    expected = net().state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in model.state_dict().items())


def test_of_two_that_fit_the_usual_name_is_taken():
    found, where = fitting(net(), {"ema": named("", 1), "state_dict": named("", 2)})
    assert where == "'state_dict' ('ema' fit too)" and torch.equal(found["3.weight"], net(2)[3].weight)


def test_of_several_the_one_that_fits_is_taken():
    other = {"weight": torch.zeros(3)}
    assert fitting(net(), {"state_dict": other, "generator": named("")})[1] == "'generator'"


def test_what_fits_nowhere_is_told_by_what_comes_nearest():
    found, _ = fitting(net(), {"ema": {"other": torch.zeros(1)}, "state_dict": named("")
                               | {"3.bias": torch.zeros(4)}})
    with pytest.raises(ValueError, match=r"w.pth does not fit .*: shapes 3.bias \(4,\) for \(3,\)$"):
        assign(net(), found, "w.pth")


def test_a_checkpoint_without_tensors():
    with pytest.raises(ValueError, match="expected a state dict, or a checkpoint with one; found none"):
        fitting(net(), {"epoch": 3})


def test_names_that_become_one_are_refused():
    found, _ = fitting(net(), {**named(""), "_orig_mod.3.bias": torch.ones(3)})
    with pytest.raises(ValueError, match="unexpected _orig_mod.3.bias"):
        assign(net(), found, "w.pth")


def test_whole_numbers_are_no_weights():
    wrong = {**named(""), "3.bias": torch.ones(3, dtype=torch.int8)}
    assert misfits(net(), wrong) == {"types": ["3.bias torch.int8 for torch.float32"]}


def test_a_count_of_averages_beside_the_weights():
    averaged = torch.optim.swa_utils.AveragedModel(net())
    assert not misfits(net(), fitting(net(), averaged.state_dict())[0])


def test_a_shared_weight_may_be_there_once(tmp_path):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
            self.last.weight = self.first.weight

    model = Tied()
    assert misfits(model, {"first.weight": torch.zeros(4, 4)}) == {}
    assert misfits(model, {}) == {"missing": ["first.weight", "last.weight"]}
    assign(model, {"first.weight": torch.ones(4, 4)}, "w.pth")
    assert model.last.weight.sum() == 16


def test_files_of_every_ending_and_shards(tmp_path, monkeypatch, caplog):
    import json

    from dnnlib import custom
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(
        "from torch import nn\ndef build():\n    return nn.Sequential(nn.Conv2d(1, 2, 3), "
        "nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(72, 3))\n")
    expected = net().state_dict()
    for name in ("w.pt", "w.pth", "w.bin", "checkpoint.ckpt", "best.pth.tar"):
        torch.save({"state_dict": named("module.")}, name)
    save_file(named("module."), "w.safetensors")
    parts = [*expected]
    save_file({k: expected[k].clone() for k in parts[:3]}, "a-1.safetensors")
    save_file({k: expected[k].clone() for k in parts[3:]}, "a-2.safetensors")
    (tmp_path / "a.index.json").write_text(json.dumps({"weight_map": {
        k: f"a-{1 + (k not in parts[:3])}.safetensors" for k in parts}}))
    for name in ("w.pt", "w.pth", "w.bin", "checkpoint.ckpt", "best.pth.tar", "w.safetensors",
                 "a.index.json"):
        caplog.clear()
        model = custom.load_model("own.py:build", name)
        assert torch.equal(model[3].weight, expected["3.weight"])
        assert bool(caplog.messages) == (name != "a.index.json")  # what was left off is said
    stale = {**expected, "3.bias": torch.full((3,), 9.0)}  # not where the index says
    save_file({k: stale[k].clone() for k in [*parts[:3], "3.bias"]}, "a-1.safetensors")
    assert torch.equal(custom.load_model("own.py:build", "a.index.json")[3].bias,
                       expected["3.bias"])
    for name, content in (("j.json", "{}"), ("k.json", "[1"), ("text.pt", "hello")):
        (tmp_path / name).write_text(content)
        with pytest.raises(ValueError, match=name):
            custom.load_model("own.py:build", name)
    with pytest.raises(ValueError, match="ends in .safetensors, .* got own.py"):
        custom.load_model("own.py:build", "own.py")


class Counted(nn.Linear):
    """With a state of its own kind."""

    count = 0

    def get_extra_state(self):
        return {"count": self.count}

    def set_extra_state(self, state):
        self.count = state["count"]


class Renaming(nn.Linear):
    """Takes weights under an older name."""

    def _load_from_state_dict(self, state, prefix, *rest):
        if prefix + "kernel" in state:
            state[prefix + "weight"] = state.pop(prefix + "kernel")
        super()._load_from_state_dict(state, prefix, *rest)


def compiled(seed=0):
    return torch.compile(net(seed), backend="eager")


def counted(count=0):
    model = nn.Sequential(nn.Flatten(), Counted(2, 3))
    model[1].count = count
    return model


KERNEL = {"kernel": torch.ones(1, 2), "bias": torch.zeros(1)}


@pytest.mark.parametrize("model, wrap, words", [
    (compiled(1), compiled().state_dict(), ""), (compiled(1), named(""), ""),
    (compiled(1), named("module."), "without 'module.'"),
    (nn.Sequential(compiled(1)), named("0."), ""),
    (nn.DataParallel(net(1)), named(""), "with 'module.'"),
    (nn.DataParallel(net(1)), named("module."), ""),
    (nn.DataParallel(net(1)), {"net": named("model.net.")},
     "'net', without 'model.net.', with 'module.'"),
    (nn.DataParallel(compiled(1)), named(""), "with 'module.'"),
    (nn.Sequential(nn.Sequential(net(1))), named("_orig_mod."), "without '_orig_mod.', with '0.0.'"),
    (counted(), counted(7).state_dict(), ""),
    (counted(), {"net": {f"module.{k}": v for k, v in counted(7).state_dict().items()}},
     "'net', without 'module.'"),
    (Renaming(2, 1), KERNEL, ""),
    (Renaming(2, 1), {f"module.{k}": v for k, v in KERNEL.items()}, "without 'module.'"),
    (nn.utils.parametrizations.weight_norm(nn.Linear(2, 1)),  # as by the weight_norm of old
     {"bias": torch.zeros(1), "weight_g": torch.ones(1, 1), "weight_v": torch.ones(1, 2)}, ""),
    (nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.LazyLinear(3)),
     named(""), "")])
def test_a_model_takes_what_it_would_take_by_itself(model, wrap, words):
    found, where = fitting(model, wrap)
    assert where == words
    assign(model, found, "w.pth")
    state = model.state_dict()
    given = [*wrap.values()] if "net" not in wrap else [*wrap["net"].values()]
    for value, expected in zip(state.values(), given):
        assert torch.equal(value, expected) if isinstance(value, torch.Tensor) else value == expected


def test_what_hooks_do_not_mend_leaves_the_model_as_it_was():
    model = Renaming(2, 1)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(ValueError, match="missing weight; unexpected weights"):
        assign(model, {"weights": torch.ones(1, 2), "bias": torch.ones(1)}, "w.pth")
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_state_of_another_kind_is_missed_and_not_minded():
    assert misfits(counted(), {"1.weight": torch.ones(3, 2), "1.bias": torch.ones(3)}) == {
        "missing": ["1._extra_state"]}
    assert not misfits(nn.Linear(2, 3), {"weight": torch.ones(3, 2), "bias": torch.ones(3),
                                         "_extra_state": {"count": 7}})
