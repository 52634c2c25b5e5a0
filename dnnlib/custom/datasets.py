"""Images as people hand them over: in pairs and dicts, by loaders, with names and labels."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    default_collate,
    default_convert,
)
from torchvision.datasets import DatasetFolder

from dnnlib.data.folders import in_order, of_one

SURE = 256  # items that are asked whether a dataset's attributes say their labels
_log = logging.getLogger(__name__)  # to stderr, as it is
KEYS = ("pixel_values", "image", "img")  # of an image in a dict; what models are given leads


def image_in(item):
    """The image in what a dataset gives: itself, before its label or behind its name, or in a dict.

    A path is an image only where no pixels are beside it, which are what the dataset made of it.

    >>> image_in({"label": 3, "image": "seven.png"}), image_in(("seven.png", 3))
    ('seven.png', 'seven.png')
    >>> image_in(("seven.png", torch.zeros(1, 2, 2), 3)).shape
    torch.Size([1, 2, 2])
    """
    if isinstance(item, tuple | list) and len(item):
        pixels = [each for each in item if isinstance(each, Image.Image)
                  or getattr(each, "ndim", 0) > 2]
        item = pixels[0] if pixels and isinstance(item[0], str | Path | int) else item[0]
    if isinstance(item, Mapping):
        key = next((key for key in KEYS if key in item), None)
        if key is None:
            raise ValueError(f"expected an image by the name {', '.join(KEYS[:-1])} or {KEYS[-1]}, "
                             f"got a dict of {', '.join(map(str, item)) or 'nothing'}")
        item = item[key]
    return item


def last_are_channels(shape: Sequence[int]) -> bool:
    """Whether an image is (H, W, C), as NumPy and OpenCV have it.

    >>> last_are_channels((32, 32, 3)), last_are_channels((3, 32, 32))
    (True, False)
    """
    return len(shape) == 3 and shape[2] in (1, 3) and shape[0] not in (1, 3)


class Loaded(Subset):
    """The items that a loader's sampler chooses, in the order of its dataset.

    Each is what the loader makes of it, a batch of one, if it has a ``collate_fn`` of its own.
    Raises ``TypeError`` for a dataset without a length, ``ValueError`` for a sampler that draws an
    item again.
    """

    def __init__(self, loader: DataLoader):
        data = loader.dataset
        if not hasattr(data, "__getitem__") or not hasattr(data, "__len__"):
            raise TypeError("images: expected a loader of a dataset with a length, got one of "
                            f"{type(data).__name__}")
        super().__init__(data, _chosen(loader, len(data)))
        usual = loader.collate_fn in (default_collate, default_convert)
        self.collate = None if usual else loader.collate_fn

    def __getitem__(self, i):
        item = self.dataset[self.indices[i]]
        return item if self.collate is None else self.collate([item])

    def __getitems__(self, indices):
        return [self[i] for i in indices]


def _chosen(loader: DataLoader, n: int) -> Sequence[int]:
    sampler, by = loader.sampler, loader.batch_sampler
    own = by is not None and not (type(by) is BatchSampler and by.sampler is sampler)
    if not own and (type(sampler) is SequentialSampler or type(sampler) is RandomSampler and
                    not sampler.replacement and sampler.num_samples == n):
        return range(n)
    with torch.random.fork_rng(devices=[]):  # a look at it changes no later draw
        drawn = (i for batch in by for i in batch) if own else sampler
        found = list(islice(drawn, n + 1))
    if len(set(found)) < len(found):
        raise ValueError("images: expected a loader that gives each image once, got one whose "
                         f"{type(by if own else sampler).__name__} draws some again; give a Subset "
                         "of the dataset")
    return sorted(found)


class Named(NamedTuple):
    """What a dataset says of its images: ``names``, as of files; ``labels``, int64 (N,), each the
    number of a class in ``classes``, -1 where it is unknown. None and () for what it does not say;
    labels without classes are numbers of the model's outputs."""

    names: tuple[str, ...] | None
    labels: torch.Tensor | None
    classes: tuple[str, ...]


def named(data: Dataset) -> Named:
    """What a dataset says of its images, also inside of subsets and of joined datasets.

    Files are named by their path in its ``root``, as of torchvision's ``ImageFolder``; labels are
    its ``targets``, and the names of classes its ``classes``. Items have the last word. Those that
    torchvision's own class makes are what its ``samples`` say. Of any other class up to 256 are
    asked; if one has another label, all labels are the items', as numbers without names, and no
    image is named by a file. Nor is it where a class of one's own makes the items of torchvision's
    folders, of a subset or of joined datasets, which may be in another order. What else a class of
    one's own calls its items is told by a line of the log, as labels alone can contradict it.
    Raises ``ValueError`` for targets that are no labels of the classes.
    """
    made = getattr(type(data), "__getitem__", None)
    if isinstance(data, Subset | ConcatDataset):
        found = _picked(data) if isinstance(data, Subset) else _joined(data)
        if made in (Subset.__getitem__, ConcatDataset.__getitem__) or (
                isinstance(data, Loaded) and data.collate is None):
            return found
        return _asked(data, found if isinstance(data, Loaded) else found._replace(names=None))
    samples, root = getattr(data, "samples", None), getattr(data, "root", None)
    classes, names = getattr(data, "classes", None), None
    classes = tuple(map(str, classes)) if isinstance(classes, tuple | list) else ()
    own = isinstance(data, DatasetFolder) and made is not DatasetFolder.__getitem__
    if (isinstance(root, str | Path) and isinstance(samples, list) and len(samples) == len(data)
            and not own):
        firsts = [each[0] if isinstance(each, tuple | list) and each else each for each in samples]
        if all(isinstance(first, str | Path) for first in firsts):
            names = tuple((path.relative_to(root) if path.is_relative_to(root) else path)
                          .as_posix() for path in map(Path, firsts))
    if names and made is DatasetFolder.__getitem__:
        return Named(names, *_of_samples(data, names, classes))
    labels = getattr(data, "targets", None) if classes else None
    known = hasattr(labels, "__len__") and len(labels) == len(data)
    return _asked(data, Named(names, numbers(labels, classes) if known else None, classes))


def _picked(data: Subset) -> Named:
    inner, places = named(data.dataset), [*data.indices]
    names = inner.names
    if names is None and isinstance(data, Loaded):
        names = tuple(map(str, range(len(data.dataset))))
    return Named(names and tuple(names[i] for i in places),
                 None if inner.labels is None else inner.labels[places], inner.classes)


def _joined(data: ConcatDataset) -> Named:
    parts = [named(part) for part in data.datasets]
    names = tuple(name for part in parts for name in part.names or ())
    whole = len(set(names)) == len(data) and all(part.names for part in parts)
    classes, labels = {part.classes for part in parts}, None
    if any(part.labels is not None and not part.classes for part in parts) or (
            len(classes) == 1 and all(part.labels is not None for part in parts)):
        labels = torch.cat([torch.full((len(of),), -1) if part.labels is None else part.labels
                            for part, of in zip(parts, data.datasets)])
    return Named(names if whole else None, labels, parts[0].classes if len(classes) == 1 else ())


def _of_samples(data: DatasetFolder, names: Sequence[str],
                classes: tuple[str, ...]) -> tuple[torch.Tensor, tuple[str, ...]]:
    """The labels and classes of the items that torchvision makes of ``samples``; none is read.

    The classes have names if the labels are those that the dataset began with, or each is the
    folder of its file.
    """
    plain = [label for _, label in data.samples]
    try:
        with of_one():
            labels = numbers([(data.target_transform or int)(label) for label in plain], classes,
                             inside=False)
    except ValueError:  # no class of an image: nobody knows it
        return torch.full((len(plain),), -1), ()
    if labels.tolist() == [*data.targets] or [name.split("/")[0] for name in names] == [
            classes[i] if 0 <= i < len(classes) else "" for i in labels.tolist()]:
        return numbers(labels, classes), classes
    return labels, ()


def _asked(data: Dataset, found: Named) -> Named:
    """``found``, or what the items say, if one of those asked has another label."""
    names, labels, n = found.names, found.labels, len(data)
    if labels is None and names and all("/" in name for name in names):
        folders = [name.split("/")[0] for name in names]
        place = {name: i for i, name in enumerate(in_order(folders))}
        labels = torch.tensor([place[name] for name in folders])
    whole = labels is not None and len(labels) == n
    said = _labels_in(data, torch.linspace(0, n - 1, min(n, SURE)).long().tolist(),
                      found.classes) if whole else {}
    if all(labels[i] == label for i, label in said.items()):
        if names and not isinstance(data, Loaded):
            _log.warning("images: called by the files that the `samples` of %s list; that its "
                         "items come in this order was %s", type(data).__name__,
                         "checked by their labels only" if said else "not checked")
        return found if whole else found._replace(labels=None)
    _log.warning("images: their items have other labels than the dataset's attributes say; those "
                 "of the items are taken, as numbers of classes without names")
    said |= _labels_in(data, [i for i in range(n) if i not in said], found.classes)
    return Named(names if isinstance(data, Loaded) else None,
                 torch.tensor([said.get(i, label) for i, label in enumerate(labels.tolist())]), ())


def _labels_in(data: Dataset, places: Iterable[int], classes: Sequence[str]) -> dict[int, int]:
    """By place, of the items that can be read and have a label."""
    found = {}
    for i in places:
        try:
            with of_one():
                label = label_in(data[i], classes)
        except ValueError:  # if it cannot be read, that is told where all are
            continue
        if label is not None:
            found[i] = label
    return found


def label_in(item, classes: Sequence[str]) -> int | None:
    """The number of the class that an item of a dataset says beside its image; None: it says none.

    >>> label_in(("seven.png", 7), ()), label_in({"image": "b.png", "label": "b"}, ["a", "b"])
    (7, 1)
    """
    label = None
    if isinstance(item, tuple | list) and len(item):
        label = item = item[1] if len(item) > 1 else item[0]
    if isinstance(item, Mapping):
        label = next((item[key] for key in ("label", "labels") if key in item), None)
    try:
        return None if label is None else int(numbers([label], classes, inside=False))
    except ValueError:
        return None


def numbers(labels: Iterable, classes: Sequence[str], *, inside: bool = True) -> torch.Tensor:
    """Labels as the numbers of classes, int64 (N,), -1 where they are unknown.

    They are numbers, also as floats or in a column, names of classes, or rows with a 1 for the
    class. Raises ``ValueError`` for others, and if ``inside`` for numbers that no class has.

    >>> [numbers(given, "ab").tolist() for given in (["b", "a"], [[0, 1], [1, 0]], [[1.0], [0.0]])]
    [[1, 0], [1, 0], [1, 0]]
    """
    came = f"{type(labels).__name__} of {type(next(iter(labels), None)).__name__}"
    try:
        found = labels.numpy(force=True) if isinstance(labels, torch.Tensor) else np.array(
            [each.numpy(force=True) if isinstance(each, torch.Tensor) else each for each in labels])
    except (ValueError, TypeError):  # of several shapes, or of a kind that NumPy does not know
        found = np.array(None)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.dtype.kind == "U" and found.ndim == 1:
        place = {name: i for i, name in enumerate(classes)}
        other = [name for name in found.tolist() if name not in place]
        if not other:
            return torch.tensor([place[name] for name in found.tolist()])
        came = repr(other[0])
    elif found.dtype.kind in "biuf":
        if found.ndim == 2 and found.shape[1] == (len(classes) or found.shape[1]) and bool(
                ((found == 0) | (found == 1)).all() and (found.sum(1) == 1).all()):
            return torch.from_numpy(found.argmax(1))
        came = f"shape {found.shape}"
        if found.ndim == 1:
            last = len(classes) - 1 if inside else np.inf
            other = found[~((found == np.floor(found)) & (found >= -1) & (found <= last))]
            if not len(other):
                return torch.from_numpy(found.astype(np.int64))
            came = f"{other[0]:g}"
    raise ValueError(f"labels: expected the class of each image, as a number from 0 to "
                     f"{len(classes) - 1}, a name ({', '.join(classes[:5])}"
                     f"{', ...' if len(classes) > 5 else ''}) or a row with a 1, got {came}")
