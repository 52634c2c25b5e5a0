"""Finding and reading the datasets: torchvision's layout, folders of images, recordings."""

import os
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dnnbook.data import own, recordings, subsets, voices
from dnnbook.data.missing import MissingData
from dnnlib import checks, files
from dnnlib.data import folders, parquet
from dnnlib.data.raw import Raw


@dataclass(frozen=True)
class Source:
    """A named dataset: its reader, the files this needs, and where they come from."""

    read: Callable[[Path, str, bool], Raw] | None  # (root, split, download)
    layout: str  # file or folder (a glob) below the root that shows the dataset is there
    shape: tuple[int, int, int]
    sizes: dict[str, int]
    classes: int
    get: str
    fetched: bool = True  # by torchvision, if asked to
    hub: str = ""  # the folder of the hub's files, if it may lie below the root by itself

    @property
    def embedded(self) -> bool:
        """Whether it is part of an installed package, here or anywhere."""
        return self.read is not None and not self.layout


def _torchvision(dataset: str) -> Callable[..., Any]:
    """torchvision's class of that name."""
    from torchvision import datasets  # slow to import

    return getattr(datasets, dataset)


def _idx(dataset: str) -> Callable[[Path, str, bool], Raw]:
    def read(root: Path, split: str, download: bool) -> Raw:
        folder = root / dataset / "raw"
        prefix = "train" if split == "train" else "t10k"
        for kind, header in (("images-idx3", 16), ("labels-idx1", 8)):
            path = folder / f"{prefix}-{kind}-ubyte"
            if path.exists() or not download:
                _whole_idx(path, header)
        data = _torchvision(dataset)(root, train=split == "train", download=download)
        classes = tuple(name.split(" - ")[0] for name in data.classes)  # torchvision: "1 - one"
        return Raw(data.data.unsqueeze(1), data.targets.long(), classes, "idx")
    return read


def _whole_idx(path: Path, header: int) -> None:
    """``ValueError`` unless the file holds exactly the bytes its header announces."""
    if not path.exists():
        raise MissingData(f"{path} is missing")
    with path.open("rb") as file:
        head = file.read(header)
    if len(head) < header:
        raise ValueError(f"{path} is damaged: {len(head)} bytes, shorter than its header")
    magic, *sizes = struct.unpack(f">{header // 4}I", head)
    if magic != 0x800 + len(sizes):  # unsigned bytes, and the number of dimensions
        raise ValueError(f"{path} is damaged: it does not begin as an idx file of bytes")
    expected = header + int(np.prod(sizes, dtype=np.int64))
    if path.stat().st_size != expected:
        raise ValueError(f"{path} is damaged: {path.stat().st_size} bytes where its header "
                         f"announces {expected}; delete it and fetch it again")


def _cifar(dataset: str) -> Callable[[Path, str, bool], Raw]:
    def read(root: Path, split: str, download: bool) -> Raw:
        data = _torchvision(dataset)(root, train=split == "train", download=download)
        images = torch.from_numpy(data.data).permute(0, 3, 1, 2).contiguous()
        return Raw(images, torch.tensor(data.targets), tuple(data.classes), "python")
    return read


def _svhn(root: Path, split: str, download: bool) -> Raw:
    path = root / f"{split}_32x32.mat"
    if not path.exists():
        _torchvision("SVHN")(root, split=split, download=download)
    from scipy.io import loadmat  # torchvision would refuse a part of the digits

    try:
        table = loadmat(path)
        images = torch.from_numpy(table["X"]).permute(3, 2, 0, 1).contiguous()
        labels = torch.from_numpy(table["y"].astype("int64")).flatten()
    except (KeyError, TypeError, NotImplementedError) as error:
        raise ValueError(f"{path} is damaged: expected the arrays X and y: {error}") from error
    return Raw(images, labels.where(labels != 10, 0), tuple("0123456789"), "mat")  # 10 is a zero


def _digits(root: Path, split: str, download: bool) -> Raw:
    from sklearn.datasets import load_digits  # slow to import
    from sklearn.model_selection import train_test_split

    bunch = load_digits()
    parts = train_test_split(bunch.images, bunch.target, test_size=500, random_state=0,
                             stratify=bunch.target)
    images, labels = parts[::2] if split == "train" else parts[1::2]
    pixels = torch.from_numpy((images * (255 / 16)).round().astype("uint8")).unsqueeze(1)
    return Raw(pixels, torch.from_numpy(labels).long(), tuple("0123456789"), "embedded")


def _voices(root: Path, split: str, download: bool) -> Raw:
    return Raw(*voices.read(split), "embedded")


def _part(name: str) -> Callable[[Path, str, bool], Raw]:
    return lambda root, split, download: subsets.read(name, split)


def _recorded(reader: Callable[[Path, str], Raw]) -> Callable[[Path, str, bool], Raw]:
    return lambda root, split, download: reader(root, split)


_SPACED = re.compile(r"\s*([-/])\s*")  # the hub writes "T - shirt / top"
_FETCH = "torchvision fetches it with load(..., download=True) or `dnnbook data --download {}`"
SOURCES = {
    "digits": Source(_digits, "", (1, 28, 28), {"train": 1297, "test": 500}, 10,
                     "part of scikit-learn"),
    "mnist_small": Source(_part("mnist"), "", (1, 28, 28), {"train": 5000, "test": 1000}, 10,
                          "part of this package"),
    "fashion_mnist_small": Source(_part("fashion_mnist"), "", (1, 28, 28),
                                  {"train": 5000, "test": 1000}, 10, "part of this package"),
    "mnist": Source(_idx("MNIST"), "MNIST/raw", (1, 28, 28),
                    {"train": 60000, "test": 10000}, 10, _FETCH.format("mnist")),
    "fashion_mnist": Source(_idx("FashionMNIST"), "FashionMNIST/raw", (1, 28, 28),
                            {"train": 60000, "test": 10000}, 10, _FETCH.format("fashion_mnist")),
    "cifar10": Source(_cifar("CIFAR10"), "cifar-10-batches-py", (3, 32, 32),
                      {"train": 50000, "test": 10000}, 10, _FETCH.format("cifar10"),
                      hub="plain_text"),
    "cifar100": Source(_cifar("CIFAR100"), "cifar-100-python", (3, 32, 32),
                       {"train": 50000, "test": 10000}, 100, _FETCH.format("cifar100")),
    "svhn": Source(_svhn, "{split}_32x32.mat", (3, 32, 32), {"train": 73257, "test": 26032}, 10,
                   _FETCH.format("svhn"), hub="cropped_digits"),
    "svhn_part": Source(lambda root, split, download: _svhn(root / "svhn_part", split, download),
                        "svhn_part/{split}_32x32.mat", (3, 32, 32),
                        {"train": 4434, "test": 8372}, 10, "some digits of SVHN, as its files have "
                        "them; nobody offers this part", fetched=False),
    "imagenet": Source(None, "", (3, 224, 224), {"train": 1281167, "test": 50000}, 1000,
                       "register at image-net.org, unpack to imagenet/val/<wnid>/*.JPEG",
                       fetched=False),
    "voices": Source(_voices, "", (1, 64, 64), {"train": 480, "test": 160}, 8, "synthesised here",
                     fetched=False),
    "fsdd": Source(_recorded(recordings.fsdd), "fsdd/recordings", (1, 64, 64),
                   {"train": 2700, "test": 300}, 6, "clone github.com/Jakobovski/"
                   "free-spoken-digit-dataset into fsdd/", fetched=False),
    # sizes as in the paper; the reader takes all utterances of its 30 speakers
    "vctk": Source(_recorded(recordings.vctk), "VCTK*/wav48*", (1, 64, 64),
                   {"train": 10000, "test": 1200}, 30, "from doi.org/10.7488/ds/1994, "
                   "unpack to VCTK-Corpus/wav48/<speaker>/*.wav", fetched=False),
}


def default_size(name: str | Path) -> int | None:
    """Side in pixels that a named dataset is shown at, if images come smaller or larger."""
    return SOURCES[name].shape[1] if name in ("digits", "imagenet") else None


def is_folder(name: str | Path) -> bool:
    """Whether ``name`` means a folder or a Parquet file of the user's rather than a dataset."""
    return isinstance(name, Path) or not own.is_own(name) and (
        os.sep in name or name.startswith(".") or name.endswith(".parquet"))


def is_users(name: str | Path) -> bool:
    """Whether ``name`` is no dataset of the book: a folder, or what :mod:`own` reads.

    >>> is_users("./fruit"), is_users("torchvision:KMNIST"), is_users("mnist")
    (True, True, False)
    """
    return is_folder(name) or own.is_own(name)


def locate(name: str, split: str) -> Path | None:
    """Where dataset ``name`` lies under the data folder, in any layout; None if nowhere.

    Its own layout, Parquet files as the hub has them, of which the first is returned, or images
    in a folder for each class.
    """
    source, root = SOURCES[name], files.data_dir()
    found = sorted(root.glob(source.layout.format(split=split))) if source.layout else ()
    found = found or _tables(name, split)
    return found[0] if found else _split_folder(root / name, split)


def _tables(name: str, split: str) -> tuple[Path, ...]:
    """The Parquet files of a named dataset: in a folder of its name, else in that of the hub."""
    root, hub = files.data_dir(), SOURCES[name].hub
    return parquet.split(root / name, split) or (parquet.split(root / hub, split) if hub else ())


def _split_folder(folder: Path, split: str) -> Path | None:
    names = ("train",) if split == "train" else ("test", "val")
    return next((folder / name for name in names if (folder / name).is_dir()), None)


def _missing(name: str, split: str) -> MissingData:
    source = SOURCES[name]
    hub = f" or {source.hub}/ with these" if source.hub else ""
    return MissingData(
        f"dataset {name!r} ({split}) is not under {files.data_dir()}: looked for "
        f"{source.layout.format(split=split) or '-'} (its own layout), {name}/**/"
        f"{'train' if split == 'train' else 'test'}-*.parquet (the hub's){hub} and "
        f"{name}/{'train' if split == 'train' else '{test,val}'}/<class>/ (images). "
        f"To get it: {source.get}. Set DNNLIB_DATA to the folder that holds it.")


def check(name: str | Path) -> None:
    """A look whether a dataset is there, without reading it: the test images, of a folder all.

    Raises :class:`MissingData` or ``FileNotFoundError`` for what is not there or empty,
    ``ValueError`` for an unknown name and for images of fewer than two classes, or, in a folder,
    not square, as the first of them tells. What :mod:`own` reads is read.
    """
    if own.is_own(name):
        own.check(str(name))
        return
    if not is_folder(name):
        source = SOURCES[checks.known(name, SOURCES, "dataset")]
        if not source.embedded and locate(name, "test") is None:
            raise _missing(name, "test")
        return
    folder = Path(name).expanduser()
    if tables := parquet.inside(folder):
        found = parquet.table(tables)
        if len(found.classes) < 2:
            raise ValueError(f"dataset: expected a column of labels in {tables[0]} "
                             f"({', '.join(parquet.LABELS)}) of at least two classes, got "
                             f"{found.label or 'none'}")
        for split in ("train", "test"):
            parquet.inside(folder, split)
        return
    known: tuple[str, ...] = ()
    for split in ("train", "test"):
        place = _split_folder(folder, split) or folder
        known = known or _classes(place)
        paths, classes = folders.listed(place).paths, _classes(place)
        if other := [name for name in classes if name not in known]:
            raise ValueError(f"dataset: expected the classes of the training images in {place}, "
                             f"{', '.join(known[:5])}, got {other[0]}")
        if len(classes) < 2:
            raise ValueError(f"dataset: expected a sub-folder of {place} for each of at least two "
                             f"classes, got {', '.join(classes) or 'none'}")
        width, height = folders.size_of(paths[0])
        if width != height:
            raise ValueError(f"dataset: expected square images, got {paths[0]} of {width} x "
                             f"{height} pixels")


def _of_folder(folder: Path, split: str, size: int | None) -> Raw:
    """The images of a split; the training folders say which number a class has."""
    place = _split_folder(folder, split) or folder
    return folders.read(place, size=size, classes=_classes(_split_folder(folder, "train") or place))


def _classes(folder: Path) -> tuple[str, ...]:
    """The classes of a folder: its sub-folders in which there is an image."""
    return folders.in_order(path.relative_to(folder).parts[0]
                            for path in folders.listed(folder).paths if path.parent != folder)


def read(name: str | Path, split: str, *, size: int | None, download: bool) -> Raw:
    """The raw images of a dataset, or of a user's folder, Parquet files or function."""
    if own.is_own(name):
        return own.read(str(name), split, download=download)
    if is_folder(name):
        folder = Path(name).expanduser()
        if tables := parquet.inside(folder, split):
            return parquet.read(tables, size=size)
        return _of_folder(folder, split, size)
    source, root = SOURCES[checks.known(name, SOURCES, "dataset")], files.data_dir()
    if source.embedded:
        return source.read(root, split, False)
    found = locate(name, split)
    if found is not None and (found.suffix == ".parquet" or found.name in ("train", "test", "val")):
        size = size or default_size(name)
        raw = (parquet.read(_tables(name, split), size=size)
               if found.suffix == ".parquet" else _of_folder(root / name, split, size))
        if len(raw.classes) != source.classes:
            raise ValueError(f"{found} has {len(raw.classes)} classes; {name} has {source.classes}")
        return raw._replace(classes=tuple(_SPACED.sub(r"\1", c) for c in raw.classes))
    if found is None and not (download and source.fetched):
        raise _missing(name, split)
    try:
        return source.read(root, split, download)
    except (RuntimeError, EOFError, OSError) as error:
        if isinstance(error, MissingData):
            raise MissingData(f"{error}. To get it: {source.get}") from error
        raise ValueError(f"{found or root} could not be read as {name}: {error}") from error
