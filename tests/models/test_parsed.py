import inspect

import pytest
import torch

from dnnbook.studies import ordering
from dnnbook.training import loop
from dnnlib import fuzzing, selection
from dnnlib.measures import uncertainty
from dnnlib.models import parsed
from dnnlib.selection import softmax

PLAIN = '''
SIZE = 2

def helper(x):
    """Adds."""
    return x + 1

def root(x, *, by=3):
    total = 0  # so far
    for one in x:
        total += helper(one) * by
    if total > 9:
        raise ValueError(f"too much: {total}")
    return total - SIZE
'''


@pytest.fixture
def digest(tmp_path):
    """``digest(old, new)``: of a module's `root`, with a change of its text."""
    def of(old="", new=""):
        assert old in PLAIN
        path = tmp_path / f"m{len(list(tmp_path.iterdir()))}.py"
        path.write_text(PLAIN.replace(old, new) if old else PLAIN)
        names = {"__name__": "dnnlib.written"}
        exec(compile(path.read_text(), str(path), "exec"), names)
        return parsed.digest(names["root"])
    return of


@pytest.mark.parametrize("old, new", [
    ("+ 1", "- 1"), ("SIZE = 2", "SIZE = 3"), ("by=3", "by=4"), ("total > 9", "total > 8"),
    ("* by", "/ by"), ("total - SIZE", "SIZE - total")])
def test_what_changes_the_result_changes_the_digest(digest, old, new):
    assert digest(old, new) != digest()


@pytest.mark.parametrize("old, new", [
    ("total", "found"), ("  # so far", ""), ("one", "each"), ("Adds.", "Adds one."),
    ("too much", "too large"), ("def helper(x)", "def helper(x: int) -> int"),
    ("total = 0", "total: int = 0"), ("return x + 1", "return (x +\n            1)")])
def test_what_does_not_change_it_does_not(digest, old, new):
    assert digest(old, new) == digest()


def turned(self, model, x):
    return selection.by_score(-self.score(model, x))


def test_an_order_turned_round_is_not_taken_from_the_cache(tiny_model, tiny_data, monkeypatch):
    gini = {"gini": selection.selector("gini")}

    def order():
        return ordering.orders(tiny_model(), tiny_data.images, gini)["gini"]

    before = order()
    monkeypatch.setattr(softmax.Gini, "order", turned)
    assert torch.equal(softmax.Gini().order(tiny_model(), tiny_data.images), order())
    assert not torch.equal(order(), before)


def test_a_helper_of_a_selector_counts(monkeypatch):
    before = parsed.digest(softmax.Gini)
    monkeypatch.setattr(softmax, "indecision", uncertainty.certainty)
    assert parsed.digest(softmax.Gini) != before


def test_every_selector_and_fuzzer_has_its_own_digest():
    kinds = [*dict.fromkeys([*selection.SELECTORS.values(), *fuzzing.FUZZERS.values()])]
    kinds = [kind for kind in kinds if inspect.isclass(kind)]
    assert len(kinds) > 15 and len({parsed.digest(kind) for kind in kinds}) == len(kinds)


def test_what_only_keeps_does_not_count(monkeypatch):
    code = loop._code()
    monkeypatch.setattr(loop, "_keep", turned)
    assert loop._code() == code
