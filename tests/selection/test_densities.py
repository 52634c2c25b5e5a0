"""LSA, MDSA, MLSA and MMDSA against SciPy, scikit-learn and dnn-tip, and in the place of selectors."""

import math
import warnings

import numpy as np
import pytest
import torch
from dnn_tip import surprise as tip
from scipy.stats import gaussian_kde, multivariate_normal
from sklearn.covariance import EmpiricalCovariance

from dnnlib.inference import predict
from dnnlib.neurons.activations import record
from dnnlib.selection import LSA, MDSA, MLSA, MMDSA, densities

NAMES = {"lsa": LSA, "mdsa": MDSA, "mlsa": MLSA, "mmdsa": MMDSA}


@pytest.fixture
def traces():
    """Training traces of three classes around three centres, their classes, and 40 others."""
    rng = np.random.default_rng(0)
    classes = np.arange(150) % 3
    known = rng.normal(size=(150, 5)) * [1, 2, 0.5, 3, 1] + 6 * classes[:, None]
    others = rng.normal(size=(40, 5)) * 4 + 6
    return known, classes, others, rng.integers(0, 3, 40)


# ---- against others


def test_likelihood_is_scipys(traces):
    known, _, others, _ = traces
    expected = -gaussian_kde(known.T).logpdf(others.T)
    np.testing.assert_allclose(densities.likelihood(known)(others), expected, rtol=1e-8)


def test_likelihood_takes_the_neurons_that_vary_most(traces):
    known, _, others, _ = traces
    most = np.argsort(known.var(0))[-2:]
    expected = -gaussian_kde(known[:, most].T).logpdf(others[:, most].T)
    np.testing.assert_allclose(densities.likelihood(known, 2)(others), expected, rtol=1e-8)


def test_likelihood_of_dependent_neurons_is_that_of_the_others(traces):
    """A copy of a neuron, and one that never fires: SciPy would find a singular matrix."""
    known, _, others, _ = traces
    more = [np.concatenate([a[:, :2], a[:, :1], np.zeros((len(a), 1))], 1) for a in (known, others)]
    with pytest.raises(np.linalg.LinAlgError):
        gaussian_kde(more[0].T)
    found, plain = densities.likelihood(more[0])(more[1]), densities.likelihood(known[:, :2])(others[:, :2])
    np.testing.assert_allclose(found - plain, np.log(2) / 2, rtol=1e-6)  # the copy stretches one axis


def test_likelihood_far_away_is_finite_and_grows(traces):
    known, *_ = traces
    far = np.outer([1e3, 1e4, 1e5], np.ones(5))
    score = densities.likelihood(known)(far)
    assert np.isfinite(score).all() and (np.diff(score) > 0).all()


def test_mahalanobis_is_that_of_the_formula(traces):
    known, _, others, _ = traces
    step = others - known.mean(0)
    inverse = np.linalg.inv(np.cov(known, rowvar=False, ddof=0))
    np.testing.assert_allclose(densities.mahalanobis(known)(others),
                               np.einsum("ni,ij,nj->n", step, inverse, step), rtol=1e-8)


def test_fewer_traces_than_neurons_count_in_the_directions_that_they_span(traces):
    """Three traces of five neurons: as scikit-learn has it, by a pseudo-inverse."""
    known, _, others, _ = traces
    found = densities.mahalanobis(known[:3])(others)
    np.testing.assert_allclose(found, EmpiricalCovariance().fit(known[:3]).mahalanobis(others),
                               rtol=1e-6)


def test_one_component_is_a_gaussian(traces):
    known, _, others, _ = traces
    covariance = np.cov(known, rowvar=False, ddof=0) + 1e-6 * np.eye(5)
    np.testing.assert_allclose(densities.mixture(known, 1)(others),
                               -multivariate_normal(known.mean(0), covariance).logpdf(others))


def test_clusters_are_found_and_used(traces):
    known, classes, others, _ = traces
    apart = known + 100 * classes[:, None]  # three clusters that nobody can miss
    score = densities.clustered(apart)(apart)
    for label in range(3):
        own = apart[classes == label]
        np.testing.assert_allclose(score[classes == label], densities.mahalanobis(own)(own))


@pytest.mark.parametrize("name, per_class", [
    ("lsa", True), ("lsa", False), ("mdsa", True), ("mdsa", False), ("mlsa", False),
    ("mmdsa", False)])
def test_scores_are_dnn_tips(traces, name, per_class, monkeypatch):
    known, classes, others, given = traces
    np.random.seed(0)  # of which its fits draw, as ours of their seed
    build = {"lsa": lambda a, p: tip.LSA(a), "mdsa": lambda a, p: tip.MDSA(a),
             "mlsa": lambda a, p: tip.MLSA(a),
             "mmdsa": lambda a, p: tip.MultiModalSA.build_with_kmeans(
                 a, p, lambda part, _: tip.MDSA(part), potential_k=range(2, 6))}[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = (tip.MultiModalSA.build_by_class(known, classes, build) if per_class
                else build(known, classes))
        expected = peer(others, given)
    monkeypatch.setattr(NAMES[name], "per_class", per_class)
    ours = NAMES[name](reference=torch.zeros(1, 1, 8, 8))
    found = ours.fitted(known, classes)(others, given).numpy()
    seen = np.isfinite(expected)  # beyond its range, SciPy's density is 0
    assert seen.sum() > 10 and (name == "lsa" or seen.all())
    np.testing.assert_allclose(found[seen], expected[seen], rtol=1e-6)
    assert (found[~seen] > found[seen].max()).all()


# ---- as selectors


@pytest.fixture
def reference(generator):
    return torch.rand(60, 1, 8, 8, generator=generator(9))


@pytest.mark.parametrize("name", NAMES)
def test_last_hidden_layer_is_read_and_classes_are_kept_apart(tiny_model, tiny_data, reference, name):
    model, x = tiny_model(), tiny_data.images
    values = [record(model, images, layers=["1"]).values.double().numpy()
              for images in (x, reference)]
    labels = [predict(model, images).argmax(1).numpy() for images in (x, reference)]
    fit = {"lsa": densities.likelihood, "mdsa": densities.mahalanobis, "mlsa": densities.mixture,
           "mmdsa": densities.clustered}[name]
    if name == "mmdsa":  # of all classes together
        labels = [np.zeros_like(part) for part in labels]
    expected = np.empty(len(x))
    for label in np.unique(labels[0]):
        of, own = labels[0] == label, labels[1] == label
        expected[of] = fit(values[1][own])(values[0][of])
    found = NAMES[name](reference=reference)
    np.testing.assert_allclose(found.score(model, x), expected, rtol=1e-4)
    assert found.order(model, x).tolist() == np.argsort(
        -found.score(model, x).numpy(), kind="stable").tolist()


@pytest.mark.parametrize("name", ["lsa", "mdsa", "mlsa"])
def test_class_of_one_training_input_is_most_surprising(name):
    known = torch.randn(21, 3, dtype=torch.float64)
    classes = torch.tensor([0] * 20 + [1])
    score = NAMES[name](reference=torch.zeros(1, 1, 8, 8)).fitted(known, classes)(
        known[:3], torch.tensor([0, 1, 2]))
    assert score.isfinite().tolist() == [True, False, False] and score[1] == math.inf


@pytest.mark.parametrize("name, options, words", [
    ("mdsa", {"neuron": "unti"}, "'unit'"),
    ("mdsa", {"reference": torch.zeros(0, 1, 8, 8)}, "reference: expected at least one")])
def test_bad_options(name, options, words):
    with pytest.raises(ValueError, match=words):
        NAMES[name](**{"reference": torch.zeros(2, 1, 8, 8)} | options)


@pytest.mark.parametrize("change, words", [
    (lambda a: a[:1], "at least two training images"), (lambda a: a * torch.nan, "finite"),
    (lambda a: a[0], "expected floating-point traces")])
def test_bad_training_traces(change, words):
    known = change(torch.randn(5, 3))
    with pytest.raises(ValueError, match=words):
        MDSA(reference=torch.zeros(1, 1, 8, 8)).fitted(known, torch.zeros(len(known), dtype=torch.int64))
