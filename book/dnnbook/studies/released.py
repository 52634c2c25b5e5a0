"""The settings that the rivals' authors released, and each rival in the best of its own."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import nn

from dnnbook.studies.naming import FuzzerKey
from dnnbook.studies.outcomes import hits
from dnnbook.studies.running import campaigns
from dnnlib import checks
from dnnlib.fuzzing.deephunter import DeepHunter
from dnnlib.fuzzing.deepxplore import CONSTRAINTS, DeepXplore
from dnnlib.fuzzing.dlfuzz import STRATEGIES, DLFuzz
from dnnlib.fuzzing.noise import Constant, Noise
from dnnlib.fuzzing.protocol import Budget, Campaign, Fuzzer, Watch
from dnnlib.fuzzing.swarm import Swarm
from dnnlib.inference import predict

# What DeepSensor runs (first paper, IV.A); it names no strategy of DLFuzz but "the best"
PAPER = {"deepxplore": "blackout", "dlfuzz": "frequent", "deephunter": "text"}
LARGE = 64  # pixels a side, beyond which images take the values released for ImageNet


def settings(name: str, *, others: Sequence[nn.Module] = (),
             reference: torch.Tensor | None = None, size: int = 28) -> dict[str, Fuzzer]:
    """Every released setting of a rival, by name; that of the paper comes first.

    - 'deepxplore': its three constraints, with images clipped at each step; '..._free', where they
      are clipped before they are judged; and '..._unclipped', where they are judged unclipped, as
      in the released loop (of these no test error need be one of an image). ``others``: models to
      compare with; without any it is taken in its reading on one network.
    - 'dlfuzz': its four strategies.
    - 'deephunter': the text's mutations, schedule and coverage; each of them as released; and all
      three. The released loop also stores images as bytes, whose differences wrap around at 256:
      that is a mistake of the program, and no setting here. ``reference``: see there.

    ``size``: pixels a side. Images of 64 or less take the values released for MNIST, since none
    were for CIFAR-10; larger ones those for ImageNet, where pixels are 0 to 255, here divided by
    that: DeepXplore's step of 10 (under light 10,000 times as much), its squares of 10 and 50
    pixels, and DLFuzz's step of 0.5 with neurons active above 0.25.

    Raises ``ValueError`` for an unknown rival.

    >>> list(settings("dlfuzz"))
    ['frequent', 'rare', 'weight', 'threshold']
    """
    checks.known(name, PAPER, "rival")
    large = size > LARGE
    if name == "dlfuzz":
        usual = DLFuzz(step=0.5 / 255, threshold=0.25) if large else DLFuzz()
        return {strategy: replace(usual, strategy=strategy)
                for strategy in STRATEGIES if strategy != "none"}
    if name == "deephunter":
        text = DeepHunter(reference=reference)
        released: dict[str, dict] = {
            "mutations": {"affine": "released"}, "schedule": {"schedule": "released"},
            "feedback": {"steps": 11}}
        every = {option: value for change in released.values() for option, value in change.items()}
        return {"text": text, **{f"released_{what}": replace(text, **change)
                                  for what, change in released.items()},
                "released": replace(text, **every)}
    reading = "differential" if others else "single"
    found = {}
    for clip, ending in (("step", ""), ("judging", "_free"), ("saving", "_unclipped")):
        for constraint in CONSTRAINTS:
            step = 10.0 * (1e4 if constraint == "light" else 1) / 255 if large else 10.0
            patch = {"blackout": 10, "occlusion": 50}.get(constraint) if large else None
            found[constraint + ending] = DeepXplore(
                others=tuple(others), reading=reading, constraint=constraint, clip=clip, step=step,
                patch=patch)
    return found


@dataclass(frozen=True, kw_only=True, eq=False)
class Best:
    """A rival in that of its settings which finds the most test errors from *other* inputs.

    The choice is made anew for each network, bound and number of iterations, from ``count`` images
    that the network gets right and that are not among its inputs; a tie goes to the first.

    - ``settings``: pairs of a name and a fuzzer.
    - ``images``, ``labels``: (M, C, H, W) and (M,); the other inputs are taken from them at random.
    - ``target``: an error is an example that is given this class: see :func:`outcomes.hits`.
    - ``last``: whether the examples of the last iteration alone count.
    - ``budget``: of all settings.

    Raises ``ValueError`` where no other image is left.

    >>> from dnnlib.fuzzing import Noise
    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    >>> x = torch.rand(9, 1, 2, 2, generator=torch.Generator().manual_seed(0))
    >>> best = Best(settings=(("weak", Noise(scale=1e-6)), ("strong", Noise(scale=9.0))),
    ...             images=x, labels=model(x).argmax(1), count=4)
    >>> best.chosen(model, x[:3], iterations=5)[0] in ("weak", "strong")
    True
    """

    settings: tuple[tuple[str, Fuzzer], ...]
    images: torch.Tensor = field(repr=False)
    labels: torch.Tensor = field(repr=False)
    count: int = 100
    target: int | None = None
    last: bool = False
    budget: Budget = Budget()

    def __post_init__(self):
        checks.images(self.images)
        if len(self.labels) != len(self.images):
            raise ValueError(f"labels: expected {len(self.images)}, one for each image, got "
                             f"{len(self.labels)}")
        checks.positive(self.count, "count")

    def run(self, model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor, *, iterations: int,
            generator: torch.Generator, watch: Watch | None = None) -> Campaign:
        """See :class:`protocol.Fuzzer`; passes and seconds are those of the chosen setting."""
        _, fuzzer = self.chosen(model, inputs, iterations=iterations)
        return fuzzer.run(model, inputs, labels, iterations=iterations, generator=generator,
                          watch=watch)

    def chosen(self, model: nn.Module, inputs: torch.Tensor, *,
               iterations: int) -> tuple[str, Fuzzer]:
        """The name of the best setting, and the fuzzer within the budget."""
        rates = self.rates(model, inputs, iterations=iterations)
        name = max(rates, key=lambda each: rates[each])
        return name, replace(dict(self.settings)[name], budget=self.budget)

    def rates(self, model: nn.Module, inputs: torch.Tensor, *,
              iterations: int) -> dict[str, float]:
        """Test errors of each setting from the other inputs, in percent of the examples."""
        found = campaigns(model, *self.held_out(model, inputs), iterations=iterations)
        wrong = {name: hits(campaign, self.target) for name, campaign in found.items()}
        return {name: 100 * float((each[-1] if self.last else each).double().mean())
                for name, each in wrong.items()}

    def held_out(self, model: nn.Module, inputs: torch.Tensor
                 ) -> tuple[torch.Tensor, torch.Tensor, dict[str, Fuzzer]]:
        """The other inputs, their classes, and every setting within the budget."""
        return *self.others(model, inputs), {
            name: replace(fuzzer, budget=self.budget) for name, fuzzer in self.settings}

    def others(self, model: nn.Module, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The other inputs, at most ``count``, and their classes."""
        taken = {image.contiguous().numpy().tobytes() for image in inputs.cpu()}
        places = []
        for i in torch.randperm(len(self.images), generator=torch.Generator().manual_seed(0)):
            if (self.images[i].cpu().contiguous().numpy().tobytes() not in taken
                    and int(self.labels[i]) != self.target):
                places.append(i)
            if len(places) == 4 * self.count:  # enough, unless most of them are given a wrong class
                break
        order = torch.tensor(places, dtype=torch.int64)
        right = (predict(model, self.images[order]).argmax(1) == self.labels[order].cpu()
                 if len(order) else torch.zeros(0, dtype=torch.bool))
        chosen = order[right][:self.count]
        if not len(chosen):
            raise ValueError(f"images: expected some of the {len(self.images)} that are not inputs "
                             "and that the model gets right, got none")
        return self.images[chosen], self.labels[chosen]


def rivals(others: Sequence[nn.Module], reference: torch.Tensor, *,
           best: tuple[torch.Tensor, torch.Tensor] | None = None, count: int = 100,
           target: int | None = None, last: bool = False,
           budget: Budget = Budget()) -> dict[FuzzerKey, Fuzzer]:
    """The three fuzzers that both DeepSensor papers compare with, as 'paper' and at their 'best'.

    ``others``: networks for the same task, with which DeepXplore compares; without any it is taken
    in its reading on one network. ``reference``: training images (M, C, H, W) that give DeepHunter
    its neurons' boundaries. ``best``: images and their classes; then each rival is there a
    second time, in the best of its :func:`settings` that judge images as they are saved; that,
    ``count`` (or 0 for no second time), ``target`` and ``last`` as of :class:`Best`.

    >>> list(map(str, rivals([nn.Linear(4, 2)], torch.rand(3, 1, 2, 2))))
    ['deepxplore, paper', 'dlfuzz, paper', 'deephunter, paper']
    """
    every = {name: {setting: replace(fuzzer, budget=budget) for setting, fuzzer in settings(
        name, others=others, reference=reference, size=reference.shape[-1]).items()
        if not setting.endswith("_unclipped")} for name in PAPER}
    found: dict[FuzzerKey, Fuzzer] = {FuzzerKey(name, setting="paper"): each[PAPER[name]]
                                for name, each in every.items()}
    if best is not None and count:
        found |= {FuzzerKey(name, setting="best"): Best(
            settings=tuple(each.items()), images=best[0], labels=best[1], count=count,
            target=target, last=last, budget=budget) for name, each in every.items()}
    return found


def every_setting(others: Sequence[nn.Module], reference: torch.Tensor) -> dict[FuzzerKey, Fuzzer]:
    """All :func:`settings` of all rivals, by key, without a bound; arguments as of :func:`rivals`.

    >>> len(every_setting([nn.Linear(4, 2)], torch.rand(3, 1, 2, 2)))
    18
    """
    return {FuzzerKey(name, setting=setting): fuzzer
            for name in PAPER for setting, fuzzer in settings(
                name, others=others, reference=reference, size=reference.shape[-1]).items()}


def choices(fuzzers: Mapping[FuzzerKey, Fuzzer], model: nn.Module, inputs: torch.Tensor, *,
            iterations: int = 20, bound: float | None = None) -> list[dict]:
    """Of each rival at its best, the test errors of its settings from the other inputs, as rows.

    'held_out_error_rate' of each setting, in percent, and 'chosen', 1 for the best and else 0.
    """
    rows = []
    for key, fuzzer in fuzzers.items():
        if isinstance(fuzzer, Best):
            best = replace(fuzzer, budget=Budget(l2=bound)) if bound is not None else fuzzer
            rates = best.rates(model, inputs, iterations=iterations)
            name = max(rates, key=lambda each: rates[each])
            for setting, rate in rates.items():
                about = {"fuzzer": key.fuzzer, "setting": setting}
                rows += [about | {"quantity": "held_out_error_rate", "value": rate},
                         about | {"quantity": "chosen", "value": float(setting == name)}]
    return rows


def settled(fuzzers: Mapping[Hashable, Fuzzer], model: nn.Module, inputs: torch.Tensor, *,
            iterations: int = 20) -> dict[Hashable, Fuzzer]:
    """``fuzzers`` with each :class:`Best` replaced by its choice, so that a clock times that."""
    return {key: fuzzer.chosen(model, inputs, iterations=iterations)[1]
            if isinstance(fuzzer, Best) else fuzzer for key, fuzzer in fuzzers.items()}


def lineup(population: int, rivals: Mapping[FuzzerKey, Fuzzer], *,
           budget: Budget = Budget()) -> dict[FuzzerKey, Fuzzer]:
    """All fuzzers of a chapter on the first paper: its swarm, the ``rivals``, and noise.

    The swarm is the text's ('paper'), the authors' ('released'), and the text's with a fitness that
    looks at no neuron ('constant'). ``budget``: of the swarms and of noise.
    """
    swarm = Swarm.paper(population=population, budget=budget)
    return {FuzzerKey("deepsensor", "paper"): swarm,
            FuzzerKey("deepsensor", "released"): Swarm.released(budget=budget),
            FuzzerKey("deepsensor", "constant"): replace(swarm, fitness=Constant()),
            **rivals, FuzzerKey("noise"): Noise(scale=1.0, budget=budget)}
