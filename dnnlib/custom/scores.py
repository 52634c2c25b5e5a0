"""Scores of images by many methods, block by block: one pass over an image for all of them."""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import ClassVar

import torch
from torch import nn

from dnnlib import files
from dnnlib.custom import run_folder
from dnnlib.custom.answering import spared, unanswered
from dnnlib.custom.own_code import is_own, own_code
from dnnlib.custom.photos import Photos, Read, batches
from dnnlib.custom.rehearsal import FAULTS, line
from dnnlib.inference import classes_of, device_of, predict
from dnnlib.progress import progress
from dnnlib.selection.protocol import Batch, Selector, passed, rows_of

Known = Mapping[str, Mapping[str, torch.Tensor]]
# of an image: its class, the class's probability, and how far that is above the next
OUTPUTS = ("predicted", "confidence", "lead")


@dataclass(frozen=True, eq=False)
class Blocks:
    """Images that methods look at together, block by block; it can be sent to another machine.

    ``selectors``: by method; ``block``: how many images make a file, in passes of ``batch_size``.
    """

    model: nn.Module
    photos: Photos
    selectors: Mapping[str, Selector]
    batch_size: int
    block: int

    folder: ClassVar[str]

    @property
    def names(self) -> list[str]:
        """The file of each block."""
        return [f"{self.folder}/{number:06d}.safetensors"
                for number in range(-(-len(self.photos) // self.block))]

    def lists(self, number: int) -> list[list[int]]:
        """The places of a block's images, batch by batch."""
        start, end = number * self.block, min((number + 1) * self.block, len(self.photos))
        return [list(range(i, min(i + self.batch_size, end)))
                for i in range(start, end, self.batch_size)]

    def run(self, numbers: Sequence[int], workers: int | None = None,
            told: Callable[[int], object] = lambda n: None) -> Iterator[dict[str, bytes]]:
        """Those blocks, one after the other, each as a file by its name.

        ``told``: called with the number of images of each batch; ``workers``: see
        :func:`photos.batches`.
        """
        lists, names = {number: self.lists(number) for number in numbers}, self.names
        reads = batches(self.photos, sum(lists.values(), []), workers=workers,
                        device=device_of(self.model))
        for number in numbers:
            yield {names[number]: self.file_of(islice(reads, len(lists[number])), told)}

    def file_of(self, reads: Iterable[Read], told: Callable[[int], object]) -> bytes:
        """A file of tensors for these batches, with a row for each image that can be read.

        'skipped' and 'failed' are the reasons for images and methods that are not there.
        """
        rows: dict[str, list[torch.Tensor]] = {}
        skipped, failed = {}, {}
        for read in reads:
            told(len(read.places) + len(read.skipped))
            read, found = spared(self.model, read, lambda read: self.of_batch(read, failed))
            skipped |= read.skipped
            for what, value in (found or {}).items():
                rows.setdefault(what, []).append(value)
        tensors = {what: torch.cat(parts) for what, parts in rows.items()
                   if what.partition(".")[0] not in failed}
        return files.packed(tensors, notes={"skipped": skipped, "failed": failed})

    def of_batch(self, read: Read, failed: dict[str, str]) -> dict[str, torch.Tensor]:
        """What is kept of a batch; the reasons for methods that fail come to ``failed``.

        An image on which the model fails is no fault of a method: the error goes on.
        """
        left = {name: chosen for name, chosen in self.selectors.items() if name not in failed}
        batch = shown(self.model, read, left)
        found = self.of_all(batch)
        for name, chosen in left.items():
            try:
                with own_code(type(chosen)):
                    found |= self.of_one(name, chosen, _shown_to(chosen, batch))
            except FAULTS as error:
                if batch.logits is None and unanswered(self.model, read.x):
                    raise
                failed[name] = line(error)
        return found

    def of_all(self, batch: Batch) -> dict[str, torch.Tensor]:
        """What is kept of a batch, whatever the methods."""
        return {}

    def of_one(self, name: str, chosen: Selector, batch: Batch) -> dict[str, torch.Tensor]:
        """What a method keeps of it, by names that begin with the method's."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Job(Blocks):
    """The scores of images, given what the methods have ``known`` of training images.

    In a file: 'places', those of OUTPUTS if there was a pass, and each method's, by its name.
    """

    known: Known = field(default_factory=dict)

    folder = "blocks"

    def of_all(self, batch):
        found = {"places": batch.places}
        if batch.logits is not None:
            two = batch.p.topk(2).values
            found |= {"predicted": batch.classes, "confidence": two[:, 0],
                      "lead": two[:, 0] - two[:, 1]}
        return found

    def of_one(self, name, chosen, batch):
        return {name: rows_of(chosen, batch, self.known.get(name, {}))}


@dataclass(frozen=True, eq=False)
class Lessons(Blocks):
    """What methods keep of training images, as 'method.name'."""

    folder = "lessons"

    def of_one(self, name, chosen, batch):
        return {f"{name}.{what}": value for what, value in chosen.learn(batch).items()}


def shown(model: nn.Module, read: Read, selectors: Mapping[str, Selector]) -> Batch:
    """A batch after the pass that its selectors share, if one of them needs it."""
    sharing = [chosen for chosen in selectors.values() if chosen.shared]
    if not sharing:
        return Batch(model, read.x, read.places)
    batch = passed(model, read.x, read.places, sharing)
    classes_of(batch.logits)  # what is not finite is the fault of an image, not of a method
    return batch


def _shown_to(chosen: Selector, batch: Batch) -> Batch:
    """The batch, or a copy for a method of one's own: what it changes in place, others see too."""
    if not is_own(type(chosen)):
        return batch
    return replace(batch, x=batch.x.clone(), places=batch.places.clone(),
                   logits=None if batch.logits is None else batch.logits.clone(),
                   values={want: value.clone() for want, value in batch.values.items()
                           if want == chosen.want})


def learn(lessons: Lessons, paths: Sequence[Path], meanwhile: Path,
          ) -> tuple[dict[str, dict[str, torch.Tensor]], dict[str, str], dict[str, str]]:
    """What the files at ``paths`` come to by method; why methods and images failed.

    ``meanwhile``: a folder for files that are needed until then.
    """
    skipped, failed, known = {}, {}, {}
    for path in paths:
        notes = files.load_tensors(path, ())[1]["notes"]
        skipped |= {lessons.photos.paths[int(i)]: why for i, why in notes["skipped"].items()}
        failed |= {name: why for name, why in notes["failed"].items() if name not in failed}
    for name, chosen in lessons.selectors.items():
        if name not in failed:
            try:
                rows = {what: run_folder.joined(paths, f"{name}.{what}", meanwhile)
                        for what in chosen.keeps}
                with own_code(type(chosen)):
                    known[name] = chosen.learned(rows)
            except FAULTS as error:
                failed[name] = line(error)
    return known, failed, skipped


def learn_at_once(lessons: Lessons, workers: int | None = None,
                  ) -> tuple[dict[str, dict[str, torch.Tensor]], dict[str, str], dict[str, str]]:
    """:func:`learn` of all blocks, which are made here and not kept."""
    with tempfile.TemporaryDirectory() as place:
        for made in lessons.run(range(len(lessons.names)), workers):
            for name, content in made.items():
                files.write_atomically(Path(place) / name, content)
        known, failed, skipped = learn(lessons, [Path(place) / name for name in lessons.names],
                                       Path(place))
        return ({method: {what: value.clone() for what, value in found.items()}
                 for method, found in known.items()}, failed, skipped)


def all_of(model: nn.Module, photos: Photos,
           batch_size: int) -> tuple[torch.Tensor, dict[str, str]]:
    """The images that can be read and that the model does not fail on, float32 (M, C, H, W); the
    reasons for the others, by name. ``ValueError`` if none is left."""
    given, skipped = classes_of_photos(model, photos, batch_size=batch_size)
    places = (given >= 0).nonzero()[:, 0]
    unread = {photos.paths[i]: why for i, why in skipped.items()}
    if not len(places):
        raise ValueError("reference: none can be used; the first: "
                         f"{' '.join(next(iter(unread.items())))}")
    return photos.take(places), unread


def classes_of_photos(model: nn.Module, photos: Photos, *, batch_size: int,
                      workers: int | None = None) -> tuple[torch.Tensor, dict[int, str]]:
    """The class given to each image, int64 (N,), -1 for those that cannot be read, or that the
    model fails on; and why."""
    found, skipped = torch.full((len(photos),), -1), {}
    places = torch.arange(len(photos)).split(batch_size)
    with progress(total=len(photos), desc="predicting", unit="image", leave=False) as bar:
        for read in batches(photos, [part.tolist() for part in places], workers=workers,
                            device=device_of(model)):
            bar.update(len(read.places) + len(read.skipped))
            read, p = spared(model, read,
                             lambda read: predict(model, read.x, batch_size=batch_size))
            skipped |= read.skipped
            if p is not None:
                found[read.places] = p.argmax(1)
    return found, skipped
