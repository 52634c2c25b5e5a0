import shutil
import wave as wave_module

import numpy as np
import pytest
import torch
from scipy.io import wavfile
from scipy.signal import welch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dnnbook.data import MissingData, load, recordings, voices
from dnnlib.data import audio

# ---- synthetic speakers


@pytest.fixture(scope="module")
def spoken():
    return load("voices", "train"), load("voices")


def test_voices_are_pictures_like_any_other_data(spoken):
    for data, count in zip(spoken, (480, 160)):
        assert data.images.shape == (count, 1, 64, 64) and data.images.dtype == torch.float32
        assert 0 <= data.images.min() and data.images.max() <= 1
        assert torch.bincount(data.labels).tolist() == [count // 8] * 8
        assert data.form == "embedded" and len(data.classes) == 8
    train, test = (set(map(bytes, d.images.numpy().reshape(len(d), -1))) for d in spoken)
    assert len(train) == 480 and len(test) == 160 and not train & test


def test_voices_need_no_file_and_no_random_state(spoken):
    torch.manual_seed(1)
    np.random.seed(1)
    again = load("voices")
    assert torch.equal(again.images, spoken[1].images)
    assert again.fingerprint == spoken[1].fingerprint


def test_an_utterance_is_the_picture_of_its_number(spoken):
    for speaker, number in ((0, 3), (7, 19)):
        picture = audio.log_mel(voices.utterance(speaker, number))
        found = spoken[1].images[20 * speaker + number]
        assert (picture - found).abs().max() <= 0.5001 / 255


@pytest.mark.parametrize("speaker", range(8))
def test_a_speaker_has_their_pitch(speaker):
    heard = []
    for number in range(12):
        sound = voices.utterance(speaker, number)
        echo = np.correlate(sound, sound, "full")[len(sound) - 1:]
        lags = np.arange(audio.RATE // 320, audio.RATE // 70)
        heard.append(audio.RATE / lags[echo[lags].argmax()])
    # falling by a tenth within a vowel, and spread by 6 % over utterances
    assert np.median(heard) == pytest.approx(0.95 * voices.SPEAKERS[speaker].pitch, rel=0.08)


@pytest.mark.parametrize("vowel", voices.VOWELS)
def test_a_vowel_has_its_formants(vowel):
    formants = np.array(voices.VOWELS[vowel], float)
    hiss = voices.Speaker("hiss", 100, 1.0, 0.0, 0.0, 100.0)  # noise shows the filter alone
    sound = voices._syllable(hiss, 100, formants, 80000, np.random.default_rng(0))
    frequency, power = welch(sound, audio.RATE, nperseg=256)
    for formant in formants[:2] if formants[1] - formants[0] > 400 else formants[:1]:
        near = np.abs(frequency - formant) < 200
        assert frequency[near][power[near].argmax()] == pytest.approx(formant, abs=80)


def test_voices_are_neither_alike_nor_told_at_a_glance(spoken):
    train, test = spoken
    glance = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=500))
    glance.fit(train.images.mean((1, 3)), train.labels)  # the mean spectrum
    assert 0.4 < glance.score(test.images.mean((1, 3)), test.labels) < 0.95


def test_an_unknown_split_has_no_voices():
    with pytest.raises(ValueError, match="unknown split 'val'"):
        voices.read("val")


# ---- recordings


@pytest.fixture
def root(folders):
    (folders / "data").mkdir()
    return folders / "data"


def clip(seed, rate=8000, seconds=0.1, frequency=500.0):
    time = np.arange(int(rate * seconds)) / rate
    hum = 0.3 * np.sin(2 * np.pi * frequency * time)
    return ((hum + np.random.default_rng(seed).normal(0, 0.02, len(time))) * 32767).astype(np.int16)


def write(path, samples, rate=8000):
    path.parent.mkdir(parents=True, exist_ok=True)
    wavfile.write(path, rate, samples)
    return path


def write_fsdd(root, speakers=("theo", "george"), digits=(0, 1), indices=(0, 4, 5, 49)):
    """Every file a sound of its own; returns them by name."""
    clips = {}
    for speaker in speakers:
        for digit in digits:
            for index in indices:
                name = f"{digit}_{speaker}_{index}.wav"
                clips[name] = clip(len(clips))
                write(root / "fsdd" / "recordings" / name, clips[name])
    return clips


def write_vctk(root, counts, folder="VCTK-Corpus/wav48", ending=".wav", rate=48000):
    for speaker, count in counts.items():
        for number in range(1, count + 1):
            name = f"{speaker}_{number:03d}{ending}"
            write(root / folder / speaker / name, clip(number, rate), rate)


def test_fsdd_is_split_by_the_index_of_the_recording(root):
    clips = write_fsdd(root)
    (root / "fsdd" / "recordings" / "notes.txt").write_text("no sound")
    train, test = load("fsdd", "train"), load("fsdd")
    assert train.classes == test.classes == ("george", "theo")
    assert set(train.paths) | set(test.paths) == set(clips)
    for data, indices in ((train, {"5", "49"}), (test, {"0", "4"})):
        assert len(data) == 8 and data.shape == (1, 64, 64)
        assert data.form == "wav"
        for path, label in zip(data.paths, data.labels):
            _, speaker, index = path.removesuffix(".wav").split("_")
            assert index in indices and data.classes[label] == speaker


def test_a_recording_is_the_picture_of_its_loudest_form(root):
    clips = write_fsdd(root)
    data = load("fsdd")
    for path, image in zip(data.paths, data.images):
        sound = clips[path] / np.abs(clips[path]).max()
        assert (audio.log_mel(sound) - image).abs().max() <= 0.5001 / 255


def test_recordings_are_read_once_until_one_changes(root, monkeypatch):
    write_fsdd(root)
    opened = []
    real = wave_module.open
    monkeypatch.setattr(recordings.wave, "open", lambda path: opened.append(path) or real(path))
    first = load("fsdd")
    assert len(opened) == 8
    assert torch.equal(load("fsdd").images, first.images) and len(opened) == 8
    write(root / "fsdd" / "recordings" / "0_theo_0.wav", clip(99, seconds=0.2))
    assert load("fsdd").fingerprint != first.fingerprint and len(opened) == 16


@pytest.mark.parametrize("folder, ending", [
    ("VCTK-Corpus/wav48", ".wav"), ("VCTK-Corpus-0.92/wav48_silence_trimmed", "_mic1.wav")])
def test_vctk_holds_back_the_last_tenth_of_each_speaker(root, folder, ending):
    write_vctk(root, {"p226": 20, "p225": 2, "s5": 9}, folder, ending)
    train, test = load("vctk", "train"), load("vctk")
    assert test.classes == ("p225", "p226", "s5")
    assert test.paths == tuple(f"{p}{ending}" for p in (
        "p225/p225_002", "p226/p226_019", "p226/p226_020", "s5/s5_009"))
    assert test.labels.tolist() == [0, 1, 1, 2] and len(train) == 31 - 4
    assert not set(train.paths) & set(test.paths)


def test_vctk_is_resampled(root):
    write_vctk(root, {"p225": 2, "p226": 2})
    at_eight = audio.log_mel(clip(0) / 32767)[0, :, 32]
    assert load("vctk").images[0, 0, :, 32].argmax() == at_eight.argmax()


def test_vctk_counts_its_first_microphone_once(root):
    for microphone in (1, 2):
        write_vctk(root, {"p225": 4, "p226": 4}, ending=f"_mic{microphone}.wav")
    names = load("vctk", "train").paths + load("vctk").paths
    assert len(names) == 8 and all("mic1" in name for name in names)


def test_vctk_has_the_first_thirty_speakers(root):
    people = {f"p{n}": 2 for n in range(225, 257)}
    write_vctk(root, people)
    assert load("vctk").classes == tuple(sorted(people))[:30]


def test_flac_files_are_named_as_what_cannot_be_read(root):
    write_vctk(root, {"p225": 2, "p226": 2})
    for path in (root / "VCTK-Corpus" / "wav48" / "p226").iterdir():
        path.rename(path.with_suffix(".flac"))
    with pytest.raises(ValueError, match="p226 holds no WAV files, only FLAC .* convert"):
        load("vctk")


# ---- recordings that cannot be used


def damaged(path, change):
    path.write_bytes(change(path.read_bytes()))


@pytest.mark.parametrize("change, words", [
    (lambda b: b[:-1], "is truncated: 1599 bytes of sound .* announces 1600"),
    (lambda b: b[:60], "is truncated: 16 bytes of sound"),
    (lambda b: b[:30], "is not a readable WAV file"),
    (lambda b: b"", "is not a readable WAV file: it ends within its header"),
    (lambda b: b"ID3" + b, "is not a readable WAV file: file does not start with RIFF"),
    (lambda b: b[:20] + b"\3\0" + b[22:], "is not a readable WAV file: unknown format")])
def test_damaged_recordings_name_the_file(root, change, words):
    write_fsdd(root)
    path = root / "fsdd" / "recordings" / "1_theo_4.wav"
    damaged(path, change)
    for _ in range(2):  # nothing of it was kept
        with pytest.raises(ValueError, match=f"1_theo_4.wav {words}"):
            load("fsdd")
    assert len(load("fsdd", "train")) == 8  # the other side does not need it


@pytest.mark.parametrize("samples, rate, words", [
    (clip(0, 16000), 16000, "has 16000 samples a second, expected 8000"),
    (np.stack([clip(0)] * 2, 1), 8000, "has 2 channels, expected 1"),
    (clip(0).astype(np.int32), 8000, "has 32 bits a sample, expected 16"),
    ((clip(0) >> 8).astype(np.uint8), 8000, "has 8 bits a sample, expected 16"),
    (clip(0)[:100], 8000, "cannot be used: .* at least 64 ms, got 100 samples"),
    (clip(0)[:0], 8000, "cannot be used: .* got 0 samples")])
def test_recordings_of_another_kind_name_the_file(root, samples, rate, words):
    write_fsdd(root)
    write(root / "fsdd" / "recordings" / "0_george_0.wav", samples, rate)
    with pytest.raises(ValueError, match=f"0_george_0.wav {words}"):
        load("fsdd")


def test_a_silent_recording_is_black(root):
    write_fsdd(root)
    write(root / "fsdd" / "recordings" / "0_george_0.wav", clip(0) * 0)
    data = load("fsdd")
    assert data.images[data.paths.index("0_george_0.wav")].max() == 0


@pytest.mark.parametrize("indices, side", [((0, 3), "training"), ((5, 30), "testing")])
def test_an_fsdd_speaker_on_one_side_alone_cannot_be_split(root, indices, side):
    write_fsdd(root)
    write_fsdd(root, ("ann",), (7,), indices)
    with pytest.raises(ValueError, match=f"'ann' has 2 utterances, and none of them is for {side}"):
        load("fsdd")


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_vctk_speaker_with_one_utterance_cannot_be_split(root, split):
    write_vctk(root, {"p225": 3, "p226": 1})
    with pytest.raises(ValueError, match="'p226' has 1 utterances, and none of them is for training"):
        load("vctk", split)


def test_one_speaker_is_too_few(root):
    write_fsdd(root, ("theo",))
    with pytest.raises(ValueError, match="at least two speakers, got 1"):
        load("fsdd")


@pytest.mark.parametrize("name", ["theo_0_0.wav", "0_theo.wav", "0_theo_1(copy).wav"])
def test_a_foreign_name_is_named(root, name):
    write_fsdd(root)
    write(root / "fsdd" / "recordings" / name, clip(0))
    with pytest.raises(ValueError, match="is not named as the dataset's files are"):
        load("fsdd")


@pytest.mark.parametrize("name, layout, get", [
    ("fsdd", "fsdd/recordings", "Jakobovski"), ("vctk", r"VCTK\*/wav48\*", "doi.org")])
@pytest.mark.parametrize("download", [False, True])
def test_missing_recordings_say_where_and_how(root, name, layout, get, download):
    with pytest.raises(MissingData, match=f"{layout}.*{get}.*DNNLIB_DATA"):
        load(name, download=download)


def test_an_empty_folder_of_recordings(root):
    write_fsdd(root)
    shutil.rmtree(root / "fsdd" / "recordings")
    (root / "fsdd" / "recordings").mkdir()
    with pytest.raises(ValueError, match="recordings holds no WAV files$"):
        load("fsdd")
