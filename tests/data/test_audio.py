import math

import numpy as np
import pytest
import torch

from dnnlib.data import audio

rng = np.random.default_rng(0)
NOISE = rng.uniform(-0.5, 0.5, 12000)


def tone(frequency, seconds=1.2, rate=audio.RATE, amplitude=1.0):
    return amplitude * np.sin(2 * np.pi * frequency * np.arange(int(seconds * rate)) / rate)


def decibels(picture):
    return (picture - 1) * audio.RANGE


def mel(frequency):
    return 2595 * math.log10(1 + frequency / 700)


def centre(band):
    """Hz of a mel band's middle."""
    low, high = mel(audio.LOWEST), mel(audio.RATE / 2)
    at = low + (band + 1) * (high - low) / (audio.MELS + 1)
    return 700 * (10 ** (at / 2595) - 1)


@pytest.mark.parametrize("frame", [0, 20, 63])
def test_a_frame_is_what_its_sums_say(frame):
    wave = np.concatenate([np.zeros(256), NOISE[:audio.SAMPLES], np.zeros(256)])
    part = wave[frame * audio.HOP:frame * audio.HOP + audio.WINDOW]
    hann = [0.5 - 0.5 * math.cos(2 * math.pi * n / audio.WINDOW) for n in range(audio.WINDOW)]
    times = np.arange(audio.WINDOW)
    found = audio.log_mel(NOISE[:audio.SAMPLES])[0, :, frame]
    for band in range(audio.MELS):
        low, high = (centre(band - 1), centre(band + 1))
        energy = 0.0
        for k in range(audio.WINDOW // 2 + 1):
            hz = k * audio.RATE / audio.WINDOW
            if low < hz < high:
                height = min((hz - low) / (centre(band) - low), (high - hz) / (high - centre(band)))
                line = (part * hann * np.exp(-2j * np.pi * k * times / audio.WINDOW)).sum()
                energy += height * abs(2 * line / sum(hann)) ** 2
        assert decibels(found[band]) == pytest.approx(10 * math.log10(energy), abs=1e-3)


@pytest.mark.parametrize("band", [5, 28, 45, 60])
def test_a_full_tone_is_brightest_in_its_band_at_about_the_top(band):
    picture = audio.log_mel(tone(centre(band)))
    assert picture.shape == (1, 64, 64) and picture.dtype == torch.float32
    assert picture[0, :, 32].argmax() == band
    assert -2 < decibels(picture[0, band, 32]) <= 0


def test_half_the_amplitude_is_six_decibels_less():
    quiet, loud = audio.log_mel(NOISE / 2), audio.log_mel(NOISE)
    assert quiet.min() > 0
    torch.testing.assert_close(decibels(loud) - decibels(quiet),
                               torch.full_like(loud, 20 * math.log10(2)), atol=1e-3, rtol=0)


def test_every_band_hears_a_frequency():
    assert audio.log_mel(NOISE)[0].min(1).values.min() > 0.2


def test_silence_is_black():
    assert audio.log_mel(np.zeros(9000)).max() == 0


def test_another_rate_is_resampled():
    at_eight = audio.log_mel(tone(900, 1.2))
    at_48 = audio.log_mel(tone(900, 1.2, 48000), 48000)
    loud = at_eight > 0.7
    assert loud.sum() > 64
    assert (decibels(at_48) - decibels(at_eight))[loud].abs().max() < 0.5


def test_what_eight_kilohertz_cannot_hold_is_filtered_out():
    assert audio.log_mel(tone(6000, 1.2, 48000), 48000)[0, :, 20:44].max() < 0.3


def test_a_long_clip_is_its_middle():
    start = (len(NOISE) - audio.SAMPLES) // 2
    middle = NOISE[start:start + audio.SAMPLES]
    assert torch.equal(audio.log_mel(NOISE), audio.log_mel(middle))


def test_a_short_clip_stands_amid_silence():
    picture = audio.log_mel(NOISE[:2000])[0]
    heard = (picture > 0).any(0).nonzero().flatten()
    first = (audio.SAMPLES - 2000) / 2 / audio.HOP
    assert (picture[:, :heard[0]] == 0).all() and (picture[:, heard[-1] + 1:] == 0).all()
    # half a window, two frames, reaches over either edge
    assert heard[0] == pytest.approx(first - 2, abs=1)
    assert heard[-1] == pytest.approx(first + 2000 / audio.HOP + 2, abs=1)


@pytest.mark.parametrize("wave, rate, error, words", [
    (np.zeros((2, 9000)), 8000, ValueError, r"one channel \(n,\), got shape \(2, 9000\)"),
    (np.zeros(9000, np.int16), 8000, TypeError, "floating-point samples, got int16"),
    (np.zeros(511), 8000, ValueError, "at least 64 ms, got 511 samples at 8000 Hz, 63.9 ms"),
    (np.zeros(3000), 48000, ValueError, "at least 64 ms, got 3000 samples at 48000 Hz"),
    (np.zeros(0), 8000, ValueError, "got 0 samples"),
    (np.full(9000, 1.5), 8000, ValueError, r"in \[-1, 1\], got one of 1.5"),
    (np.full(9000, np.nan), 8000, ValueError, "finite samples .* got one of nan"),
    (np.zeros(9000), 0, ValueError, "rate: expected a whole number"),
    (np.zeros(9000), 8000.0, ValueError, "rate: expected a whole number")])
def test_waves_that_are_none(wave, rate, error, words):
    with pytest.raises(error, match=words):
        audio.log_mel(wave, rate)


def glide():
    """A harmonic sound that rises: what speech is like, without the package's voices."""
    phase = 2 * np.pi * np.cumsum(np.linspace(110, 180, audio.SAMPLES)) / audio.RATE
    wave = sum(np.sin(k * phase) / k for k in range(1, 12))
    return 0.9 * wave / np.abs(wave).max() + 0.003 * rng.standard_normal(audio.SAMPLES)


@pytest.mark.parametrize("wave", [glide().clip(-1, 1), NOISE], ids=["glide", "noise"])
def test_a_picture_survives_the_way_to_sound_and_back(wave):
    picture = audio.log_mel(wave)
    sound = audio.resynthesise(picture)
    assert sound.shape == (audio.SAMPLES,) and sound.dtype == np.float32
    assert (decibels(audio.log_mel(sound)) - decibels(picture)).abs().mean() < 3


def test_more_rounds_come_nearer():
    picture = audio.log_mel(glide().clip(-1, 1))
    off = [(audio.log_mel(audio.resynthesise(picture, iterations=n)) - picture).abs().mean()
           for n in (1, 8, 64)]
    assert off[0] > off[1] > off[2]


def test_a_resynthesised_tone_has_its_frequency():
    sound = audio.resynthesise(audio.log_mel(tone(1000, amplitude=0.5)))
    middle = sound[2000:6000]
    spectrum = np.abs(np.fft.rfft(middle * np.hanning(len(middle))))
    assert spectrum.argmax() * audio.RATE / len(middle) == pytest.approx(1000, abs=16)
    assert np.abs(middle).max() == pytest.approx(0.5, rel=0.25)


def test_black_is_silence_and_white_fits_into_full_scale():
    assert np.abs(audio.resynthesise(torch.zeros(1, 64, 64), iterations=2)).max() == 0
    assert np.abs(audio.resynthesise(torch.ones(1, 64, 64), iterations=2)).max() == pytest.approx(1)


def test_the_phases_are_those_of_the_seed():
    picture = audio.log_mel(glide().clip(-1, 1))
    torch.manual_seed(5)
    one = audio.resynthesise(picture, iterations=2, seed=1)
    torch.manual_seed(6)
    assert np.array_equal(one, audio.resynthesise(picture, iterations=2, seed=1))
    assert not np.array_equal(one, audio.resynthesise(picture, iterations=2, seed=2))


@pytest.mark.parametrize("picture, error, words", [
    (torch.zeros(1, 64, 32), ValueError, r"shape \(1, 64, 64\), got \(1, 64, 32\)"),
    (torch.zeros(2, 64, 64), ValueError, r"shape \(1, 64, 64\), got \(2, 64, 64\)"),
    (torch.full((1, 64, 64), 1.1), ValueError, r"picture: expected values in \[0, 1\]"),
    (torch.full((1, 64, 64), torch.nan), ValueError, "picture: expected finite"),
    (torch.zeros(1, 64, 64, dtype=torch.uint8), TypeError, "picture: expected a floating")])
def test_pictures_that_have_no_sound(picture, error, words):
    with pytest.raises(error, match=words):
        audio.resynthesise(picture)


def test_rounds_are_a_positive_number():
    with pytest.raises(ValueError, match="iterations: expected"):
        audio.resynthesise(torch.zeros(1, 64, 64), iterations=0)
