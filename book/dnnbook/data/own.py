"""Datasets that the book does not name: torchvision's others, and a person's own in a file."""

import hashlib
import inspect
from collections.abc import Callable

import numpy as np
import torch

from dnnbook.data import in_file
from dnnbook.data.missing import MissingData
from dnnlib import checks, files
from dnnlib.data.raw import Raw

LIBRARY = "torchvision:"


def is_own(name) -> bool:
    """Whether a name means a dataset of torchvision, or of a function in a file.

    >>> is_own("torchvision:KMNIST"), is_own("fruit.py:photos"), is_own("mnist")
    (True, True, False)
    """
    return isinstance(name, str) and (name.startswith(LIBRARY) or in_file.is_own(name))


def called(name: str) -> str:
    """What records call a dataset: one in a file by its function and a digest of the file.

    >>> called("torchvision:KMNIST")
    'torchvision:KMNIST'
    """
    return in_file.called(name, "dataset")


def check(name: str) -> None:
    """Reads both parts; ``ValueError`` or ``FileNotFoundError`` in one line if they will not do."""
    train, test = (read(name, split) for split in ("train", "test"))
    for what, first, second in (("images of", _sides(train.images), _sides(test.images)),
                                ("classes", ", ".join(train.classes), ", ".join(test.classes))):
        if first != second:
            raise ValueError(f"dataset: expected {what} {first} in both parts of {name}, "
                             f"got {second} in the test part")
    if len(train.images) == len(test.images) and _contents(train) == _contents(test):
        raise ValueError(f"dataset: expected other images for test than for train of {name}, got "
                         f"the same {len(test.images):,}; does it look at its split?")


def read(name: str, split: str, *, download: bool = False) -> Raw:
    """The raw images of ``split``, 'train' or 'test'.

    - 'torchvision:KMNIST': a class of ``torchvision.datasets`` that has both parts and nothing
      else to choose. Raises :class:`MissingData` unless it is in the data folder, or ``download``.
    - 'FILE.py:FUNCTION': FUNCTION(split) returns images and labels, and the names of the classes
      if they have any; or a dataset of pairs of an image and a label. Images are pictures, bytes,
      or floats in [0, 1], which become bytes; arrays are (N, C, H, W), (N, H, W, C) or (N, H, W).

    Raises ``ValueError`` in one line for anything else.
    """
    from dnnlib.custom.own_code import told  # slow to import

    try:
        found = _of_torchvision(name, split, download) if name.startswith(LIBRARY) else (
            _of_file(name, split))
        images, labels, classes = _parts(found)
    except FileNotFoundError:
        raise
    except Exception as error:  # whatever their code raises
        said = str(error) if type(error) is ValueError else told(error)
        raise ValueError(f"dataset: {name} ({split}): {said}") from error
    if not classes:
        classes = tuple(map(str, range(int(labels.max()) + 1 if len(labels) else 0)))
    raw = Raw(images, labels, classes, "torchvision" if name.startswith(LIBRARY) else "own")
    if problem := _problem(raw):
        raise ValueError(f"dataset: {name} ({split}): expected {problem}")
    return raw


def _problem(raw: Raw) -> str:
    """What is wrong, in words that go on from 'expected'; '' if nothing is."""
    images, labels, classes = raw.images, raw.labels, raw.classes
    if len(images) != len(labels) or labels.ndim != 1:
        return f"a label for each of {len(images)} images, got labels {tuple(labels.shape)}"
    if not len(images) or images.shape[1] not in (1, 3) or images.shape[2] != images.shape[3]:
        return f"square images of one or three channels, got {len(images)} of {_sides(images)}"
    if len(classes) < 2:
        return f"at least two classes, got {', '.join(classes) or 'none'}"
    if labels.min() < 0 or labels.max() >= len(classes):
        return (f"labels from 0 to {len(classes) - 1}, as it has {len(classes)} classes, "
                f"got {int(labels.min())} to {int(labels.max())}")
    return ""


def _contents(raw: Raw) -> list[bytes]:
    """A digest of each image, in an order that no shuffling changes."""
    return sorted(hashlib.sha256(image.numpy().tobytes()).digest() for image in raw.images)


def _sides(images: torch.Tensor) -> str:
    return " x ".join(map(str, images.shape[1:]))


def _of_torchvision(name: str, split: str, download: bool):
    from torchvision import datasets  # slow to import

    kind = name.removeprefix(LIBRARY)
    build: Callable = getattr(datasets, checks.known(kind, datasets.__all__,
                                                     "dataset of torchvision"))
    takes = inspect.signature(build).parameters
    part = {"train": {"train": split == "train"}, "split": {"split": split}}
    chosen = [one for one in part if one in takes]
    if len(chosen) != 1 or "download" not in takes:
        raise ValueError(f"{kind} has not just the parts train and test; write a function that "
                         "builds it, and name that as FILE.py:FUNCTION")
    try:
        return build(files.data_dir(), download=download, **part[chosen[0]])
    except (RuntimeError, FileNotFoundError) as error:
        if download:
            raise
        raise MissingData(f"dataset {name} ({split}) is not under {files.data_dir()}. To get it: "
                      f"`dnnbook data --download {name}`. Set DNNLIB_DATA to the folder that "
                      "holds it.") from error


def _of_file(name: str, split: str):
    found = in_file.found(name, "dataset")(split)
    pair = isinstance(found, tuple | list) and len(found) in (2, 3)
    if not pair and not (hasattr(found, "__getitem__") and hasattr(found, "__len__")):
        hint = "; did you forget `return`?" if found is None else ""
        raise ValueError("expected images and labels, or a dataset of such pairs, got "
                         f"{type(found).__name__}{hint}")
    return found


def _parts(found) -> tuple[torch.Tensor, torch.Tensor, tuple[str, ...]]:
    """Images uint8 (N, C, H, W), labels int64, and the names of the classes, () for none."""
    if isinstance(found, tuple | list) and len(found) in (2, 3):
        images, labels, classes = (*found, ())[:3]
        return _stacked(torch.as_tensor(images)), _labels(labels), tuple(map(str, classes))
    from dnnlib.custom.datasets import image_in, named  # slow to import

    about = named(found)
    labels = about.labels if about.labels is not None else [found[i][1] for i in range(len(found))]
    images = [_picture(image_in(found[i])) for i in range(len(found))]
    if len(shapes := {tuple(image.shape) for image in images}) > 1:
        raise ValueError("expected images of one size, got "
                         f"{' and '.join(map(str, sorted(shapes)[:2]))}; resize them in a "
                         "function of your own, FILE.py:FUNCTION")
    return _stacked(torch.stack(images)), _labels(labels), about.classes


def _labels(given) -> torch.Tensor:
    found = np.asarray(given)
    if found.dtype.kind not in "biuf":
        raise ValueError(f"expected whole numbers as labels, got {found.ravel()[:1].tolist()}; the "
                         "names of the classes come third, after images and labels")
    labels = torch.as_tensor(found)
    if labels.is_floating_point() and not torch.equal(labels, labels.round()):
        raise ValueError("expected whole numbers as labels, got fractions")
    return labels.long()


def _picture(image) -> torch.Tensor:
    """An image of a dataset as a tensor; a picture of another mode than gray as RGB."""
    if hasattr(image, "convert"):
        image = np.array(image.convert("L" if image.mode in ("1", "L") else "RGB"))
    return torch.as_tensor(image)


def _stacked(images: torch.Tensor) -> torch.Tensor:
    """Images in any of the layouts as bytes (N, C, H, W)."""
    from dnnlib.custom.datasets import last_are_channels  # slow to import

    if images.ndim == 3:
        images = images.unsqueeze(1)
    elif images.ndim == 4 and last_are_channels(images.shape[1:]):
        images = images.permute(0, 3, 1, 2)
    if images.ndim != 4:
        raise ValueError(f"expected images (N, C, H, W), got {tuple(images.shape)}")
    if images.is_floating_point():
        if not len(images) or not (images.min() >= 0 and images.max() <= 1):
            raise ValueError("expected floats in [0, 1], got "
                             f"{float(images.min()):g} to {float(images.max()):g}")
        images = (images * 255).round()
    elif images.dtype != torch.uint8:
        raise ValueError(f"expected bytes, or floats in [0, 1], got {images.dtype}")
    return images.to(torch.uint8).contiguous()
