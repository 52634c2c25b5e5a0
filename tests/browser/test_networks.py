"""The networks of the interactive figures give PyTorch's logits, in a real browser."""

import pytest
import torch
from torch import nn

from dnnbook.interactive.block import asset, packed
from dnnbook.interactive.networks import exported
from dnnlib import models

RUN = """([data, images]) => {
  const network = new Network(data), all = floats(images), size = network.shape.reduce((a, b) => a * b);
  const found = [];
  for (let at = 0; at < all.length; at += size) found.push([...network.logits(all.subarray(at, at + size))]);
  return found;
}"""


@pytest.fixture
def run(browser):
    """``run(model, x)``: the logits in the browser."""
    page = browser.new_page()
    page.add_script_tag(content=asset("core.js"))

    def run(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        data = exported(model, tuple(x.shape[1:]))
        return torch.tensor(page.evaluate(RUN, [data, packed(x.numpy())]))
    yield run
    page.close()


def large(model: nn.Module) -> nn.Module:
    """Logits as far apart as those of a trained network."""
    with torch.no_grad():
        for part in model.parameters():
            part.mul_(2)
    return model.eval()


@pytest.mark.parametrize("name, shape", [
    ("lenet1", (1, 28, 28)), ("lenet4", (1, 28, 28)), ("lenet5", (1, 28, 28)),
    ("lenet5", (3, 31, 31)), ("lenet1_nss", (1, 28, 28)), ("lenet5_nss", (1, 28, 28)),
    ("net2", (1, 28, 28))])
def test_the_logits_are_pytorchs(run, name, shape):
    torch.manual_seed(0)
    model = large(models.build(name, shape=shape))
    x = torch.rand(5, *shape)
    with torch.no_grad():
        expected = model(x)
    assert expected.std() > 0.1
    assert (run(model, x) - expected).abs().max() < 1e-4


def test_odd_layers_too(run):
    """Strides, an unequal "same" padding, overlapping and padded pools, averages, no bias."""
    torch.manual_seed(0)
    same = models.layers.SameConv2d(2, 3, (5, 3), (2, 3), bias=False)
    model = large(nn.Sequential(
        nn.Sequential(same, nn.Sigmoid()), nn.Conv2d(3, 4, 3, stride=(1, 2), padding=(1, 0)),
        nn.MaxPool2d(3, 2, padding=1, ceil_mode=True), nn.Tanh(), nn.Dropout(), nn.AvgPool2d(2, 1),
        nn.Flatten(), nn.Linear(16, 3)))
    x = torch.rand(4, 2, 17, 22)
    with torch.no_grad():
        expected = model(x)
    assert (run(model, x) - expected).abs().max() < 1e-4

