"""The contract of selectors: all of the package keep it, and what breaks it is named."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import pytest
import torch

from dnnlib import selection
from dnnlib.inference import noise, small_network
from dnnlib.selection import Scored, Selector, check_selector

ROOT = Path(__file__).resolve().parents[2]
CONTRAST = """
from dataclasses import dataclass
from dnnlib.selection.protocol import Scored

@dataclass(frozen=True, kw_only=True, eq=False)
class LowContrast(Scored):
    shared = False

    def read(self, batch, known):
        return -batch.x.flatten(1).std(dim=1).double()
"""
ASKED = """
from dnnbook.display import colours
from dnnlib import selection
from dnnlib.custom import methods

print(type(selection.selector("low_contrast")).__name__, colours.colour("low_contrast"), sep="\\n")
selection.check_selector(selection.selector("low_contrast"))
try:
    methods.parse_methods("lowcontrast", reference=False)
except ValueError as error:
    print(error)
"""
REFERENCE = torch.rand(30, 1, 8, 8, generator=torch.Generator().manual_seed(9))
CALLS = count()


@pytest.mark.parametrize("name", selection.SELECTORS)
def test_every_selector_keeps_it(name):
    known = selection.SELECTORS[name].__dataclass_fields__
    chosen = selection.selector(name, **({"reference": REFERENCE} if "reference" in known else {}))
    model, x = small_network(), noise()
    check_selector(chosen, model, x, sizes=(1, 7, 40))
    assert torch.equal(x, noise())
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), small_network().parameters()))


@dataclass(frozen=True, kw_only=True, eq=False)
class OfTheBatch(Scored):
    def read(self, batch, known):
        return batch.p.amax(1) - batch.p.amax(1).mean()


@dataclass(frozen=True, kw_only=True, eq=False)
class Counting(Scored):
    def read(self, batch, known):
        return batch.p[:, next(CALLS) % 3]


@dataclass(frozen=True, kw_only=True, eq=False)
class Twice(Scored):
    def finish(self, rows, classes, known, *, folder=None, device="cpu"):
        return None, torch.zeros(len(rows), dtype=torch.int64)

    def read(self, batch, known):
        return batch.p.amax(1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Training(Scored):
    def read(self, batch, known):
        batch.model.train()
        return batch.p.amax(1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Hooked(Scored):
    def read(self, batch, known):
        batch.model.register_forward_hook(lambda *given: None)
        return batch.p.amax(1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Sloped(Scored):
    def read(self, batch, known):
        with torch.enable_grad():
            batch.model(batch.x).sum().backward()
        return batch.p.amax(1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Places(Scored):
    """An order without scores, of the places within each batch."""

    def read(self, batch, known):
        return torch.arange(len(batch.x)).double()

    def finish(self, rows, classes, known, *, folder=None, device="cpu"):
        return None, rows.argsort(stable=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class Unread(Scored):
    """Has no ``read``."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Unfinished(Selector):
    def read(self, batch, known):
        return batch.p.amax(1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Unordered(Unfinished):
    def finish(self, rows, classes, known, *, folder=None, device="cpu"):
        rows.argsort()


@dataclass(frozen=True, kw_only=True, eq=False)
class As(Scored):
    """``as_it`` says what ``read`` makes of good scores."""

    as_it: Callable

    def read(self, batch, known):
        return self.as_it(batch.p.amax(1))


@dataclass
class Thawed(Selector):
    share: float = 0.1


@pytest.mark.parametrize("chosen, words", [
    (OfTheBatch(), r"OfTheBatch: .* not depend on the batch, got \S+ for image 0 and 0 in batches "
                   "of 1; 40 of 40"),
    (Counting(), "Counting: expected the same order from the same call"),
    (Twice(), "Twice: expected an order with each of 40 candidates once"),
    (Training(), "Training: expected to leave the model as it was, changed its mode"),
    (Hooked(), "changed its hooks"), (Sloped(), "changed its gradients"),
    (Places(), "Places: expected an order that does not depend on batches"),
    (Thawed(), "Thawed: expected a frozen dataclass"),
    (Unread(), "^Unread: expected the class to have a method read.self, batch, known., got none$"),
    (Unfinished(), "^Unfinished: expected the class to have a method finish.*, got none$"),
    (Unordered(), "^Unordered.finish: expected a pair, scores or None and the order, got NoneType$"),
    (As(as_it=lambda p: None), r"^As.read: .* of 40 images, got None: is a `return` missing\?$"),
    (As(as_it=lambda p: {"p": p}), "^As.read: expected a row for each of 40 images, got dict$"),
    (As(as_it=torch.sum), r"^As.read: expected a row for each of 40 images, got shape \(\)$"),
    (As(as_it=lambda p: p[:, None].repeat(1, 3)),
     r"^As: expected one score for each image, of shape \(N,\), got shape \(40, 3\)$"),
    (As(as_it=lambda p: p * torch.nan), "^As: expected scores without NaN, got 40 NaN among 40$")])
def test_what_breaks_it_is_named(chosen, words):
    with pytest.raises(ValueError, match=words):
        check_selector(chosen)


@pytest.mark.parametrize("as_it", [torch.Tensor.tolist, torch.Tensor.numpy, list])
def test_scores_in_a_list_or_an_array_are_taken(as_it):
    check_selector(As(as_it=as_it))
    wanted = As(as_it=torch.clone).order(small_network(), noise())
    assert torch.equal(As(as_it=as_it).order(small_network(), noise()), wanted)


def test_images_and_model_of_ones_own(tiny_model, tiny_data):
    check_selector(replace(selection.selector("gini"), batch_size=3), tiny_model(), tiny_data.images)


def test_a_file_and_a_row_make_a_selector_of_the_package(tmp_path):
    shutil.copytree(ROOT / "dnnlib", tmp_path / "dnnlib", ignore=shutil.ignore_patterns("__pycache__"))
    room = tmp_path / "dnnlib" / "selection"
    (room / "contrast.py").write_text(CONTRAST)
    table = (room / "__init__.py").read_text()
    (room / "__init__.py").write_text(table.replace('"random", "nac"', '"low_contrast", "random", "nac"', 1))
    said = subprocess.run([sys.executable, "-c", ASKED], cwd=tmp_path, capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT / 'book'}"})
    assert said.returncode == 0, said.stderr
    assert said.stdout.split("\n")[0] == "LowContrast" and "Known: ats, dsa, excitable, gini, kmnc, l" in said.stdout
    assert "low_contrast" in said.stdout and "#" in said.stdout  # a name on the command line, a colour
