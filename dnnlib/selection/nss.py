"""NSS: inputs that sensitive neurons answer most strongly when mutated (Algorithms 1 and 2)."""

from dataclasses import dataclass, field, replace

import torch
from torch import nn

from dnnlib import checks
from dnnlib.neurons.activations import NEURONS, Want, record
from dnnlib.neurons.calls import calls
from dnnlib.perturb import mutations
from dnnlib.selection.protocol import Scored, beside, by_score
from dnnlib.selection.surprise import last_hidden

PAIRS = ("remutated", "original")
DIFFERENCES = ("l1", "squared_normalised")
_ROWS = 1024  # of what was kept, worked on at once


def sensitivities(before, after, *, difference: str = "l1") -> torch.Tensor:
    r"""How far every neuron moves for every input (NSS, II.B).

    .. math:: S(N_i, (x, x')) = |N_i(x) - N_i(x')| \qquad \text{or} \qquad
              \frac{(N_i(x) - N_i(x'))^2}{\max_j N_j(x)}

    ``before``, ``after``: activations (N, neurons) of x and x'. ``difference``: 'l1', the text's,
    or 'squared_normalised', the released code's (divided by 1 where no activation of x is above 0:
    that code makes infinities of these). Returns (N, neurons), >= 0. Raises ``ValueError`` for
    different shapes or values that are not finite.

    >>> sensitivities([[0.5, 0.25]], [[0.25, 0.25]]).tolist()
    [[0.25, 0.0]]
    """
    checks.known(difference, DIFFERENCES, "difference")
    before, after = (checks.tensor(values) for values in (before, after))
    if before.ndim != 2 or 0 in before.shape or before.shape != after.shape:
        raise ValueError("after: expected activations (N, neurons) of the shape of before, "
                         f"{tuple(before.shape)}, got {tuple(after.shape)}")
    moved = before - after
    if not moved.isfinite().all():
        raise ValueError("before, after: expected finite activations, got NaN or infinity")
    if difference == "l1":
        return moved.abs_()
    largest = before.amax(1, keepdim=True)
    return moved.square_().div_(torch.where(largest > 0, largest, 1))


def sensitive(moved: torch.Tensor, share: float = 0.1) -> torch.Tensor:
    """The ``share`` of neurons with the largest sum over inputs (Algorithm 1), most first.

    ``moved``: (N, neurons), from :func:`sensitivities`. Returns columns, int64; among equals the
    lowest first. Raises ``ValueError`` for a share outside (0, 1] or too small for one neuron.

    >>> sensitive(torch.tensor([[0.0, 2.0, 1.0], [1.0, 2.0, 0.0]]), 0.7).tolist()
    [1, 0]
    """
    return strongest(moved.sum(0, dtype=torch.float64), share)


def strongest(total: torch.Tensor, share: float) -> torch.Tensor:
    """The same, of the sums (neurons,)."""
    neurons = len(total)
    chosen = checks.count(neurons, share, "share")
    if not chosen:
        raise ValueError(f"share: {share:g} of {neurons} neurons is none; take at least "
                         f"{1 / neurons:.2g}")
    return total.argsort(descending=True, stable=True)[:chosen]


def tns_score(before, after, *, share: float = 0.1, difference: str = "l1") -> torch.Tensor:
    r"""TNSScore: the summed sensitivity of the sensitive neurons to every input (NSS, III.A).

    .. math:: \mathrm{TNSScore}_x = \sum_{i \in \mathrm{sensitive}} S(N_i, (x, x'))

    Only the sensitive neurons count, as in Algorithm 2. Arguments as of :func:`sensitivities` and
    :func:`sensitive`. Returns float64 (N,), >= 0. With 'squared_normalised' the mean, as in the
    released code, whose order is that of the sum.

    >>> before = [[.4, .5], [.2, .4], [.4, .5], [.8, .5]]  # Table II
    >>> after = [[.3, .4], [.2, .4], [.3, .3], [.7, .45]]
    >>> [round(s, 2) for s in tns_score(before, after, share=1.0).tolist()]
    [0.2, 0.0, 0.3, 0.15]
    """
    moved = sensitivities(before, after, difference=difference)
    return summed(moved[:, sensitive(moved, share)], difference)


def summed(moved: torch.Tensor, difference: str) -> torch.Tensor:
    """The score, float64 (N,), of how far sensitive neurons move (N, chosen)."""
    total = moved.sum(1, dtype=torch.float64)
    return total if difference == "l1" else total / moved.shape[1]


def last_map(model: nn.Module, x: torch.Tensor) -> str:
    """The name of the layer whose output is the last map, global average pools aside.

    The paper's "last encoder layer": the last pool of the LeNets and of VGG16, the last residual
    block of ResNet-20; of a transformer the last tokens. ``x``: images; the first is
    tried. Without maps, the layer before the logits.

    >>> from dnnlib import models
    >>> last_map(models.build("lenet5"), torch.zeros(1, 1, 28, 28))
    '5'
    """
    ran = [(name, layer) for name, layer in calls(model, x).items() if not layer.fault]
    pools = [i for i, (_, layer) in enumerate(ran)
             if isinstance(layer.module, nn.AdaptiveAvgPool2d) and layer.shape[1:].count(1) == 2]
    for name, layer in reversed(ran[:pools[-1]] if pools else ran):
        if len(layer.shape) > 1:
            return name
    return last_hidden(model, x)


@dataclass(frozen=True, kw_only=True, eq=False)
class NSS(Scored):
    """The candidates first whose mutation moves the sensitive neurons most.

    - ``pair``: what a candidate is compared with. 'remutated', the text: x is the candidate and x'
      a fresh mutation of it; one draw serves both algorithms. 'original', the released code: x is
      the unmutated image behind the candidate x'. Whoever has unlabelled data does not have those.
    - ``originals``: with 'original' only: those images (N, C, H, W), in the order of the
      candidates.
    - ``difference``: how activations are compared: see :func:`sensitivities`.
    - ``mutation``: one of the seven at 'random', or a name in :data:`mutations.OPERATORS`.
    - ``strength``: as :func:`mutations.mutate` has it, 1 to 5, or None, all of NSS's Table III.
    - ``share``: of neurons that count as sensitive, in (0, 1]; Table IV.
    - ``layer``: name of a module; default :func:`last_map`.
    - ``neuron``: 'unit' (the released code) or 'channel'.
    - ``seed``: of the mutation; must not be that of the candidates' own mutations.
    - ``batch_size``: images in a pass on a CPU; elsewhere :func:`inference.size_for` says how many.
    """

    pair: str = "remutated"
    originals: torch.Tensor | None = field(default=None, repr=False)
    difference: str = "l1"
    mutation: str = "random"
    strength: int | None = None
    share: float = 0.1
    layer: str | None = None
    neuron: str = "unit"
    seed: int = 123

    def __post_init__(self):
        super().__post_init__()
        checks.known(self.pair, PAIRS, "pair")
        checks.known(self.difference, DIFFERENCES, "difference")
        checks.known(self.mutation, [*mutations.OPERATORS, "random"], "mutation")
        checks.known(self.neuron, NEURONS, "neuron")
        checks.share(self.share, "share")
        if (self.originals is None) == (self.pair == "original"):
            raise ValueError("originals: expected images if pair='original', and None otherwise; "
                             f"got {'None' if self.originals is None else 'images'} with pair="
                             f"{self.pair!r}")

    passes = 1

    def settled(self, model, x):
        if self.originals is not None and len(beside(self.originals, x, "originals")) != len(x):
            raise ValueError(f"originals: expected {len(x)} images, one for each candidate, "
                             f"got {len(self.originals)}")
        return self if self.layer else replace(self, layer=last_map(model, x))

    @property
    def want(self):
        return Want((self.layer,), self.neuron)

    def read(self, batch, known):
        """How far each neuron moves; only the end tells which ones count."""
        other = (self.mutated(batch.x, batch.places) if self.originals is None
                 else self.originals[batch.places])
        other = record(batch.model, other, layers=self.want.layers, neuron=self.neuron,
                       batch_size=len(other)).values
        own = batch.of(self.want)
        pair = (own, other) if self.originals is None else (other, own)
        return sensitivities(*pair, difference=self.difference)

    def finish(self, rows, classes, known, *, folder=None, device="cpu"):
        total = sum(part.sum(0, dtype=torch.float64) for part in rows.split(_ROWS))
        most = strongest(total, self.share)
        score = torch.cat([summed(part[:, most], self.difference) for part in rows.split(_ROWS)])
        return score, by_score(score)

    def mutated(self, x: torch.Tensor, index: torch.Tensor | None = None) -> torch.Tensor:
        """A fresh mutation of each image; ``index``: see :func:`mutations.mutate`."""
        return mutations.mutate(x, self.mutation, seed=self.seed, strength=self.strength,
                                index=index).images
