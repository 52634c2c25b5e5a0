import os

import numpy as np
import pytest
import torch
from PIL import Image

from dnnlib.data import folders as folders_module
from dnnlib.data import pictures

rng = np.random.default_rng(0)
GRAY = rng.integers(0, 256, (12, 28, 28), dtype=np.uint8)
COLOUR = rng.integers(0, 256, (12, 32, 32, 3), dtype=np.uint8)


def write_image(path, array, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path, **options)
    return path


def decoded(found):
    """The pictures that can be decoded, and the reasons for the others, by name."""
    good, bad = [], {}
    for i, name in enumerate(found.paths):
        try:
            good.append(found.pictures[i])
        except ValueError as error:
            bad[name] = str(error)
    return torch.stack(good), bad


def test_readable_skips_and_says_why(folders):
    own = folders / "own"
    for i, name in enumerate(["b/1.png", "a/2.png", "3.png"]):
        write_image(own / name, GRAY[i])
    (own / "a" / "torn.png").write_bytes((own / "a" / "2.png").read_bytes()[:-100])
    write_image(own / "deep.png", GRAY[0].astype(np.uint16) * 257)
    (own / "notes.txt").write_text("no image")
    (own / "empty.png").write_bytes(b"")
    found = pictures.readable(own)
    assert found.paths == ("3.png", "a/2.png", "a/torn.png", "b/1.png") and found.others == 1
    pixels_, late = decoded(found)
    assert np.array_equal(pixels_[:, 0], GRAY[[2, 1, 0]])
    assert [*found.skipped] == ["deep.png", "empty.png"] and [*late] == ["a/torn.png"]
    skipped = found.skipped | late
    assert skipped["a/torn.png"].startswith("is not a readable image")
    assert skipped["deep.png"] == "has more than 8 bits a pixel (I;16)"
    assert str(own) not in str(skipped)


def test_readable_reads_what_read_reads(folders):
    for i in range(3):
        write_image(folders / "own" / "c" / f"{i}.png", COLOUR[i])
    write_image(folders / "own" / "g.png", GRAY[0])
    strict = folders_module.read(folders / "own", size=20)
    found = pictures.readable(folders / "own", fit=lambda x: folders_module.fitted(x, 20),
                              fitted=lambda size: (20, 20))
    assert torch.equal(decoded(found)[0], strict[0]) and found.paths == strict[-1]
    assert not found.skipped and not found.others


@pytest.mark.parametrize("channels", [1, 3])
def test_readable_in_the_channels_wanted(folders, channels):
    write_image(folders / "own" / "a.png", GRAY[0])
    write_image(folders / "own" / "b.png", COLOUR[0, :28, :28])
    pixels_ = decoded(pictures.readable(folders / "own", channels=channels))[0]
    assert pixels_.shape == (2, channels, 28, 28)
    assert np.array_equal(pixels_[0], np.stack([GRAY[0]] * channels))
    if channels == 1:  # ITU-R 601, rounded
        luma = COLOUR[0, :28, :28] @ np.array([0.299, 0.587, 0.114])
        assert np.abs(pixels_[1, 0].numpy() - luma).max() <= 1


def test_image_of_absurd_size_is_skipped(folders, monkeypatch):
    write_image(folders / "own" / "a.png", GRAY[0, :8, :8])
    write_image(folders / "own" / "huge.png", GRAY[0])
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    _, names, skipped, *_ = pictures.readable(folders / "own")
    assert names == ("a.png",) and "decompression bomb" in skipped["huge.png"]


def test_name_that_is_no_text(folders):
    write_image(folders / "own" / "a.png", GRAY[0]).rename(
        os.fsdecode(os.fsencode(folders / "own") + b"/caf\xe9.png"))
    assert pictures.readable(folders / "own")[1] == (os.fsdecode(b"caf\xe9.png"),)


def test_no_image_that_can_be_read(folders):
    (folders / "own").mkdir()
    for name in "ab":
        (folders / "own" / f"{name}.png").write_bytes(b"")
    with pytest.raises(ValueError, match="no image that can be read; of 2, the first: a.png is"):
        pictures.readable(folders / "own")


def test_photos_are_turned_as_the_camera_was_held(folders):
    image = Image.fromarray(COLOUR[0, :20, :30])
    exif = Image.Exif()
    exif[0x0112] = 6  # turned clockwise by a quarter to be upright
    (folders / "own").mkdir()
    image.save(folders / "own" / "a.png", exif=exif)
    found = pictures.readable(folders / "own").pictures[0].permute(1, 2, 0)
    assert np.array_equal(found, np.rot90(COLOUR[0, :20, :30], -1))


def test_folders_that_cannot_be_entered_are_told(folders, monkeypatch):
    for name in ("open/a.png", "shut/b.png"):
        write_image(folders / "own" / name, GRAY[0])
    scan = os.scandir

    def guarded(path):
        if str(path).endswith("shut"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", guarded)
    found = pictures.readable(folders / "own")
    assert found.paths == ("open/a.png",)
    assert found.skipped == {"shut/": "cannot be entered: Permission denied"}
    with pytest.raises(ValueError, match="shut/ cannot be entered"):
        folders_module.read(folders / "own")


@pytest.mark.parametrize("name, text", [
    ("list.txt", "c/2.png\nnone.png\n\nc/0.png\nc/2.png\n"),
    ("list.csv", "id,path\n1,c/2.png\n2,none.png\n3,c/0.png\n"),
    ("list.tsv", "path\tid\nc/2.png\t1\nnone.png\t2\nc/0.png\t3\n")])
def test_lists_of_paths(folders, name, text):
    for i in range(3):
        write_image(folders / "own" / "c" / f"{i}.png", GRAY[i])
    (folders / "own" / name).write_text(text)
    found = pictures.readable(folders / "own" / name)
    assert found.paths == ("c/2.png", "c/0.png") and [*found.skipped] == ["none.png"]
    assert np.array_equal(decoded(found)[0][:, 0], GRAY[[2, 0]])


@pytest.mark.parametrize("name, text, kind, words", [
    ("list.csv", "file\na.png\n", ValueError, "expected a column 'path', got file"),
    ("list.txt", "\n", FileNotFoundError, "lists no paths"),
    ("list.doc", "a.png", FileNotFoundError, "is not a folder, nor a list of paths"),
    ("list.txt", None, FileNotFoundError, "no file .*list.txt")])
def test_lists_that_are_none(folders, name, text, kind, words):
    if text is not None:
        (folders / name).write_text(text)
    with pytest.raises(kind, match=words):
        pictures.readable(folders / name)


def test_sizes_that_differ_are_told_by_headers_as_the_photos_are_held(folders):
    exif = Image.Exif()
    exif[0x0112] = 6
    (folders / "own").mkdir()
    Image.fromarray(COLOUR[0, :20, :30]).save(folders / "own" / "a.png", exif=exif)
    write_image(folders / "own" / "b.png", COLOUR[0, :30, :20])
    assert pictures.readable(folders / "own").pictures[1].shape == (3, 30, 20)
    write_image(folders / "own" / "c.png", COLOUR[0, :20, :30])
    with pytest.raises(ValueError, match="c.png is 30 x 20, the first image 20 x 30: give a size"):
        pictures.readable(folders / "own")


def test_no_picture_is_decoded_before_it_is_asked_for(folders, monkeypatch):
    for i in range(3):
        write_image(folders / "own" / f"{i}.png", GRAY[i])
    decode, seen = folders_module.opened, []
    monkeypatch.setattr(pictures, "opened", lambda *a: seen.append(a[0]) or decode(*a))
    found = pictures.readable(folders / "own")
    assert seen == [] and torch.equal(found.pictures[2][0], torch.from_numpy(GRAY[2]))
    assert [path.name for path in seen] == ["2.png"]
