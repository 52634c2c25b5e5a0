from dataclasses import replace

import pytest
import torch

from dnnlib import selection
from dnnlib.selection.batches import passed
from dnnlib.selection.streaming import reader

REFERENCE = torch.rand(30, 1, 8, 8, generator=torch.Generator().manual_seed(9))


def chosen(name):
    needs = "reference" in selection.SELECTORS[name].__dataclass_fields__
    return selection.selector(name, **({"reference": REFERENCE} if needs else {}))


def streamed(found, model, x, size, folder):
    """Scores and order of images that come in batches."""
    known = {}
    if found.keeps:
        parts = [found.learn(passed(model, part, torch.arange(len(part)), [found]))
                 for part in REFERENCE.split(size)]
        known = found.learned({what: torch.cat([part[what] for part in parts])
                               for what in found.keeps})
    rows, predicted = [], []
    for places in torch.arange(len(x)).split(size):
        batch = passed(model, x[places], places, [found])
        rows.append(found.read(batch, known))
        predicted.append(batch.p.argmax(1))
    return found.finish(torch.cat(rows), torch.cat(predicted), known, folder)


@pytest.mark.parametrize("size", [1, 7, 40])
@pytest.mark.parametrize("name", selection.SELECTORS)
def test_batches_are_ordered_as_the_whole(tiny_model, tiny_data, tmp_path, name, size):
    model, x, one = tiny_model(), tiny_data.images, chosen(name)
    found = reader(one, model, x[:2])
    score, order = streamed(found, model, x, size, tmp_path)
    assert order.tolist() == one.order(model, x).tolist()
    assert (score is not None) == isinstance(one, selection.Scored)
    if score is not None:
        torch.testing.assert_close(score, one.score(model, x).double(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name, options", [
    ("nac", {"activation": "scaled"}), ("nac", {"method": "ctm", "fill": "ctm"}),
    ("kmnc", {"outer": True, "edges": "low"}), ("kmnc", {"neuron": "unit"}),
    ("dsa", {"order_by": "coverage"}), ("nss", {"difference": "squared_normalised"})])
def test_options_count_in_batches_too(tiny_model, tiny_data, tmp_path, name, options):
    model, x, one = tiny_model(), tiny_data.images, replace(chosen(name), **options)
    _, order = streamed(reader(one, model, x[:2]), model, x, 9, tmp_path)
    assert order.tolist() == one.order(model, x).tolist()


def test_readers_share_a_pass(tiny_model, tiny_data):
    model, x, seen = tiny_model(), tiny_data.images, []
    found = [reader(chosen(name), model, x[:2]) for name in ("gini", "ats", "nac", "kmnc", "dsa")]
    model.register_forward_pre_hook(lambda module, given: seen.append(len(given[0])))
    batch = passed(model, x, torch.arange(40), found)
    assert seen == [40]
    alone = passed(model, x, torch.arange(40), found[-1:])
    assert torch.equal(batch.of(found[-1].wants[0]), alone.of(found[-1].wants[0]))


def test_what_is_no_selector_of_ours():
    with pytest.raises(TypeError, match="object: does not read images in batches"):
        reader(object(), None, None)
