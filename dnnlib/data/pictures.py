"""Images that nobody has checked: a folder or a list of them, decoded one by one when asked for."""

import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image

from dnnlib.data import delimited, parquet
from dnnlib.data.folders import (
    Listed,
    any_image,
    deep,
    in_order,
    lies,
    listed,
    of_one,
    opened,
    unreadable,
)
from dnnlib.data.parquet import Rows
from dnnlib.progress import progress

WHOLE = re.compile(r"^(\d+)\.0+$")  # a number of a class, in a column that has gaps
LISTS = {".csv", ".tsv", ".txt", ".parquet"}  # of paths
COLUMNS = ("absolute_path", "path")
READERS = 8  # threads that look at headers


@dataclass(frozen=True, eq=False)
class Pictures:
    """Image files, decoded when they are asked for: ``pictures[i]`` is (C, H, W) as ``fit`` has it.

    ``channels``: in which ``fit`` gets them. A photo that says by EXIF how it was held is turned
    upright. ``stamps``: what tells that a
    file is another by now, its size in bytes and the time of its last change, int64 (N, 2). An
    index raises ``ValueError`` with the reason why the file cannot be read.
    """

    files: tuple[str, ...]
    fit: Callable[[Image.Image], np.ndarray]
    channels: int
    stamps: np.ndarray

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, i: int) -> torch.Tensor:
        path = Path(self.files[i])
        try:
            array = opened(path, self.fit, {1: "L", 3: "RGB"}[self.channels])
        except ValueError as error:
            raise ValueError(_reason(path, error)) from error
        array = array[None] if array.ndim == 2 else array.transpose(2, 0, 1)
        return torch.from_numpy(np.array(array))  # a copy, that may be written to


class Readable(NamedTuple):
    """What can be read of images that nobody has checked, as their headers say.

    ``paths``: those of the pictures, relative to the folder; of rows of a Parquet file its name and
    their numbers. ``skipped``: the reason for each image that cannot be read, by path; ``others``:
    how many files have another ending; ``litter``: what no person put there. ``labels``, of a
    table with labels: the number of each picture's class, -1 where there is none, and
    ``classes``, their names. ``empty``: sub-folders of the folder that hold no image. ``places``:
    of each picture, and then of each that is skipped, its place in the list, the table or the
    folder, counted before anything was left out.
    """

    pictures: Pictures | Rows
    paths: tuple[str, ...]
    skipped: dict[str, str]
    others: int
    litter: tuple[str, ...] = ()
    labels: torch.Tensor | None = None
    classes: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    places: tuple[int, ...] = ()


class Header(NamedTuple):
    """Of an image, without its pixels: (width, height) upright, and what names its state."""

    size: tuple[int, int]
    gray: bool
    stamp: tuple[int, int]


def readable(source: Path | Sequence[Path], *,
             fit: Callable[[Image.Image], np.ndarray] = np.asarray,
             fitted: Callable[[tuple[int, int]], tuple[int, int] | None] = tuple,
             channels: int | None = None) -> Readable:
    """The images that nobody has checked, by their headers: none is decoded yet.

    ``source``: a folder; a Parquet file, or a folder of them, with a column of pictures, see
    :func:`parquet.table`, read row group by row group; or a list of paths: a file whose name ends
    in .txt, with a path a line, or a table, .csv, .tsv or .parquet, with a column
    'absolute_path', as of a ranking, or 'path'; relative to the file's folder. Or the paths. A
    column of labels, called as one of :data:`parquet.LABELS`, has the classes by name or number.
    ``fit``: from an image to (H, W) or (H, W, 3), uint8 or in [0, 1]; ``fitted``: from (width,
    height) to those that it makes of them, or None if nobody knows. ``channels``: 1 or 3, default 1
    if all images are gray-scale. Folders that cannot be entered are among the skipped, their names
    ending in '/'. Raises ``ValueError`` if no image can be read or their sizes differ.
    """
    walked, told, at = isinstance(source, Path) and source.is_dir(), {}, None
    if not isinstance(source, Path):
        first = {path: i for i, path in reversed([*enumerate(source)])}
        found, source = Listed([*dict.fromkeys(source)], 0, {}, ()), Path("list")
        at = [first[path] for path in found.paths]
    elif tables := _tables(source):
        return _of_rows(parquet.table(tables), fit, fitted, channels)
    elif walked:
        found = listed(source)
    else:
        found, told, at = _of_list(source)
    paths, others, skipped, litter = found
    folder = source if walked else source.parent
    names = [(path.relative_to(folder) if path.is_relative_to(folder) else path).as_posix()
             for path in paths]
    with ThreadPool(READERS) as pool:  # headers wait for the disk, or the network
        good, why = _good(names, pool.imap(_header, paths, chunksize=64), source, fitted)
    places = tuple(str(paths[i].absolute()) for i in good)  # perhaps read by another process
    pictures = Pictures(places, fit, channels or _channels(good.values()),
                        np.array([header.stamp for header in good.values()], np.int64))
    known = {name.split("/")[0] for name in [*names, *skipped, *litter]}
    empty = tuple(sorted(path.name for path in source.iterdir() if path.is_dir()
                         and path.name not in known and not any_image(path))) if walked else ()
    classes = in_order(filter(None, told.values()))
    place = {name: i for i, name in enumerate(classes)}
    labels = torch.tensor([place.get(told[paths[i]], -1) for i in good]) if classes else None
    return Readable(pictures, tuple(names[i] for i in good), skipped | why, others, litter,
                    labels, classes, empty, _places(names, good, skipped | why, at))


def _of_rows(found: parquet.Table, fit, fitted, channels: int | None) -> Readable:
    """The same for the rows of Parquet files."""
    names = found.names
    good, skipped = _good(names, map(_header, found), found.files[0], fitted)
    places = [*good]
    states = np.array([[of.st_size, of.st_mtime_ns] for of in map(Path.stat, found.files)],
                      np.int64)
    rows = Rows(tuple(str(path.absolute()) for path in found.files), found.column,
                found.places[places], fit, channels or _channels(good.values()), states)
    return Readable(rows, tuple(names[i] for i in places), skipped, 0, (),
                    found.labels[places] if found.label else None, found.classes,
                    places=_places(names, good, skipped))


def _tables(source: Path) -> tuple[Path, ...]:
    """The Parquet files with pictures that ``source`` means: a table of paths is none."""
    found = parquet.inside(source)
    if source.is_file():
        return found if found and parquet.has_pictures(source) else ()
    return found


def _good(names: Sequence[str], headers: Iterable[Header | str], source: Path,
          fitted) -> tuple[dict[int, Header], dict[str, str]]:
    """The headers of those that can be read, by place, and the reasons for the others, by name."""
    good: dict[int, Header] = {}
    skipped: dict[str, str] = {}
    first: list = []  # the shape of the first, and its name
    for i, found in enumerate(progress(headers, leave=False, total=len(names),
                                       desc=f"looking through {source.name}")):
        try:
            if isinstance(found, str):
                raise ValueError(found)
            with of_one():
                side = fitted(found.size)
        except ValueError as error:
            skipped[names[i]] = str(error)
            continue
        good[i] = found
        first = first or [side]
        if side != first[0]:
            raise ValueError(f"{names[i]} is {side[0]} x {side[1]}, the first image "
                             f"{first[0][0]} x {first[0][1]}: give a size to fit them to")
    if not good:
        raise ValueError(f"{source} holds no image that can be read; of {len(skipped)}, the "
                         f"first: {' '.join(next(iter(skipped.items())))}")
    return good, skipped


def _places(names: Sequence[str], good: Iterable[int], skipped: Iterable[str],
            at: Sequence[int] | None = None) -> tuple[int, ...]:
    """Of the ``good`` names, and then of the skipped; ``at``: where the names stood in a list. What
    is no name, as a folder that cannot be entered, comes behind all."""
    at = range(len(names)) if at is None else at
    of, behind = dict(zip(names, at)), count(max(at) + 1)
    return *(at[i] for i in good), *(of[name] if name in of else next(behind) for name in skipped)


def _channels(headers: Iterable[Header]) -> int:
    return 1 if all(header.gray for header in headers) else 3


def _of_list(source: Path) -> tuple[Listed, dict[Path, str], list[int]]:
    """The same for the paths in a list; in their order, each once. Their labels, if it has any, and
    their places among the paths there.
    """
    if source.suffix.lower() not in LISTS:
        raise FileNotFoundError(f"{source} is not a folder, nor a list of paths "
                                f"({', '.join(sorted(LISTS))})")
    if not source.is_file():
        raise FileNotFoundError(f"there is no file {source}")
    if source.suffix.lower() == ".txt":
        lines: list[tuple[str, str]] = [(line, "") for line in delimited.lines(source)]
    elif source.suffix.lower() == ".parquet":
        import pandas as pd  # only here: the ground floor does without tables

        lines = _paths_in(source, pd.read_parquet(source))
    else:
        lines = _paths_in(source, delimited.table(source))
    told: dict[Path, str] = {}
    at: list[int] = []
    for i, (line, label) in enumerate(lines):
        if line := line.strip():
            path = _place(source.parent, line)
            at += [i] * (path not in told)
            if told.setdefault(path, label) != label:
                raise ValueError(f"{source}: {line} is listed twice, as {told[path] or 'nothing'} "
                                 f"and as {label or 'nothing'}")
    if not told:
        raise FileNotFoundError(f"{source} lists no paths")
    return Listed([*told], 0, {}, ()), told, at


def _paths_in(source: Path, table) -> list[tuple[str, str]]:
    """Paths and labels. The column of paths is one with a name of :data:`COLUMNS`, or the only one
    whose first cell is a file; '' where there is no label."""
    column = next((name for name in COLUMNS if name in table), None)
    if column is None:
        there = [name for name, cells in table.items() for first in cells[:1]
                 if isinstance(first, str) and first and _place(source.parent, first).is_file()]
        if len(there) != 1:
            raise ValueError(f"{source}: expected a column 'path', got "
                             f"{', '.join(map(str, table.columns[:5]))}")
        column, = there
    spelt = {str(name).lower(): name for name in reversed(table.columns)}
    label = next((spelt[name] for name in parquet.LABELS if name in spelt
                  and spelt[name] != column), None)
    rows = table[table[column].notna()]
    labels = [""] * len(rows) if label is None else rows[label].where(rows[label].notna(), "")
    return [(value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value),
             WHOLE.sub(r"\1", str(of).strip())) for value, of in zip(rows[column], labels)]


def _place(folder: Path, line: str) -> Path:
    """The file that a line means; its backslashes separate folders if only so there is one."""
    path = folder / line
    if "\\" in line and not path.exists() and (other := folder / line.replace("\\", "/")).exists():
        return other
    return path


def _header(source: Path | bytes | None | ValueError) -> Header | str:
    """What the first bytes of a file or of a row say, or why it is not an image."""
    if source is None:
        return "holds no picture"
    if isinstance(source, ValueError):
        return str(source)
    try:
        with of_one(unreadable), Image.open(source if isinstance(source, Path)
                                            else io.BytesIO(source)) as image:
            if why := deep(image):
                return why
            state = source.stat() if isinstance(source, Path) else None
            return Header(image.size[::-1] if lies(image) else image.size,
                          image.mode in ("1", "L"),
                          (state.st_size, state.st_mtime_ns) if state else (len(source), 0))
    except ValueError as error:
        return _reason(source, error)


def _reason(source: Path | bytes, error) -> str:
    if isinstance(source, bytes):
        return str(error)
    return str(error).removeprefix(f"{source} ").replace(str(source), source.name)
