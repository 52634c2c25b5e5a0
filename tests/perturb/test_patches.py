import itertools

import pytest
import torch

from dnnlib.perturb import patches as patching
from dnnlib.perturb.patches import Patches


@pytest.mark.parametrize("shape", [(1, 2, 2), (3, 3, 5), (1, 5, 2)])
def test_corners_are_all_the_places_that_fit(shape, generator):
    drawn = patching.draw(20, 50, shape, generator=generator())
    corners = set(zip(drawn.top.flatten().tolist(), drawn.left.flatten().tolist()))
    assert corners == set(itertools.product(range(shape[1] - 1), range(shape[2] - 1)))


def test_corners_and_colours_are_uniform(generator):
    drawn = patching.draw(200, 100, (1, 5, 5), generator=generator())
    for corner in (drawn.top, drawn.left):
        counts = torch.bincount(corner.flatten(), minlength=4)
        expected = corner.numel() / 4
        assert ((counts - expected) ** 2 / expected).sum() < 16.27  # chi-squared, 3 df, p = 0.001
    assert 0 <= drawn.colour.min() and drawn.colour.max() <= 1
    error = (12 * drawn.colour.numel()) ** -0.5  # of the mean
    assert drawn.colour.mean().item() == pytest.approx(0.5, abs=4 * error)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("invert", [False, True])
def test_block_of_one_colour_and_nothing_else(channels, invert, generator):
    x = torch.rand(3, channels, 5, 6, generator=generator(1))
    before = x.clone()
    drawn = patching.draw(3, 20, x.shape[1:], invert=invert, generator=generator())
    out = patching.apply(x, drawn)
    assert torch.equal(x, before)
    for i, j in itertools.product(range(3), range(20)):
        expected = x[i].clone()
        top, left = int(drawn.top[i, j]), int(drawn.left[i, j])
        for row, column, c in itertools.product((top, top + 1), (left, left + 1), range(channels)):
            expected[c, row, column] = (1 - x[i, c, row, column] if invert
                                        else drawn.colour[i, j, c])
        assert torch.equal(out[i, j], expected)


def test_inversion_is_its_own_inverse(generator):
    x = torch.randint(256, (4, 3, 6, 6), generator=generator(1)) / 256  # 1 - x is exact
    drawn = patching.draw(4, 1, (3, 6, 6), invert=True, generator=generator())
    once = patching.apply(x, drawn)[:, 0]
    assert not torch.equal(once, x)
    assert torch.equal(patching.apply(once, drawn)[:, 0], x)


@pytest.mark.parametrize("invert", [False, True])
def test_chunks_do_not_matter(invert, generator):
    x = torch.rand(7, 1, 6, 6, generator=generator(1))
    drawn = patching.draw(7, 4, (1, 6, 6), invert=invert, generator=generator())
    parts = [patching.apply(x[i:i + 3], drawn[i:i + 3]) for i in range(0, 7, 3)]
    assert torch.equal(torch.cat(parts), patching.apply(x, drawn))


def test_too_small_an_image_and_the_wrong_number(generator):
    with pytest.raises(ValueError, match="at least 2 x 2, got 1 x 9"):
        patching.draw(1, 1, (1, 1, 9), generator=generator())
    one = Patches(torch.zeros(1, 1).long(), torch.zeros(1, 1).long(), None)
    with pytest.raises(ValueError, match="for 2 images, got 1"):
        patching.apply(torch.zeros(2, 1, 3, 3), one)
