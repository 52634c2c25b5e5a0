"""NPC: critical decision paths by relevance, and how near inputs come to those of training data.

Xie et al., "NPC: Neuron Path Coverage via Characterizing Decision Logic of Deep Neural Networks"
(TOSEM 2022). NSS names of its options alpha alone; what else is open follows the released code.
"""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

from dnnlib import checks
from dnnlib import coverage as cov
from dnnlib.neurons.relevance import Relevance, propagate
from dnnlib.selection.neuron_coverage import Covering
from dnnlib.selection.protocol import Batch

BUCKETS = 100  # of similarity, as in the released code


def critical(relevance: Relevance, alpha: float = 0.7) -> torch.Tensor:
    """The critical decision path of every input: bool (N, channels).

    In each layer the fewest channels, by falling relevance, that together have at least
    ``alpha`` of the positive relevance, of equals the first. A layer without positive relevance
    has none, where the released code takes the largest. Raises ``ValueError`` for an alpha
    outside (0, 1].

    >>> found = Relevance(torch.tensor([[0.5, 0.3, 0.2, -0.1]]), ("1",), (4,), torch.zeros(1), 2)
    >>> critical(found, 0.7).tolist()
    [[True, True, False, False]]
    """
    checks.share(alpha, "alpha")
    return torch.cat([_prefix(layer, alpha)
                      for layer in relevance.values.split(relevance.widths, 1)], 1)


def abstract_paths(paths: torch.Tensor, labels, classes: int, *, clusters: int = 4,
                   merge: float = 0.8, seed: int = 0) -> torch.Tensor:
    """What the paths of each class have in common: bool (classes, clusters, channels).

    ``paths``: bool (M, channels), of training inputs of the classes ``labels`` (M,). Those of one
    class are clustered by k-means, the best of ten starts drawn from ``seed``; an abstract path
    has the channels in at least the share ``merge`` of its cluster's paths. A class with fewer
    different paths than ``clusters`` has as many clusters as those; the others are empty.
    The released code merges with one path too many, and one channel too many a layer.

    Raises ``ValueError`` for paths of another shape, labels out of range, or a ``merge`` outside
    (0, 1].

    >>> paths = torch.tensor([[1, 1, 0], [1, 0, 0], [0, 0, 1]], dtype=torch.bool)
    >>> abstract_paths(paths, [0, 0, 0], 1, clusters=2, merge=0.6).sum(1).tolist()
    [[1, 0, 1]]
    """
    from sklearn.cluster import KMeans  # slow to import

    checks.share(merge, "merge")
    checks.positive(clusters, "clusters")
    paths = _paths(paths, "paths")
    labels = checks.labels(labels, len(paths), checks.positive(classes, "classes")).cpu()
    abstract = torch.zeros(classes, clusters, paths.shape[1], dtype=torch.bool)
    for label in labels.unique().tolist():
        of_class = paths[labels == label].numpy()
        k = min(clusters, len(np.unique(of_class, axis=0)))
        groups = KMeans(k, n_init=10, random_state=seed).fit_predict(of_class.astype(np.float32))
        for cluster in range(k):
            members = of_class[groups == cluster]
            shared = members.sum(0) >= merge * len(members) - 1e-9
            abstract[label, cluster] = torch.from_numpy(shared)
    return abstract


def snpc(paths: torch.Tensor, predicted, abstract: torch.Tensor) -> cov.Covered:
    r"""SNPC, by structure (Xie et al.): how similar inputs are to the paths of their class.

    .. math:: J = \frac{|P \cap A|}{|P \cup A|}, \qquad i = \lceil m J \rceil - 1

    with J the similarity of the channels of an input's path P, over all layers, to those of each
    abstract path A of its class, and i the bin that it is in, of m = :data:`BUCKETS`.

    ``paths``: bool (N, channels), of inputs of the classes ``predicted`` (N,); ``abstract``: bool
    (classes, clusters, channels). Columns are classes x clusters. Nothing is covered by J = 0,
    hence nothing in an empty abstract path; the released code counts that as one bucket more, but
    divides by m. Buckets are found in whole numbers, where that code rounds.

    >>> paths = torch.tensor([[1, 1, 0, 0], [0, 0, 0, 1]], dtype=torch.bool)
    >>> snpc(paths, [0, 0], torch.tensor([[[1, 1, 1, 0]]], dtype=torch.bool)).bins.tolist()
    [[66], [-1]]
    """
    paths = _paths(paths, "paths")
    if abstract.ndim != 3 or abstract.dtype != torch.bool or abstract.shape[2] != paths.shape[1]:
        raise ValueError(f"abstract: expected booleans (classes, clusters, {paths.shape[1]}), got "
                         f"{abstract.dtype} of shape {tuple(abstract.shape)}")
    classes, clusters, _ = abstract.shape
    predicted = checks.labels(predicted, len(paths), classes, "predicted").cpu()
    abstract = abstract.cpu()
    bins = torch.full((len(paths), classes, clusters), -1, dtype=torch.int8)
    for label in predicted.unique().tolist():
        rows = predicted == label
        taken, usual = paths[rows].float(), abstract[label].float()
        shared = taken @ usual.T  # exact in single precision, below 2**24 channels
        united = taken.sum(1, keepdim=True) + usual.sum(1) - shared
        shared, united = shared.long(), united.long().clamp(min=1)
        bins[rows, label] = ((BUCKETS * shared + united - 1) // united - 1).to(torch.int8)
    return cov.Covered(bins.flatten(1), BUCKETS)


@dataclass(frozen=True, kw_only=True, eq=False)
class NPC(Covering):
    """Neuron path coverage: SNPC, in :data:`BUCKETS` of similarity to abstract paths.

    - ``reference``: training images (M, C, H, W).
    - ``reference_labels``: (M,): only images that the model classifies correctly count; without,
      all, as of the class predicted.
    - ``alpha``: share of the relevance in a path, in (0, 1]: see :func:`critical`; Table IV of NSS.
    - ``beta``: of :func:`relevance.propagate`, at least 0.
    - ``merge``, ``clusters``: of :func:`abstract_paths`, those of the released code for MNIST
      (others: .9 and 4 or 7 for CIFAR-10, .6 and 4 for SVHN).
    - ``layers``: names of modules: see :func:`relevance.propagate`.
    - ``neuron``: only 'channel'.
    - ``seed``, ``batch_size``: see :class:`neuron_coverage.Covering`.

    Inputs predicted as a class without reference cover nothing.
    """

    reference: torch.Tensor = field(repr=False)
    reference_labels: torch.Tensor | None = field(default=None, repr=False)
    alpha: float = 0.7
    beta: float = 0.5
    merge: float = 0.8
    clusters: int = 4
    batch_size: int = 128

    def __post_init__(self):
        super().__post_init__()
        checks.images(self.reference, "reference")
        if self.neuron != "channel":
            raise ValueError(f"neuron: paths are of channels, got {self.neuron!r}")
        if self.reference_labels is not None and len(self.reference_labels) != len(self.reference):
            raise ValueError(f"reference_labels: expected {len(self.reference)} labels, one for "
                             f"each image, got {len(self.reference_labels)}")
        for name in ("alpha", "merge"):
            checks.share(getattr(self, name), name)
        checks.positive(self.clusters, "clusters")

    keeps, shared, passes, want = ("paths", "labels", "classes"), False, 3, None

    def settled(self, model, x):
        return self  # its layers are those of relevance

    def learn(self, batch):
        paths, labels, classes = self._paths(batch)
        if batch.labels is not None:
            right = labels == checks.labels(batch.labels, len(labels), classes,
                                            "reference_labels").cpu()
            paths, labels = paths[right], labels[right]
        return {"paths": paths, "labels": labels, "classes": torch.tensor([classes])}

    def learned(self, rows):
        if not len(rows["paths"]):
            raise ValueError("reference_labels: expected some image of the reference to be "
                             f"classified as labelled, got none of {len(self.reference)}")
        return {"abstract": abstract_paths(
            rows["paths"], rows["labels"], rows["classes"][0].item(), clusters=self.clusters,
            merge=self.merge, seed=self.seed)}

    def read(self, batch, known):
        paths, labels, _ = self._paths(batch)
        return snpc(paths, labels, known["abstract"]).bins

    def finish(self, rows, classes, known, *, folder=None, device="cpu"):
        return None, self.arrange(cov.Covered(rows, BUCKETS), folder)

    def _paths(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor, int]:
        """Critical paths, predicted classes, and how many classes there are."""
        found = propagate(batch.model, batch.x, layers=self.layers, beta=self.beta,
                          batch_size=self.batch_size)
        return critical(found, self.alpha), found.predicted, found.classes


def _prefix(layer: torch.Tensor, alpha: float) -> torch.Tensor:
    """The channels of each row's shortest prefix, sorted, with ``alpha`` of what is positive."""
    values, order = layer.double().clamp(min=0).sort(dim=1, descending=True, stable=True)
    reached = values.cumsum(1)
    before = nn.functional.pad(reached, (1, -1))  # short of it: so the crossing channel is inside
    inside = before < alpha * reached[:, -1:]
    return torch.zeros_like(inside).scatter_(1, order, inside)


def _paths(paths: torch.Tensor, name: str) -> torch.Tensor:
    if not isinstance(paths, torch.Tensor) or paths.dtype != torch.bool or paths.ndim != 2 or (
            0 in paths.shape):
        came = (f"{paths.dtype} of shape {tuple(paths.shape)}"
                if isinstance(paths, torch.Tensor) else type(paths).__name__)
        raise ValueError(f"{name}: expected booleans (N, channels), got {came}")
    return paths.cpu()
