"""What ``dnnlib fuzz`` will take, by a look at one block of inputs: time and passes."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import torch
from torch import nn

from dnnlib.custom.fuzzing_run import prepare_run
from dnnlib.custom.options import Given, Options
from dnnlib.custom.photos import Images
from dnnlib.fuzzing import Fuzzer
from dnnlib.inference import leaves_modes, predict

LOOKS = (1, 3)  # iterations tried: what an iteration takes is the difference


@dataclass(frozen=True)
class Forecast:
    """``images``: read and classified once; ``inputs``: at most so many of them are fuzzed.

    ``passes``: over the network for an input in all iterations, a backward pass as two.
    ``classifying``, ``fuzzing``: seconds for an image and for an input, on this machine, the latter
    with the noise that it is told beside; reading and judging what was made are not in it.
    """

    images: int
    inputs: int
    passes: float
    classifying: float
    fuzzing: float

    def seconds(self, workers: int = 1) -> float:
        """Of the whole run: here, or the blocks on ``workers`` machines like this one.

        >>> Forecast(1000, 100, 2020, 0.01, 0.5).seconds(), Forecast(0, 100, 1, 0.0, 0.5).seconds(5)
        (60.0, 10.0)
        """
        return self.images * self.classifying + self.inputs * self.fuzzing / workers


@leaves_modes
def forecast(model: nn.Module, images: Images, options: Options | None = None, *,
             reference: Images | None = None, probabilities: bool | None = None,
             class_names: Sequence[str] | None = None, **given: Unpack[Given]) -> Forecast:
    """What :func:`fuzzing_run.fuzz` would take with the same arguments; nothing is written.

    A first block of inputs is fuzzed for one iteration and for three. Raises ``ValueError`` as
    :func:`fuzzing_run.fuzz` does.

    >>> from dnnlib import models
    >>> model = models.build("lenet1")
    >>> found = forecast(model, torch.rand(8, 1, 28, 28), by="noise", l2=2, limit=5)
    >>> found.images, found.inputs
    (8, 5)
    """
    look, fuzzer, photos, _, _, options = prepare_run(
        model, images, options or Options(**given), reference=reference,
        probabilities=probabilities, class_names=class_names)
    model = look.model
    count = min(options.limit or len(photos), len(photos))
    x = photos.some(min(count, options.at_once))
    predict(model, x, batch_size=options.batch_size)  # the first pass warms up
    start = time.perf_counter()
    labels = predict(model, x, batch_size=options.batch_size).argmax(1)
    classifying = (time.perf_counter() - start) / len(x)
    _look(model, fuzzer, x, labels, LOOKS[0])
    (few, passes_few), (many, passes_many) = (_look(model, fuzzer, x, labels, n) for n in LOOKS)
    more = options.iterations - LOOKS[0]
    each = LOOKS[1] - LOOKS[0]
    noise = options.beside
    beside = 0.0 if noise is None else (
        options.iterations * _look(model, noise, x, labels, LOOKS[1])[0] / LOOKS[1])
    return Forecast(len(photos), count,
                    (passes_few + more * (passes_many - passes_few) / each) / len(x), classifying,
                    (max(few, few + more * (many - few) / each) + beside) / len(x))


def _look(model: nn.Module, fuzzer: Fuzzer, x: torch.Tensor, labels: torch.Tensor,
          iterations: int) -> tuple[float, int]:
    """Seconds and passes of so many iterations."""
    start = time.perf_counter()
    campaign = fuzzer.run(model, x, labels, iterations=iterations,
                          generator=torch.Generator().manual_seed(0))
    return time.perf_counter() - start, campaign.passes
