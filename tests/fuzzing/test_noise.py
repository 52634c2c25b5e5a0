"""Noise at equal distance."""

import pytest
import torch

from dnnlib.fuzzing.noise import Noise
from dnnlib.fuzzing.protocol import Budget, reach


def far(fuzzer, model, inputs, generator):
    return fuzzer.run(model, inputs, torch.zeros(len(inputs), dtype=torch.int64), iterations=3,
                      generator=generator(1)).l2


@pytest.mark.parametrize("options", [{}, {"scale": 1.0}])
def test_noise_is_as_far_as_its_budget(tiny_model, generator, options):
    """On black, where half of all noise is cut off."""
    found = far(Noise(budget=Budget(l2=2.5), **options), tiny_model(),
                torch.zeros(5, 1, 8, 8), generator)
    assert ((found - 2.5).abs() < 0.01 * 2.5).all()


def test_noise_goes_as_far_as_pixels_allow(tiny_model, generator):
    """Of 64 black pixels some 32 are moved, by 1 at most: near 5.7, never 20."""
    found = far(Noise(budget=Budget(l2=20.0)), tiny_model(), torch.zeros(5, 1, 8, 8), generator)
    assert ((found > 4.5) & (found < 7)).all()


def test_noise_within_both_bounds(tiny_model, generator):
    found = Noise(budget=Budget(l2=2.0, linf=0.1)).run(
        tiny_model(), torch.full((3, 1, 8, 8), 0.5), torch.zeros(3, dtype=torch.int64),
        iterations=1, generator=generator(0))
    assert (found.linf <= 0.1 + 1e-6).all() and (found.l2 <= 2.0).all()


def test_each_image_is_moved_by_its_own_length(generator):
    x = torch.rand(6, 3, 8, 8, generator=generator())
    length = torch.tensor([0.0, 0.01, 0.5, 2.0, 4.0, 100.0])
    moved = reach(x, torch.randn(x.shape, generator=generator(1)), length)
    assert moved.min() >= 0 and moved.max() <= 1
    distance = (moved - x).flatten(1).norm(dim=1)
    torch.testing.assert_close(distance[:5], length[:5], rtol=0.01, atol=1e-4)
    assert 4 < distance[5] < 14


def test_a_direction_of_zeros_moves_nothing():
    x = torch.full((1, 1, 2, 2), 0.5)
    assert torch.equal(reach(x, torch.zeros_like(x), torch.tensor([1.0])), x)
