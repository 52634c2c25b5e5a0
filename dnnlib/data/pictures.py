"""Images that nobody has checked: a folder or a list of them, decoded one by one when asked for."""

from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from tqdm import tqdm

from dnnlib.data.folders import UNREADABLE, deep, listed, opened

LISTS = {".csv", ".tsv", ".txt", ".parquet"}  # of paths
ORIENTATION = 0x0112  # EXIF's tag; from 5 on, width and height change places
READERS = 8  # threads that look at headers


@dataclass(frozen=True, eq=False)
class Pictures:
    """Image files, decoded when they are asked for: ``pictures[i]`` is uint8 (C, H, W).

    A photo that says by EXIF how it was held is turned upright. ``stamps``: what tells that a
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
        if len(array) != self.channels:
            raise ValueError(f"has {len(array)} channels, where {self.channels} are expected")
        return torch.from_numpy(np.array(array))  # a copy, that may be written to


class Readable(NamedTuple):
    """What can be read of a folder that nobody has checked, as its headers say.

    ``paths``: those of the pictures, relative to the folder; ``skipped``: the reason for each
    image that cannot be read, by relative path; ``others``: how many files have another ending.
    """

    pictures: Pictures
    paths: tuple[str, ...]
    skipped: dict[str, str]
    others: int


class Header(NamedTuple):
    """Of an image, without its pixels: (width, height) upright, and what names its state."""

    size: tuple[int, int]
    gray: bool
    stamp: tuple[int, int]


def readable(source: Path, *, fit: Callable[[Image.Image], np.ndarray] = np.asarray,
             fitted: Callable[[tuple[int, int]], tuple[int, int] | None] = tuple,
             channels: int | None = None) -> Readable:
    """The images that nobody has checked, by their headers: none is decoded yet.

    ``source``: a folder, or a list of paths: a file whose name ends in .txt, with a path a line,
    or a table, .csv, .tsv or .parquet, with a column 'absolute_path', as of a ranking, or 'path';
    relative to the file's folder.
    ``fit``: from an image to uint8 (H, W) or (H, W, 3); ``fitted``: from (width, height) to those
    that it makes of them, or None if nobody knows. ``channels``: 1 or 3, default 1 if all images
    are gray-scale. Folders that cannot be entered are among the skipped, their names ending in
    '/'. Raises ``ValueError`` if no image can be read or their sizes differ.
    """
    paths, others, skipped = listed(source) if source.is_dir() else _of_list(source)
    folder = source if source.is_dir() else source.parent

    def name(path: Path) -> str:
        return (path.relative_to(folder) if path.is_relative_to(folder) else path).as_posix()

    good: dict[Path, Header] = {}
    first: list = []  # the shape of the first
    with ThreadPool(READERS) as pool:  # headers wait for the disk, or the network
        for path, found in tqdm(zip(paths, pool.imap(_header, paths, chunksize=64)), leave=False,
                                total=len(paths), desc=f"looking through {source.name}"):
            try:
                if isinstance(found, str):
                    raise ValueError(found)
                side = fitted(found.size)
            except ValueError as error:
                skipped[name(path)] = str(error)
                continue
            good[path] = found
            first = first or [side]
            if side != first[0]:
                raise ValueError(f"{path} is {side[0]} x {side[1]}, the first image "
                                 f"{first[0][0]} x {first[0][1]}: give a size to fit them to")
    if not good:
        raise ValueError(f"{source} holds no image that can be read; of {len(skipped)}, the "
                         f"first: {' '.join(next(iter(skipped.items())))}")
    if channels is None:
        channels = 1 if all(header.gray for header in good.values()) else 3
    places = tuple(str(path.absolute()) for path in good)  # perhaps read by another process
    pictures = Pictures(places, fit, channels,
                        np.array([header.stamp for header in good.values()], np.int64))
    return Readable(pictures, tuple(map(name, good)), skipped, others)


def _of_list(source: Path) -> tuple[list[Path], int, dict[str, str]]:
    """The same for the paths in a list; in their order, each once."""
    if source.suffix.lower() not in LISTS:
        raise FileNotFoundError(f"{source} is not a folder, nor a list of paths "
                                f"({', '.join(sorted(LISTS))})")
    if not source.is_file():
        raise FileNotFoundError(f"there is no file {source}")
    if source.suffix.lower() == ".txt":
        lines = source.read_text("utf-8", "surrogateescape").splitlines()
    else:
        import pandas as pd  # only here: the ground floor does without tables

        table = (pd.read_parquet(source) if source.suffix.lower() == ".parquet" else pd.read_csv(
            source, sep="\t" if source.suffix.lower() == ".tsv" else ",", dtype=object,
            encoding_errors="surrogateescape"))
        column = next((name for name in ("absolute_path", "path") if name in table), None)
        if column is None:
            raise ValueError(f"{source}: expected a column 'path', got "
                             f"{', '.join(map(str, table.columns[:5]))}")
        lines = [value.decode("utf-8", "surrogateescape") if isinstance(value, bytes)
                 else str(value) for value in table[column].dropna()]
    paths = [source.parent / line.strip() for line in dict.fromkeys(lines) if line.strip()]
    if not paths:
        raise FileNotFoundError(f"{source} lists no paths")
    return paths, 0, {}


def _header(path: Path) -> Header | str:
    """What the file's first bytes say, or why it is not an image."""
    try:
        with Image.open(path) as image:
            if why := deep(image):
                return why
            # the method of PNG files decodes the whole file to look for more behind the pixels
            turned = Image.Image.getexif(image).get(ORIENTATION, 1) >= 5
            state = path.stat()
            return Header(image.size[::-1] if turned else image.size, image.mode in ("1", "L"),
                          (state.st_size, state.st_mtime_ns))
    except UNREADABLE as error:
        return _reason(path, f"is not a readable image: {error}")


def _reason(path: Path, error) -> str:
    return str(error).removeprefix(f"{path} ").replace(str(path), path.name)
