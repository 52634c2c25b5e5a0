"""A search guided by a fitness: a population of images around every input, scored pass by pass."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import nn

from dnnlib import checks
from dnnlib.fuzzing.numbers import Numbers
from dnnlib.fuzzing.protocol import Budget, Campaign, Log, Watch
from dnnlib.inference import fast_layout, free_memory, outputs
from dnnlib.neurons.sensitivity import SensitiveNeurons
from dnnlib.progress import progress

Score = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
Fitness = Callable[[nn.Module, torch.Tensor, torch.Tensor], Score]

# in a pass: on a CPU, more images of a small network leave the cache, and more pixels of a large
# one fill the memory; a GPU gains nothing beyond _MOST
_IMAGES, _PIXELS, _MOST = 256, 2**19, 2**16
_STATE = 10  # images that a search holds, or makes on the way, for each of its population


@dataclass(frozen=True, kw_only=True)
class Guided:
    """What every search with a fitness shares; a kind of search says how it flies.

    - ``budget``: how far an example may be from its input; default any distance. Positions are
      brought within it and [0, 1].
    - ``fitness``: a function that is called once, with the model, the inputs (S, C, H, W) and
      their labels (S,) on its device, and gives ``score(x, of)``: the fitness (N,), finite, of
      images (N, C, H, W) that came from the inputs ``of`` (N,). Default :class:`SensitiveNeurons`.
    - ``population``: images to an input, scored in each iteration.
    - ``batch_size``: images in a pass, and held at once beside the examples of all iterations. With
      None, on a GPU both are as many as its free memory has room for, and elsewhere as many as have
      half a million pixel values, on a CPU at most 256.

    An input has random numbers of its own, by its place, on every device and whatever other inputs
    there are: see :class:`numbers.Numbers`. A fitness that says that it is ``blind`` sends nothing
    through the model, and images for it need no room there. Raises ``ValueError`` or ``TypeError``
    naming the option, or the fitness where it is not finite.
    """

    budget: Budget = field(default_factory=Budget)
    fitness: Fitness = field(default_factory=SensitiveNeurons)
    population: int = 100
    batch_size: int | None = None

    def __post_init__(self):
        if not callable(self.fitness):
            raise TypeError("fitness: expected a function of model, inputs and labels, got "
                            f"{type(self.fitness).__name__}")
        checks.positive(self.population, "population")
        if self.batch_size is not None:
            checks.positive(self.batch_size, "batch_size")

    def sizes(self, model: nn.Module, inputs: torch.Tensor) -> tuple[int, int]:
        """How many images go through ``model`` at once, and how many are held beside examples."""
        if self.batch_size:
            return self.batch_size, self.batch_size
        pixels, free = inputs[0].numel(), free_memory(inputs.device)
        if free is None:
            most = _IMAGES if inputs.device.type == "cpu" else _PIXELS
            size = max(1, min(most, _PIXELS // pixels))
            return size, size
        held = max(1, free // 4 // (_STATE * inputs.element_size() * pixels))
        if getattr(self.fitness, "blind", False):
            return held, held
        # a gradient keeps every output, and as much again for what it makes of them
        one = outputs(model, fast_layout(inputs[:1], inputs.device))[0]
        return max(1, min(_MOST, free // 4 // (3 * one))), held

    @torch.no_grad()
    def run(self, model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor, *,
            iterations: int, generator: torch.Generator, watch: Watch | None = None) -> Campaign:
        checks.generator(generator)
        iterations = checks.positive(iterations, "iterations")
        log = Log(model, inputs, labels, watch)
        examples = torch.empty(iterations, *log.inputs.shape, device=log.inputs.device)
        keys = torch.randint(2**62, (len(inputs),), generator=generator)
        size, held = self.sizes(model, log.inputs)
        sent: list[int] = []
        counting = model.register_forward_pre_hook(  # a gradient counts as two more
            lambda module, given: sent.append(len(given[0]) * (1 + 2 * torch.is_grad_enabled())))
        try:
            fitness = self.fitness(model, log.inputs, log.labels.to(log.inputs.device))
            score = partial(scores, fitness, size)
            blocks = torch.arange(len(inputs)).split(max(1, held // self.population))
            for rows in progress(blocks, desc="swarms", leave=False):
                numbers = Numbers(keys[rows].to(log.inputs.device))
                shown = self.fly(score, log.inputs[rows], rows, numbers, iterations)
                for g, images in enumerate(shown):
                    examples[g, rows] = images
        finally:
            counting.remove()
        log.passes += sum(sent)
        for x in examples:
            log.add(fast_layout(x, x.device))
        return log.campaign()

    def fly(self, score: Score, inputs: torch.Tensor, rows: torch.Tensor,
            numbers: Numbers, iterations: int) -> Iterator[torch.Tensor]:
        """The examples (s, C, H, W) of every iteration, for inputs number ``rows`` (s,).

        ``score(x, rows)``: the fitness (s, P) of positions (s, P, C, H, W).
        """
        raise NotImplementedError

    def scattered(self, inputs: torch.Tensor, numbers: Numbers) -> torch.Tensor:
        """Random positions (s, P, C, H, W), uniform in [0, 1] and the budget's box, within it."""
        origin = inputs.unsqueeze(1)
        reach = 1 if self.budget.linf is None else self.budget.linf
        low, high = (origin - reach).clamp_min(0), (origin + reach).clamp_max(1)
        drawn = numbers.uniform(self.population, *inputs.shape[1:])
        return self.inside(drawn * (high - low) + low, inputs)

    def inside(self, x: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        """Positions (s, P, C, H, W) brought within the budget of ``inputs`` and [0, 1]."""
        if self.budget == Budget():  # projecting is slower, and would round
            return x.clamp_(0, 1)
        around = inputs.unsqueeze(1).expand_as(x).flatten(0, 1)
        return self.budget.project(x.flatten(0, 1), around).view_as(x)


def scores(score: Score, size: int, x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """The fitness (s, P) of all positions, ``size`` of them at a time."""
    of = rows.to(x.device).repeat_interleave(x.shape[1])
    parts = []
    for part, of_part in zip(x.flatten(0, 1).split(size), of.split(size)):
        found = torch.as_tensor(score(fast_layout(part, x.device), of_part))
        if found.shape != (len(part),):
            raise ValueError(f"fitness: expected {len(part)} numbers, one for each image, "
                             f"got shape {tuple(found.shape)}")
        if bad := int((~found.isfinite()).sum()):
            raise ValueError("fitness: expected finite numbers, got NaN or infinity for "
                             f"{bad} of {len(part)} images")
        parts.append(found.to(x.device, torch.float32))
    return torch.cat(parts).view(x.shape[:2])
