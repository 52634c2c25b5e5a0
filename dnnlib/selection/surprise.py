"""Distance-based surprise adequacy (Kim, Feldt and Yoo, ICSE 2019)."""

from dataclasses import dataclass, field, replace

import torch
from torch import nn

from dnnlib import checks
from dnnlib import coverage as cov
from dnnlib.inference import doubles
from dnnlib.neurons.activations import NEURONS, Want
from dnnlib.neurons.layers import SOFTMAX, layers_of
from dnnlib.selection.protocol import Scored, by_score

ORDERS = ("score", "coverage")
BUCKETS = 1000  # of scores, for an order by coverage
PART = 4096  # images whose distances are computed at once
_CELLS = 2**23  # distances held at once


def dsa(traces, predicted, reference, reference_predicted, *,
        device: torch.device | str = "cpu") -> torch.Tensor:
    r"""How much nearer an input is to other classes than a training input of its own would be.

    .. math:: \mathrm{DSA} = \frac{d_a}{d_b}, \qquad d_a = \lVert t - x_a \rVert_2, \qquad
              d_b = \min_{x \notin c} \lVert x_a - x \rVert_2

    with t the trace of an input of class c, :math:`x_a` the nearest reference trace of c, and x
    those of other classes (Kim et al., Eqs. 3-5); DeepGini's and NeuraL-Coverage's code measure
    :math:`d_b` from t.

    ``traces``: (N, d) activations of the inputs, ``predicted``: their classes (N,); likewise
    ``reference`` (M, d) and ``reference_predicted`` (M,) for training inputs. ``device``: where
    distances are computed, in float64; on the CPU where the device has no such numbers (mps).
    Returns float64 (N,), >= 0, on the CPU; 0 for a training input, infinity where no training input
    is of the class. Raises ``ValueError`` for an empty reference or one of a single class,
    different widths, or values that are not finite.

    >>> dsa([[0.5]], [0], [[0.0], [3.0], [2.0]], [0, 0, 1]).tolist()
    [0.25]
    """
    a, b = as_traces(traces, "traces"), as_traces(reference, "reference")
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"reference: expected traces of width {a.shape[1]}, got {b.shape[1]}")
    classes = [as_classes(predicted, len(a), "predicted"),
               as_classes(reference_predicted, len(b), "reference_predicted")]
    if len(classes[1].unique()) < 2:
        raise ValueError("reference: expected inputs of at least two predicted classes, got "
                         f"{len(b)} of class {int(classes[1][0])}")
    there = doubles(device)
    a, b, *classes = (each.to(there) for each in (a, b, *classes))
    middle = b.mean(0)  # products of what is far from the origin lose digits
    a, b = a - middle, b - middle
    score = a.new_full((len(a),), torch.inf)
    for label in classes[0].unique():
        rows, same = classes[0] == label, classes[1] == label
        if not same.any():
            continue
        of_class = b[same]
        nearest, d_a = _nearest(a[rows], of_class)
        used, back = nearest.unique(return_inverse=True)  # d_b, once for each x_a
        d_b = _nearest(of_class[used], b[~same])[1][back]
        score[rows] = torch.where(d_a == 0, 0, d_a / d_b)
    return score.cpu()


def last_hidden(model: nn.Module, x: torch.Tensor) -> str:
    """The name of the layer before the logits, of those of :func:`layers.layers_of`.

    ``x``: images; the first is tried.

    >>> from dnnlib import models
    >>> last_hidden(models.build("lenet5"), torch.zeros(1, 1, 28, 28))
    '10'
    """
    names = [name for name in layers_of(model, x) if name != SOFTMAX]
    if len(names) < 2:
        raise ValueError("layer: the model has no hidden layer; name one with layer=")
    return names[-2]


@dataclass(frozen=True, kw_only=True, eq=False)
class Traced(Scored):
    """A selector that compares activations, the traces, with those of training images.

    - ``reference``: training images (M, C, H, W).
    - ``layer``: name of the module whose activations are the traces; default the last hidden one.
    - ``neuron``: 'channel' (sadl) or 'unit'.
    - ``seed``: of all that is random.
    - ``batch_size``: images in a pass on a CPU; elsewhere :func:`inference.size_for` says how many.
    """

    reference: torch.Tensor = field(repr=False)
    layer: str | None = None
    neuron: str = "channel"
    seed: int = 0

    keeps = ("traces", "classes")

    def __post_init__(self):
        super().__post_init__()
        checks.images(self.reference, "reference")
        checks.known(self.neuron, NEURONS, "neuron")

    def settled(self, model, x):
        return self if self.layer else replace(self, layer=last_hidden(model, x))

    @property
    def want(self):
        return Want((self.layer,), self.neuron)

    def learn(self, batch):
        return {"traces": batch.of(self.want), "classes": batch.classes}

    def read(self, batch, known):
        return batch.of(self.want)


@dataclass(frozen=True, kw_only=True, eq=False)
class DSA(Traced):
    """The most surprising inputs first.

    - ``reference``, ``layer``, ``neuron``, ``batch_size``: see :class:`Traced`.
    - ``order_by``: 'score', or 'coverage', the other reading of NSS's "n = 1000": inputs that fall
      into a bucket of scores not seen before (surprise coverage), and then the rest at random. See
      :func:`surprise_buckets`; in sadl's code they end at 2000, far above any DSA.
    - ``seed``: of the rest.
    """

    order_by: str = "score"

    def __post_init__(self):
        super().__post_init__()
        checks.known(self.order_by, ORDERS, "order_by")

    def learned(self, rows):
        dsa(rows["traces"][:1], rows["classes"][:1], rows["traces"], rows["classes"])  # or why not
        return rows

    def finish(self, rows, classes, known, *, folder=None, device="cpu"):
        score = torch.cat([dsa(part, given, known["traces"], known["classes"], device=device)
                           for part, given in zip(rows.split(PART), classes.split(PART))])
        return score, self.arrange(score)

    def arrange(self, score: torch.Tensor) -> torch.Tensor:
        """The order of scores (N,)."""
        if self.order_by == "score":
            return by_score(score)
        return cov.cam(surprise_buckets(score), generator=torch.Generator().manual_seed(self.seed))


def surprise_buckets(score: torch.Tensor) -> cov.Covered:
    """Which of :data:`BUCKETS` from 0 to the largest finite score each score (N,) is in, -1 beyond.

    >>> surprise_buckets(torch.tensor([0.0, 1.0, 2.0, torch.inf])).bins[:, 0].tolist()
    [0, 500, 999, -1]
    """
    finite = score[score.isfinite()]
    upper = float(finite.max()) if len(finite) else 0.0
    upper = upper or 1.0  # no score above 0: all in the first bucket
    inside = score.clamp(max=2 * upper).double()[:, None]
    ends = torch.tensor([[0.0], [upper]], dtype=torch.float64)  # or rounding cuts off the largest
    return cov.kmnc(inside, cov.boundaries(ends), BUCKETS)


def _nearest(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """For every row of ``a`` (N, d), which row of ``b`` (M, d) is nearest, and how far it is."""
    squares = b.square().sum(1)
    index = torch.cat([torch.addmm(squares, part, b.T, alpha=-2).argmin(1)
                       for part in a.split(max(1, _CELLS // len(b)))])
    return index, (a - b[index]).norm(dim=1)  # anew, so that equals are at distance 0


def as_traces(values, name: str) -> torch.Tensor:
    """Traces (N, width), float64, on the CPU; ``ValueError`` naming them."""
    values = checks.tensor(values)
    if values.ndim != 2 or 0 in values.shape or not values.is_floating_point():
        raise ValueError(f"{name}: expected floating-point traces (N, width) of at least one "
                         f"input, got {values.dtype} of shape {tuple(values.shape)}")
    if not values.isfinite().all():
        raise ValueError(f"{name}: expected finite values, got NaN or infinity")
    return values.double().cpu()


def as_classes(labels, n: int, name: str) -> torch.Tensor:
    """Classes (n,), whole numbers, on the CPU; ``ValueError`` naming them."""
    labels = checks.tensor(labels)
    if labels.is_floating_point() or labels.shape != (n,):
        raise ValueError(f"{name}: expected {n} classes, got {labels.dtype} of shape "
                         f"{tuple(labels.shape)}")
    return labels.cpu()
