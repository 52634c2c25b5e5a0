"""What a run of ``fuzz`` will take, forecast by one block."""

import pytest
import torch

from dnnlib import models
from dnnlib.custom import forecast
from dnnlib.custom.forecasting import Forecast


@pytest.fixture
def model():
    return models.build("lenet1")


@pytest.mark.parametrize("by", ["noise", "dlfuzz", "deepsensor"])
def test_the_passes_are_those_of_a_run(model, by):
    from dnnlib.custom.options import Options

    x, options = torch.rand(6, 1, 28, 28), Options(by=by, l2=2, iterations=7, population=3 if by == "deepsensor" else None)
    found = forecast(model, x, options)
    fuzzer = options.fuzzer()
    part = x[:options.at_once]
    campaign = fuzzer.run(model, part, model(part).argmax(1), iterations=7,
                          generator=torch.Generator().manual_seed(1))
    assert found.passes == pytest.approx(campaign.passes / len(part), rel=0.02)
    assert (found.images, found.inputs) == (6, 6) and found.fuzzing > 0


def test_only_so_many_inputs_are_fuzzed_as_the_limit_says(model):
    found = forecast(model, torch.rand(9, 1, 28, 28), by="noise", l2=2, limit=4)
    assert (found.images, found.inputs) == (9, 4)


def test_workers_share_the_fuzzing_and_not_the_classifying():
    found = Forecast(images=100, inputs=10, passes=1, classifying=0.1, fuzzing=2.0)
    assert found.seconds() == 30 and found.seconds(4) == 15


def test_nothing_is_written_and_bad_options_are_refused(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    forecast(model, torch.rand(3, 1, 28, 28), by="noise", l2=2)
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="reference"):
        forecast(model, torch.rand(3, 1, 28, 28), by="deephunter", l2=2)
