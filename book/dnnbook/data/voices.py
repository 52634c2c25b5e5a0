"""Eight synthetic speakers, the embedded default for speech: vowels by a source and a filter.

Pulses of the glottis, low-passed and with some breath, pass through three resonances, the
formants (Fant, Acoustic Theory of Speech Production, 1960). A speaker is a pitch, the length of
a vocal tract, which scales all formants, a timbre, and an accent, which moves every vowel's
formants a little. None of these alone tells who speaks, as all vary between utterances too.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import torch

from dnnlib import checks
from dnnlib.data import audio

SEED = 2024
UTTERANCES = {"train": 60, "test": 20}  # of every speaker
# first three formants of men's vowels, Hz (Peterson and Barney, JASA 24, 1952, Table II)
VOWELS = {"i": (270, 2290, 3010), "e": (530, 1840, 2480), "a": (730, 1090, 2440),
          "o": (570, 840, 2410), "u": (300, 870, 2240)}
BANDWIDTHS = (80, 110, 160)  # Hz
ACCENT = 0.06  # standard deviation of a vowel's formants between speakers, as a share
WOBBLE = 0.02  # ... of all formants between utterances of one speaker
INTONATION = 0.06  # standard deviation of the pitch between utterances
NOISE = (0.002, 0.02)  # background, as a share of the loudest sample, from quiet to noisy


@dataclass(frozen=True)
class Speaker:
    """``pitch``: Hz. ``tract``: factor on the formants. ``tilt``: pole of the low-pass, the
    nearer to 1 the darker. ``jitter``: standard deviation of a period, as a share. ``breath``:
    noise in the source, beside pulses of 1.
    """

    name: str
    pitch: float
    tract: float
    tilt: float
    jitter: float
    breath: float


SPEAKERS = (
    Speaker("ada", 210, 1.16, 0.88, 0.010, 0.03), Speaker("ben", 105, 1.00, 0.94, 0.015, 0.02),
    Speaker("cleo", 180, 1.08, 0.95, 0.020, 0.08), Speaker("dan", 125, 0.94, 0.88, 0.010, 0.04),
    Speaker("eva", 240, 1.20, 0.94, 0.015, 0.06), Speaker("finn", 145, 1.04, 0.96, 0.025, 0.02),
    Speaker("gus", 90, 0.90, 0.92, 0.020, 0.02), Speaker("hana", 165, 1.14, 0.90, 0.010, 0.10))


def read(split: str) -> tuple[torch.Tensor, torch.Tensor, tuple[str, ...]]:
    """Pictures uint8 (N, 1, MELS, FRAMES), labels (N,) and names of the speakers.

    An utterance depends on SEED, its split, speaker and number alone. In 8 bits a picture is
    the same on every machine but where a level lies on the edge between two of them.

    >>> pictures, labels, names = read("test")
    >>> pictures.shape, len(names), torch.bincount(labels).tolist()[:2]
    (torch.Size([160, 1, 64, 64]), 8, [20, 20])
    """
    checks.known(split, UTTERANCES, "split")
    count = UTTERANCES[split]
    pictures = torch.stack([audio.log_mel(utterance(speaker, number, split))
                            for speaker in range(len(SPEAKERS)) for number in range(count)])
    labels = torch.arange(len(SPEAKERS)).repeat_interleave(count)
    return (pictures * 255).round().byte(), labels, tuple(s.name for s in SPEAKERS)


def utterance(speaker: int, number: int, split: str = "test") -> np.ndarray:
    """Two to four vowels of a speaker: float64 (audio.SAMPLES,) in [-1, 1], at audio.RATE.

    ``speaker``: a position in SPEAKERS. The sound before log-mel and 8 bits, to listen to.

    >>> utterance(0, 0).shape
    (8064,)
    """
    checks.known(split, UTTERANCES, "split")
    who = SPEAKERS[speaker]
    rng = np.random.default_rng([SEED, list(UTTERANCES).index(split), speaker, number])
    pitch = who.pitch * np.exp(INTONATION * rng.standard_normal())
    tract = who.tract * np.exp(WOBBLE * rng.standard_normal())
    edges = np.cumsum(rng.uniform(0.7, 1.3, rng.integers(2, 5) + 1))
    edges = (edges / edges[-1] * audio.SAMPLES).astype(int)  # a pause first, of half its share
    wave = np.zeros(audio.SAMPLES)
    for start, end in zip(edges, edges[1:]):
        vowel = rng.integers(len(VOWELS))
        wave[start:end] = _syllable(who, pitch, tract * _formants()[speaker, vowel], end - start,
                                    rng)
    wave = np.roll(wave, -edges[0] // 2)
    wave = wave / np.abs(wave).max()
    noise = np.exp(rng.uniform(*np.log(NOISE))) * rng.standard_normal(len(wave))
    return np.clip(wave + noise, -1, 1)


@cache
def _formants() -> np.ndarray:
    """Hz (speakers, vowels, 3), in every speaker's accent but not yet of their tract."""
    rng = np.random.default_rng(SEED)
    standard = np.array(list(VOWELS.values()), dtype=float)
    return standard * np.exp(ACCENT * rng.standard_normal((len(SPEAKERS), *standard.shape)))


def _syllable(who: Speaker, pitch: float, formants: np.ndarray, samples: int,
              rng: np.random.Generator) -> np.ndarray:
    """One vowel that swells and dies, of any loudness between a half and all."""
    from scipy.signal import lfilter  # slow to import

    source = _pulses(who, pitch, samples, rng) + who.breath * rng.standard_normal(samples)
    sound = lfilter([1 - who.tilt], [1, -who.tilt], source)
    for frequency, bandwidth in zip(formants, BANDWIDTHS):
        radius = np.exp(-np.pi * bandwidth / audio.RATE)
        a = [1, -2 * radius * np.cos(2 * np.pi * frequency / audio.RATE), radius ** 2]
        sound = lfilter([sum(a)], a, sound)  # a gain of 1 at 0 Hz
    time = np.arange(samples) / samples
    envelope = np.minimum(1, time / 0.15) * np.minimum(1, (1 - time) / 0.35)
    loudness = np.sqrt(np.mean((sound * envelope) ** 2))
    return rng.uniform(0.5, 1) * sound * envelope / loudness


def _pulses(who: Speaker, pitch: float, samples: int, rng: np.random.Generator) -> np.ndarray:
    """Pulses of 1 whose periods jitter and lengthen by a tenth from first to last."""
    count = int(2 * samples * pitch / audio.RATE) + 2
    drift = np.linspace(1, 1.2, count)  # count is twice what fits
    periods = audio.RATE / pitch * drift * (1 + who.jitter * rng.standard_normal(count))
    times = np.cumsum(np.clip(periods, 1, None))
    times = times[times < samples - 1]
    source, whole = np.zeros(samples), times.astype(int)
    np.add.at(source, whole, 1 - (times - whole))  # a pulse between two samples is shared
    np.add.at(source, whole + 1, times - whole)
    return source
