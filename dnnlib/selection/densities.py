"""Surprise by what is common among training inputs: likelihoods, and Mahalanobis distances.

LSA is of Kim, Feldt and Yoo (ICSE 2019); MDSA, MLSA and MMDSA are of Kim, Feldt and Yoo (ICSE-SEIP
2020) and Weiss, Chakraborty and Tonella (ICSE Workshops 2021), whose dnn-tip defines them as here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import torch

from dnnlib.selection.protocol import by_score
from dnnlib.selection.surprise import PART, Traced, as_classes, as_traces

Fit = Callable[[np.ndarray], np.ndarray]  # traces (n, d) to scores (n,)
SPAN = 1e-10  # a direction counts if its variance is that much of the largest
JUDGED = 5000  # traces by which a number of clusters is judged
_CELLS = 2**22  # distances held at once


def likelihood(reference: np.ndarray, features: int = 300) -> Fit:
    """LSA: -log of a Gaussian kernel density, of Scott's bandwidth, fitted to traces (n, d), n > 1.

    Of the neurons the ``features`` of the largest variance count. As SciPy's ``gaussian_kde``, but
    where traces span fewer directions than neurons, the density is that in the directions that they
    span, and far from all of them it stays above 0.

    >>> likelihood(np.array([[0.0], [1.0], [2.0]]))(np.array([[1.0], [9.0]])).round(2).tolist()
    [1.15, 39.82]
    """
    kept = np.sort(reference.var(0).argsort(kind="stable")[-features:])
    middle = reference[:, kept].mean(0)
    values, vectors = _directions(reference[:, kept] - middle)
    n, d = len(reference), len(values)
    values = values * n / (n - 1)
    width = n ** (-1 / (d + 4))
    white = vectors / (width * np.sqrt(values))
    points = (reference[:, kept] - middle) @ white
    constant = np.log(n) + d * np.log(2 * np.pi * width**2) / 2 + np.log(values).sum() / 2

    def score(traces: np.ndarray) -> np.ndarray:
        from scipy.spatial.distance import cdist
        from scipy.special import logsumexp

        parts = np.array_split((traces[:, kept] - middle) @ white, -(-len(traces) * n // _CELLS))
        return constant - np.concatenate([logsumexp(-cdist(part, points, "sqeuclidean") / 2, axis=1)
                                          for part in parts])

    return score


def mahalanobis(reference: np.ndarray) -> Fit:
    """MDSA: the squared Mahalanobis distance from the mean of traces (n, d).

    As scikit-learn's ``EmpiricalCovariance``: directions in which the traces do not vary count
    nothing.

    >>> mahalanobis(np.array([[0.0], [2.0]]))(np.array([[1.0], [4.0]])).tolist()
    [0.0, 9.0]
    """
    middle = reference.mean(0)
    values, vectors = _directions(reference - middle)
    return lambda traces: np.square((traces - middle) @ vectors / np.sqrt(values)).sum(1)


def _directions(centred: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The variances (r,) of traces (n, d) around 0, and their directions (d, r): those not 0."""
    n, d = centred.shape
    few = n < d  # then the products of traces are the smaller matrix
    values, vectors = np.linalg.eigh((centred @ centred.T if few else centred.T @ centred) / n)
    spanned = values > SPAN * max(values[-1], 0)
    values, vectors = values[spanned], vectors[:, spanned]
    return values, centred.T @ vectors / np.sqrt(n * values) if few else vectors


def mixture(reference: np.ndarray, components: int = 2, seed: int = 0) -> Fit:
    """MLSA: -log of the likelihood in a mixture of Gaussians, fitted to traces (n, d).

    ``components``: Gaussians, at most n.
    """
    from sklearn.mixture import GaussianMixture

    fitted = GaussianMixture(min(components, len(reference)), random_state=seed).fit(reference)
    return lambda traces: -fitted.score_samples(traces)


def clustered(reference: np.ndarray, clusters: tuple[int, ...] = (2, 3, 4, 5),
              seed: int = 0) -> Fit:
    """MMDSA: :func:`mahalanobis` in the k-means cluster that a trace is nearest to.

    ``clusters``: numbers to choose from, by the mean silhouette, of at most 5,000 traces. If there
    are too few different traces for any, there is one cluster.
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    most = min(len(np.unique(reference, axis=0)), len(reference) - 1)
    best, chosen = -np.inf, None
    for k in (k for k in clusters if k <= most):
        found = KMeans(k, n_init=10, random_state=seed).fit(reference)
        quality = silhouette_score(reference, found.labels_, random_state=seed,
                                   sample_size=min(len(reference), JUDGED))
        if quality > best:
            best, chosen = quality, found
    if chosen is None:
        return mahalanobis(reference)
    fits = {label: mahalanobis(reference[chosen.labels_ == label])
            for label in range(chosen.n_clusters)}
    return lambda traces: _by(fits, chosen.predict(traces), traces)


def by_class(reference: np.ndarray, classes: np.ndarray,
             fit: Callable[[np.ndarray], Fit]) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """A fit for each predicted class; infinite where fewer than two training inputs are of it."""
    fits = {int(label): fit(reference[classes == label])
            for label, n in zip(*np.unique(classes, return_counts=True)) if n > 1}
    return lambda traces, predicted: _by(fits, predicted, traces)


def _by(fits: Mapping[int, Fit], labels: np.ndarray, traces: np.ndarray) -> np.ndarray:
    score = np.full(len(traces), np.inf)
    for label in np.unique(labels):
        if int(label) in fits:
            score[labels == label] = fits[int(label)](traces[labels == label])
    return score


@dataclass(frozen=True, kw_only=True, eq=False)
class Density(Traced):
    """The inputs least like the training images first, by the traces of one layer.

    They are compared with training images of the same predicted class, as LSA's paper and TIP's
    experiments do, unless a kind says that it is not ``per_class``.

    - ``reference``, ``layer``, ``neuron``, ``batch_size``: see :class:`surprise.Traced`.
    - ``seed``: of what is random in a fit.
    """

    per_class: ClassVar[bool] = True

    @property
    def fit(self) -> Callable[[np.ndarray], Fit]:
        """From the traces of training inputs (n, d), n > 1, to a score of others."""
        raise NotImplementedError

    def fitted(self, reference, classes) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
        """From traces and predicted classes of training inputs to scores of others, float64 (N,).

        Raises ``ValueError`` for fewer than two training inputs, or values that are not finite.
        """
        known = as_traces(reference, "reference").numpy()
        if len(known) < 2:
            raise ValueError(f"reference: expected at least two training images, got {len(known)}")
        own = as_classes(classes, len(known), "reference_predicted").numpy()
        whole = None if self.per_class else self.fit(known)
        split = by_class(known, own, self.fit) if whole is None else None

        def score(traces, predicted) -> torch.Tensor:
            values = as_traces(traces, "traces").numpy()
            if values.shape[1] != known.shape[1]:
                raise ValueError(f"traces: expected width {known.shape[1]}, got {values.shape[1]}")
            given = as_classes(predicted, len(values), "predicted").numpy()
            return torch.from_numpy(whole(values) if split is None else split(values, given))

        return score

    def finish(self, rows, classes, known, *, folder=None, device="cpu"):
        score_of = self.fitted(known["traces"], known["classes"])
        score = torch.cat([score_of(part, given) for part, given
                           in zip(rows.split(PART), classes.split(PART))])
        return score, by_score(score)


@dataclass(frozen=True, kw_only=True, eq=False)
class LSA(Density):
    """By :func:`likelihood`."""

    @property
    def fit(self):
        return likelihood


@dataclass(frozen=True, kw_only=True, eq=False)
class MDSA(Density):
    """By :func:`mahalanobis`."""

    @property
    def fit(self):
        return mahalanobis


@dataclass(frozen=True, kw_only=True, eq=False)
class MLSA(Density):
    """By :func:`mixture`."""

    @property
    def fit(self):
        return partial(mixture, seed=self.seed)


@dataclass(frozen=True, kw_only=True, eq=False)
class MMDSA(Density):
    """By :func:`clustered`, of all classes together."""

    per_class = False

    @property
    def fit(self):
        return partial(clustered, seed=self.seed)
