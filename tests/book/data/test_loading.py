import hashlib
import os
import pickle
import struct

import numpy as np
import pytest
import scipy.io
import torch
from PIL import Image
from torchvision import datasets

from dnnbook.data import MissingData, known, load
from dnnlib.data import folders as folders_module

rng = np.random.default_rng(0)
GRAY = rng.integers(0, 256, (12, 28, 28), dtype=np.uint8)
COLOUR = rng.integers(0, 256, (12, 32, 32, 3), dtype=np.uint8)
LABELS = np.arange(12, dtype=np.uint8) % 10


@pytest.fixture
def root(folders):
    (folders / "data").mkdir()
    return folders / "data"


def write_idx(root, images=GRAY, labels=LABELS, name="MNIST", prefixes=("train", "t10k")):
    raw = root / name / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    for prefix in prefixes:
        (raw / f"{prefix}-images-idx3-ubyte").write_bytes(
            struct.pack(">4I", 0x803, *images.shape) + images.tobytes())
        (raw / f"{prefix}-labels-idx1-ubyte").write_bytes(
            struct.pack(">2I", 0x801, len(labels)) + labels.tobytes())
    return raw


def write_cifar(root, dataset, monkeypatch, labels=LABELS):
    """The pickled batches; torchvision is told these files' sums for the real ones'."""
    folder = root / dataset.base_folder
    folder.mkdir()
    key = "labels" if dataset is datasets.CIFAR10 else "fine_labels"

    def dump(name, content):
        (folder / name).write_bytes(pickle.dumps(content))
        return hashlib.md5((folder / name).read_bytes()).hexdigest()

    for attribute in ("train_list", "test_list"):
        names = [name for name, _ in getattr(dataset, attribute)]
        flat = COLOUR.transpose(0, 3, 1, 2).reshape(12, -1)
        sums = [[name, dump(name, {"data": flat + np.uint8(i), key: labels.tolist()})]
                for i, name in enumerate(names)]
        monkeypatch.setattr(dataset, attribute, sums)
    count = 10 if dataset is datasets.CIFAR10 else 100
    meta = dump(dataset.meta["filename"],
                {dataset.meta["key"]: [f"class {i}" for i in range(count)]})
    monkeypatch.setattr(dataset, "meta", dataset.meta | {"md5": meta})
    return folder


def write_svhn(root, labels):
    path = root / "test_32x32.mat"
    scipy.io.savemat(path, {"X": COLOUR.transpose(1, 2, 3, 0), "y": labels[:, None]})
    return path


def write_image(path, array, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path, **options)
    return path


def pixels(data):
    return (data.images * 255).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()


@pytest.mark.parametrize("name, folder", [("mnist", "MNIST"), ("fashion_mnist", "FashionMNIST")])
def test_idx(root, name, folder):
    write_idx(root, name=folder)
    write_idx(root, GRAY[:5], LABELS[:5], folder, ["t10k"])
    train, test = load(name, "train"), load(name)
    assert np.array_equal(pixels(train)[..., 0], GRAY)
    assert train.labels.tolist() == LABELS.tolist() and train.labels.dtype == torch.int64
    assert (len(test), test.shape, len(test.classes)) == (5, (1, 28, 28), 10)
    assert test.form == "idx"


@pytest.mark.parametrize("name, dataset, count, parts", [
    ("cifar10", datasets.CIFAR10, 10, 5), ("cifar100", datasets.CIFAR100, 100, 1)])
def test_cifar(root, monkeypatch, name, dataset, count, parts):
    write_cifar(root, dataset, monkeypatch)
    test = load(name)
    assert np.array_equal(pixels(test), COLOUR)
    assert test.labels.tolist() == LABELS.tolist()
    assert test.classes == tuple(f"class {i}" for i in range(count))
    train = load(name, "train")
    assert len(train) == 12 * parts
    # in the order of the batches
    assert np.array_equal(pixels(train)[-12:], COLOUR + np.uint8(parts - 1))


def test_the_images_of_another_dataset_are_refused(root, monkeypatch):
    write_svhn(root, LABELS)
    monkeypatch.setitem(known.KNOWN, load("svhn").fingerprint, ("svhn_part", "test", ""))
    with pytest.raises(ValueError, match="'svhn' .test.: expected its images, got those of 'svhn_part'"):
        load("svhn")


def test_svhn_ten_is_zero(root, monkeypatch):
    write_svhn(root, np.where(LABELS == 0, 10, LABELS).astype(np.uint8))
    data = load("svhn")
    assert np.array_equal(pixels(data), COLOUR)
    assert data.labels.tolist() == LABELS.tolist()
    assert (data.shape, len(data.classes)) == ((3, 32, 32), 10)


def test_digits_splits_are_apart_and_whole():
    train, test = load("digits", "train"), load("digits")
    assert (len(train), len(test)) == (1297, 500)
    assert test.shape == (1, 28, 28) and load("digits", size=8).shape == (1, 8, 8)
    counts = torch.bincount(test.labels)
    assert counts.max() - counts.min() < 5  # stratified; the whole set holds 174 to 183 a class


@pytest.mark.parametrize("name, labels", [
    ("mnist", [11]), ("mnist", [255]), ("cifar10", [10]), ("cifar10", [-1]), ("svhn", [11])])
def test_labels_out_of_range(root, monkeypatch, name, labels):
    wrong = np.array(LABELS.tolist()[:-1] + labels)
    if name == "mnist":
        write_idx(root, labels=wrong.astype(np.uint8))
    elif name == "cifar10":
        write_cifar(root, datasets.CIFAR10, monkeypatch, wrong)
    else:
        write_svhn(root, wrong.astype(np.uint8))
    with pytest.raises(ValueError, match=rf"{name} \(test\) labels: .*0 to 9, got .*{labels[0]}"):
        load(name)


def test_fewer_labels_than_images(root):
    write_idx(root, labels=LABELS[:-1])
    with pytest.raises(ValueError, match=r"expected 12 integers, got .*\(11,\)"):
        load("mnist")


@pytest.mark.parametrize("file", ["t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"])
@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b + b"\0", lambda b: b[:5],
                                    lambda b: b"", lambda b: b"\1" + b[1:]])
def test_damaged_idx_names_the_file(root, file, damage):
    path = write_idx(root) / file
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=f"{file} is damaged"):
        load("mnist")


def test_damaged_batches_name_their_folder(root, monkeypatch):
    folder = write_cifar(root, datasets.CIFAR10, monkeypatch)
    (folder / "test_batch").write_bytes(b"broken")
    with pytest.raises(ValueError, match=f"{folder} .*cifar10.*corrupted"):
        load("cifar10")
    path = write_svhn(root, LABELS)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match="test_32x32.mat could not be read as svhn"):
        load("svhn")


@pytest.mark.parametrize("name, layout, get", [
    ("mnist", "MNIST/raw", "download=True"), ("cifar100", "cifar-100-python", "download=True"),
    ("svhn", "test_32x32.mat", "download=True"), ("imagenet", "imagenet/", "image-net.org")])
def test_missing_data_says_where_and_how(root, name, layout, get):
    with pytest.raises(MissingData) as caught:
        load(name)
    for words in (name, str(root), layout, "<class>", get, "DNNLIB_DATA"):
        assert words in str(caught.value)


def test_imagenet_cannot_be_downloaded(root):
    with pytest.raises(MissingData, match="image-net.org"):
        load("imagenet", download=True)


def test_missing_file_of_a_present_layout(root):
    write_idx(root, prefixes=["t10k"])
    with pytest.raises(MissingData, match="train-images-idx3-ubyte is missing.*download=True"):
        load("mnist", "train")


def test_broken_off_download_is_taken_up(root, monkeypatch):
    write_idx(root, prefixes=["t10k"])
    monkeypatch.setattr(datasets.MNIST, "download", lambda self: write_idx(root))
    assert len(load("mnist", "train", download=True)) == 12


def test_unknown_name():
    with pytest.raises(ValueError, match="unknown dataset 'fashion-mnist'; .*'fashion_mnist'"):
        load("fashion-mnist")


@pytest.mark.parametrize("arguments, words", [
    ({"channels": 2}, "channels: expected 1 or 3"), ({"size": 0}, "size: expected"),
    ({"size": 8.0}, "size: expected"), ({"limit": 0}, "limit: expected"),
    ({"limit": -3}, "limit: expected"), ({"split": "val"}, "split: expected")])
def test_arguments_out_of_range(arguments, words):
    with pytest.raises(ValueError, match=words):
        load("digits", **arguments)


@pytest.mark.parametrize("limit", [1, 2, 5, 12, 99])
def test_limit_spreads_over_the_set(root, limit):
    write_idx(root)
    data = load("mnist", limit=limit)
    chosen = [int(np.flatnonzero((GRAY == image).all((1, 2)))[0]) for image in pixels(data)[..., 0]]
    assert len(chosen) == min(limit, 12) and chosen == sorted(set(chosen))
    assert chosen[0] == 0 and (limit == 1 or chosen[-1] == 11)
    assert data.labels.tolist() == LABELS[chosen].tolist()
    gaps = np.diff(chosen)
    assert limit == 1 or gaps.max() - gaps.min() <= 1
    assert (data.fingerprint == load("mnist").fingerprint) == (limit >= 12)


def test_channels_and_size(root, monkeypatch):
    write_idx(root)
    colour = load("mnist", channels=3, size=14)
    assert colour.images.shape == (12, 3, 14, 14)
    assert torch.equal(colour.images[:, 0], colour.images[:, 2])
    assert 0 <= colour.images.min() and colour.images.max() <= 1
    write_cifar(root, datasets.CIFAR10, monkeypatch)
    luma = COLOUR @ np.array([0.2989, 0.587, 0.114])  # ITU-R 601, cut to whole numbers
    gray = load("cifar10", channels=1)
    assert gray.shape == (1, 32, 32)
    assert np.abs(pixels(gray)[..., 0] - luma).max() <= 1


def test_fingerprint_tells_pixels_and_labels(root):
    seen = []
    for images, labels in ((GRAY, LABELS), (GRAY, LABELS), (GRAY.copy(), LABELS),
                           (GRAY, LABELS.copy())):
        if len(seen) == 2:
            images[3, 4, 5] ^= 1
        if len(seen) == 3:
            labels[7] -= 1
        write_idx(root, images, labels)
        seen.append(load("mnist").fingerprint)
    assert seen[0] == seen[1] and len(set(seen)) == 3


@pytest.mark.parametrize("name, split, folder", [
    ("cifar10", "train", "train"), ("cifar10", "test", "test"), ("svhn", "test", "val")])
def test_named_folder(root, name, split, folder):
    letters = "abcdefghij"  # ten classes, the first two with two images each
    for i in range(12):
        path = root / name / folder / letters[i % 10] / f"{i:02d}.png"
        write_image(path, COLOUR[i % len(COLOUR)])
    data = load(name, split)
    assert data.classes == tuple(letters)
    assert data.labels.tolist() == [0, 0, 1, 1, *range(2, 10)]
    assert data.paths[:4] == ("a/00.png", "a/10.png", "b/01.png", "b/11.png")
    written = [0, 10, 1, 11, *range(2, 10)]
    assert np.array_equal(pixels(data), COLOUR[[i % len(COLOUR) for i in written]])
    assert data.form == "png"
    with pytest.raises(MissingData):
        load(name, "train" if split == "test" else "test")


def test_named_folder_that_lacks_a_class(root):
    write_image(root / "cifar10" / "test" / "airplane" / "0.png", COLOUR[0])
    with pytest.raises(ValueError, match="1 classes; cifar10 has 10"):
        load("cifar10")


def test_own_folder_with_splits(folders):
    for folder, image in (("train", COLOUR[0]), ("val", COLOUR[1])):
        write_image(folders / "own" / folder / "cat" / "0.png", image)
    for split, image in (("train", COLOUR[0]), ("test", COLOUR[1])):
        data = load(folders / "own", split)
        assert data.classes == ("cat",) and np.array_equal(pixels(data)[0], image)


def test_gray_and_colour_png_and_jpeg_mixed(folders):
    flat = np.full((16, 16), 90, np.uint8)
    write_image(folders / "own" / "a.png", GRAY[0, :16, :16])
    write_image(folders / "own" / "b.png", COLOUR[0, :16, :16])
    write_image(folders / "own" / "c.JPG", flat, format="JPEG")
    data = load(folders / "own")
    got = pixels(data)
    assert np.array_equal(got[0], np.repeat(GRAY[0, :16, :16, None], 3, 2))
    assert np.array_equal(got[1], COLOUR[0, :16, :16])
    assert np.abs(got[2].astype(int) - 90).max() <= 1  # what an even gray loses as JPEG
    assert data.form == "jpeg+png"


def test_gray_folder_without_classes(folders):
    for i in range(3):
        write_image(folders / "own" / f"{i}.png", GRAY[i])
    (folders / "own" / "notes.txt").write_text("no image")
    data = load(str(folders / "own"))
    assert data.shape == (1, 28, 28) and np.array_equal(pixels(data)[..., 0], GRAY[:3])
    assert data.labels.tolist() == [-1, -1, -1] and data.classes == ()


def test_here_is_a_folder_too(folders, monkeypatch):
    write_image(folders / "own" / "0.png", GRAY[0])
    monkeypatch.chdir(folders / "own")
    assert len(load(".")) == 1


def test_differing_sizes(folders):
    write_image(folders / "own" / "a.png", GRAY[0])
    write_image(folders / "own" / "b.png", GRAY[1, :20])
    with pytest.raises(ValueError, match="b.png is 28 x 20, the first image 28 x 28: give a size"):
        load(folders / "own")
    data = load(folders / "own", size=20)
    assert data.images.shape == (2, 1, 20, 20)
    assert np.array_equal(pixels(data)[1, ..., 0], GRAY[1, :20, 4:24])  # cropped at the centre


def test_no_folder_and_no_images(folders):
    with pytest.raises(FileNotFoundError, match="nowhere is not a folder"):
        load(folders / "nowhere")
    (folders / "bare").mkdir()
    with pytest.raises(FileNotFoundError, match="bare holds no images"):
        load(folders / "bare")


@pytest.mark.parametrize("name, damage", [
    ("x.png", lambda b: b[:-40]), ("x.jpg", lambda b: b[:len(b) // 2]), ("x.png", lambda b: b""),
    ("x.png", lambda b: b"no image"), ("x.png", lambda b: b[:40] + b"\0" * 20 + b[60:])])
def test_broken_image_names_the_file(folders, name, damage):
    write_image(folders / "own" / "good.png", COLOUR[0])
    path = write_image(folders / "own" / name, COLOUR[1])
    path.write_bytes(damage(path.read_bytes()))
    for _ in range(2):  # nothing of it was kept
        with pytest.raises(ValueError, match=rf"own/{name} is not a readable image"):
            load(folders / "own")


def test_deep_gray_is_refused_not_clipped(folders):
    write_image(folders / "own" / "deep.png", GRAY[0].astype(np.uint16) * 257)
    with pytest.raises(ValueError, match="deep.png has more than 8 bits"):
        load(folders / "own")


def test_decoded_once_until_a_file_changes(folders, monkeypatch):
    opened = []
    real = Image.open
    monkeypatch.setattr(folders_module.Image, "open",
                        lambda path, *a: opened.append(path) or real(path, *a))
    paths = [write_image(folders / "own" / f"{i}.bmp", GRAY[i]) for i in range(3)]
    first = load(folders / "own")
    assert len(opened) == 3
    again = load(folders / "own")
    assert len(opened) == 3
    assert torch.equal(first.images, again.images) and first.fingerprint == again.fingerprint
    load(folders / "own", size=14)
    assert len(opened) == 6

    before = paths[1].stat()
    write_image(paths[1], GRAY[7])
    assert paths[1].stat().st_size == before.st_size  # only the time tells
    os.utime(paths[1], ns=(before.st_atime_ns, before.st_mtime_ns + 1_000_000))
    changed = load(folders / "own")
    assert len(opened) == 9
    assert np.array_equal(pixels(changed)[1, ..., 0], GRAY[7])
    assert changed.fingerprint != first.fingerprint


@pytest.mark.parametrize("replaced", [False, True], ids=["written over", "replaced"])
def test_an_image_changed_with_its_size_and_time_kept_is_noticed(folders, replaced):
    paths = [write_image(folders / "own" / f"{i}.bmp", GRAY[i]) for i in range(3)]
    first, before = load(folders / "own"), paths[1].stat()
    write_image(folders / "other.bmp", GRAY[7])
    if replaced:
        os.utime(folders / "other.bmp", ns=(before.st_atime_ns, before.st_mtime_ns))
        os.replace(folders / "other.bmp", paths[1])
    else:
        paths[1].write_bytes((folders / "other.bmp").read_bytes())
        os.utime(paths[1], ns=(before.st_atime_ns, before.st_mtime_ns))
    after = paths[1].stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    changed = load(folders / "own")
    assert np.array_equal(pixels(changed)[1, ..., 0], GRAY[7])
    assert changed.fingerprint != first.fingerprint


def test_damaged_decoded_images_name_the_file(folders):
    write_image(folders / "own" / "a.png", GRAY[0])
    load(folders / "own")
    kept, = (folders / "cache" / "images").glob("*.safetensors")
    kept.write_bytes(kept.read_bytes()[:-1])
    with pytest.raises(ValueError, match=kept.name):
        load(folders / "own")


def test_photos_are_turned_as_the_camera_was_held(folders):
    image = Image.fromarray(COLOUR[0, :20, :30])
    exif = Image.Exif()
    exif[0x0112] = 6  # turned clockwise by a quarter to be upright
    (folders / "own").mkdir()
    image.save(folders / "own" / "a.png", exif=exif)
    assert np.array_equal(pixels(load(folders / "own"))[0], np.rot90(COLOUR[0, :20, :30], -1))
