"""The contract of fuzzers: all of the package keep it, and what breaks it is named."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from dnnlib import fuzzing
from dnnlib.fuzzing import ArtAttack, Budget, check_fuzzer
from dnnlib.fuzzing.contract import bounded
from dnnlib.fuzzing.protocol import Campaign, Log
from dnnlib.inference import noise, small_network
from dnnlib.neurons.excitable import ExcitableNeurons

ROOT = Path(__file__).resolve().parents[2]
FADE = """
from dataclasses import dataclass, field

import torch

from dnnlib.fuzzing.protocol import Budget, Log


@dataclass(frozen=True, kw_only=True)
class Fade:
    reference: torch.Tensor = field(repr=False)
    budget: Budget = Budget()

    @torch.no_grad()
    def run(self, model, inputs, labels, *, iterations, generator, watch=None):
        log = Log(model, inputs, labels, watch)
        for _ in range(iterations):
            log.add(self.budget.project(self.reference[:1].expand_as(log.inputs), log.inputs))
        return log.campaign()
"""
ASKED = """
import torch
from dnnbook.display.colours import colour
from dnnlib import custom, fuzzing
print(fuzzing.FUZZERS["fade"].__name__, colour("fade"))
options = custom.Options(by="fade", l2=1.0)
print(options.fuzzer(torch.rand(2, 1, 4, 4)).budget.l2)
custom.Options(by="fad", l2=1.0)
"""
NEAR = Budget(l2=1.0, linf=0.4)
NEEDS = {"deepxplore": {"reading": "single"}, "deephunter": {"reference": noise()},
         "dlfuzz": {"runners_up": 1}, "deepsensor": {"population": 3}}
KINDS = {name: fuzzing.fuzzer(name, budget=NEAR, **NEEDS.get(name, {})) for name in fuzzing.FUZZERS}
KINDS |= {kind.__name__: kind(budget=NEAR, population=4)
          for kind in (fuzzing.Ants, fuzzing.Differential, fuzzing.Genetic)}
KINDS |= {"excitable": fuzzing.Swarm(budget=NEAR, population=3, fitness=ExcitableNeurons(points=2)),
          "pgd": ArtAttack(budget=Budget(l2=1.0)),
          "apgd": ArtAttack(kind="apgd", budget=Budget(linf=0.2))}


@pytest.mark.parametrize("name", KINDS)
def test_every_fuzzer_keeps_it(name):
    check_fuzzer(KINDS[name], small_network(), noise()[:12])


@pytest.mark.parametrize("name", KINDS)
def test_an_error_on_the_way_leaves_no_hook(name, monkeypatch):
    """The fourth iteration is too much for whoever watches."""
    model, seen = small_network(), []

    def watch(x):
        seen.append(x)
        if len(seen) == 2:
            raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError, match="the disk is full"):
        KINDS[name].run(model, noise()[:4], torch.tensor([0, 1, 2, 0]), iterations=3,
                        generator=torch.Generator().manual_seed(0), watch=watch)
    assert not any(each._forward_hooks or each._forward_pre_hooks for each in model.modules())
    assert all(weights.grad is None for weights in model.parameters())


@dataclass(frozen=True, kw_only=True)
class Moves:
    """By a little; ``as_it`` says how it breaks the contract."""

    budget: Budget = Budget()
    as_it: str = ""

    def run(self, model, inputs, labels, *, iterations, generator, watch=None):
        log = Log(model, inputs, labels, watch)
        if self.as_it == "hooks":
            model.register_forward_hook(lambda *given: None)
        if self.as_it == "inputs":
            inputs.mul_(0.5)
        for _ in range(0 if self.as_it == "idle" else iterations - (self.as_it == "stops")):
            step = torch.rand(log.inputs.shape,
                              generator=None if self.as_it == "draws" else generator)
            x = log.inputs + 0.1 * step
            x = x * torch.nan if self.as_it == "torn" else x
            x = x[:1] if self.as_it == "few" else x[..., ::2] if self.as_it == "narrow" else x
            log.add(x if self.as_it == "bright" else x.clamp(0, 1))
        return None if self.as_it == "nothing" else log.campaign()


@pytest.mark.parametrize("chosen, words", [
    (Moves(as_it="hooks"), "leave the model as it was, changed its hooks"),
    (Moves(as_it="inputs"), "leave the inputs as they were"),
    (Moves(as_it="stops"), "expected the examples of 3 iterations, got 2 of them"),
    (Moves(as_it="few"), r"^examples: expected one for each of 40 inputs, of shape \(40, 1, 8, 8\), "
                         r"got \(1, 1, 8, 8\)$"),
    (Moves(as_it="narrow"), r"of shape \(40, 1, 8, 8\), got \(40, 1, 8, 4\)$"),
    (Moves(as_it="draws"), "random numbers of the generator alone"),
    (Moves(as_it="bright"), "expected examples with values in .0, 1., got"),
    (Moves(as_it="nothing"), r"run to give a Campaign, got NoneType: is a `return` missing\?$"),
    (Moves(as_it="idle"), "^examples: expected those of at least one iteration, got none"),
    (Moves(as_it="torn"), "^examples: expected pixels that are finite numbers, got NaN or infinity "
                          "in 40 of 40 examples$"),
    (Moves(budget=Budget(linf=0.01)), "within 0.01 of their inputs in L-infinity, got one at"),
    (3, "int: expected a frozen dataclass with a budget")])
def test_what_breaks_it_is_named(chosen, words):
    with pytest.raises(ValueError, match=words):
        check_fuzzer(chosen)


@dataclass(frozen=True, kw_only=True)
class Unlogged(Moves):
    """One example of all the inputs, in a campaign of its own making."""

    def run(self, model, inputs, labels, *, iterations, generator, watch=None):
        return super().run(model, inputs[:1], labels[:1], iterations=iterations,
                           generator=generator, watch=watch)


def test_what_no_log_has_seen_is_held_to_the_inputs_too():
    with pytest.raises(ValueError, match=r"one for each of 40 inputs, .* got \(1, 1, 8, 8\)$"):
        check_fuzzer(Unlogged())


def test_one_iteration_is_told_as_one():
    with pytest.raises(ValueError, match="the examples of 1 iteration, got 0 of them"):
        bounded(Moves(), noise()[:0], Campaign(*[noise()[:0]] * 6, 0, 0.0), [], 1)


def test_what_keeps_it_passes():
    check_fuzzer(Moves())


def test_a_file_and_a_row_make_a_fuzzer_of_the_package(tmp_path):
    shutil.copytree(ROOT / "dnnlib", tmp_path / "dnnlib", ignore=shutil.ignore_patterns("__pycache__"))
    room = tmp_path / "dnnlib" / "fuzzing"
    (room / "fade.py").write_text(FADE)
    table = (room / "__init__.py").read_text().replace('"noise": Noise,', '"noise": Noise, "fade": Fade,', 1)
    (room / "__init__.py").write_text(
        table.replace("from dnnlib.fuzzing.noise", "from dnnlib.fuzzing.fade import Fade\nfrom dnnlib.fuzzing.noise", 1))
    said = subprocess.run([sys.executable, "-c", ASKED], cwd=tmp_path, capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT / 'book'}"})
    assert said.stdout.startswith("Fade #") and "1.0" in said.stdout, said.stderr
    assert "unknown method 'fad'; did you mean 'fade'?" in said.stderr
