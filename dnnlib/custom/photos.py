"""A person's own images, as the model takes them: from files, tensors or datasets, as they come."""

import logging
import math
import re
import shutil
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from PIL import Image, ImageOps
from torch import nn
from torch.utils.data import DataLoader, Dataset

from dnnlib import checks, files, models
from dnnlib.custom import preparation
from dnnlib.custom.classifier import Classifier, unwrapped
from dnnlib.custom.datasets import Loaded, image_in, label_in, last_are_channels, named
from dnnlib.custom.own_code import reason, sentence
from dnnlib.custom.preparation import Preparation
from dnnlib.data.folders import decoded, of_one
from dnnlib.data.pictures import readable

FEW = 256  # images that are read without workers, and of which one must be readable
WAIT = 600  # seconds for a batch of images to come from a worker
AHEAD = 3  # batches of each worker that are in memory at a time
SHARED = Path("/dev/shm")
CONTROL = re.compile(r"[\x00-\x1f\x7f]")  # no font has a sign for these
_log = logging.getLogger(__name__)  # to stderr, as it is
LOOK = 9  # images that show the shape of all
ODD = 8  # of so many images one may have another shape


@dataclass(frozen=True, eq=False)
class Photos(Dataset):
    """Images by number, read when they are asked for.

    ``source``: gives for 0 to N - 1 an image (C, H, W), uint8 or in [0, 1]: a tensor, an array,
    :class:`Pictures`, :class:`Rows` of Parquet, or a dataset, whose items
    :func:`datasets.image_in` takes apart; images as Pillow has them, and paths of files, are turned
    upright and prepared by ``fit``, in ``channels``, as files are. ``last``: images come as
    (H, W, C).
    ``paths``: their names. ``skipped``: the reason for each image that cannot be read, by name;
    some show it only when they are read. ``others``: how many files of the folder are not images by
    their ending. ``labels``: int64 (N,), the class of each in ``classes``, or without these among
    the model's outputs, -1 where it is unknown, if the source says so by number; images in folders
    have none, and their paths say it by name.
    ``litter``: what programs left in the folder; ``empty``: its sub-folders without an image;
    ``places``: of each in what was given, () where nothing was left out.

    >>> photos = Photos(torch.rand(3, 1, 8, 8), ("a", "b", "c"), {}, 0)
    >>> len(photos), photos.shape, photos.take([2, 0]).shape
    (3, (1, 8, 8), torch.Size([2, 1, 8, 8]))
    """

    source: Sequence | Dataset | torch.Tensor
    paths: tuple[str, ...]
    skipped: dict[str, str] = field(default_factory=dict)
    others: int = 0
    labels: torch.Tensor | None = None
    classes: tuple[str, ...] = ()
    litter: tuple[str, ...] = ()
    fit: Preparation = Preparation()
    channels: int | None = None
    last: bool = False
    empty: tuple[str, ...] = ()
    places: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, i: int) -> torch.Tensor:
        """``ValueError`` with the reason why it cannot be read or prepared, whatever that is."""
        with of_one(reason):
            return self._read(i)

    def _read(self, i: int) -> torch.Tensor:
        item = self.source[i]
        self._check_label(i, item)
        image = image_in(item)
        if isinstance(image, str | Path):
            image = _planes(decoded(Path(image), self.fit.apply,
                                    {1: "L", 3: "RGB"}.get(self.channels or 0)))
        elif isinstance(image, Image.Image):
            image = self._prepared(image)
        else:
            image = torch.as_tensor(image).detach()
            image = image[0] if image.ndim == 4 and len(image) == 1 else image  # a batch of one
            image = image.permute(2, 0, 1).contiguous() if self.last else image
        if image.ndim != 3 or 0 in image.shape:
            raise ValueError(f"expected an image (C, H, W), got shape {tuple(image.shape)}")
        if image.dtype != torch.uint8:
            low, high = image.min().item(), image.max().item()
            if not (low >= 0 and high <= 1):
                raise ValueError(f"expected values in [0, 1] or uint8, got [{low:g}, {high:g}]")
            image = image.float()
        return image

    def _check_label(self, i: int, item) -> None:
        """``ValueError`` if it is not the one that the dataset's attributes say, of which only some
        were compared before."""
        if self.labels is None or isinstance(item, torch.Tensor) or self.labels[i] < 0:
            return
        said = label_in(item, self.classes)
        if said is not None and said != self.labels[i]:
            raise ValueError(f"has the label {said} in the dataset's item, and {self.labels[i]} in "
                             "its attributes")

    def _prepared(self, picture: Image.Image) -> torch.Tensor:
        """As a file of it would be; ``ValueError`` for colours that nobody asked for."""
        mode = {1: "L", 3: "RGB"}.get(self.channels or 0) or {"1": "L"}.get(
            picture.mode, picture.mode)
        if mode not in ("L", "RGB", "RGBA"):  # numbers of a palette are no colours
            raise ValueError(f"is a picture of mode {mode}, where L, RGB or RGBA is expected; "
                             "convert it, as by picture.convert('RGB')")
        return _planes(self.fit.apply(ImageOps.exif_transpose(picture).convert(mode)))

    def numbers(self, paths: Iterable[str]) -> list[int]:
        """By which these are asked for."""
        number = {path: i for i, path in enumerate(self.paths)}
        return [number[path] for path in paths]

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Of an image, (C, H, W), as :func:`some` have it."""
        return tuple(self.some(LOOK).shape[1:])

    @property
    def images(self) -> torch.Tensor:
        """All of them at once, float32 (N, C, H, W) in [0, 1]."""
        return self.take(range(len(self)))

    def take(self, places: Sequence[int] | torch.Tensor) -> torch.Tensor:
        """Those images, float32 (n, C, H, W); ``ValueError`` naming one that cannot be read."""
        found = []
        for i in torch.as_tensor(places).tolist():
            with of_one(lambda error: f"{self.paths[i]} {error}"):
                found.append(unit(self[i]))
        return torch.stack(found)

    def those(self, places: Sequence[int]) -> dict[int, torch.Tensor]:
        """Of the images at these places, float32 (C, H, W) by place, those that can be read."""
        return {i: unit(image) for i, image in self._read_of(places).items()}

    def _read_of(self, places: Sequence[int]) -> dict[int, torch.Tensor]:
        found = {}
        for i in places:
            try:
                found[i] = self[i]
            except ValueError:  # told where all are read
                continue
        return found

    def some(self, n: int) -> torch.Tensor:
        """At most ``n`` that can be read, spread over all, in the shape that most of them have.

        Raises ``ValueError`` if none of up to 256 can be read, if they are uint8 and no gray level
        is above 1, or if more than one in eight have another shape.
        """
        places, more = (torch.linspace(0, len(self) - 1, min(len(self), count)).long().unique(
            ).tolist() for count in (n, FEW))
        found = [*self._read_of(places).values()]
        tried = iter(i for i in more if i not in places)
        while not found and (i := next(tried, None)) is not None:
            found = [*self._read_of([i]).values()]
        if not found:
            raise ValueError("images: none can be read" + (
                f" of {len(more)} that were tried" if len(more) < len(self) else "")
                + f"; the first: {self._why(places[0]) if places else 'there is none'}")
        if _of_ones(found) and _of_ones(seen := [*self._read_of(more).values()]):
            raise ValueError("images: expected gray levels up to 255, as uint8 has them, got none "
                             f"above 1 in {len(seen)} images; if 1 is white, give floats")
        (shape, count), *_ = Counter(tuple(image.shape) for image in found).most_common()
        if ODD * (len(found) - count) > len(found):
            if len({image.shape[1:] for image in found}) == 1:
                raise ValueError("images: expected one number of channels, got "
                                 f"{' and '.join(map(str, sorted({len(i) for i in found})))}; "
                                 "convert them to one, as by picture.convert('RGB')")
            raise ValueError("images: expected one size, got "
                             f"{' and '.join(sorted({str(tuple(i.shape)) for i in found}))}; "
                             "give a size to fit them to")
        return torch.stack([unit(image) for image in found if image.shape == shape])

    def _why(self, i: int) -> str:
        try:
            self[i]
        except ValueError as error:
            return f"{self.paths[i]} {error}"
        return f"{self.paths[i]} can be read now"

    @property
    def preparation(self) -> Preparation:
        """What is done to a picture before the model takes it."""
        how = getattr(getattr(self.source, "fit", None), "__self__", None)
        return how if isinstance(how, Preparation) else self.fit


def _of_ones(images: Sequence[torch.Tensor]) -> bool:
    """Whether these are numbers 0 and 1, and no gray levels; all black is no sign of it."""
    return all(image.dtype == torch.uint8 for image in images) and (
        max(int(image.max()) for image in images) == 1)


def _planes(array: np.ndarray) -> torch.Tensor:
    """(H, W) or (H, W, 3) as (C, H, W); a copy, that may be written to."""
    return torch.from_numpy(np.array(array[None] if array.ndim == 2 else array.transpose(2, 0, 1)))


class Read(NamedTuple):
    """A batch: ``x`` (B, C, H, W), ``places`` (B,), and the reasons for what cannot be read."""

    x: torch.Tensor
    places: torch.Tensor
    skipped: dict[int, str]


class _Guarded(Dataset):
    """An image, or the reason why there is none."""

    def __init__(self, photos: Photos, shape: tuple[int, ...]):
        self.photos, self.shape = photos, shape

    def __getitem__(self, i: int) -> tuple[int, torch.Tensor | str]:
        try:
            image = self.photos[i]
        except ValueError as error:
            return i, str(error)
        if image.shape != self.shape:
            return i, f"is of shape {tuple(image.shape)}, the others {self.shape}"
        return i, image


def batches(photos: Photos, lists: Sequence[Sequence[int]], *,
            workers: int | None = None, device: torch.device | str = "cpu") -> Iterator[Read]:
    """The images in batches, by the ``lists`` of their places, read ahead by ``workers``.

    ``workers``: processes; 0 reads here; default on Linux one for each core, at most 8, for files,
    and none for what is in memory or few; elsewhere, where they start slowly, none. What comes is
    float32 in [0, 1], and uint8 until then.
    """
    linux = sys.platform == "linux"
    if workers is None:
        few = sum(map(len, lists)) <= FEW or isinstance(photos.source, torch.Tensor | np.ndarray)
        workers = 0 if few or not linux else min(8, torch.multiprocessing.cpu_count())
    workers = _with_room(workers, max(map(len, lists), default=0) * math.prod(photos.shape))
    loader = DataLoader(_Guarded(photos, photos.shape), batch_sampler=lists, num_workers=workers,
                        multiprocessing_context="fork" if workers and linux else None,
                        timeout=WAIT if workers else 0, collate_fn=_collated,
                        pin_memory=torch.device(device).type == "cuda")
    try:
        for x, places, skipped in loader:
            yield Read(unit(x.to(device, non_blocking=True)), places, skipped)
    except RuntimeError as error:
        if "DataLoader" not in str(error):
            raise
        raise ChildProcessError("workers: the processes that read images failed "
                                f"({sentence(error)}); --workers 0 reads in this one") from error


def _with_room(workers: int, size: int) -> int:
    """As many workers as shared memory has room for, with the batches of ``size`` bytes that each
    reads ahead."""
    if not workers or not SHARED.is_dir():
        return workers
    fit = shutil.disk_usage(SHARED).free // max(1, 4 * AHEAD * size)  # floats take four bytes
    if fit < workers:
        _log.warning("workers: shared memory has room for the batches of %s, where %d were to "
                     "read; a smaller --batch-size needs less",
                     fit or "none, so that this process reads", workers)
    return min(workers, fit)


def _collated(items: list) -> tuple[torch.Tensor, torch.Tensor, dict[int, str]]:
    good = [(i, image) for i, image in items if not isinstance(image, str)]
    if len({image.dtype for _, image in good}) > 1:  # floats, some of which are whole gray levels
        good = [(i, unit(image)) for i, image in good]
    x = torch.stack([image for _, image in good]) if good else torch.empty(0)
    return (x, torch.tensor([i for i, _ in good], dtype=torch.int64),
            {i: why for i, why in items if isinstance(why, str)})


def unit(x: torch.Tensor) -> torch.Tensor:
    """Pixels as float32 in [0, 1].

    >>> unit(torch.tensor([0, 255], dtype=torch.uint8)).tolist()
    [0.0, 1.0]
    """
    return x.float() / 255 if x.dtype == torch.uint8 else x.float()


def shortened(path: str) -> str:
    """The end of a path, at most 14 characters: a title below an image."""
    path = CONTROL.sub("?", files.printable(path))
    return path if len(path) <= 14 else "…" + path[-13:]


Images = Photos | str | Path | Sequence | torch.Tensor | np.ndarray | Dataset | DataLoader


def photos_of(images: Images, model: nn.Module) -> Photos:
    """Whatever holds images, as :class:`Photos`: those; a folder, or a list of paths in a file, as
    text or ``Path``; paths; a tensor or array (N, C, H, W) or (N, H, W, C); a dataset, see
    :func:`datasets.named` for names and labels; or a loader: what its sampler chooses of its
    dataset, in the dataset's order. ``TypeError`` for anything else."""
    if isinstance(images, Photos):
        return images
    if isinstance(images, str | Path):
        return read_photos(images, model)
    if isinstance(images, np.ndarray) and images.dtype.kind in "OU":  # of paths
        images = images.tolist()
    if isinstance(images, pd.DataFrame):
        raise TypeError("images: expected a list of paths, got a table; give its column")
    if isinstance(images, list | tuple | pd.Series) and len(images):
        images = list(images)  # of a table, in its order
        if all(isinstance(image, str | Path) for image in images):
            return read_photos([Path(image) for image in images], model)
    if isinstance(images, Mapping):  # of splits, as the Hugging Face library loads them
        raise TypeError("images: expected one dataset, got a dict of "
                        f"{', '.join(map(str, images)) or 'nothing'}; give one of them")
    if isinstance(images, DataLoader):
        images = Loaded(images)
    if isinstance(images, np.ndarray):
        images = torch.from_numpy(np.ascontiguousarray(images))
    if isinstance(images, torch.Tensor) and images.dtype != torch.uint8:
        whole = images.flatten(1).isfinite().all(1) if images.ndim > 1 else torch.ones(0).bool()
        checks.images(images[whole] if whole.any() and not whole.all() else images, "images")
    if not hasattr(images, "__getitem__") or not hasattr(images, "__len__"):
        raise TypeError("images: expected a folder, a list of paths in a file, a tensor or array "
                        "(N, C, H, W), a dataset or a loader of one with a length, got "
                        f"{type(images).__name__}")
    if not len(images):
        raise ValueError("images: expected at least one, got none")
    fit, channels = _preparation(model)
    names, labels, classes = named(images)
    if names is None or len({*names}) < len(names):
        names = tuple(map(str, range(len(images))))
    last = _channels_come_last(images)
    if last:
        warnings.warn("images: taken as (H, W, C), with the channels last", stacklevel=3)
    places = tuple(images.indices) if isinstance(images, Loaded) else ()
    return Photos(images, names, labels=labels, classes=classes, fit=fit, channels=channels,
                  last=last, places=places)


def _channels_come_last(images) -> bool:
    """As the first image has it that is an array."""
    for i in range(min(len(images), LOOK)):
        try:
            with of_one():
                image = image_in(images[i])
                shape = () if isinstance(image, Image.Image | str | Path) else np.shape(image)
        except ValueError:  # told where all are read
            continue
        return last_are_channels(shape[1:] if len(shape) == 4 else shape)
    return False


def read_photos(source: str | Path | Sequence[Path], model: nn.Module, *, size: int | None = None,
                channels: int | None = None) -> Photos:
    """The images of ``source``, a folder, Parquet, a list of paths or paths, for ``model``.

    See :func:`pictures.readable`; those of a folder come in the order of their paths. They are
    scaled and cropped as :func:`prepare` or :func:`load_model` say of the model; with ``size``
    to that many pixels on the short side, then cropped at the centre. Without either, ``size`` and
    ``channels`` (1 or 3) default to those of a network made by :func:`models.build`, else to the
    images' own. Raises ``FileNotFoundError`` for a folder without images, ``ValueError`` if none
    can be read or their sizes differ.
    """
    if channels not in (None, 1, 3):
        raise ValueError(f"channels: expected 1 or 3, got {channels!r}")
    given, depth = _preparation(model, size)
    found = readable(Path(source).expanduser() if isinstance(source, str | Path) else
                     [path.expanduser() for path in source], fit=given.apply,
                     fitted=given.fitted, channels=channels or depth)
    return Photos(found.pictures, found.paths, found.skipped, found.others, found.labels,
                  found.classes, found.litter, empty=found.empty, places=found.places)


def _preparation(model: nn.Module, size: int | None = None) -> tuple[Preparation, int | None]:
    """What a model takes of pictures, and in how many channels, None if it does not say."""
    spec = models.spec_of(model)
    shape = spec.shape if spec else (None, None)
    given = preparation.of(model)
    if size is None and given.resize is given.crop is given.transform is None:
        size = shape[1]
    depth = (3 if given.mean is not None and len(given.mean) == 3 else
             shape[0] if given.transform is None else None)
    return given.with_options(resize=size, crop=size), depth


def prepare(model: nn.Module, *, resize: int | None = None, crop: int | None = None,
            mean: Sequence[float] | None = None, std: Sequence[float] | None = None) -> nn.Module:
    """The model with another :class:`Preparation`: its own, changed by those not None.

    Without any, the model as it is.

    >>> prepare(nn.Flatten(), mean=(0.5,), std=(0.1,))(torch.ones(1, 1, 1, 2)).tolist()
    [[5.0, 5.0]]
    """
    options = {"resize": resize, "crop": crop, "mean": mean, "std": std}
    if all(value is None for value in options.values()):
        return model
    given, inner = preparation.of(model), unwrapped(model)
    if inner is model:  # which normalises on its own, if it does
        given = replace(given, mean=None, std=None)
    return Classifier(inner, preparation=given.with_options(**options))
