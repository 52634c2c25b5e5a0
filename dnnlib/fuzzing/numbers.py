"""Random numbers from a counter: on every device the same, in blocks of any size and order.

SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014): number
n of a stream is a mix of key + (n + 1) times a constant, so none waits for the one before it.
"""

import math

import torch

_STEP = 0x9E3779B97F4A7C15 - 2**64  # as int64, whose products wrap around as unsigned ones do
_CACHED = 2**15  # numbers of 64 bits that a processor's cache holds
_FIRST, _SECOND = 0xBF58476D1CE4E5B9 - 2**64, 0x94D049BB133111EB - 2**64


def mixed(z: torch.Tensor) -> torch.Tensor:
    """The mix of SplitMix64, int64 to int64, in place.

    >>> z = torch.tensor([0x9E3779B97F4A7C15 - 2**64])  # the first number after a key of 0
    >>> hex(mixed(z).item() % 2**64)
    '0xe220a8397b1dcdaf'
    """
    for bits, factor in ((30, _FIRST), (27, _SECOND)):
        z.bitwise_xor_((z >> bits).bitwise_and_(2**(64 - bits) - 1)).mul_(factor)
    return z.bitwise_xor_((z >> 31).bitwise_and_(2**33 - 1))


def numbered(keys: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Number ``places`` of the streams ``keys``, both int64 of shapes that broadcast; int64.

    >>> numbered(torch.tensor(1234567), torch.arange(2)).tolist()
    [6457827717110365317, 3203168211198807973]
    """
    return mixed(keys + (places + 1) * _STEP)


def fractions(z: torch.Tensor) -> torch.Tensor:
    """Two numbers of 24 bits in [0, 1) of each int64: (..., n) to float32 (..., 2 n)."""
    return (z.view(torch.int32) >> 8).bitwise_and_(2**24 - 1).float().mul_(2.0**-24)


class Numbers:
    """Random numbers of s inputs, each from a stream of its own.

    ``keys``: int64 (s,), on the device where the numbers are wanted. A draw takes a stream that
    follows from an input's key and from how many draws there were, so it depends neither on the
    other inputs nor on the shapes drawn before.

    >>> numbers = Numbers(torch.tensor([7, 8]))
    >>> numbers.uniform(2, 3).shape
    torch.Size([2, 2, 3])
    >>> torch.equal(Numbers(torch.tensor([8])).uniform(6)[0], Numbers(
    ...     torch.tensor([7, 8])).uniform(2, 3)[1].flatten())
    True
    """

    def __init__(self, keys: torch.Tensor, draws: int = 0):
        self.keys, self.draws = keys, draws

    def __getitem__(self, rows: torch.Tensor) -> "Numbers":
        """Of some inputs alone, as they go on."""
        return Numbers(self.keys[rows], self.draws)

    def uniform(self, *shape: int) -> torch.Tensor:
        """Multiples of 2^-24 in [0, 1), float32 (s, ...)."""
        count = math.prod(shape)
        keys = numbered(self.keys, torch.tensor(self.draws, device=self.keys.device))
        self.draws += 1
        places = torch.arange(-(-count // 2), device=keys.device)
        most = _CACHED if keys.device.type == "cpu" else len(keys) * len(places)
        found = torch.cat([fractions(numbered(some[:, None], places)) for some in keys.split(
            max(1, most // max(1, len(places))))])[:, :count]
        return found.reshape(len(keys), *shape)

    def normal(self, *shape: int) -> torch.Tensor:
        """Standard normal, float32 (s, ...), by Box and Muller; on devices to rounding alike."""
        radius, angle = self.uniform(2, *shape).unbind(1)
        return (-2 * (1 - radius).log()).sqrt() * (2 * math.pi * angle).cos()
