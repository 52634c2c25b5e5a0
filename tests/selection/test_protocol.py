from dataclasses import replace

import pytest
import torch

from dnnlib import selection
from dnnlib.selection import protocol
from dnnlib.selection.protocol import passed

REFERENCE = torch.rand(30, 1, 8, 8, generator=torch.Generator().manual_seed(9))


def chosen(name):
    needs = "reference" in selection.SELECTORS[name].__dataclass_fields__
    return selection.selector(name, **({"reference": REFERENCE} if needs else {}))


@pytest.mark.parametrize("name, options", [
    ("nac", {"activation": "scaled"}), ("kmnc", {"neuron": "unit"}),
    ("npc", {"reference_labels": torch.zeros(30, dtype=torch.int64)}),
    ("dsa", {"order_by": "coverage"}), ("nss", {"difference": "squared_normalised"}),
    ("nss", {"pair": "original", "originals": REFERENCE.repeat(2, 1, 1, 1)[:40]})])
def test_options_count_in_batches_too(tiny_model, tiny_data, name, options):
    model, x, plain = tiny_model(), tiny_data.images, chosen(name)
    one = replace(plain, **options)
    _, order = protocol.ordered(one, model, x, 9)
    assert order.tolist() == one.order(model, x).tolist() != plain.order(model, x).tolist()


def test_selectors_share_a_pass(tiny_model, tiny_data):
    model, x, seen = tiny_model(), tiny_data.images, []
    found = [chosen(name).settled(model, x[:2]) for name in ("gini", "ats", "nac", "kmnc", "dsa")]
    model.register_forward_pre_hook(lambda module, given: seen.append(len(given[0])))
    batch = passed(model, x, torch.arange(40), found)
    assert seen == [40]
    alone = passed(model, x, torch.arange(40), found[-1:])
    assert torch.equal(batch.of(found[-1].want), alone.of(found[-1].want))
