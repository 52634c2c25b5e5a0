import numpy as np
import pytest
import torch
from scipy.optimize import differential_evolution
from scipy.optimize._differentialevolution import DifferentialEvolutionSolver
from torch import nn

from dnnlib.inference import predict
from dnnlib.perturb import evolution
from dnnlib.perturb import patches as patching
from dnnlib.perturb.evolution import POPULATION, evolve

SEEDS, TRIALS = 60, 300


class Bump(nn.Linear):
    """Class 0 fades as a patch nears a place and a colour, smoothly and inside the bounds."""

    def __init__(self, row, column, colour):
        super().__init__(1, 1)
        along = torch.arange(16.0)
        self.place = torch.exp(-((along[:, None] - row) ** 2 + (along - column) ** 2) / 40)
        self.colour = torch.tensor(colour)[:, None, None]

    def forward(self, x):
        near = ((x * (2 * self.colour - x)).sum(1) * self.place).sum((1, 2))
        return torch.stack([1 - near, near], 1)


BUMPS = [Bump(5, 9, (0.6, 0.4, 0.5)), Bump(10.5, 6, (0.5, 0.7, 0.3)),
         Bump(8, 8, (0.35, 0.5, 0.65))]
BLACK = torch.zeros(1, 3, 16, 16)


def ours(bump, generator, **changes):
    return evolve(bump, BLACK.expand(SEEDS, -1, -1, -1), **{
        "trials": TRIALS, "generator": generator(0)} | changes)


def fitness(bump, vectors):
    """Probability of class 0 under patches encoded as vectors (S, 5)."""
    out = BLACK.repeat(len(vectors), 1, 1, 1)
    for image, (top, left, *colour) in zip(out, vectors):
        top, left = min(int(top * 15), 14), min(int(left * 15), 14)
        image[:, top:top + 2, left:left + 2] = torch.tensor(colour)[:, None, None]
    with torch.inference_mode():
        return bump(out).double().softmax(1)[:, 0].numpy()


def scipys(bump, seed):
    start = np.random.default_rng(seed).random((POPULATION, 5))
    found = differential_evolution(
        lambda v: fitness(bump, v.T), [(0, 1)] * 5, strategy="rand1bin", recombination=1,
        mutation=0.5, init=start, maxiter=TRIALS // POPULATION - 1, tol=0, polish=False,
        vectorized=True, updating="deferred", rng=np.random.default_rng(seed + 1000))
    assert found.nfev == TRIALS // POPULATION  # calls, each of a whole population
    return found.fun


def apart(a, b):
    """The difference of two means in standard errors."""
    spread = np.var(a, ddof=1) / len(a) + np.var(b, ddof=1) / len(b)
    return (np.mean(a) - np.mean(b)) / np.sqrt(spread)


@pytest.mark.parametrize("bump", BUMPS)
def test_reaches_what_scipy_reaches_and_beats_random_search(bump, generator, monkeypatch):
    evolved = ours(bump, generator).probability.numpy()
    redrawn = [scipys(bump, seed) for seed in range(SEEDS)]
    # scipy draws values out of range anew; made to clip them as we do, it is the same search
    monkeypatch.setattr(DifferentialEvolutionSolver, "_ensure_constraint",
                        lambda self, trial: np.clip(trial, 0, 1, out=trial))
    reference = [scipys(bump, seed) for seed in range(SEEDS)]
    monkeypatch.setattr(evolution, "POPULATION", TRIALS)  # one generation only
    chance = ours(bump, generator).probability.numpy()
    assert abs(apart(evolved, reference)) < 3
    assert np.mean(evolved) == pytest.approx(np.mean(redrawn), rel=0.1)
    assert apart(chance, evolved) > 6  # so three standard errors can tell a worse search
    assert apart(chance, reference) > 6


def test_a_sure_network_is_no_plateau(generator):
    """The probability is one in float32 whatever the patch; the search must still see a slope."""
    class Sure(Bump):
        def forward(self, x):
            return super().forward(x) + torch.tensor([20.0, 0.0])

    bump, sure = BUMPS[0], Sure(5, 9, (0.6, 0.4, 0.5))
    assert predict(sure, BLACK)[0, 0] == 1
    found, easy = ours(sure, generator).best, ours(bump, generator).best
    same = (found.top == easy.top) & (found.left == easy.left)
    assert same.double().mean() > 0.9  # but for near ties lost to rounding, one and the same search


def test_first_generation_is_uniform(generator):
    model = BUMPS[0]
    best = ours(model, generator, trials=20).best
    assert best.top.shape == (SEEDS, 1) and best.colour.shape == (SEEDS, 1, 3)
    members = torch.rand(SEEDS, 20, 5, generator=generator(0))
    expected = [fitness(model, m.tolist()).min() for m in members]
    found = ours(model, generator, trials=20).probability
    assert found.tolist() == pytest.approx(expected, abs=1e-6)


def test_a_child_comes_of_three_others(generator):
    """With members at the unit vectors, a child shows who its parents were."""
    n, population = 50, 6
    members = torch.eye(population).expand(n, -1, -1)
    children = evolution._children(members, generator())
    ordered = children.sort(2, descending=True).values
    assert torch.equal(ordered[..., :3], torch.tensor([1, 0.5, 0]).expand(n, population, 3))
    assert not children.diagonal(dim1=1, dim2=2).any()  # none is its own parent
    assert (children[:, 0, 1:] == 1).any(0).all() and (children[:, 0, 1:] == 0.5).any(0).all()


@pytest.fixture
def evolved(tiny_model, tiny_data, generator):
    def run(**changes):
        return evolve(tiny_model(), tiny_data.images, **{
            "trials": 60, "generator": generator(2)} | changes)
    return run


def test_best_is_what_it_says_and_no_trial_was_better(evolved, tiny_model, tiny_data, monkeypatch):
    seen = []
    evaluate = evolution._evaluate
    monkeypatch.setattr(evolution, "_evaluate", lambda *a: seen.append(evaluate(*a)) or seen[-1])
    found = evolved()
    tried = torch.cat([p for p, _ in seen], 1)
    assert tried.shape == found.success.shape == (40, 60)
    assert torch.equal(found.probability, tried.min(1).values)
    assert torch.equal(found.success, torch.cat([flips for _, flips in seen], 1))
    model, x = tiny_model(), tiny_data.images
    original = predict(model, x).argmax(1)
    p = predict(model, patching.apply(x, found.best)[:, 0])
    assert torch.allclose(p[torch.arange(40), original].double(), found.probability, atol=1e-6)
    flipped = p.argmax(1) != original
    assert flipped.any() and not flipped.all()
    # with three classes an earlier, less harmful patch may flip where the best does not
    assert found.success[flipped].any(1).all()


def test_later_generations_do_more_harm(evolved):
    success = evolved(trials=160).success.double()
    assert success[:, -40:].mean() > success[:, :40].mean()


@pytest.mark.parametrize("batch_size", [1, 7, 16, 10_000])
def test_batches_do_not_matter(evolved, batch_size):
    one, other = evolved(), evolved(batch_size=batch_size)
    assert torch.equal(one.success, other.success)
    assert torch.equal(one.best.top, other.best.top)
    assert torch.equal(one.best.left, other.best.left)
    assert torch.equal(one.best.colour, other.best.colour)


def test_corners_stay_inside_and_reach_the_ends():
    ends = torch.tensor([[[0.0, 0.0, 0.3], [1.0, 1.0, 0.3], [0.999, 0.001, 0.3]]])
    patches = evolution._decode(ends, torch.Size((1, 1, 5, 9)))
    assert patches.top.tolist() == [[0, 3, 3]] and patches.left.tolist() == [[0, 7, 0]]


@pytest.mark.parametrize("changes, words", [
    ({"trials": 30}, "trials: expected a multiple of 20"), ({"trials": 0}, "trials"),
    ({"batch_size": 0}, "batch_size")])
def test_bad_arguments(evolved, changes, words):
    with pytest.raises(ValueError, match=words):
        evolved(**changes)


def test_outputs_must_be_finite(tiny_model, tiny_data, generator):
    class Breaks(nn.Linear):  # on patched images only
        def forward(self, x):
            broken = (x != 0).flatten(1).any(1)
            return torch.where(broken, torch.nan, 1.0)[:, None].expand(-1, 2)

    with pytest.raises(ValueError, match="finite outputs"):
        evolve(Breaks(1, 1), BLACK, trials=20, generator=generator())
