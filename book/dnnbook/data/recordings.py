"""Recorded speakers, in FSDD's and VCTK's layouts: the speaker is the class.

Utterances are split, never the frames of one. Every clip is scaled so that its loudest sample is
1: speakers recorded at different levels would else be told apart by their microphones.
"""

import re
import wave
from collections import Counter
from pathlib import Path

import numpy as np
import torch

from dnnlib import files
from dnnlib.data import audio
from dnnlib.data.raw import Raw
from dnnlib.progress import progress

FSDD_RATE, VCTK_RATE = 8000, 48000
FSDD_NAME = re.compile(r"(?P<digit>\d)_(?P<speaker>[^_]+)_(?P<index>\d+)")
VCTK_NAME = re.compile(r"(?P<speaker>[ps]\d+)_(?P<index>\d+)(_mic(?P<microphone>\d))?")
FSDD_TESTS = 5  # recordings 0 to 4 of every digit and speaker, the data's own convention
VCTK_SPEAKERS = 30  # of 109, the first by name: the paper has 30 and does not say which
VCTK_TESTS = 0.1  # the last tenth of a speaker's utterances; the paper's 1,200 of 11,200 is as much


def fsdd(root: Path, split: str) -> Raw:
    """The Free Spoken Digit Dataset: ``fsdd/recordings/<digit>_<speaker>_<index>.wav``.

    Pictures are uint8 (N, 1, MELS, FRAMES), classes the speakers in order of name. Raises
    ``ValueError`` naming a file that is damaged, too short, stereo, not of 16 bits or not at 8 kHz,
    and for a speaker without recordings on both sides.
    """
    folder = root / "fsdd" / "recordings"
    named = [(path, _match(FSDD_NAME, path)) for path in _wavs(folder)]
    speakers = [found["speaker"] for _, found in named]
    tests = [int(found["index"]) < FSDD_TESTS for _, found in named]
    return _split(folder, [path for path, _ in named], speakers, tests, split, FSDD_RATE)


def vctk(root: Path, split: str) -> Raw:
    """VCTK: ``VCTK*/wav48*/<speaker>/<speaker>_<number>.wav``, 48 kHz, resampled to 8 kHz.

    Classes are speakers: the paper's "30 classes" cannot be accents: there are fewer of these.
    Of version 0.92 the first microphone counts. Its FLAC files cannot be read here; converted to
    WAV in place, under the same names, they can. Returns and raises as :func:`fsdd`.
    """
    folder = sorted(root.glob("VCTK*/wav48*"))[0]
    people = sorted(path for path in folder.iterdir() if path.is_dir())[:VCTK_SPEAKERS]
    paths, speakers, tests = [], [], []
    for person in people:
        found = [path for path in _wavs(person)
                 if _match(VCTK_NAME, path)["microphone"] in (None, "1")]
        paths += found
        speakers += [person.name] * len(found)
        held = max(1, round(VCTK_TESTS * len(found)))
        tests += [place >= len(found) - held for place in range(len(found))]
    return _split(folder, paths, speakers, tests, split, VCTK_RATE)


def read_wav(path: Path, rate: int) -> np.ndarray:
    """A clip of one channel, 16 bits a sample and ``rate`` Hz: float64 (n,) in [-1, 1].

    Raises ``ValueError`` naming the file if it is anything else or ends too early.
    """
    try:
        with wave.open(str(path)) as file:
            channels, width, found, count, *_ = file.getparams()
            content = file.readframes(count)
    except (wave.Error, EOFError) as error:
        reason = str(error) or "it ends within its header"
        raise ValueError(f"{path} is not a readable WAV file: {reason}") from error
    for value, expected, what in ((channels, 1, "channels"), (8 * width, 16, "bits a sample"),
                                  (found, rate, "samples a second")):
        if value != expected:
            raise ValueError(f"{path} has {value} {what}, expected {expected}")
    if len(content) != 2 * count:
        raise ValueError(f"{path} is truncated: {len(content)} bytes of sound where its header "
                         f"announces {2 * count}")
    return np.frombuffer(content, "<i2") / 32768


def _wavs(folder: Path) -> list[Path]:
    """A folder's WAV files in order of name."""
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder")
    found = sorted(folder.iterdir())
    paths = [path for path in found if path.suffix.lower() == ".wav"]
    if not paths:
        flac = any(path.suffix.lower() == ".flac" for path in found)
        hint = ", only FLAC files, which cannot be read here: convert them to WAV" if flac else ""
        raise ValueError(f"{folder} holds no WAV files{hint}")
    return paths


def _match(pattern: re.Pattern, path: Path) -> re.Match:
    found = pattern.fullmatch(path.stem)
    if not found:
        raise ValueError(f"{path} is not named as the dataset's files are ({pattern.pattern}.wav)")
    return found


def _split(folder: Path, paths: list[Path], speakers: list[str], tests: list[bool], split: str,
           rate: int) -> Raw:
    """One side of the split, after a look at both."""
    classes = tuple(sorted(set(speakers)))
    if len(classes) < 2:
        raise ValueError(f"{folder}: expected at least two speakers, got {len(classes)}")
    for side, is_test in (("training", False), ("testing", True)):
        count = Counter(s for s, test in zip(speakers, tests) if test == is_test)
        for name in classes:
            if not count[name]:
                raise ValueError(f"{folder}: speaker {name!r} has {speakers.count(name)} "
                                 f"utterances, and none of them is for {side}: cannot be split")
    chosen = [i for i, test in enumerate(tests) if test == (split == "test")]
    kept = [paths[i] for i in chosen]
    labels = torch.tensor([classes.index(speakers[i]) for i in chosen])
    names = tuple(path.relative_to(folder).as_posix() for path in kept)
    stats = [path.stat() for path in kept]
    key = {"folder": str(folder.resolve()), "audio": audio.SETTINGS, "rate": rate,
           "files": [[n, s.st_size, s.st_mtime_ns] for n, s in zip(names, stats)]}
    pictures = files.cached("speech", key, lambda: {"pictures": _pictures(kept, rate)})["pictures"]
    return Raw(pictures, labels, classes, "wav", names)


def _pictures(paths: list[Path], rate: int) -> torch.Tensor:
    bar = progress(paths, desc=f"reading {paths[0].parent.name}", leave=False)
    return torch.stack([_picture(path, rate) for path in bar])


def _picture(path: Path, rate: int) -> torch.Tensor:
    clip = read_wav(path, rate)
    loudest = np.abs(clip).max(initial=0)
    try:
        picture = audio.log_mel(clip / loudest if loudest else clip, rate)
    except ValueError as error:
        raise ValueError(f"{path} cannot be used: {error}") from error
    return (picture * 255).round().byte()
