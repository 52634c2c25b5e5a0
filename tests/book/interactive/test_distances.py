from dataclasses import replace

import pytest
import torch
from torch import nn

from dnnbook import interactive, studies
from dnnlib import fuzzing


@pytest.fixture
def found():
    """Noise on three images at two bounds, by bound and name; and the network and the images."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(36, 2)).eval()
    x = torch.rand(3, 1, 6, 6, generator=torch.Generator().manual_seed(0))
    labels = model(x).argmax(1)
    return model, x, labels, {
        l2: studies.campaigns(model, x, labels, {"noise": fuzzing.Noise(
            budget=fuzzing.Budget(l2=l2), scale=1.0)}, iterations=4) for l2 in (0.5, 2.0)}


def test_what_is_shown_is_what_the_campaigns_hold(found):
    model, x, labels, campaigns = found
    data = interactive.distance_slider(model, x, labels, campaigns,
                                       curves={"noise": {2.0: 7, 0.5: 1}}).data
    method, = data["methods"]
    for place, campaign in enumerate(by["noise"] for by in campaigns.values()):
        assert method["class"][place] == campaign.predicted[-1].tolist()
        assert method["errors"][place] == campaign.errors.sum(0).tolist()
        assert method["l2"][place] == pytest.approx(campaign.l2[-1].tolist(), abs=0.01)
    assert method["curve"] == [[0.5, 1.0], [2.0, 7.0]] and method["examples_each"] == 4


def turned(campaigns):
    first = campaigns[0.5]["noise"]
    return {0.5: {"noise": replace(first, origin=first.origin.flip(1))}}


@pytest.mark.parametrize("change, words", [
    (lambda found: {2.0: found[2.0], 0.5: found[0.5]}, r"rising bounds above 0, got \[2.0, 0.5\]"),
    (lambda found: {}, r"rising bounds above 0, got \[\]"),
    (lambda found: {0.5: found[0.5], 2.0: {}}, r"methods \['noise'\] at every bound, got \[\] at 2"),
    (turned, "each of 3 seeds, in their order, from noise at 0.5")])
def test_campaigns_that_do_not_fit_are_refused(found, change, words):
    model, x, labels, campaigns = found
    with pytest.raises(ValueError, match=words):
        interactive.distance_slider(model, x, labels, change(campaigns))


def test_a_curve_of_no_method_is_refused(found):
    model, x, labels, campaigns = found
    with pytest.raises(ValueError, match="unknown method of curves 'nosie'; did you mean 'noise'"):
        interactive.distance_slider(model, x, labels, campaigns, curves={"nosie": {}})
