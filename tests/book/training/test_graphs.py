from dataclasses import replace

import pytest
import torch
from torch import nn

from dnnbook.training import Recipe, fit, graphs, loop

CUDA = torch.device("cuda")


@pytest.fixture
def replayed(monkeypatch):
    """Recording as a GPU does it, on the CPU: the step of the same two tensors, again and again."""
    starts = []

    def recorded(step, x, y):
        return lambda: starts.append(len(x)) or step(x, y)
    monkeypatch.setattr(graphs, "recorded", recorded)
    return starts


def test_a_recorded_step_sees_each_batch(replayed, generator):
    seen, batches = [], torch.rand(5, 4, 2, generator=generator()).unbind()
    steps = graphs.Steps(lambda x, y: seen.append((x.clone(), y.clone())), 4, CUDA)
    for i, batch in enumerate([*batches, batches[0][:3]]):
        steps(batch, torch.full((len(batch),), i))
    assert [int(y[0]) for _, y in seen] == [0, 1, 2, 3, 4, 5]
    assert all(torch.equal(x, batch) for (x, _), batch in zip(seen, batches))
    assert len(seen[-1][0]) == 3 and replayed == [4, 4, 4, 4]  # the first is set-up, the last small


def test_elsewhere_than_on_cuda_nothing_is_recorded(replayed):
    steps = graphs.Steps(lambda x, y: None, 4, torch.device("cpu"))
    for _ in range(3):
        steps(torch.zeros(4, 2), torch.zeros(4))
    assert not replayed


@pytest.mark.parametrize("recipe", [
    Recipe(0.1, 12, 4, momentum=0.9, weight_decay=1e-3, schedule="cosine"),
    Recipe(0.1, 16, 4, momentum=0.9, nesterov=True, schedule="steps", precision="bfloat16"),
    Recipe(0.1, 12, 3, augment=True)], ids=["cosine", "bfloat16", "augmented"])
@pytest.mark.parametrize("norm", [False, True])
def test_replayed_steps_give_the_weights_of_the_loop(replayed, tiny_model, tiny_data, monkeypatch,
                                                     recipe, norm):
    class OnCuda(graphs.Steps):
        def __init__(self, step, whole, device):
            super().__init__(step, whole, CUDA)

    found = []
    for kind in (graphs.Steps, OnCuda):
        monkeypatch.setattr(loop.graphs, "Steps", kind)
        model = tiny_model()
        model = nn.Sequential(nn.BatchNorm2d(1), model) if norm else model
        fit(model, tiny_data, replace(recipe), seed=1)
        found.append(torch.cat([v.flatten().double() for v in model.state_dict().values()]))
    assert torch.equal(*found) and replayed
