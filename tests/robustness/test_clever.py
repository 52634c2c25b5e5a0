import math

import numpy as np
import pytest
import torch
from art.estimators.classification import PyTorchClassifier
from art.metrics import clever_t
from art.metrics import metrics as art_metrics
from scipy import optimize, stats
from torch import nn

from dnnlib.robustness import clever as cl
from dnnlib.robustness.clever import clever, gradient_norms, location, perturbations

FEW = {"batches": 20, "samples": 8, "pool": 40}


@pytest.fixture
def x(tiny_data):
    return tiny_data.images


@pytest.fixture
def linear(generator):
    """8 x 8 images to 4 classes, without a bend: the gradients are the weights everywhere."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 4))
    model[1].weight.data = torch.randn(4, 64, generator=generator(3))
    model[1].bias.data = torch.randn(4, generator=generator(4))
    return model


def reverse_weibull(n=500, shape=2.0, end=4.0, seed=0):
    return stats.weibull_max(shape, loc=end).rvs(n, random_state=seed)


# ---- scores

@pytest.mark.parametrize("norm, q", [("l1", np.inf), ("l2", 2), ("linf", 1)])
@pytest.mark.parametrize("pool", [40, None])
def test_exact_for_a_linear_model(linear, x, norm, q, pool):
    found = clever(linear, x[:5], norm=norm, **FEW | {"pool": pool}, cap=False)
    w, b = linear[1].weight.detach().double().numpy(), linear[1].bias.detach().double().numpy()
    for i, image in enumerate(x[:5].flatten(1).double().numpy()):
        f = w @ image + b
        c = int(f.argmax())
        assert found.predicted[i] == c and found.targeted[i, c] == math.inf
        scores = [(f[c] - f[j]) / np.linalg.norm(w[c] - w[j], q) for j in range(4) if j != c]
        assert found.targeted[i, torch.arange(4) != c].tolist() == pytest.approx(scores, rel=1e-4)
        assert found.untargeted[i].item() == pytest.approx(min(scores), rel=1e-4)
    assert not found.fitted.any()  # equal maxima have no distribution


def test_cap(linear, x):
    free = clever(linear, x[:5], **FEW, cap=False).targeted
    radius = free[free < math.inf].median().item()
    capped = clever(linear, x[:5], **FEW, radius=radius)
    expected = torch.where(free < math.inf, free.clamp(max=radius), math.inf)
    assert torch.allclose(capped.targeted, expected)
    assert capped.untargeted.max() <= radius


def test_a_class_that_no_gradient_leads_to_is_infinitely_far(x):
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 2))
    model[1].weight.data.zero_()
    model[1].bias.data = torch.tensor([1.0, 0.0])
    assert clever(model, x[:1], **FEW, cap=False).untargeted.tolist() == [math.inf]
    assert clever(model, x[:1], **FEW).untargeted.tolist() == [2.0]
    model[1].bias.data.zero_()
    assert clever(model, x[:1], **FEW, cap=False).untargeted.tolist() == [0.0]


def test_the_largest_gradient_of_two_probabilities(x):
    """d (p_0 - p_1) = 2 p_0 p_1 d (z_0 - z_1), at most half of it, where z_0 = z_1."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 2))
    w = torch.linspace(-1, 1, 64)
    model[1].weight.data, model[1].bias.data = torch.stack([w, 0 * w]), torch.zeros(2)
    image = torch.full((1, 1, 8, 8), 0.5)  # in the middle, on the boundary
    found = clever(model, image, output="probabilities", fit="maximum", radius=0.01, **FEW)
    assert found.lipschitz.max().item() == pytest.approx(0.5 * w.norm().item(), rel=1e-3)


# ---- gradients

@pytest.mark.parametrize("output", cl.OUTPUTS)
@pytest.mark.parametrize("norm, q", [("l1", np.inf), ("l2", 2), ("linf", 1)])
def test_gradient_norms_against_jacobians(tiny_model, x, norm, q, output):
    model, points, c = tiny_model(), x[:6], 1
    found = gradient_norms(model, points, c, norm=norm, output=output)
    for point, norms in zip(points, found):
        def f(z):
            y = model(z[None])[0]
            return y.softmax(0) if output == "probabilities" else y
        jacobian = torch.autograd.functional.jacobian(f, point).flatten(1).numpy()
        assert norms.tolist() == pytest.approx(
            [np.linalg.norm(jacobian[c] - row, q) for row in jacobian], rel=1e-4, abs=1e-7)


# ---- points

@pytest.mark.parametrize("norm, p", [("l1", 1), ("l2", 2), ("linf", np.inf)])
@pytest.mark.parametrize("sampling", ["ball", "ibm"])
def test_points_are_uniform_in_the_ball(generator, norm, p, sampling):
    """Uniform: (distance / radius)^d is uniform in [0, 1]; IBM's: the distance is."""
    points = torch.cat(list(perturbations(2000, (2, 4), norm=norm, radius=3, sampling=sampling,
                                          generator=generator(), batch_size=512)))
    assert points.shape == (2000, 2, 4)
    distance = np.linalg.norm(points.flatten(1).double().numpy(), p, axis=1) / 3
    power = 1 if sampling == "ibm" and norm != "linf" else 8
    assert stats.kstest(distance ** power, "uniform").pvalue > 0.01
    assert abs(points.mean((0, 1, 2))) < 0.03


@pytest.mark.parametrize("norm, p", [("l1", 1), ("l2", 2), ("linf", np.inf)])
def test_points_of_the_sphere_are_those_of_the_ball_moved_out(generator, norm, p):
    ball, sphere = (torch.cat(list(perturbations(200, (2, 4), norm=norm, radius=3, sampling=sampling,
                                                 generator=generator()))).double().flatten(1)
                    for sampling in ("ball", "sphere"))
    assert np.linalg.norm(sphere.numpy(), p, axis=1) == pytest.approx(3, rel=1e-5)
    distance = np.linalg.norm(ball.numpy(), p, axis=1, keepdims=True)
    assert distance.min() < 2.5
    assert ball.numpy() * 3 / distance == pytest.approx(sphere.numpy(), abs=1e-5)


@pytest.mark.parametrize("norm, marginal", [
    ("l1", lambda t: 1 - (1 - t) ** 8),  # volume of the ball outside a slab of half-width t
    ("l2", stats.beta(0.5, 4.5).cdf),
    ("linf", lambda t: t)])
def test_every_coordinate_is_distributed_as_in_the_ball(generator, norm, marginal):
    points = torch.cat(list(perturbations(3000, (8,), norm=norm, radius=1,
                                          generator=generator(1))))
    for column in points.double().T:
        t = column.abs().numpy()
        assert stats.kstest(t ** 2 if norm == "l2" else t, marginal).pvalue > 0.001
        assert stats.binomtest(int((column > 0).sum()), 3000).pvalue > 0.001


# ---- the fit

def test_fit_finds_the_end_of_known_samples():
    found = [location(reverse_weibull(seed=seed)) for seed in range(4)]
    assert all(fitted for _, fitted in found)
    for (end, _), seed in zip(found, range(4)):
        assert reverse_weibull(seed=seed).max() <= end
        assert end == pytest.approx(4, abs=0.25)


def test_fit_has_the_greatest_penalised_likelihood():
    """Against a search by gradients in other coordinates, where the penalty decides."""
    sample = reverse_weibull(shape=30.0, seed=1)
    scaled = (sample - sample.max()) / np.ptp(sample)

    def minus(theta):
        shape, end, scale = np.exp(theta)
        return -stats.weibull_max.logpdf(scaled, shape, end, scale).sum() + 0.01 * scale ** 2

    best = optimize.minimize(minus, np.log([2, 0.2, 1]), method="L-BFGS-B")
    expected = sample.max() + np.ptp(sample) * np.exp(best.x[1])
    assert location(sample)[0] == pytest.approx(expected, rel=1e-4)


def test_fit_does_not_depend_on_the_unit():
    sample = reverse_weibull(seed=2)
    assert location(1e-4 * sample)[0] == pytest.approx(1e-4 * location(sample)[0], rel=1e-3)


def test_largest_maximum_where_no_distribution_fits():
    two = np.repeat([1.0, 2.0], 250)
    assert stats.kstest(two, "norm", args=(1.5, 0.5)).pvalue < 0.001  # nor does any continuous one
    assert location(two) == (2.0, False)
    assert location([3.0, 3.0]) == location(torch.tensor([3.0])) == (3.0, False)
    assert location([0.0, 0.0]) == (0.0, False)
    assert location(reverse_weibull(), fit="maximum") == (reverse_weibull().max(), False)


# ---- against ART

@pytest.fixture
def classifier(tiny_model):
    return PyTorchClassifier(tiny_model(), loss=nn.CrossEntropyLoss(), input_shape=(1, 8, 8),
                             nb_classes=3, clip_values=(0.0, 1.0), device_type="cpu")


def test_art_fit_on_maxima_that_art_sampled(classifier, x, monkeypatch):
    seen = []

    class Spy:
        @staticmethod
        def fit(sample, *args, **kwargs):
            seen.append((sample, stats.weibull_min.fit(sample, *args, **kwargs)))
            return seen[-1][1]

    monkeypatch.setattr(art_metrics, "weibull_min", Spy)
    np.random.seed(0)
    target = int(classifier.predict(x[:1].numpy()).argmin())
    clever_t(classifier, x[0].numpy(), target, 50, 16, 2, 2)
    (sample, (_, end, _)), = seen
    assert location(-sample, fit="art") == (pytest.approx(-end, rel=1e-3), True)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n, shape", [(10, 2), (50, 20), (500, 20)])
def test_art_fit_is_arts_where_the_reverse_distribution_wanders_off(n, shape, seed):
    """Fitted as ``weibull_max`` most of these end at thousands of times the largest."""
    sample = reverse_weibull(n, shape, seed=seed)
    _, end, _ = art_metrics.weibull_min.fit(-sample, 1, optimizer=optimize.fmin)
    assert location(sample, fit="art") == (-end, True)
    assert location(sample, fit="art")[0] < 2 * sample.max()


@pytest.mark.parametrize("shape", [2, 5])
def test_ibm_fit_is_the_nearest_to_a_known_end(shape):
    off = {fit: np.mean([abs(location(reverse_weibull(50, shape, seed=seed), fit=fit)[0] - 4)
                         for seed in range(4)]) for fit in cl.FITS}
    assert off["ibm"] < 0.75 * off["maximum"] and off["ibm"] < off["art"] <= off["maximum"]


def test_scores_against_art(tiny_model, classifier, x, monkeypatch):
    """Ten seeds each, fits aside; the means differ by at most four standard errors."""
    monkeypatch.setattr(art_metrics.weibull_min, "fit",
                        lambda sample, *args, **kwargs: (1, sample.min(), 1))
    target = int(classifier.predict(x[:1].numpy()).argmin())
    theirs, ours = [], []
    for seed in range(10):
        np.random.seed(seed)
        theirs.append(clever_t(classifier, x[0].numpy(), target, 20, 10, 1.0, 2))
        found = clever(tiny_model(), x[:1], radius=1.0, batches=20, samples=10, pool=100,
                       fit="maximum", seed=seed)
        ours.append(found.targeted[0, target].item())
    assert max(theirs + ours) < 1
    assert 1 / 3 < np.std(ours) / np.std(theirs) < 3
    error = np.hypot(np.std(ours, ddof=1), np.std(theirs, ddof=1)) / math.sqrt(10)
    assert abs(np.mean(ours) - np.mean(theirs)) < 4 * error


# ---- behaviour

def test_result_depends_on_the_seed_only(tiny_model, x):
    model, few = tiny_model(), FEW | {"fit": "maximum"}
    before = torch.get_rng_state()
    first = clever(model, x[:2], **few)
    assert torch.equal(torch.get_rng_state(), before)
    again = clever(model, x[:2], **few, batch_size=7)
    assert torch.allclose(first.targeted, again.targeted, rtol=1e-4)
    assert not torch.allclose(first.targeted, clever(model, x[:2], **few, seed=1).targeted,
                              rtol=1e-4)
    assert torch.allclose(first.targeted[:1], clever(model, x[:1], **few).targeted, rtol=1e-4)
    other = clever(model, torch.stack([x[2], x[1]]), **few | {"pool": 40}).targeted[1]
    assert torch.allclose(first.targeted[1], other, rtol=1e-4)  # whatever came before
    with torch.no_grad():
        assert torch.equal(first.targeted, clever(model, x[:2], **few).targeted)
    assert all(p.grad is None and p.requires_grad for p in model.parameters())


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_points_do_not_depend_on_the_batches(generator, norm):
    """25 numbers an image: PyTorch draws 16 at a time, so that what is left over tells batches."""
    whole, parts = (torch.cat(list(perturbations(150, (1, 5, 5), norm=norm, batch_size=size,
                                                 generator=generator(0)))) for size in (150, 7))
    assert whole.shape == (150, 1, 5, 5) and torch.equal(whole, parts)
    sizes = [len(part) for part in perturbations(150, (1, 5, 5), norm=norm, batch_size=40,
                                                 generator=generator(0))]
    assert sizes == [40, 40, 40, 30]


def test_pool_has_no_more_than_its_points(tiny_model, x, monkeypatch):
    seen = []
    norms = gradient_norms
    monkeypatch.setattr(cl, "gradient_norms", lambda model, points, *args, **kwargs: (
        seen.append(points), norms(model, points, *args, **kwargs))[1])
    for pool, expected in ((40, 40), (None, 160)):
        seen.clear()
        clever(tiny_model(), x[:1], **FEW | {"pool": pool}, fit="maximum")
        points = torch.cat(seen)
        assert len(points) == len(points.unique(dim=0)) == expected
        assert points.min() == 0 and points.max() == 1  # clipped: the ball leaves [0, 1]


def test_bad_options(tiny_model, x):
    model = tiny_model()
    for options, message in [
            ({"norm": "l3"}, "unknown norm 'l3'"), ({"fit": "weibul"}, "unknown fit"),
            ({"output": "softmax"}, "unknown output"), ({"sampling": "cube"}, "unknown sampling"),
            ({"radius": 0}, "radius: expected a finite number above 0, got 0"),
            ({"radius": math.inf}, "radius"), ({"batches": 0}, "batches"),
            ({"samples": 2.5}, "samples"), ({"batch_size": 0}, "batch_size"),
            ({"pool": 7}, "pool: expected at least samples=8 points, got 7")]:
        with pytest.raises(ValueError, match=message):
            clever(model, x[:1], **FEW | options)
    with pytest.raises(ValueError, match=r"values in \[0, 1\]"):
        clever(model, x + 1, **FEW)
    for maxima in ([], [[1.0]], [1.0, math.nan], [-1.0, 1.0]):
        with pytest.raises(ValueError, match="maxima: expected finite"):
            location(maxima)


def test_bad_models(x):
    one = nn.Sequential(nn.Flatten(), nn.Linear(64, 1))
    with pytest.raises(ValueError, match="at least two classes"):
        clever(one, x[:1], **FEW)
    broken = nn.Sequential(nn.Flatten(), nn.Linear(64, 2))
    broken[1].bias.data[0] = math.nan
    with pytest.raises(ValueError, match="finite outputs"):
        clever(broken, x[:1], **FEW)

    class Root(nn.Module):  # finite at 0, with an infinite slope
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(2))

        def forward(self, z):
            return z.flatten(1).sum(1, keepdim=True).sqrt() * self.scale

    with pytest.raises(ValueError, match="finite gradients"):
        gradient_norms(Root(), torch.zeros(1, 1, 8, 8), 0)
