"""Folders of images: ``<class>/*`` or flat, decoded once and kept in the cache."""

from pathlib import Path

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from tqdm import tqdm

from dnnlib import files

EXTENSIONS = {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}


def read(folder: Path, *, size: int | None = None):
    """Pixels uint8 (N, C, H, W), labels (N,), classes, form, relative paths.

    Classes are the sub-folders in order of name; a flat folder has none and labels of -1.
    With ``size`` an image is scaled to that short side and cropped at the centre; without it,
    all must have one size. Gray-scale if all images are, else RGB. Raises ``ValueError``
    naming the file that is broken or differs, ``FileNotFoundError`` if there are no images.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder")
    paths = sorted(p for p in folder.rglob("*")
                   if p.suffix.lower() in EXTENSIONS and p.is_file())
    if not paths:
        raise FileNotFoundError(f"{folder} holds no images ({', '.join(sorted(EXTENSIONS))})")
    names = tuple(p.relative_to(folder).as_posix() for p in paths)
    classes = tuple(sorted({n.split("/")[0] for n in names if "/" in n}))
    labels = torch.tensor([classes.index(n.split("/")[0]) if "/" in n else -1 for n in names])
    stats = [p.stat() for p in paths]
    key = {"folder": str(folder.resolve()), "size": size,
           "files": [[n, s.st_size, s.st_mtime_ns] for n, s in zip(names, stats)]}
    images = files.cached("images", key, lambda: {"images": _decode(paths, size)})["images"]
    suffixes = {p.suffix.lower().lstrip(".").replace("jpg", "jpeg") for p in paths}
    return images, labels, classes, "+".join(sorted(suffixes)), names


def _decode(paths: list[Path], size: int | None) -> torch.Tensor:
    decoded = []
    for path in tqdm(paths, desc=f"decoding {paths[0].parent.name}", leave=False):
        try:
            with Image.open(path) as image:
                if image.mode[0] in "IF":  # Pillow clips these to white
                    raise ValueError(f"{path} has more than 8 bits a pixel ({image.mode})")
                mode = "L" if image.mode in ("1", "L") else "RGB"
                decoded.append(_fitted(image.convert(mode), size))
        except (UnidentifiedImageError, OSError, SyntaxError) as error:
            raise ValueError(f"{path} is not a readable image: {error}") from error
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
