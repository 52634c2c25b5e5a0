"""Images as people hand them over: in pairs and dicts, by loaders, with names and labels."""

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import torch
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

KEYS = ("image", "img", "pixel_values")  # of an image in a dict


def image_in(item):
    """The image in what a dataset gives: itself, before its label, or in a dict by its name.

    >>> image_in({"label": 3, "image": "seven.png"}), image_in(("seven.png", 3))
    ('seven.png', 'seven.png')
    """
    if isinstance(item, tuple | list) and len(item):
        item = item[0]
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
    number of a class in ``classes``. None and () for what it does not say."""

    names: tuple[str, ...] | None
    labels: torch.Tensor | None
    classes: tuple[str, ...]


def named(data: Dataset) -> Named:
    """What a dataset says of its images, also inside of subsets and of joined datasets.

    Files are named by their path in its ``root``, as of torchvision's ``ImageFolder``; labels are
    its ``targets``, and the names of classes its ``classes``.
    """
    if isinstance(data, Subset):
        inner, places = named(data.dataset), [*data.indices]
        names = inner.names
        if names is None and isinstance(data, Loaded):
            names = tuple(map(str, range(len(data.dataset))))
        return Named(names and tuple(names[i] for i in places),
                     None if inner.labels is None else inner.labels[places], inner.classes)
    if isinstance(data, ConcatDataset):
        parts = [named(part) for part in data.datasets]
        names = tuple(name for part in parts for name in part.names or ())
        whole = len(set(names)) == len(data) and all(part.names for part in parts)
        alike = len({part.classes for part in parts}) == 1 and parts[0].labels is not None
        return Named(names if whole else None, torch.cat([part.labels for part in parts])
                     if alike else None, parts[0].classes if alike else ())
    samples, classes = getattr(data, "samples", None), getattr(data, "classes", None)
    names, labels = None, getattr(data, "targets", None)
    if hasattr(data, "root") and isinstance(samples, list) and len(samples) == len(data):
        root = Path(data.root)
        paths = [Path(path) for path, *_ in samples]
        names = tuple((path.relative_to(root) if path.is_relative_to(root) else path).as_posix()
                      for path in paths)
    if labels is None or not isinstance(classes, tuple | list) or len(labels) != len(data) or (
            getattr(data, "target_transform", None) is not None):
        return Named(names, None, ())
    return Named(names, torch.as_tensor(labels), tuple(map(str, classes)))
