import math

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import ndimage, stats
from torchvision.transforms import v2

from dnnlib.perturb import mutations
from dnnlib.perturb.mutations import OPERATORS, READINGS, STRENGTHS, apply, mutate

NAMES = list(OPERATORS)
TABLE_III = {"shift": (0.05, 0.15), "rotation": (5, 25), "scale": (0.8, 1.2), "shear": (15, 30),
             "contrast": (0.5, 1.5), "brightness": (0.5, 1.5), "blur": (2, 7)}


@pytest.fixture
def images(generator):
    """``images(n, channels, height, width)`` in [0, 1], the same at every call."""
    def make(n=12, channels=1, height=9, width=11):
        return torch.rand(n, channels, height, width, generator=generator(3))
    return make


def pil(image, matrix, shift=(0, 0)):
    """PIL's affine transform about the centre, channel by channel; ``matrix`` new to old."""
    height, width = image.shape[1:]
    a, b, c, d = matrix
    x, y = width / 2, height / 2
    data = (a, b, x - a * (x + shift[0]) - b * (y + shift[1]),
            c, d, y - c * (x + shift[0]) - d * (y + shift[1]))
    return torch.stack([torch.from_numpy(np.array(
        Image.fromarray(plane.numpy()).transform((width, height), Image.Transform.AFFINE, data)))
        for plane in image])


def agree(ours, theirs):
    """Nearest neighbours may part where the old place lies between two pixels; no more."""
    assert (ours != theirs).float().mean() < 0.01


def inverse(name, p):
    if name == "rotation":
        cos, sin = math.cos(math.radians(p)), math.sin(math.radians(p))
        return cos, sin, -sin, cos
    return (1 / p, 0, 0, 1 / p) if name == "scale" else (1, math.tan(math.radians(p)), 0, 1)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name, parameters", [
    ("rotation", [5.3, 17.7, -24.1]), ("scale", [0.83, 1.19, 0.97]), ("shear", [15.2, 29.6, -21])])
def test_geometry_against_pil_and_torchvision(name, parameters, channels, images):
    x = images(3, channels, 20, 23)
    out = apply(x, name, parameters)
    for image, p, ours in zip(x, parameters, out):
        agree(ours, pil(image, inverse(name, p)))
        agree(ours, v2.functional.affine(
            image, angle=p if name == "rotation" else 0, translate=[0, 0],
            scale=p if name == "scale" else 1, shear=[p if name == "shear" else 0, 0]))


@pytest.mark.parametrize("channels", [1, 3])
def test_shift_by_hand(channels, images):
    x = images(2, channels, 10, 20)
    out = apply(x, "shift", [[0.1, 0.2], [-0.05, -0.1]])
    expected = torch.zeros_like(x)
    expected[0, :, 2:, 2:] = x[0, :, :-2, :-2]
    expected[1, :, :-1, :-1] = x[1, :, 1:, 1:]
    assert torch.equal(out, expected)
    assert torch.equal(apply(x, "shift", 0.1)[0, :, 1:, 2:], x[0, :, :-1, :-2])  # right and down


def test_shift_is_rounded_as_the_text_reads_and_cut_in_the_released_code(images):
    x = images(1, 1, 10, 10)
    assert torch.equal(apply(x, "shift", 0.16), apply(x, "shift", 0.2))
    assert torch.equal(apply(x, "shift", 0.16, reading="released"), apply(x, "shift", 0.1))
    assert torch.equal(apply(x, "shift", -0.16, reading="released"), apply(x, "shift", -0.1))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", ["contrast", "brightness"])
def test_tones_against_torchvision_and_by_hand(name, channels, images):
    x = images(3, channels)
    factors = [0.5, 0.93, 1.5]
    out = apply(x, name, factors)
    adjust = getattr(v2.functional, f"adjust_{name}")
    for image, f, ours in zip(x, factors, out):
        torch.testing.assert_close(ours, adjust(image, f), rtol=0, atol=1e-6)
        grey = (image[0] if channels == 1 else
                0.2989 * image[0] + 0.587 * image[1] + 0.114 * image[2]).mean()
        mean = grey if name == "contrast" else 0
        torch.testing.assert_close(ours, (f * image + (1 - f) * mean).clamp(0, 1),
                                   rtol=0, atol=1e-4)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", mutations.BLUR_SIZES)
def test_blur_against_scipy(size, channels, images):
    x = images(2, channels)
    expected = ndimage.uniform_filter(x.double().numpy(), (1, 1, size, size), mode="mirror",
                                      origin=(0, 0, -1, -1) if size == 2 else 0)
    np.testing.assert_allclose(apply(x, "blur", size).numpy(), expected, atol=1e-6)


def test_blur_of_the_released_code(images):
    x = images(2, 3)
    weights = np.outer([1, 2, 1], [1, 2, 1])[None, None] / 16
    expected = ndimage.correlate(x.double().numpy(), weights, mode="constant")
    np.testing.assert_allclose(apply(x, "blur", 3, reading="released"), expected, atol=1e-6)
    total = ndimage.correlate(x.double().numpy(), np.ones((1, 1, 2, 2)), mode="constant",
                              origin=(0, 0, -1, -1))
    np.testing.assert_allclose(apply(x, "blur", 2, reading="released"), total.clip(0, 1), atol=1e-6)


@pytest.mark.parametrize("shape", [(1, 9, 11), (3, 28, 28), (3, 4, 5)])
@pytest.mark.parametrize("name", NAMES)
def test_neutral_parameter_changes_nothing(name, shape, images):
    x = images(3, *shape)
    for reading in READINGS:
        assert torch.equal(apply(x, name, OPERATORS[name].neutral, reading=reading), x)


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("operator", ["random", *NAMES])
def test_an_example_does_not_know_its_batch(operator, reading, images):
    x = images(40, 3)
    whole = mutate(x, operator, seed=5, reading=reading)
    order = torch.randperm(40, generator=torch.Generator().manual_seed(0))
    for index in (order, order[:7], torch.arange(33, 40), torch.tensor([12])):
        part = mutate(x[index], operator, seed=5, index=index, reading=reading)
        assert torch.equal(part.images, whole.images[index])
        assert torch.equal(part.operator, whole.operator[index])
        assert torch.equal(part.parameter, whole.parameter[index])
        torch.testing.assert_close(part.vertical, whole.vertical[index], rtol=0, atol=0,
                                   equal_nan=True)
    other = mutate(x, operator, seed=6, reading=reading)
    assert torch.equal(other.images, whole.images) == (operator == "blur" and reading == "released")


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("reading", READINGS)
def test_random_is_each_operator_with_its_own_parameter(reading, channels, images):
    x = images(60, channels)
    before = x.clone()
    out = mutate(x, seed=1, reading=reading)
    assert torch.equal(x, before)
    assert out.images.shape == x.shape and out.images.dtype == torch.float32
    assert 0 <= out.images.min() and out.images.max() <= 1
    assert set(out.operator.tolist()) == set(range(7))
    for i in range(60):
        name = NAMES[out.operator[i]]
        p = (torch.stack([out.parameter[i], out.vertical[i]])[None] if name == "shift"
             else out.parameter[i])
        assert torch.equal(apply(x[i:i + 1], name, p, reading=reading)[0], out.images[i])
        assert out.vertical[i].isnan() == (name != "shift")


def test_operators_are_about_equally_frequent(images):
    x = torch.zeros(7000, 1, 4, 4)
    counts = torch.bincount(mutate(x, seed=0).operator, minlength=7)
    assert stats.chisquare(counts).pvalue > 0.001


@pytest.mark.parametrize("name", TABLE_III)
def test_table_3_is_filled_evenly(name):
    low, high = TABLE_III[name]
    drawn = mutate(torch.zeros(2000, 1, 4, 4), name, seed=0)
    if name == "blur":
        sizes, counts = drawn.parameter.unique(return_counts=True)
        assert sizes.tolist() == [2, 3, 5, 7] and stats.chisquare(counts).pvalue > 0.001
        return
    for values in (drawn.parameter, drawn.vertical)[:1 + (name == "shift")]:
        assert low <= values.min() and values.max() <= high
        assert stats.kstest(values, stats.uniform(low, high - low).cdf).pvalue > 0.001
    if name == "shift":
        assert abs(stats.pearsonr(drawn.parameter, drawn.vertical).statistic) < 0.1


@pytest.mark.parametrize("name", TABLE_III)
def test_released_ranges(name):
    low, high = (3, 3) if name == "blur" else TABLE_III[name]
    drawn = mutate(torch.zeros(500, 1, 4, 4), name, seed=0, reading="released").parameter
    size = drawn.abs() if name == "shift" else drawn
    assert low <= size.min() and size.max() <= high
    assert stats.binomtest(int((drawn < 0).sum()), 500).pvalue > 0.001 if name == "shift" else (
        drawn > 0).all()
    for level, (low, high) in zip(STRENGTHS, OPERATORS[name].levels):
        drawn = mutate(torch.zeros(100, 1, 4, 4), name, seed=0, strength=level,
                       reading="released").parameter
        size = drawn.abs() if name == "shift" else drawn
        assert low <= size.min() and size.max() <= high


@pytest.mark.parametrize("name", TABLE_III)
def test_strengths_are_fifths_of_table_3(name):
    """Milder to stronger, example by example, from the end of the range that is nearer neutral."""
    low, high = TABLE_III[name]
    neutral = 1 if name in ("scale", "contrast", "brightness") else low
    drawn = torch.stack([mutate(torch.zeros(200, 1, 4, 4), name, seed=0, strength=s).parameter
                         for s in STRENGTHS])
    away = (drawn - neutral).abs()
    assert (away.diff(dim=0) >= 0).all() and (away[-1] > away[0]).all()
    if name != "blur":
        edges = torch.linspace(0, high - neutral, 6, dtype=torch.float64)[:, None]
        assert (edges[:-1] - 1e-9 <= away).all() and (away <= edges[1:] + 1e-9).all()
        assert ((drawn < neutral).any() and (drawn > neutral).any()) == (low < neutral)
    else:
        sizes = [set(row.tolist()) for row in drawn]
        assert sizes == [{2}, {2, 3}, {3, 5}, {5, 7}, {7}]


@pytest.mark.parametrize("reading", READINGS)
def test_strength_leaves_the_operators(reading):
    x = torch.zeros(50, 1, 4, 4)
    assert torch.equal(mutate(x, seed=2, strength=1, reading=reading).operator,
                       mutate(x, seed=2, strength=5, reading=reading).operator)


@pytest.mark.parametrize("call, words", [
    (lambda x: mutate(x, "rotate", seed=0), "unknown operator 'rotate'; did you mean 'rotation'"),
    (lambda x: apply(x, "random", 1), "unknown operator 'random'"),
    (lambda x: mutate(x, seed=0, reading="text"), "unknown reading 'text'"),
    (lambda x: mutate(x, seed=0, strength=0), "strength: .* from 1 to 5 or None, got 0"),
    (lambda x: mutate(x, seed=0, strength=6), "strength: .* got 6"),
    (lambda x: mutate(x, seed=0, strength=2.0), "strength: .* got 2.0"),
    (lambda x: mutate(x, seed=0, strength=True), "strength: .* got True"),
    (lambda x: mutate(x, seed=-1), "seed: expected a whole number from 0 to 4294967295, got -1"),
    (lambda x: mutate(x, seed=0.5), "seed: .* got 0.5"),
    (lambda x: mutate(x, seed=0, index=[0]), r"index: expected 2 whole numbers .* shape \(1,\)"),
    (lambda x: mutate(x, seed=0, index=[0, -1]), "index: expected 2 whole numbers from 0"),
    (lambda x: mutate(x, seed=0, index=[0.0, 1.0]), "index: .* got torch.float32"),
    (lambda x: mutate(x[0], seed=0), r"x: expected shape \(N, C, H, W\)"),
    (lambda x: mutate(x + 1, seed=0), r"x: expected values in \[0, 1\]"),
    (lambda x: mutate(x * torch.nan, seed=0), "x: expected finite values"),
    (lambda x: mutate(x[:0], seed=0), "x: expected at least one image"),
    (lambda x: mutate(x[..., :3], seed=0), r"at least 4 x 4 pixels, got shape \(2, 1, 9, 3\)"),
    (lambda x: mutate(x.expand(2, 2, 9, 11), seed=0), "expected 1 or 3 channels"),
    (lambda x: apply(x, "scale", 0.0), "positive factors for scale, got 0"),
    (lambda x: apply(x, "contrast", [1, -0.5]), "positive factors for contrast, got -0.5"),
    (lambda x: apply(x, "shear", [1.0, 2.0, 3.0]), r"shape \(\) or \(2,\), got \(3,\)"),
    (lambda x: apply(x, "shear", torch.nan), "parameter: expected finite values"),
    (lambda x: apply(x, "blur", 4), "blur of 1, 2, 3, 5, 7 pixels in the reading 'paper', got 4"),
    (lambda x: apply(x, "blur", 5, reading="released"), "'released', got 5"),
])
def test_errors_say_what_came_and_what_was_expected(call, words, images):
    with pytest.raises(ValueError, match=words):
        call(images(2))


def test_bytes_are_not_images(images):
    with pytest.raises(TypeError, match="floating-point tensor .* got torch.uint8"):
        mutate((images(2) * 255).byte(), seed=0)


def test_one_operator_more_changes_nothing_of_what_is_drawn_of_the_papers_seven(monkeypatch):
    x = torch.rand(40, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    before = mutate(x, seed=3)
    monkeypatch.setitem(OPERATORS, "invert", OPERATORS["contrast"])
    after = mutate(x, seed=3)
    assert torch.equal(after.images, before.images) and torch.equal(after.operator, before.operator)
    assert (mutate(x, operator="invert", seed=3).operator == 7).all()
