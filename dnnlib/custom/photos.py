"""A person's own images, as the model takes them: from files, tensors or datasets, as they come."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import nn
from torch.utils.data import DataLoader, Dataset

from dnnlib import checks, files, models
from dnnlib.custom import preparation
from dnnlib.custom.classifier import Classifier
from dnnlib.custom.preparation import Preparation
from dnnlib.data.pictures import Pictures, Rows, readable
from dnnlib.models.fingerprints import described, of

FEW = 256  # images that are read without workers


@dataclass(frozen=True, eq=False)
class Photos(Dataset):
    """Images by number, read when they are asked for.

    ``source``: gives for 0 to N - 1 an image (C, H, W), uint8 or in [0, 1]: a tensor, an array,
    :class:`Pictures`, or a dataset, whose images may come with labels or as Pillow has them; those
    are turned upright and prepared by ``fit``, in ``channels``, as files are.
    ``paths``: their names. ``skipped``: the reason for each image that cannot be read, by name;
    some show it only when they are read. ``others``: how many files of the folder are not images by
    their ending. ``labels``: int64 (N,), the class of each in ``classes``, -1 where it is unknown,
    if the source says so by number; images in folders have none, and their paths say it by name.
    ``litter``: what programs left in the folder.

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

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, i: int) -> torch.Tensor:
        """``ValueError`` with the reason why it cannot be read."""
        image = self.source[i]
        if isinstance(image, tuple | list):  # with its label
            image = image[0]
        if isinstance(image, Image.Image):
            image = self._prepared(image)
        image = torch.as_tensor(image)
        if image.ndim != 3:
            raise ValueError(f"expected an image (C, H, W), got shape {tuple(image.shape)}")
        if image.dtype != torch.uint8:
            low, high = image.min().item(), image.max().item()
            if not (low >= 0 and high <= 1):
                raise ValueError(f"expected values in [0, 1] or uint8, got [{low:g}, {high:g}]")
            image = image.float()
        return image

    def _prepared(self, picture: Image.Image) -> torch.Tensor:
        """As a file of it would be; ``ValueError`` for colours that nobody asked for."""
        mode = {1: "L", 3: "RGB"}.get(self.channels or 0) or {"1": "L"}.get(
            picture.mode, picture.mode)
        if mode not in ("L", "RGB", "RGBA"):  # numbers of a palette are no colours
            raise ValueError(f"is a picture of mode {mode}, where L, RGB or RGBA is expected; "
                             "convert it, as by picture.convert('RGB')")
        array = self.fit.apply(ImageOps.exif_transpose(picture).convert(mode))
        array = array[None] if array.ndim == 2 else array.transpose(2, 0, 1)
        return torch.from_numpy(np.array(array))  # a copy, that may be written to

    @property
    def shape(self) -> tuple[int, ...]:
        """Of an image, (C, H, W), as the first that can be read has it."""
        return tuple(self.some(1).shape[1:])

    @property
    def images(self) -> torch.Tensor:
        """All of them at once, float32 (N, C, H, W) in [0, 1]."""
        return self.take(range(len(self)))

    def take(self, places: Sequence[int] | torch.Tensor) -> torch.Tensor:
        """Those images, float32 (n, C, H, W); ``ValueError`` naming one that cannot be read."""
        found = []
        for i in torch.as_tensor(places).tolist():
            try:
                found.append(unit(self[i]))
            except ValueError as error:
                raise ValueError(f"{self.paths[i]} {error}") from error
        return torch.stack(found)

    def some(self, n: int) -> torch.Tensor:
        """At most ``n`` that can be read, spread over all; ``ValueError`` if there are none."""
        places = torch.linspace(0, len(self) - 1, min(len(self), n)).long().unique().tolist()
        found, why = [], ""
        for i in [*places, *(i for i in range(len(self)) if i not in places)]:
            if len(found) == len(places) or found and i not in places:
                break
            try:
                found.append(unit(self[i]))
            except ValueError as error:
                why = why or f"{self.paths[i]} {error}"
        if not found:
            raise ValueError(f"images: none can be read; the first: {why or 'there is none'}")
        if len({image.shape for image in found}) > 1:
            raise ValueError("images: expected one size, got "
                             f"{' and '.join(sorted({str(tuple(i.shape)) for i in found}))}; "
                             "give a size to fit them to")
        return torch.stack(found)

    def named(self) -> str:
        """What tells these images from others, or from what they were."""
        if isinstance(self.source, Pictures | Rows):
            how = getattr(self.source.fit, "__self__", None)  # a Preparation
            state: object = [self.source.stamps.tolist(), self.source.channels,
                             how and [how.described, of(how.transform)]]
        elif isinstance(self.source, torch.Tensor | np.ndarray):
            state = described(torch.as_tensor(self.source))
        else:  # too many to be read twice
            state = described(self.some(16))
        return f"{len(self)} images, {files.digest([state, list(self.paths)])}"


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
    loader = DataLoader(_Guarded(photos, photos.shape), batch_sampler=lists, num_workers=workers,
                        multiprocessing_context="fork" if workers and linux else None,
                        collate_fn=_collated, pin_memory=torch.device(device).type == "cuda")
    for x, places, skipped in loader:
        yield Read(unit(x.to(device, non_blocking=True)), places, skipped)


def _collated(items: list) -> tuple[torch.Tensor, torch.Tensor, dict[int, str]]:
    good = [(i, image) for i, image in items if not isinstance(image, str)]
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
    path = files.printable(path)
    return path if len(path) <= 14 else "…" + path[-13:]


Images = Photos | str | Path | torch.Tensor | np.ndarray | Dataset | DataLoader


def photos_of(images: Images, model: nn.Module) -> Photos:
    """Whatever holds images, as :class:`Photos`: those, a folder or a list of paths as text or
    ``Path``, a tensor or array (N, C, H, W), a dataset, or a loader, whose dataset is taken in
    order. ``TypeError`` for anything else."""
    if isinstance(images, Photos):
        return images
    if isinstance(images, str | Path):
        return read_photos(images, model)
    if isinstance(images, DataLoader):
        images = images.dataset
    if isinstance(images, np.ndarray):
        images = torch.from_numpy(np.ascontiguousarray(images))
    if isinstance(images, torch.Tensor) and images.dtype != torch.uint8:
        checks.images(images, "images")
    if not hasattr(images, "__getitem__") or not hasattr(images, "__len__"):
        raise TypeError("images: expected a folder, a list of paths in a file, a tensor or array "
                        "(N, C, H, W), a dataset or a loader of one with a length, got "
                        f"{type(images).__name__}")
    if not len(images):
        raise ValueError("images: expected at least one, got none")
    fit, channels = _preparation(model)
    return Photos(images, tuple(map(str, range(len(images)))), fit=fit, channels=channels)


def read_photos(source: str | Path, model: nn.Module, *, size: int | None = None,
                channels: int | None = None) -> Photos:
    """The images of ``source``, a folder, Parquet or a list of paths, as ``model`` takes them.

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
    found = readable(Path(source).expanduser(), fit=given.apply, fitted=given.fitted,
                     channels=channels or depth)
    return Photos(found.pictures, found.paths, found.skipped, found.others, found.labels,
                  found.classes, found.litter)


def _preparation(model: nn.Module, size: int | None = None) -> tuple[Preparation, int | None]:
    """What a model takes of pictures, and in how many channels, None if it does not say."""
    spec = models.spec_of(model)
    shape = spec.shape if spec else (None, None)
    given = preparation.of(model)
    if size is None and given.resize is given.crop is given.transform is None:
        size = shape[1]
    depth = 3 if given.mean is not None and len(given.mean) == 3 else shape[0]
    return given.with_options(resize=size, crop=size), depth


def prepare(model: nn.Module, **options) -> nn.Module:
    """The model with another :class:`Preparation`: its own, changed by those not None.

    ``options``: ``resize``, ``crop``, ``mean``, ``std``. Without any, the model as it is.

    >>> prepare(nn.Flatten(), mean=(0.5,), std=(0.1,))(torch.ones(1, 1, 1, 2)).tolist()
    [[5.0, 5.0]]
    """
    if all(value is None for value in options.values()):
        return model
    changed = preparation.of(model).with_options(**options)
    inner = model.model if isinstance(model, Classifier) else model
    return Classifier(inner, preparation=changed)
