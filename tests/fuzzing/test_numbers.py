import math

import pytest
import torch
from scipy import stats

from dnnlib.fuzzing.numbers import Numbers, mixed, numbered

KEYS = torch.tensor([3, -5, 2**62 - 1])


def splitmix(state, count):
    """Vigna's splitmix64.c, in Python's whole numbers."""
    found, whole = [], 2**64 - 1
    for _ in range(count):
        state = state + 0x9E3779B97F4A7C15 & whole
        z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & whole
        z = (z ^ z >> 27) * 0x94D049BB133111EB & whole
        found.append(z ^ z >> 31)
    return found


def test_numbers_known_of_splitmix64():
    found = [each % 2**64 for each in numbered(torch.tensor(1234567), torch.arange(5)).tolist()]
    known = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431,
             16408922859458223821]
    assert found == known == splitmix(1234567, 5)


@pytest.mark.parametrize("key", KEYS.tolist())
def test_a_draw_is_the_upper_bits_of_its_stream(key):
    numbers = Numbers(torch.tensor([key]))
    for draw in range(3):
        stream = splitmix(key, draw + 1)[-1]
        halves = [half for each in splitmix(stream, 4) for half in (each & 2**32 - 1, each >> 32)]
        assert numbers.uniform(7)[0].tolist() == [(half >> 8) / 2**24 for half in halves[:7]]


def test_numbers_are_uniform_and_normal_and_of_no_other():
    numbers = Numbers(torch.arange(20))
    first, second, normal = numbers.uniform(5000), numbers.uniform(5000), numbers.normal(5000)
    assert first.min() >= 0 and first.max() < 1
    assert stats.kstest(first.flatten().double(), "uniform").pvalue > 0.01
    assert stats.kstest(normal.flatten().double(), "norm").pvalue > 0.01
    together = torch.cat([first, second, normal])  # no two of the 60 rows have to do with each other
    apart = torch.corrcoef(together).fill_diagonal_(0).abs().max()
    assert apart < 5 / math.sqrt(5000)
    beside = torch.corrcoef(torch.stack([first[:, :-1].flatten(), first[:, 1:].flatten()]))[0, 1]
    assert abs(beside) < 4 / math.sqrt(first.numel())


@pytest.mark.parametrize("shape", [(3,), (2, 5, 1, 4, 4), (40_001,), (0,)])
def test_an_inputs_numbers_depend_on_no_other_input(shape):
    whole = Numbers(KEYS)
    drawn = [whole.uniform(*shape), whole.uniform(*shape)]
    for order in ([0], [1], [2, 0], [2, 1, 0]):
        some = Numbers(KEYS)[torch.tensor(order)]
        assert all(torch.equal(some.uniform(*shape), each[order]) for each in drawn)


def test_inputs_that_go_on_alone_keep_their_numbers():
    whole, other = Numbers(KEYS), Numbers(KEYS)
    whole.uniform(4), other.uniform(9)  # the sizes of draws do not matter either
    assert torch.equal(other[torch.tensor([2])].uniform(6), whole.uniform(6)[2:])


def test_mixing_loses_no_number():
    assert len(mixed(torch.arange(-5000, 5000)).unique()) == 10_000
