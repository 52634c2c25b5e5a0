"""Images that are there twice: files of the same bytes."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from multiprocessing.pool import ThreadPool

from dnnlib.custom.photos import Photos
from dnnlib.data.pictures import READERS, Pictures

START = 2**16  # bytes that tell most files of one size apart


def duplicates(photos: Photos) -> dict[int, int]:
    """The place of each image whose file repeats an earlier one, and the place of the first.

    Only files of one size are read. Empty for images that are not files.
    """
    if not isinstance(photos.source, Pictures):
        return {}
    names = photos.source.files
    with ThreadPool(READERS) as pool:  # files wait for the disk, or the network
        groups = _alike([range(len(names))], photos.source.stamps[:, 0].tolist().__getitem__, map)
        groups = _alike(groups, lambda i: _hash(names[i], START), pool.map)
        groups = _alike(groups, lambda i: _hash(names[i], -1), pool.map)
    return {later: group[0] for group in groups for later in group[1:]}


def _alike(groups: Iterable[Iterable[int]], key: Callable, each: Callable) -> list[list[int]]:
    """Groups of two at least that have one key, which is not None, in the order of their places."""
    places = [(number, place) for number, group in enumerate(groups) for place in group]
    found = defaultdict(list)
    for (number, place), value in zip(places, each(key, [place for _, place in places])):
        if value is not None:
            found[number, value].append(place)
    return [group for group in found.values() if len(group) > 1]


def _hash(name: str, count: int) -> bytes | None:
    """Of the first bytes of a file, all with -1; None if it cannot be read."""
    try:
        with open(name, "rb") as file:
            return hashlib.sha256(file.read(count)).digest()
    except OSError:
        return None
