import re

import pytest
import torch

from dnnbook import studies
from dnnbook.chapters import declared, notebooks, sweeps
from dnnbook.records import records
from dnnbook.records.counted import variant
from dnnbook.studies import ordering
from dnnlib import selection


@pytest.fixture
def x(generator):
    return torch.rand(6, 1, 8, 8, generator=generator())


def test_orders_are_those_of_the_selectors(tiny_model, x):
    named = {"a": selection.selector("gini"), "b": selection.selector("random", seed=1)}
    found = studies.orders(tiny_model(), x, named)
    assert list(found) == ["a", "b"]
    for name, selector in named.items():
        assert torch.equal(found[name], selector.order(tiny_model(), x))


@pytest.fixture
def counted(tiny_model, x, monkeypatch):
    """Calls of a selector's ``order``."""
    calls = []

    def order(self, model, images):
        calls.append(self)
        return torch.arange(len(images))

    monkeypatch.setattr(selection.Gini, "order", order)
    monkeypatch.setattr(selection.KMNC, "order", order)
    return calls


def test_an_order_is_computed_once(tiny_model, x, counted):
    for _ in range(2):
        studies.orders(tiny_model(), x, {"gini": selection.selector("gini")})
    assert len(counted) == 1


def test_weights_images_options_and_references_make_another_order(tiny_model, x, counted):
    def run(model, images, name, **options):
        studies.orders(model, images, {name: selection.selector(name, **options)})

    run(tiny_model(), x, "gini")
    run(tiny_model(1), x, "gini")
    run(tiny_model(), x.flip(0), "gini")
    run(tiny_model(), x, "gini", batch_size=2)
    run(tiny_model(), x, "kmnc", reference=x)
    run(tiny_model(), x, "kmnc", reference=x.flip(0))
    assert len(counted) == 6


CONTRAST = """
from dataclasses import dataclass
from dnnlib.selection import Scored

@dataclass(frozen=True, kw_only=True, eq=False)
class Contrast(Scored):
    shared = False

    def read(self, batch, known):
        return -batch.x.flatten(1).std(dim=1).double()
"""


def test_a_selector_of_ones_own_is_one_more_with_a_record_of_its_own(tiny_model, x, tmp_path):
    path = tmp_path / "contrast.py"
    path.write_text(CONTRAST)
    name, where = f"{path}:Contrast", "nss/fault_detection"
    found = studies.one_more(name, reference=x)
    order = studies.orders(tiny_model(), x, found)[ordering.Key("contrast")]
    assert order.tolist() == (-x.flatten(1).std(dim=1)).argsort(descending=True).tolist()
    assert declared.check(where, here=False, beside=name) == {"beside": name}
    kept = declared.kept("beside", name, where)
    path.write_text(CONTRAST.replace("-batch", "batch"))
    assert kept.startswith("Contrast ") and declared.kept("beside", name, where) != kept
    plain = {"dataset": "mnist", "model": "lenet1_nss", "seed": 0}
    names = {records.name(where, plain | {"beside": value}) for value in ("", kept)}
    assert len(names) == 2 and records.name(where, plain) in names  # without one, as before
    assert variant(where, plain | {"beside": kept}) == {"beside"}


BAD = CONTRAST + """
@dataclass(frozen=True, kw_only=True, eq=False)
class Unread(Scored):
    pass

class Lost(Contrast):
    def read(self, batch, known):
        return super().read(batch, known) * float("nan")

class Torn(Contrast):
    def read(self, batch, known):
        return [][0]
"""
REFUSED = {"Unread": r"expected the class to have a method read\(self, batch, known\), got none",
           "Lost": "expected scores without NaN, got 8 NaN among 8",
           "Torn": r"own.py, line \d+: IndexError: list index out of range"}


@pytest.fixture
def bad(tmp_path):
    (tmp_path / "own.py").write_text(BAD)
    return tmp_path / "own.py"


@pytest.mark.parametrize("name, words", REFUSED.items())
def test_one_that_breaks_the_contract_is_refused_before_a_chapter_starts(bad, name, words):
    given = {"dataset": "mnist", "model_name": "lenet1_nss"}
    with pytest.raises(ValueError, match=f"^beside: {bad}:{name}: {words}$"):
        notebooks.typed(notebooks.find("nss/02"), {**given, "beside": f"{bad}:{name}"})
    with pytest.raises(ValueError, match=f"^beside: {bad}:{name}: {words}$"):  # a chapter's first cell
        declared.check("nss/fault_detection", here=False, **given, beside=f"{bad}:{name}")


def test_a_sweep_names_all_that_break_it_before_one_runs(bad):
    path = bad.with_name("sweep.toml")
    path.write_text("".join(
        f'[[grid]]\nnotebook = "nss/02"\nprofile = "paper"\nbeside = "{bad}:{name}"\n'
        for name in (*REFUSED, "Contrast")))
    with pytest.raises(ValueError, match="3 problems, nothing was run") as told:
        sweeps.read(path)
    lines = str(told.value).splitlines()[1:]
    for i, (line, (name, words)) in enumerate(zip(lines, REFUSED.items()), 1):
        assert re.fullmatch(rf"  grid {i}, 02_\w+: beside: {bad}:{name}: {words}", line)


@pytest.mark.parametrize("name, words", [
    ("ginni", "did you mean 'gini'"), ("nowhere.py:Mine", "no file nowhere.py")])
def test_one_more_that_is_none_is_named(name, words):
    with pytest.raises((ValueError, FileNotFoundError), match=words):
        declared.check("nss/fault_detection", here=False, beside=name)
