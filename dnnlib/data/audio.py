"""Speech as pictures of log-mel energies, and back to sound by Griffin and Lim's algorithm.

A clip is its middle second, 64 mel bands by 64 frames: square, as the networks expect their
images, and small enough to train on two processor cores. A value is a level in decibels on a
fixed range, not relative to the clip, so that any picture in [0, 1] has a sound.
"""

from functools import cache
from math import gcd

import numpy as np
import torch

from dnnlib import checks

RATE = 8000  # samples a second
WINDOW = 512  # samples, 64 ms: long enough for every mel band to hold a frequency of its own
HOP = 128  # samples between two frames, 16 ms
MELS = FRAMES = 64
SAMPLES = HOP * (FRAMES - 1)  # of a clip: 1.008 s
LOWEST = 50.0  # Hz, where the first mel band begins; the last ends at RATE / 2
RANGE = 80.0  # dB; a picture's 1 is about the level of a full-scale sine, its 0 lies RANGE below
SETTINGS = (RATE, WINDOW, HOP, MELS, FRAMES, LOWEST, RANGE)
MOMENTUM = 0.99  # of the fast variant of Perraudin et al.


def log_mel(wave, rate: int = RATE) -> torch.Tensor:
    """The picture of a clip: float32 (1, MELS, FRAMES) in [0, 1], low bands first.

    ``wave``: floats (n,) in [-1, 1], at ``rate`` samples a second. It is resampled to RATE, cut
    to its middle SAMPLES, or put in the middle of as much silence. Raises ``ValueError`` for
    another shape, values that are not finite or out of range, fewer samples than a WINDOW lasts,
    and ``TypeError`` for samples that are not floats.

    >>> tone = torch.sin(torch.arange(8000) * 2 * torch.pi * 1000 / RATE)
    >>> picture = log_mel(tone)
    >>> picture.shape, int(picture[0, :, 32].argmax())  # 1000 Hz lies in band 28
    (torch.Size([1, 64, 64]), 28)
    """
    wave = _at_rate(_checked(wave, rate), rate)
    energies = _bands() @ _spectrum(_fitted(wave)).abs().square()
    decibels = 10 * energies.clamp(min=10 ** (-RANGE / 10)).log10()
    return (1 + decibels / RANGE).clamp(0, 1).float().unsqueeze(0)


def resynthesise(picture: torch.Tensor, *, iterations: int = 64, seed: int = 0) -> np.ndarray:
    """A sound whose picture is near ``picture``: float32 (SAMPLES,) in [-1, 1], at RATE.

    ``picture``: (1, MELS, FRAMES) in [0, 1], as :func:`log_mel` gives or a fuzzer changed it.
    Spectrum from mel bands by the multiplicative updates of Lee and Seung (NIPS 2000), phases by
    ``iterations`` rounds of Griffin and Lim (IEEE TASSP 32, 1984) from random ones drawn from
    ``seed``, with momentum (Perraudin et al., WASPAA 2013). Louder than full scale, it is scaled
    to fit. Raises ``ValueError`` for another shape or values out of range.

    >>> wave = resynthesise(torch.rand(1, MELS, FRAMES), iterations=2)
    >>> wave.shape, wave.dtype
    ((8064,), dtype('float32'))
    """
    checks.images(picture.unsqueeze(0), "picture")
    if picture.shape != (1, MELS, FRAMES):
        raise ValueError(f"picture: expected shape {(1, MELS, FRAMES)}, got {tuple(picture.shape)}")
    checks.positive(iterations, "iterations")
    level = picture[0].detach().cpu().double()
    energies = 10 ** ((level - 1) * RANGE / 10) * (level > 0)
    magnitude = _unmixed(energies).sqrt()
    angle = 2 * torch.pi * torch.rand(magnitude.shape, dtype=torch.float64,
                                      generator=torch.Generator().manual_seed(seed))
    phase, before = torch.polar(torch.ones_like(angle), angle), 0
    for _ in range(iterations):
        consistent = _spectrum(_inverse(magnitude * phase))
        ahead = consistent + MOMENTUM * (consistent - before)
        phase, before = ahead / ahead.abs().clamp(min=1e-12), consistent
    wave = _inverse(magnitude * phase)
    return (wave / wave.abs().max().clamp(min=1)).float().numpy()


def _checked(wave, rate: int) -> np.ndarray:
    checks.positive(rate, "rate")
    wave = np.asarray(wave)
    if not np.issubdtype(wave.dtype, np.floating):
        raise TypeError(f"wave: expected floating-point samples, got {wave.dtype}")
    if wave.ndim != 1:
        raise ValueError(f"wave: expected one channel (n,), got shape {wave.shape}")
    if len(wave) * RATE < WINDOW * rate:
        raise ValueError(f"wave: expected at least {1000 * WINDOW / RATE:g} ms, got {len(wave)} "
                         f"samples at {rate} Hz, {1000 * len(wave) / rate:.3g} ms")
    largest = np.abs(wave).max()
    if not largest <= 1:
        raise ValueError(f"wave: expected finite samples in [-1, 1], got one of {largest:g}")
    return wave.astype(np.float64)


def _at_rate(wave: np.ndarray, rate: int) -> np.ndarray:
    from scipy.signal import resample_poly  # slow to import

    common = gcd(RATE, rate)
    return wave if rate == RATE else resample_poly(wave, RATE // common, rate // common)


def _fitted(wave: np.ndarray) -> torch.Tensor:
    """SAMPLES of a wave: its middle, or all of it amid zeros."""
    start = max(0, len(wave) - SAMPLES) // 2
    wave = wave[start:start + SAMPLES]
    left = (SAMPLES - len(wave)) // 2
    return torch.from_numpy(np.pad(wave, (left, SAMPLES - len(wave) - left)))


def _window() -> torch.Tensor:
    """Hann's, of a sum such that a sine of amplitude 1 has a spectrum of 1."""
    window = torch.hann_window(WINDOW, dtype=torch.float64)
    return 2 * window / window.sum()


def _spectrum(wave: torch.Tensor) -> torch.Tensor:
    """(SAMPLES,) -> complex (WINDOW / 2 + 1, FRAMES)."""
    return torch.stft(wave, WINDOW, HOP, window=_window(), pad_mode="constant",
                      return_complex=True)


def _inverse(spectrum: torch.Tensor) -> torch.Tensor:
    return torch.istft(spectrum, WINDOW, HOP, window=_window(), length=SAMPLES)


@cache
def _bands() -> torch.Tensor:
    """Triangles (MELS, WINDOW / 2 + 1), equally wide in mel = 2595 log10(1 + f / 700)."""
    mel = np.linspace(*(2595 * np.log10(1 + np.array([LOWEST, RATE / 2]) / 700)), MELS + 2)
    corners = 700 * (10 ** (mel / 2595) - 1)
    low, centre, high = (corners[i:i + MELS, None] for i in range(3))
    frequency = np.arange(WINDOW // 2 + 1) * RATE / WINDOW
    rising, falling = (frequency - low) / (centre - low), (high - frequency) / (high - centre)
    return torch.from_numpy(np.clip(np.minimum(rising, falling), 0, None))


def _unmixed(energies: torch.Tensor) -> torch.Tensor:
    """A power spectrum >= 0, (WINDOW / 2 + 1, FRAMES), with about these energies in its bands."""
    bands = _bands()
    reach = bands.sum(0).clamp(min=1e-12)[:, None]
    power = bands.T @ (energies / bands.sum(1, keepdim=True)) / reach
    for _ in range(50):
        ratio = energies / (bands @ power).clamp(min=1e-20)
        power = power * (bands.T @ ratio) / reach
    return power
