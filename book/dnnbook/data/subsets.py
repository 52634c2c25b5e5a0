"""Small, balanced parts of MNIST and Fashion-MNIST, which come with the package.

``python -m dnnbook.data.subsets`` makes them again from the full sets below the data folder.
"""

from pathlib import Path

import numpy as np
import torch

from dnnlib.data.raw import Raw

FOLDER = Path(__file__).parent / "embedded"
EACH = {"train": 500, "test": 100}  # images of a class


def read(name: str, split: str) -> Raw:
    """The part 'mnist' or 'fashion_mnist': the first 500 training or 100 test images of a class.

    >>> read("mnist", "test").images.shape
    torch.Size([1000, 1, 28, 28])
    """
    with np.load(FOLDER / f"{name}.npz") as kept:
        images, labels = (torch.from_numpy(kept[f"{split}_{what}"])
                          for what in ("images", "labels"))
        classes = tuple(map(str, kept["classes"]))
    return Raw(images, labels.long(), classes, "embedded")


def take(raw: Raw, each: int) -> Raw:
    """The first ``each`` images of every class, in the order of the set."""
    ranks = torch.zeros(len(raw.labels), dtype=torch.long)
    for label in raw.labels.unique():
        places = (raw.labels == label).nonzero()[:, 0]
        ranks[places] = torch.arange(len(places))
        if len(places) < each:
            raise ValueError(f"class {raw.classes[label]}: expected {each} images, got "
                             f"{len(places)}")
    kept = ranks < each
    return Raw(raw.images[kept], raw.labels[kept], raw.classes, raw.form)


def write(path: Path, train: Raw, test: Raw) -> None:
    """The part of a full set, as a file that :func:`read` finds by its name."""
    arrays = {}
    for split, raw in (("train", train), ("test", test)):
        part = take(raw, EACH[split])
        arrays[f"{split}_images"] = part.images.numpy()
        arrays[f"{split}_labels"] = part.labels.to(torch.uint8).numpy()
    np.savez_compressed(path, classes=np.array(train.classes), **arrays)


if __name__ == "__main__":
    from dnnbook.data import sources

    for name in ("mnist", "fashion_mnist"):
        whole = [sources.read(name, split, size=None, download=True) for split in EACH]
        write(FOLDER / f"{name}.npz", *whole)
        print(f"{FOLDER / name}.npz: {(FOLDER / f'{name}.npz').stat().st_size:,} bytes")
