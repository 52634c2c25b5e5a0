import pytest
import torch

from dnnbook import studies
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
