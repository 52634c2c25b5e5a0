"""DLFuzz: ascent towards runner-up classes and chosen neurons, of one model (FSE 2018)."""

from dataclasses import dataclass

import torch

from dnnlib import checks
from dnnlib.fuzzing.ascent import Hits, Layout, Response, layout, normalise
from dnnlib.fuzzing.protocol import Budget, Log
from dnnlib.fuzzing.together import Climb, Look, Search, Side

STRATEGIES = ("none", "frequent", "rare", "weight", "threshold")
RUNNERS_UP = 4  # k, the paper's
_ABOVE, _BELOW = 0.25, 0.2  # how near a threshold is near (the code's)


def draw(weights: torch.Tensor, rows: int, count: int,
         generator: torch.Generator) -> torch.Tensor:
    """``count`` different neurons for each of ``rows`` images, bool (rows, N).

    ``weights``: (N,), >= 0, in proportion to which they are drawn. Where fewer than ``count``
    neurons have any weight, those are taken; where none has, all are equal.

    >>> draw(torch.tensor([0, 3, 0, 1]), 1, 3, torch.Generator()).int().tolist()
    [[0, 1, 0, 1]]
    """
    weights = weights.float().cpu()
    if not weights.any():
        weights = torch.ones_like(weights)
    count = min(count, int((weights > 0).sum()))
    places = torch.multinomial(weights.expand(rows, -1), count, generator=generator)
    return torch.zeros(rows, len(weights), dtype=torch.bool).scatter_(1, places, True)


def heavy(weights: torch.Tensor) -> torch.Tensor:
    """The tenth of all neurons, rounded up, with the largest mean incoming weights, bool (N,).

    ``weights``: see :class:`ascent.Layout`. Only those above 0 count.

    >>> heavy(torch.tensor([0.1, 0.3, -0.2, -torch.inf])).tolist()
    [False, True, False, False]
    """
    chosen = torch.zeros_like(weights, dtype=torch.bool)
    chosen[weights.argsort(descending=True, stable=True)[:-(-len(weights) // 10)]] = True
    return chosen & (weights > 0)


def near(scaled: torch.Tensor, threshold: float, count: int, maps: torch.Tensor) -> torch.Tensor:
    """Neurons near a threshold t, int8 (B, N): 1 just above it, -1 just below, else 0.

    ``scaled``: activations (B, N). Of the channels of ``maps``, bool (N,), the first
    ``count`` // 2 in (t, t + 0.25) and the first of the rest in (t - 0.2, t), as many as exist.

    >>> near(torch.tensor([[0.6, 0.1, 0.4, 0.7]]), 0.5, 2, torch.ones(4).bool()).tolist()
    [[1, 0, -1, 0]]
    """
    def first(mask: torch.Tensor, most: int) -> torch.Tensor:
        mask = mask & maps
        return (mask & (mask.cumsum(1) <= most)).to(torch.int8)

    above = (scaled > threshold) & (scaled < threshold + _ABOVE)
    below = (scaled < threshold) & (scaled > threshold - _BELOW)
    return first(above, count // 2) - first(below, count - count // 2)


@dataclass(frozen=True, kw_only=True, eq=False)
class DLFuzz(Side):
    r"""Gradient ascent from the label to the runners-up, and on chosen neurons (FSE 2018).

    .. math:: w_1 \sum_j z_j - z_c + w_2 \sum_n s_n a_n

    c is the input's label (the original: the class of the image taken from the list, so that coming
    back to the true class may count), j a runner-up, z a logit, n a chosen neuron, a raw;
    :math:`s_n` is 1, or -1 for a neuron that is to be lowered; :math:`w_1` is ``runner_up_weight``
    and :math:`w_2` ``neuron_weight``. Defaults are the paper's and, where it is silent, the code's
    for MNIST.

    - ``budget``: how far an example may be from its input; default any distance. Examples end
      within it and in [0, 1], where the original does not clip.
    - ``strategy``: which neurons. 'frequent' (1, the default) and 'rare' (2) are drawn in
      proportion to h and to max h - h, with h the number of images so far with a scaled activation
      above ``threshold``; 'weight' (3) from :func:`heavy`; 'threshold' (4), :func:`near` it and of
      maps only, are pushed away from it; 'none' from those never above it.
    - ``neurons``: how many (m). In a small network fewer may qualify: those few are taken (LeNet-1
      has 6 under 'weight'), and where none does, any m, but under 'threshold' none.
    - ``runners_up``: how many of the most probable other classes (k). Default the paper's 4, or
      all where the model has fewer.
    - ``runner_up_weight``: of the runners-up's logits, at least 0.
    - ``neuron_weight``: of the neurons' activations, at least 0.
    - ``step``: times the normalised gradient, in every iteration, at least 0.
    - ``threshold``: above which a scaled activation counts as active.
    - ``gain``: the share of all neurons newly covered by which an image joins the list, see below.
    - ``within``: the distance by which it joins, as a share of the input's L2 norm.
    - ``batch_size``: images in a pass; it does not change what is drawn.

    The original has a list for each input i = 0, 1, ...: an image taken from it moves a set number
    of times, under classes and neurons chosen for it, and joins the list again whenever it covers
    more than ``gain`` / (i + 1) of the neurons for the first time, at a distance to the input of
    less than ``within`` times the input's L2 norm. Here each input has one image that moves on in
    all iterations; whenever it would join the list, its classes and neurons are chosen anew,
    there. First covered means not covered before the iteration, in which all inputs move at once.
    A default step moves an MNIST digit by 0.03 to 0.1 of its norm, so that hardly any joins.
    ``run`` raises ``ValueError`` for more neurons or runners-up than the model has, or labels that
    it does not have.

    >>> from dnnlib import models
    >>> campaign = DLFuzz(strategy="weight", budget=Budget(l2=1)).run(
    ...     models.build("lenet1"), torch.rand(3, 1, 28, 28), torch.tensor([0, 1, 2]),
    ...     iterations=2, generator=torch.Generator().manual_seed(0))
    >>> campaign.predicted.shape, campaign.passes
    (torch.Size([2, 3]), 28)
    """

    budget: Budget = Budget()
    strategy: str = "frequent"
    neurons: int = 10
    runners_up: int | None = None
    runner_up_weight: float = 0.5
    neuron_weight: float = 0.5
    step: float = 0.02
    threshold: float = 0.5
    gain: float = 0.01
    within: float = 0.02
    batch_size: int = 256

    def __post_init__(self):
        checks.known(self.strategy, STRATEGIES, "strategy")
        for name in ("neurons", "batch_size"):
            checks.positive(getattr(self, name), name)
        if self.runners_up is not None:
            checks.positive(self.runners_up, "runners_up")
        for name in ("runner_up_weight", "neuron_weight", "step", "threshold", "gain", "within"):
            checks.finite(getattr(self, name), name, least=0)

    def search(self, log: Log, iterations: int, generator: torch.Generator) -> Search:
        x, n = log.inputs, len(log.inputs)
        seen = yield Look(log.model, x, self.batch_size)
        found = layout(log.model, x)
        log.passes += n + 1
        self._fits(seen)
        labels = checks.labels(log.labels, n, seen.logits.shape[1]).to(x.device)
        hits = Hits.none(seen, self.threshold)
        hits.add(seen.scaled)
        rivals = self._rivals(seen.logits, labels)
        push = self._push(seen.scaled, hits, found, generator)
        needed = self.gain / torch.arange(1, n + 1, device=x.device)
        reach = self.within * x.flatten(1).norm(dim=1)

        def objective(answer: Response, rows: slice) -> torch.Tensor:
            up = answer.logits.gather(1, rivals[rows]).sum(1)
            down = answer.logits.gather(1, labels[rows, None])[:, 0]
            fired = (answer.raw * push[rows]).sum(1)
            return self.runner_up_weight * up - down + self.neuron_weight * fired

        for _ in range(iterations):
            g = normalise((yield Climb(log.model, x, self.batch_size, objective)))
            x = self.budget.project(x + self.step * g, log.inputs)
            seen = yield Look(log.model, x, self.batch_size)
            log.passes += 4 * n
            log.add(x, predicted=seen.logits.argmax(1))
            moved = (x - log.inputs).flatten(1).norm(dim=1)
            joins = (hits.gain(seen.scaled) > needed) & (moved < reach)
            hits.add(seen.scaled)
            if joins.any():
                rivals[joins] = self._rivals(seen.logits[joins], labels[joins])
                push[joins] = self._push(seen.scaled[joins], hits, found, generator)

    def _fits(self, seen: Response) -> None:
        classes, neurons = seen.logits.shape[1], seen.raw.shape[1]
        if (self.runners_up or 1) >= classes:
            raise ValueError(f"runners_up: expected at most {classes - 1}, for a model of "
                             f"{classes} classes, got {self.runners_up or 'none to choose from'}")
        if self.neurons > neurons:
            raise ValueError(f"neurons: expected at most the model's {neurons}, "
                             f"got {self.neurons}")

    def _rivals(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The most probable classes other than the label, (B, k)."""
        count = self.runners_up or min(RUNNERS_UP, logits.shape[1] - 1)
        return logits.scatter(1, labels[:, None], -torch.inf).topk(count).indices

    def _push(self, scaled: torch.Tensor, hits: Hits, found: Layout,
              generator: torch.Generator) -> torch.Tensor:
        """The chosen neurons, int8 (B, N): 1 to be raised, -1 to be lowered."""
        if self.strategy == "threshold":
            return near(scaled, self.threshold, self.neurons, found.maps)
        weights = {"none": lambda: ~hits.covered, "frequent": lambda: hits.counts,
                   "rare": lambda: hits.counts.max() - hits.counts,
                   "weight": lambda: heavy(found.weights)}[self.strategy]()
        drawn = draw(weights, len(scaled), self.neurons, generator)
        return drawn.to(scaled.device, torch.int8)
