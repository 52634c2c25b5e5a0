"""Folders of images: ``<class>/*`` or flat, decoded once and kept in the cache."""

from pathlib import Path

import numpy as np
import torch
from PIL import Image
from tqdm import tqdm

from dnnlib import files
from dnnlib.data.raw import Raw, Readable

EXTENSIONS = {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}


def read(folder: Path, *, size: int | None = None) -> Raw:
    """The images of a folder.

    Classes are the sub-folders in order of name; a flat folder has none and labels of -1.
    With ``size`` an image is scaled to that short side and cropped at the centre; without it,
    all must have one size. Gray-scale if all images are, else RGB. Raises ``ValueError``
    naming the file that is broken or differs, ``FileNotFoundError`` if there are no images.
    """
    paths, _ = _listed(folder)
    names = tuple(p.relative_to(folder).as_posix() for p in paths)
    classes = tuple(sorted({n.split("/")[0] for n in names if "/" in n}))
    labels = torch.tensor([classes.index(n.split("/")[0]) if "/" in n else -1 for n in names])
    stats = [p.stat() for p in paths]
    key = {"folder": str(folder.resolve()), "size": size,
           "files": [[n, s.st_size, s.st_mtime_ns] for n, s in zip(names, stats)]}
    images = files.cached("images", key, lambda: {"images": _decode(paths, size)})["images"]
    suffixes = {p.suffix.lower().lstrip(".").replace("jpg", "jpeg") for p in paths}
    return Raw(images, labels, classes, "+".join(sorted(suffixes)), names)


def readable(folder: Path, *, size: int | None = None, channels: int | None = None) -> Readable:
    """The images of a folder that nobody has checked: what can be read, and what cannot.

    ``size`` as of :func:`read`; ``channels``: 1 or 3, default 1 if all images are gray-scale.
    Nothing is kept in the cache. Raises ``ValueError`` if no image can be read or their sizes
    differ.
    """
    paths, others = _listed(folder)
    arrays, skipped = {}, {}

    def name(path: Path) -> str:  # bytes that are no text cannot be shown
        return path.relative_to(folder).as_posix().encode(errors="replace").decode()

    for path in tqdm(paths, desc=f"decoding {folder.name}", leave=False):
        try:
            arrays[path] = _opened(path, size, {1: "L", 3: "RGB", None: None}[channels])
        except ValueError as error:
            reason = str(error).removeprefix(f"{path} ").replace(str(path), path.name)
            skipped[name(path)] = reason
    if not arrays:
        raise ValueError(f"{folder} holds no image that can be read; of {len(skipped)}, the "
                         f"first: {' '.join(next(iter(skipped.items())))}")
    pixels = _stacked([*arrays], [*arrays.values()])
    return Readable(pixels, tuple(map(name, arrays)), skipped, others)


def _listed(folder: Path) -> tuple[list[Path], int]:
    """The images below a folder, in order, and how many other files there are."""
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder")
    found = [p for p in folder.rglob("*") if p.is_file()]
    paths = sorted(p for p in found if p.suffix.lower() in EXTENSIONS)
    if not paths:
        raise FileNotFoundError(f"{folder} holds no images ({', '.join(sorted(EXTENSIONS))})")
    return paths, len(found) - len(paths)


def _decode(paths: list[Path], size: int | None) -> torch.Tensor:
    bar = tqdm(paths, desc=f"decoding {paths[0].parent.name}", leave=False)
    return _stacked(paths, [_opened(path, size) for path in bar])


def _opened(path: Path, size: int | None, mode: str | None = None) -> np.ndarray:
    """(H, W) or (H, W, 3); without ``mode``, as the file has it."""
    try:
        with Image.open(path) as image:
            deep = image.mode if image.mode[0] in "IF" else None  # Pillow clips these to white
            mode = mode or ("L" if image.mode in ("1", "L") else "RGB")
            array = None if deep else _fitted(image.convert(mode), size)
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
