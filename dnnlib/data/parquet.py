"""Pictures in Parquet files, as the Hugging Face hub and its library ``datasets`` keep them."""

import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from dnnlib import checks, files
from dnnlib.data.folders import any_image, decoded, fitted, in_order, stacked
from dnnlib.data.raw import Raw
from dnnlib.progress import progress

SPLITS = {"train": ("train",), "test": ("test", "validation", "val")}
LABELS = ("label", "labels", "fine_label", "class", "target")  # the first that is there
PATHS = ("path", "absolute_path", "duplicate_of")  # bytes there are names, as of a ranking
SHARD = re.compile(r"-(\d+)-of-(\d+)(?:-[0-9a-f]+)?\.parquet$")
GROUPS = 4  # row groups that are kept in memory


@dataclass(frozen=True)
class Table:
    """Files of one form, read as one table.

    ``column``: the one that holds pictures, encoded; ``label``: the one of the classes, if there
    is one, whose names are ``classes``, in the order of their numbers. ``groups``: of each row
    group its file, its number in it and its number of rows.
    """

    files: tuple[Path, ...]
    column: str
    label: str | None
    classes: tuple[str, ...]
    labels: torch.Tensor  # int64 (N,), -1 where there is none
    groups: tuple[tuple[int, int, int], ...]

    def __len__(self) -> int:
        return sum(rows for *_, rows in self.groups)

    @property
    def names(self) -> tuple[str, ...]:
        """Of each row, file and number: 'photos.parquet:17'."""
        found, start = [], dict.fromkeys(range(len(self.files)), 0)
        for file, _, rows in self.groups:
            found += [f"{self.files[file].name}:{start[file] + i}" for i in range(rows)]
            start[file] += rows
        return tuple(found)

    @property
    def places(self) -> np.ndarray:
        """Of each row its file, its row group and its number in that, int64 (N, 3)."""
        return np.concatenate([
            np.stack([np.full(rows, file), np.full(rows, group), np.arange(rows)], 1)
            for file, group, rows in self.groups]).astype(np.int64)

    def __iter__(self) -> Iterator[bytes | None | ValueError]:
        """The encoded pictures, row group by row group; None where there is none.

        Of a row group that cannot be read, the reason for each row.
        """
        for file, group, rows in self.groups:
            try:
                some = _group(str(self.files[file]), _state(self.files[file]), group, self.column)
            except ValueError as error:
                yield from [error] * rows
            else:
                yield from (some[i].as_py() for i in range(rows))


@dataclass(frozen=True, eq=False)
class Rows:
    """Pictures in Parquet files, decoded when they are asked for: ``rows[i]`` is (C, H, W).

    ``files``, ``column``: as of :class:`Table`; ``places``: of each picture its file, row group
    and row, int64 (N, 3). ``fit`` and ``channels``: as of :class:`pictures.Pictures`, as is what an
    index raises. ``stamps``: size in bytes and time of the last change of each file, int64.
    """

    files: tuple[str, ...]
    column: str
    places: np.ndarray
    fit: Callable[[Image.Image], np.ndarray]
    channels: int
    stamps: np.ndarray

    def __len__(self) -> int:
        return len(self.places)

    def content(self, i: int) -> bytes:
        """The picture as the file has it, encoded; ``ValueError`` if there is none."""
        file, group, row = self.places[i].tolist()
        path = Path(self.files[file])
        found = _group(str(path), _state(path), group, self.column)[row].as_py()
        if found is None:
            raise ValueError("holds no picture")
        return found

    def __getitem__(self, i: int) -> torch.Tensor:
        array = decoded(io.BytesIO(self.content(i)), self.fit, {1: "L", 3: "RGB"}[self.channels])
        array = array[None] if array.ndim == 2 else array.transpose(2, 0, 1)
        return torch.from_numpy(np.array(array))  # a copy, that may be written to


def split(folder: Path, name: str) -> tuple[Path, ...]:
    """The files of split ``name`` of a folder or of one of its sub-folders, () if there are none.

    They are called ``train.parquet`` or ``train-00000-of-00002.parquet``; 'test' may be called
    'validation' or 'val'. Raises ``FileNotFoundError`` for a shard that is missing.

    >>> split(Path("/nowhere"), "train")
    ()
    """
    for place in (folder, *sorted(path for path in folder.glob("*/") if path.is_dir())):
        for word in SPLITS[name]:
            found = sorted(path for path in place.glob(f"{word}*.parquet") if re.fullmatch(
                rf"{word}(-\d+-of-\d+(-[0-9a-f]+)?)?\.parquet", path.name))
            if found:
                return _whole(found)
    return ()


def inside(source: Path, name: str | None = None) -> tuple[Path, ...]:
    """The Parquet files that ``source`` means: itself, or those of a folder, () if there are none.

    A folder that holds images as files means these, whatever tables lie beside them. Of a folder
    whose files are named by splits those of split ``name``, or all without it. Raises
    ``FileNotFoundError`` for a split or a shard that is missing.
    """
    if source.is_file() or source.suffix == ".parquet":
        return (source,) if source.suffix == ".parquet" else ()
    if not any(source.glob("*.parquet")) and not any(source.glob("*/*.parquet")):
        return ()
    if any_image(source):
        return ()
    by_split = {word: split(source, word) for word in SPLITS}
    if name is not None and any(by_split.values()):
        if not by_split[name]:
            raise FileNotFoundError(f"{source} has no file of the split {name}: "
                                    f"{' or '.join(SPLITS[name])}, and -00000-of-00001.parquet")
        return by_split[name]
    return _whole(sorted(source.glob("*.parquet")))


def _whole(found: list[Path]) -> tuple[Path, ...]:
    """``found``, if no shard of those that their names announce is missing."""
    have: dict[tuple[str, str], set[int]] = {}
    for path in found:
        if said := SHARD.search(path.name):
            have.setdefault((path.name[:said.start()], said[2]), set()).add(int(said[1]))
    for (stem, count), numbers in have.items():
        if missing := sorted(set(range(int(count))) - numbers):
            raise FileNotFoundError(f"{found[0].parent}: of {int(count)} shards the file {stem}-"
                                    f"{missing[0]:0{len(count)}d}-of-{count}.parquet is missing")
    return tuple(found)


def has_pictures(path: Path) -> bool:
    """Whether a column of a Parquet file holds pictures, by its schema."""
    return bool(_columns(_schema(path), _features(path)))


def table(paths: Sequence[Path]) -> Table:
    """What is in some Parquet files, by their schemas and their labels; no picture is read.

    A picture is a struct with the field 'bytes', as of ``datasets``, or plain bytes. A column of
    labels is called as one of ``LABELS``, or is the only one with names of classes in the file's
    metadata; names of classes come from there, else they are the labels, :func:`in_order`.
    Raises ``ValueError`` naming the file for one that is none, no column of pictures, several, and
    files that differ in their columns; ``ModuleNotFoundError`` without pyarrow.
    """
    found = {path: _columns(_schema(path), _features(path)) for path in paths}
    first, columns = next(iter(found.items()))
    if len(columns) != 1:
        raise ValueError(f"{first}: expected one column of pictures, got "
                         f"{', '.join(columns) or 'none among ' + ', '.join(_schema(first).names)}")
    for path, others in found.items():
        if others != columns:
            raise ValueError(f"{path}: expected pictures in the column {columns[0]!r}, as in "
                             f"{first.name}, got {', '.join(others) or 'none'}")
    label = _label(first)
    groups, values = [], []
    for number, path in enumerate(paths):
        with _read(path) as file:
            groups += [(number, group, file.metadata.row_group(group).num_rows)
                       for group in range(file.num_row_groups)]
            if label is not None:
                if label not in file.schema_arrow.names:
                    raise ValueError(f"{path}: expected the column {label!r}, as in {first.name}")
                values += file.read(columns=[label], use_threads=False)[label].to_pylist()
    if not groups or not sum(rows for *_, rows in groups):
        raise ValueError(f"{first.parent if len(paths) > 1 else first} holds no rows")
    named = {path: _features(path).get(label, {}).get("names") if label else None for path in paths}
    names = named[first]
    if other := next((path for path in paths if named[path] != names), None):
        raise ValueError(f"{other}: expected the classes of {first.name} in their order, "
                         f"{', '.join(names or ['none'])}; got "
                         f"{', '.join(named[other] or ['none'])}")
    classes, labels = _numbered(values, names, f"{first}, column {label!r}")
    total = sum(rows for *_, rows in groups)
    return Table(tuple(paths), columns[0], label, classes,
                 labels if label else torch.full((total,), -1), tuple(groups))


def read(paths: Sequence[Path], *, size: int | None = None) -> Raw:
    """All pictures of some Parquet files, decoded once and kept in the cache: see :func:`table`.

    ``size``, colours and orientation: as of :func:`folders.read`. Raises ``ValueError`` naming the
    row that holds no picture, one that cannot be read, or one of another size.
    """
    found = table(paths)
    key = {"parquet": [[str(path.resolve()), *_state(path)] for path in paths], "size": size,
           "column": found.column}
    images = files.cached("images", key, lambda: {"images": _decode(found, size)})["images"]
    return Raw(images, found.labels, found.classes, "parquet")


def _decode(found: Table, size: int | None) -> torch.Tensor:
    arrays = []
    bar = progress(zip(found.names, found), total=len(found), leave=False,
                   desc=f"decoding {found.files[0].name}")
    for name, content in bar:
        try:
            if content is None:
                raise ValueError("holds no picture")
            if isinstance(content, ValueError):
                raise content
            arrays.append(decoded(io.BytesIO(content), lambda image: fitted(image, size)))
        except ValueError as error:
            raise ValueError(f"{found.files[0].parent / name} {error}") from error
    return stacked(found.names, arrays)


def _numbered(values: list, names: Sequence[str] | None,
              what: str) -> tuple[tuple[str, ...], torch.Tensor]:
    """The names of the classes, and the labels as numbers; -1 for none."""
    if any(isinstance(value, str) for value in values):
        names = in_order(str(value) for value in values if value is not None)
        values = [None if value is None else names.index(value) for value in values]
    numbers = [-1 if value is None or value != value  # whole floats: a column of pandas with gaps
               else int(value) if isinstance(value, float) and value.is_integer() else value
               for value in values]
    if odd := [v for v in numbers if isinstance(v, bool) or not isinstance(v, int)]:
        raise ValueError(f"{what}: expected numbers of classes or their names, got {odd[0]!r}")
    labels = torch.tensor(numbers, dtype=torch.int64)
    classes = tuple(names) if names is not None else tuple(
        str(i) for i in range(max(numbers, default=-1) + 1))
    if len(labels) and (labels.max() >= len(classes) or labels.min() < -1):
        wrong = next(v for v in numbers if not -1 <= v < len(classes))
        raise ValueError(f"{what}: expected numbers from 0 to {len(classes) - 1}, as many as it "
                         f"has names of classes, or -1 for unknown, got {wrong}")
    return classes, labels


def _columns(schema: Any, features: dict) -> list[str]:
    """The columns of pictures: those that the file calls so, else those that may be some."""
    import pyarrow as pa

    def of_bytes(kind) -> bool:
        return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)

    called = [name for name, what in features.items() if what.get("_type") == "Image"
              and name in schema.names]
    structs = [field.name for field in schema if pa.types.is_struct(field.type)
               and any(part.name == "bytes" and of_bytes(part.type) for part in field.type)]
    return called or structs or [field.name for field in schema if of_bytes(field.type)
                                 and field.name not in PATHS]


def _label(path: Path) -> str | None:
    names = _schema(path).names
    known = [name for name in LABELS if name in names]
    told = [name for name, what in _features(path).items() if what.get("_type") == "ClassLabel"
            and name in names]
    return known[0] if known else told[0] if len(told) == 1 else None


def _schema(path: Path) -> Any:
    with _read(path) as file:
        return file.schema_arrow


def _features(path: Path) -> dict:
    """What ``datasets`` wrote of the columns into the file, {} if nothing that can be read."""
    about = (_schema(path).metadata or {}).get(b"huggingface", b"{}")
    try:
        found = json.loads(about)["info"]["features"]
        return {name: what for name, what in found.items() if isinstance(what, dict)}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


@contextmanager
def _read(path: Path) -> Iterator[Any]:
    with checks.extra("parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise ValueError(f"{path} is not a Parquet file that can be read: {said[0]}") from error


def _state(path: Path) -> tuple[int, int]:
    of = path.stat()
    return of.st_size, of.st_mtime_ns


@lru_cache(maxsize=GROUPS)
def _group(path: str, state: tuple[int, int], number: int, column: str) -> Any:
    """The encoded pictures of a row group, as pyarrow has them."""
    with _read(Path(path)) as file:
        found = file.read_row_group(number, columns=[column], use_threads=False)[column]
    found = found.combine_chunks()
    import pyarrow as pa

    return found.field("bytes") if pa.types.is_struct(found.type) else found
