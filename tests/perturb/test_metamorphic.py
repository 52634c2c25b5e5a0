import itertools
import math

import numpy as np
import pytest
import torch
from scipy import ndimage, stats
from torchvision.transforms import v2

from dnnlib.perturb import metamorphic
from dnnlib.perturb.metamorphic import AFFINE, MUTATIONS, PIXEL, allowed, apply, distances, draw

RANGES = {  # the integer ranges of the released code, and what they are divided by
    "translate": (range(-3, 3), 1), "scale": (range(7, 12), 10), "shear": (range(-6, 6), 10),
    "rotate": (range(-50, 50), 1), "contrast": (range(5, 13), 10),
    "brightness": (range(-20, 20), 1), "blur": (range(1, 10), 1), "pixels": (range(1, 10), 1),
    "noise": (range(1, 4), 1)}


@pytest.fixture
def images(generator):
    """``images(n, channels, height, width)`` in [0, 1], the same at every call."""
    def make(n=4, channels=1, height=9, width=12):
        return torch.rand(n, channels, height, width, generator=generator(3))
    return make


def planes(function, image):
    """``function`` of every channel, a NumPy array (H, W)."""
    return torch.stack([torch.from_numpy(function(plane.numpy())) for plane in image])


def warped(image, inverse, middle=True):
    """SciPy's bilinear transform; ``inverse`` leads from new (x, y) to old ones."""
    matrix = np.array(inverse)[::-1, ::-1]  # SciPy has rows first
    centre = (np.array(image.shape[1:]) - 1) / 2 if middle else np.zeros(2)
    return planes(lambda plane: ndimage.affine_transform(
        plane, matrix, centre - matrix @ centre, order=1, mode="grid-constant"), image)


# ---- each mutation, image by image

@pytest.mark.parametrize("channels", [1, 3])
def test_translation_moves_both_axes_by_whole_pixels(images, channels):
    x = images(3, channels)
    out, expected = apply(x, "translate", [2, -3, 0]), torch.zeros_like(x)
    expected[0, :, 2:, 2:] = x[0, :, :-2, :-2]
    expected[1, :, :-3, :-3] = x[1, :, 3:, 3:]
    expected[2] = x[2]
    torch.testing.assert_close(out, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("channels", [1, 3])
def test_rotation_against_torchvision(images, channels):
    x, angles = images(4, channels), [-50.0, -7.0, 30.0, 49.0]
    out = apply(x, "rotate", angles)
    for image, angle, ours in zip(x, angles, out):
        theirs = v2.functional.rotate(image, angle, v2.InterpolationMode.BILINEAR)
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name, inverse, middle", [
    ("scale", lambda p: [[1 / p, 0], [0, 1 / p]], True),
    ("shear", lambda p: [[1, p], [0, 1]], False)])
@pytest.mark.parametrize("channels", [1, 3])
def test_scale_and_shear_against_scipy(images, name, inverse, middle, channels):
    x, values = images(3, channels), {"scale": [0.7, 0.9, 1.1], "shear": [-0.6, 0.2, 0.5]}[name]
    for image, p, ours in zip(x, values, apply(x, name, values)):
        torch.testing.assert_close(ours, warped(image, inverse(p), middle), atol=1e-5, rtol=0)


@pytest.mark.parametrize("name, change", [
    ("contrast", lambda image, p: image * p), ("brightness", lambda image, p: image + p / 255)])
@pytest.mark.parametrize("channels", [1, 3])
def test_contrast_and_brightness_saturate(images, name, change, channels):
    x, values = images(2, channels), {"contrast": [0.5, 1.2], "brightness": [-20, 19]}[name]
    for image, p, ours in zip(x, values, apply(x, name, values)):
        expected = np.clip(change(image.numpy(), p), 0, 1)
        np.testing.assert_allclose(ours.numpy(), expected, atol=1e-6)
    assert (apply(x, name, values) != x).flatten(1).any(1).all()


def gaussian(weights):
    def blur(plane):
        for axis in (0, 1):
            plane = ndimage.correlate1d(plane, np.array(weights), axis, mode="mirror")
        return plane
    return blur


def bilateral(image, radius=3, color=50 / 255, space=50):
    """Pixel by pixel, as defined."""
    channels, height, width = image.shape
    padded = np.pad(image.numpy(), ((0, 0), (radius, radius), (radius, radius)), mode="reflect")
    out = np.zeros(image.shape)
    for row, column in itertools.product(range(height), range(width)):
        here, weights = image[:, row, column].numpy(), 0.0
        for i, j in itertools.product(range(-radius, radius + 1), repeat=2):
            if math.hypot(i, j) <= radius:
                other = padded[:, row + radius + i, column + radius + j]
                weight = (math.exp(-(i * i + j * j) / (2 * space**2))
                          * math.exp(-float(np.abs(other - here).sum())**2 / (2 * color**2)))
                out[:, row, column] += weight * other
                weights += weight
        out[:, row, column] /= weights
    return torch.from_numpy(out).float()


BLURS = {
    **{i: lambda plane, k=i + 2: ndimage.uniform_filter(plane, k, mode="mirror")
       for i in (1, 2, 3)},
    4: gaussian([0.25, 0.5, 0.25]),
    5: gaussian([0.0625, 0.25, 0.375, 0.25, 0.0625]),
    6: gaussian([0.03125, 0.109375, 0.21875, 0.28125, 0.21875, 0.109375, 0.03125]),
    7: lambda plane: ndimage.median_filter(plane, 3, mode="nearest"),
    8: lambda plane: ndimage.median_filter(plane, 5, mode="nearest"),
}


@pytest.mark.parametrize("channels", [1, 3])
def test_blurs_against_scipy_and_a_loop(images, channels):
    x = images(9, channels, 6, 7)
    out = apply(x, "blur", range(1, 10))
    for number, (image, ours) in enumerate(zip(x, out), start=1):
        expected = bilateral(image) if number == 9 else planes(BLURS[number], image)
        torch.testing.assert_close(ours, expected, atol=1e-5, rtol=0, msg=f"blur {number}")


def test_pixels_change_few_values_to_grey_levels(generator):
    x = torch.full((9, 3, 40, 40), 0.3)  # no grey level of a byte
    out = apply(x, "pixels", range(1, 10), generator=generator())
    changed = out != x
    counts = changed.flatten(1).sum(1)
    assert (counts <= torch.arange(1, 10)).all()
    assert (counts >= torch.arange(1, 10) - 1).all()  # a place may come twice
    assert torch.equal((out[changed] * 255).round() / 255, out[changed])
    assert changed.any(dim=(0, 2, 3)).all()  # single channels of a pixel change, in all channels
    assert len(out[changed].unique()) > 20


def test_gaussian_noise_has_a_variance_of_a_tenth(generator):
    x = torch.full((1, 1, 120, 120), 0.5)
    noise = apply(x, "noise", 1, generator=generator())
    expected = stats.norm(0.5, math.sqrt(0.1))
    inside = noise[(noise > 0) & (noise < 1)].double().numpy()
    truncated = stats.truncnorm(-0.5 / math.sqrt(0.1), 0.5 / math.sqrt(0.1), 0.5, math.sqrt(0.1))
    assert stats.kstest(inside, truncated.cdf).pvalue > 0.001
    assert abs((noise == 0).float().mean().item() - expected.cdf(0)) < 0.01


def test_salt_and_pepper_spoil_four_values_of_a_thousand(generator):
    x = torch.full((20, 3, 50, 50), 0.5)
    noise = apply(x, "noise", 2, generator=generator())
    for level in (0, 1):
        counts = (noise == level).flatten(1).sum(1)
        assert (counts <= 15).all() and counts.float().mean() > 14  # 15 places, some twice
    assert ((noise == 0.5) | (noise == 0) | (noise == 1)).all()


def test_multiplicative_noise_grows_with_the_value(generator):
    x = torch.tensor([0.0, 0.01, 0.1]).view(1, 3, 1, 1).expand(1, 3, 100, 100)
    noise = apply(x, "noise", 3, generator=generator())[0]
    assert (noise[0] == 0).all()
    for value, plane in zip((0.01, 0.1), noise[1:]):
        inside = plane[plane > 0].double().numpy()
        assert stats.kstest(inside, stats.truncnorm(-1, 9, value, value).cdf).pvalue > 0.001


def test_a_batch_of_many_mutations_is_each_by_itself(images):
    names = [name for name in MUTATIONS if not MUTATIONS[name].random] * 2
    x = images(len(names), 3)
    values = [MUTATIONS[name].values[place] for place, name in
              zip([0] * 7 + [-1] * 7, names)]
    before = x.clone()
    out = apply(x, names, values)
    for i, (name, value) in enumerate(zip(names, values)):
        torch.testing.assert_close(out[i:i + 1], apply(x[i:i + 1], name, value))
    assert torch.equal(x, before)


def test_random_mutations_repeat_with_the_generator(images, generator):
    x, names = images(4), ["noise", "pixels", "noise", "noise"]
    one, two, other = (apply(x, names, [1, 9, 2, 3], generator=generator(seed))
                       for seed in (0, 0, 1))
    assert torch.equal(one, two) and (one != other).flatten(1).any(1).all()


# ---- which mutation, and the bound

def test_parameters_are_those_of_the_released_code():
    assert {name: list(mutation.values) for name, mutation in MUTATIONS.items()} == {
        name: [i / unit for i in integers] for name, (integers, unit) in RANGES.items()}


@pytest.mark.parametrize("reading, pixel, affine", [("paper", 4, 4), ("released", 2, 7)])
def test_every_mutation_and_parameter_is_equally_likely(generator, reading, pixel, affine):
    n = 9000
    for free, among in ((False, PIXEL[reading]), (True, PIXEL[reading] + AFFINE[reading])):
        names, values = draw(torch.full((n,), free), affine=reading, generator=generator(5))
        assert len(among) == (pixel + affine if free else pixel)
        counts = [names.count(name) for name in among]
        assert sum(counts) == n and stats.chisquare(counts).pvalue > 0.001
        for name in among:
            drawn = [v for other, v in zip(names, values.tolist()) if other == name]
            expected = [i / RANGES[name][1] for i in RANGES[name][0]]
            found = [drawn.count(value) for value in expected]
            assert sum(found) == len(drawn) and stats.chisquare(found).pvalue > 0.001


def test_only_free_images_draw_affine_mutations(generator):
    free = torch.arange(400) % 2 == 0
    names, _ = draw(free, affine="paper", generator=generator())
    held = [name for name, yes in zip(names, free) if not yes]
    assert set(held) == set(PIXEL["paper"])
    assert set(names) == set(PIXEL["paper"] + AFFINE["paper"])


def test_distances_by_hand():
    reference = torch.full((3, 2, 1, 2), 0.5)
    x = reference.clone()
    x[0, 0, 0, 0], x[0, 1, 0, 1] = 0.9, 0.25
    x[1] += 0.4 / 255  # no grey level apart
    x[2, 0] -= 1 / 255
    l0, linf = distances(x, reference)
    assert l0.tolist() == [2, 0, 2]
    assert linf.tolist() == pytest.approx([0.4, 0.4 / 255, 1 / 255], abs=1e-6)


@pytest.mark.parametrize("l0, linf, passes", [
    (1, 1.0, True), (2, 1.0, False), (100, 0.19, True), (100, 0.2, False), (2, 0.2, False),
    (0, 0.0, True)])
def test_few_values_may_change_freely_and_many_by_little(l0, linf, passes):
    # 100 values: fewer than 2 of them, or all by less than 51 grey levels
    assert bool(allowed(torch.tensor([l0]), torch.tensor([linf]), 100)) is passes


def test_a_change_of_just_a_fifth_is_too_much():
    white = torch.ones(1, 1, 10, 10)
    for contrast, passes in ((0.8, False), (0.9, True)):
        l0, linf = distances(apply(white, "contrast", contrast), white)
        assert allowed(l0, linf, 100).item() is passes


@pytest.mark.parametrize("options, passes", [
    ({"alpha": 0.51}, True), ({"alpha": 0.5}, False), ({"beta": 0.6}, True), ({"beta": 0}, False)])
def test_the_bounds_are_options(options, passes):
    assert allowed(torch.tensor([50]), torch.tensor([0.5]), 100, **options).item() is passes


# ---- what is wrong

@pytest.mark.parametrize("name, value, message", [
    ("rotate", 51, "rotate"), ("translate", -4, "from -3 to 2"), ("scale", 0, "scale"),
    ("blur", 1.5, "whole"), ("blur", 10, "from 1 to 9"), ("noise", 0, "from 1 to 3"),
    ("contrast", float("nan"), "contrast"), ("contrast", [0.5, 0.6], "parameters"),
    ("shrink", 1, "unknown mutation 'shrink'"), ("pixels", 3, "generator")])
def test_bad_parameters_are_named(images, name, value, message):
    with pytest.raises(ValueError, match=message):
        apply(images(3), name, value)


def test_other_bad_input_is_named(images, generator):
    with pytest.raises(ValueError, match="names"):
        apply(images(3), ["scale"], 1.0)
    with pytest.raises(ValueError, match="4 x 4"):
        apply(torch.zeros(1, 1, 3, 8), "scale", 1.0)
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        apply(images() * 2, "scale", 1.0)
    with pytest.raises(ValueError, match="reference"):
        distances(images(), images(height=10))
    with pytest.raises(ValueError, match="unknown affine"):
        draw(torch.ones(2, dtype=torch.bool), affine="papers", generator=generator())


def test_smallest_images_take_every_blur():
    size = metamorphic.SMALLEST
    out = apply(torch.full((9, 1, size, size), 0.25), "blur", range(1, 10))
    torch.testing.assert_close(out, torch.full_like(out, 0.25))
