"""Scores of images by many methods, block by block: one pass over an image for all of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from torch import nn
from tqdm import tqdm

from dnnlib import files
from dnnlib.custom.photos import Photos, Read, batches
from dnnlib.custom.rehearsal import FAULTS, line
from dnnlib.inference import device_of, predict
from dnnlib.selection.batches import Batch, Reader, passed

Known = Mapping[str, Mapping[str, torch.Tensor]]
# of an image: its class, the class's probability, and how far that is above the next
OUTPUTS = ("predicted", "confidence", "lead")


@dataclass(frozen=True, eq=False)
class Job:
    """What the scores of a block depend on; it can be sent to another machine.

    ``readers``: by method; ``known``: what they learned; ``block``: how many images are scored and
    kept at once, in passes of ``batch_size``.
    """

    model: nn.Module
    photos: Photos
    readers: Mapping[str, Reader]
    known: Known
    batch_size: int
    block: int

    @property
    def blocks(self) -> int:
        """How many there are."""
        return -(-len(self.photos) // self.block)

    def lists(self, number: int) -> list[list[int]]:
        """The places of a block's images, batch by batch."""
        start, end = number * self.block, min((number + 1) * self.block, len(self.photos))
        return [list(range(i, min(i + self.batch_size, end)))
                for i in range(start, end, self.batch_size)]

    def run(self, numbers: Sequence[int], workers: int | None = None,
            told: Callable[[int], object] = lambda n: None) -> Iterator[dict[str, bytes]]:
        """Those blocks, one after the other, each as a file by its name.

        ``told``: called with the number of images of each batch. In a file of tensors, there is a
        row for each image that can be read: 'places', those of OUTPUTS if there was a pass, and
        what each method keeps of it, by name. 'skipped' and 'failed' are the reasons for images and
        methods that are not there.
        """
        lists = {number: self.lists(number) for number in numbers}
        reads = batches(self.photos, sum(lists.values(), []), workers=workers,
                        device=device_of(self.model))
        for number in numbers:
            yield {block_name(number): self.block_of(islice(reads, len(lists[number])), told)}

    def block_of(self, reads: Iterable[Read], told: Callable[[int], object]) -> bytes:
        """A file of tensors, see :meth:`run`, for these batches."""
        rows: dict[str, list[torch.Tensor]] = {name: [] for name in
                                               ("places", *OUTPUTS, *self.readers)}
        skipped, failed = {}, {}
        for read in reads:
            skipped |= read.skipped
            told(len(read.places) + len(read.skipped))
            if not len(read.x):
                continue
            left = {name: reader for name, reader in self.readers.items() if name not in failed}
            batch = shown(self.model, read, left)
            rows["places"].append(read.places)
            if batch.p is not None:
                two = batch.p.topk(2).values
                rows["predicted"].append(batch.classes)
                rows["confidence"].append(two[:, 0])
                rows["lead"].append(two[:, 0] - two[:, 1])
            for name, reader in left.items():
                try:
                    rows[name].append(reader.read(batch, self.known.get(name, {})))
                except FAULTS as error:
                    failed[name] = line(error)
        tensors = {name: torch.cat(parts) for name, parts in rows.items()
                   if parts and name not in failed}
        return files.packed(tensors, notes={"skipped": skipped, "failed": failed})


def block_name(number: int) -> str:
    """The file of a block.

    >>> block_name(3)
    'blocks/000003.safetensors'
    """
    return f"blocks/{number:06d}.safetensors"


def shown(model: nn.Module, read: Read, readers: Mapping[str, Reader]) -> Batch:
    """A batch after the pass that its readers share, if one of them needs it."""
    sharing = [reader for reader in readers.values() if reader.shared]
    if not sharing:
        return Batch(model, read.x, read.places, None, {})
    return passed(model, read.x, read.places, sharing)


def learn(model: nn.Module, photos: Photos, readers: Mapping[str, Reader], *, batch_size: int,
          workers: int | None = None, told: Callable[[int], object] = lambda n: None,
          ) -> tuple[dict[str, dict[str, torch.Tensor]], dict[str, str], dict[str, str]]:
    """What readers learn of training images, and the reasons for methods and images that failed.

    ``told``: called with the number of images of each batch.
    """
    parts: dict[str, list] = {name: [] for name in readers}
    skipped, failed, known = {}, {}, {}
    n = len(photos)
    lists = [list(range(i, min(i + batch_size, n))) for i in range(0, n, batch_size)]
    for read in batches(photos, lists, workers=workers, device=device_of(model)):
        skipped |= {photos.paths[i]: why for i, why in read.skipped.items()}
        told(len(read.places) + len(read.skipped))
        if not len(read.x):
            continue
        left = {name: reader for name, reader in readers.items() if name not in failed}
        batch = shown(model, read, left)
        for name, reader in left.items():
            try:
                parts[name].append(reader.learn(batch))
            except FAULTS as error:
                failed[name] = line(error)
    for name, reader in readers.items():
        if name not in failed:
            try:
                known[name] = reader.learned(parts.pop(name))
            except FAULTS as error:
                failed[name] = line(error)
    return known, failed, skipped


def classes_of(model: nn.Module, photos: Photos, *, batch_size: int,
               workers: int | None = None) -> tuple[torch.Tensor, dict[int, str]]:
    """The class given to each image, int64 (N,), -1 for those that cannot be read; and why."""
    found, skipped = torch.full((len(photos),), -1), {}
    places = torch.arange(len(photos)).split(batch_size)
    with tqdm(total=len(photos), desc="predicting", unit="image", leave=False) as bar:
        for read in batches(photos, [part.tolist() for part in places], workers=workers,
                            device=device_of(model)):
            skipped |= read.skipped
            if len(read.x):
                found[read.places] = predict(model, read.x, batch_size=batch_size).argmax(1)
            bar.update(len(read.places) + len(read.skipped))
    return found, skipped
