"""One more method beside those of a chapter: of the package, or a person's own."""

import re

import pytest
import torch

from dnnbook import studies
from dnnbook.chapters import declared, notebooks, sweeps
from dnnbook.records import records
from dnnbook.records.counted import variant
from dnnbook.studies import FuzzerKey, ordering
from dnnlib.inference import predict


@pytest.fixture
def x(generator):
    return torch.rand(6, 1, 8, 8, generator=generator())


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
    order = studies.orders(tiny_model(), x, found)[ordering.SelectorKey("contrast")]
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


FADE = """
from dataclasses import dataclass
import torch
from dnnlib.fuzzing.protocol import Budget, Log

@dataclass(frozen=True, kw_only=True)
class Fade:
    budget: Budget = Budget()

    @torch.no_grad()
    def run(self, model, inputs, labels, *, iterations, generator, watch=None):
        log = Log(model, inputs, labels, watch)
        for number in range(1, iterations + 1):
            gray = log.inputs + (0.5 - log.inputs) * number / iterations
            log.add(self.budget.project(gray, log.inputs))
        return log.campaign()

@dataclass(frozen=True, kw_only=True)
class Far(Fade):
    def run(self, model, inputs, labels, **options):
        return Fade().run(model, inputs, labels, **options)
"""
ERRORS = "deepsensor_sensitivity/test_errors"


def test_a_fuzzer_of_ones_own_is_one_more_with_a_record_of_its_own(tiny_model, x, tmp_path):
    path = tmp_path / "fade.py"
    path.write_text(FADE)
    name = f"{path}:Fade"
    found = studies.one_more_fuzzer(name, reference=x)
    campaign = studies.campaigns(tiny_model(), x, torch.zeros(6, dtype=torch.int64), found)[FuzzerKey("fade")]
    assert 0 < campaign.l2.max() <= 1.0 * (1 + 1e-5)
    assert declared.check(ERRORS, here=False, beside=name) == {"beside": name}
    plain, kept = {"dataset": "mnist", "model": "lenet5", "seed": 0}, declared.kept("beside", name, ERRORS)
    names = {records.name(ERRORS, plain | {"beside": value}) for value in ("", kept)}
    assert len(names) == 2 and records.name(ERRORS, plain) in names


@pytest.mark.parametrize("name, words", [
    ("{}:Far", "beside: .*fade.py:Far: far: expected examples within 1 of their inputs"), ("{}:Log", "expected a dataclass with"),
    ("dlfuz", "unknown beside 'dlfuz'; did you mean 'dlfuzz'"), ("gini", "unknown beside 'gini'")])
@pytest.mark.parametrize("where", ["deepsensor_sensitivity/02", "synthesis/02"])
def test_a_fuzzer_that_will_not_do_is_named_before_a_chapter_starts(tmp_path, where, name, words):
    (tmp_path / "fade.py").write_text(FADE)
    with pytest.raises(ValueError, match=words):
        notebooks.typed(notebooks.find(where), {"beside": name.format(tmp_path / "fade.py")})


@pytest.mark.parametrize("name", ["ats", "nac"])
@pytest.mark.parametrize("where", ["nsatp/rq1", "nsatp/rq3"])
def test_a_distance_scores(where, name):
    with pytest.raises(ValueError, match=f"beside: expected a selector that scores, got {name}, which does not"):
        declared.check(where, here=False, beside=name)
    assert declared.check(where, here=False, beside="margin") == {"beside": "margin"}


def test_a_distance_is_a_score_turned_round_that_begins_at_zero(tiny_model, x):
    found = studies.one_more_distance("margin", tiny_model(), x, reference=x)
    first, second = predict(tiny_model(), x).double().topk(2).values.T
    apart = (first - second).numpy()
    assert found.keys() == {"margin"} and found["margin"] == pytest.approx(apart - apart.min(), abs=1e-6)


@pytest.mark.parametrize("where, name, words", [
    (ERRORS, "noise", "the chapter has noise itself"), ("synthesis/02", "noise", "the chapter has noise itself"),
    ("nsatp/rq3", "pe", "the chapter has pe itself"), ("nsatp/rq1", "pe", "the chapter has pe itself"),
    ("synthesis/01", "gini", "the chapter has gini itself"), (ERRORS, "pgd", "pgd needs a bound, and this chapter has none")])
def test_what_would_take_the_place_of_the_chapters_own_is_refused(where, name, words):
    with pytest.raises(ValueError, match=f"beside: {words}"):
        declared.check(where, here=False, beside=name)
