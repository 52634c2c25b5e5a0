"""CLEVER as experiments call it: the engine's, and in the record's revisions."""

import torch
from torch import nn

from dnnbook import reproducible
from dnnbook.studies import clever
from dnnlib.robustness import clever as engine


def test_a_record_that_rests_on_clever_names_its_revision():
    reproducible.fix()
    assert "clever" not in reproducible.settings()["revisions"]
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Flatten(), nn.Linear(16, 3)), torch.rand(2, 1, 4, 4)
    asked = {"batches": 4, "samples": 8, "seed": 1}
    found = clever.clever(model, x, **asked)
    assert torch.equal(found.targeted, engine.clever(model, x, **asked).targeted)
    assert reproducible.settings()["revisions"]["clever"] == reproducible.revision("clever")
