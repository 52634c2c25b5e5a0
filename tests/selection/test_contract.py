"""The contract of selectors: all of the package keep it, and what breaks it is named."""

from dataclasses import dataclass, replace
from itertools import count

import pytest
import torch

from dnnlib import selection
from dnnlib.inference import noise, small_network
from dnnlib.selection import Scored, Selector, check_selector

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
    (Thawed(), "Thawed: expected a frozen dataclass")])
def test_what_breaks_it_is_named(chosen, words):
    with pytest.raises(ValueError, match=words):
        check_selector(chosen)


def test_images_and_model_of_ones_own(tiny_model, tiny_data):
    check_selector(replace(selection.selector("gini"), batch_size=3), tiny_model(), tiny_data.images)
