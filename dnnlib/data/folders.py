"""Folders of images: ``<class>/*`` or flat, decoded once and kept in the cache."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps
from tqdm import tqdm

from dnnlib import files
from dnnlib.data.raw import Raw, Readable

LISTS = {".csv", ".tsv", ".txt", ".parquet"}  # of paths
EXTENSIONS = {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}


def read(folder: Path, *, size: int | None = None) -> Raw:
    """The images of a folder.

    Classes are the sub-folders in order of name; a flat folder has none and labels of -1.
    With ``size`` an image is scaled to that short side and cropped at the centre; without it,
    all must have one size. Gray-scale if all images are, else RGB. Raises ``ValueError``
    naming the file that is broken or differs, ``FileNotFoundError`` if there are no images.
    """
    paths, _, shut = _listed(folder)
    if shut:
        raise ValueError(f"{folder}: {' '.join(next(iter(shut.items())))}")
    names = tuple(p.relative_to(folder).as_posix() for p in paths)
    classes = tuple(sorted({n.split("/")[0] for n in names if "/" in n}))
    labels = torch.tensor([classes.index(n.split("/")[0]) if "/" in n else -1 for n in names])
    stats = [p.stat() for p in paths]
    key = {"folder": str(folder.resolve()), "size": size,
           "files": [[n, s.st_size, s.st_mtime_ns] for n, s in zip(names, stats)]}
    images = files.cached("images", key, lambda: {"images": _decode(paths, size)})["images"]
    suffixes = {p.suffix.lower().lstrip(".").replace("jpg", "jpeg") for p in paths}
    return Raw(images, labels, classes, "+".join(sorted(suffixes)), names)


def readable(source: Path, *, size: int | None = None, channels: int | None = None,
             fit: Callable[[Image.Image], np.ndarray] | None = None) -> Readable:
    """The images that nobody has checked: what can be read, and what cannot.

    ``source``: a folder, or a list of paths: a file whose name ends in .txt, with a path a line,
    or a table, .csv, .tsv or .parquet, with a column 'path'; relative to the file's folder.
    ``size`` as of :func:`read`, or ``fit``, from an image to uint8 (H, W) or (H, W, 3).
    ``channels``: 1 or 3, default 1 if all images are gray-scale. A photo that says by EXIF how it
    was held is turned upright. Nothing is kept in the cache. Folders that cannot be entered are
    among the skipped, their names ending in '/'. Raises ``ValueError`` if no image can be read or
    their sizes differ.
    """
    paths, others, skipped = _listed(source) if source.is_dir() else _of_list(source)
    folder = source if source.is_dir() else source.parent
    arrays = {}

    def name(path: Path) -> str:  # bytes that are no text cannot be shown
        inside = path.relative_to(folder) if path.is_relative_to(folder) else path
        return inside.as_posix().encode(errors="replace").decode()

    for path in tqdm(paths, desc=f"decoding {source.name}", leave=False):
        try:
            arrays[path] = _opened(path, size, {1: "L", 3: "RGB", None: None}[channels], fit,
                                   upright=True)
        except ValueError as error:
            reason = str(error).removeprefix(f"{path} ").replace(str(path), path.name)
            skipped[name(path)] = reason
    if not arrays:
        raise ValueError(f"{source} holds no image that can be read; of {len(skipped)}, the "
                         f"first: {' '.join(next(iter(skipped.items())))}")
    pixels = _stacked([*arrays], [*arrays.values()])
    return Readable(pixels, tuple(map(name, arrays)), skipped, others)


def _listed(folder: Path) -> tuple[list[Path], int, dict[str, str]]:
    """The images below a folder, in order, how many other files there are, and the reason for
    each folder that cannot be entered."""
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder")
    shut: dict[str, str] = {}

    def note(error: OSError) -> None:
        place = Path(error.filename).relative_to(folder).as_posix()
        shut[f"{place}/"] = f"cannot be entered: {error.strerror}"

    found = [path for place, _, names in os.walk(folder, onerror=note)
             for path in (Path(place) / name for name in names) if path.is_file()]
    paths = sorted(p for p in found if p.suffix.lower() in EXTENSIONS)
    if not paths:
        first = "".join(f"; {name} {why}" for name, why in [*shut.items()][:1])
        raise FileNotFoundError(f"{folder} holds no images "
                                f"({', '.join(sorted(EXTENSIONS))}){first}")
    return paths, len(found) - len(paths), shut


def _of_list(source: Path) -> tuple[list[Path], int, dict[str, str]]:
    """The same for the paths in a list; in their order, each once."""
    if source.suffix.lower() not in LISTS:
        raise FileNotFoundError(f"{source} is not a folder, nor a list of paths "
                                f"({', '.join(sorted(LISTS))})")
    if not source.is_file():
        raise FileNotFoundError(f"there is no file {source}")
    if source.suffix.lower() == ".txt":
        lines = source.read_text().splitlines()
    else:
        import pandas as pd  # only here: the ground floor does without tables

        table = (pd.read_parquet(source) if source.suffix.lower() == ".parquet" else pd.read_csv(
            source, sep="\t" if source.suffix.lower() == ".tsv" else ",", dtype=str))
        if "path" not in table:
            raise ValueError(f"{source}: expected a column 'path', got "
                             f"{', '.join(map(str, table.columns[:5]))}")
        lines = table["path"].dropna().astype(str)
    paths = [source.parent / line.strip() for line in dict.fromkeys(lines) if line.strip()]
    if not paths:
        raise FileNotFoundError(f"{source} lists no paths")
    return paths, 0, {}


def _decode(paths: list[Path], size: int | None) -> torch.Tensor:
    bar = tqdm(paths, desc=f"decoding {paths[0].parent.name}", leave=False)
    return _stacked(paths, [_opened(path, size) for path in bar])


def _opened(path: Path, size: int | None, mode: str | None = None,
            fit: Callable[[Image.Image], np.ndarray] | None = None, *,
            upright: bool = False) -> np.ndarray:
    """(H, W) or (H, W, 3); without ``mode``, as the file has it."""
    try:
        with Image.open(path) as image:
            deep = image.mode if image.mode[0] in "IF" else None  # Pillow clips these to white
            mode = mode or ("L" if image.mode in ("1", "L") else "RGB")
            if not deep:
                held = ImageOps.exif_transpose(image) if upright else image
                array = (fit or (lambda x: _fitted(x, size)))(held.convert(mode))
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise ValueError(f"{path} is not a readable image: {error}") from error
    if deep:
        raise ValueError(f"{path} has more than 8 bits a pixel ({deep})")
    return array


def _stacked(paths: list[Path], decoded: list[np.ndarray]) -> torch.Tensor:
    colour = any(a.ndim == 3 for a in decoded)
    shape = decoded[0].shape[:2]
    for path, array in zip(paths, decoded):
        if array.shape[:2] != shape:
            raise ValueError(f"{path} is {array.shape[1]} x {array.shape[0]}, the first image "
                             f"{shape[1]} x {shape[0]}: give a size to fit them to")
    stack = np.stack([np.stack([a] * 3, -1) if colour and a.ndim == 2 else a for a in decoded])
    stack = stack if colour else stack[..., None]
    return torch.from_numpy(stack).permute(0, 3, 1, 2).contiguous()


def _fitted(image: Image.Image, size: int | None) -> np.ndarray:
    if size is not None and image.size != (size, size):
        scale = size / min(image.size)
        width, height = (max(size, round(side * scale)) for side in image.size)
        image = image.resize((width, height), Image.Resampling.BILINEAR)
        left, top = (width - size) // 2, (height - size) // 2
        image = image.crop((left, top, left + size, top + size))
    return np.asarray(image)
