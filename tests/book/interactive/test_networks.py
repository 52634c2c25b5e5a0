import base64

import numpy as np
import pytest
import torch
from torch import nn

from dnnbook.interactive.networks import exported
from dnnlib import models


def test_weights_are_all_there_in_the_order_of_the_layers():
    model = models.build("lenet1")
    found = exported(model, (1, 28, 28))
    sent = np.frombuffer(base64.b64decode(found["weights"]), dtype="<f4")
    held = torch.cat([part.detach().flatten() for part in model.parameters()])
    assert sent.tolist() == held.tolist()
    assert sum(sum(layer["held"]) for layer in found["layers"]) == len(held)


def test_shapes_are_those_of_the_layers():
    found = exported(models.build("lenet5", shape=(1, 31, 31)), (1, 31, 31))
    assert [layer["to"] for layer in found["layers"] if layer["kind"] == "max"] == [
        [6, 16, 16], [16, 8, 8]]  # rounded up
    assert found["layers"][-1]["to"] == [10]


class Residual(nn.Module):
    def forward(self, x):
        return x + 1


@pytest.mark.parametrize("layer, words", [
    (Residual(), r"cannot run layer '0.1', Residual\(\); expected Conv2d, Linear"),
    (nn.Conv2d(4, 4, 3, groups=2), "layer '0.1', Conv2d.*expected groups and dilation of 1"),
    (nn.Conv2d(4, 4, 3, padding="same"), "layer '0.1'.*number of zeros as padding"),
    (nn.Conv2d(4, 4, 3, padding=1, padding_mode="circular"), "number of zeros as padding"),
    (nn.MaxPool2d(2, dilation=2), "layer '0.1', MaxPool2d.*a dilation of 1"),
    (nn.AvgPool2d(2, padding=1), "averages without padding"),
    (nn.Flatten(2), "layer '0.1', Flatten"),
    (nn.BatchNorm2d(4), "layer '0.1', BatchNorm2d")])
def test_what_the_browser_cannot_run_is_refused(layer, words):
    model = nn.Sequential(nn.Sequential(nn.Conv2d(1, 4, 3), layer), nn.Flatten(),
                          nn.LazyLinear(3))
    with pytest.raises(ValueError, match=words):
        exported(model, (1, 9, 9))


def test_a_network_without_logits_is_refused():
    with pytest.raises(ValueError, match=r"logits \(N, classes\), got shape \(1, 4, 7, 7\)"):
        exported(nn.Sequential(nn.Conv2d(1, 4, 3)), (1, 9, 9))
