"""Folders of images: ``<class>/*`` or flat, decoded once and kept in the cache."""

import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image, ImageOps

from dnnlib import files
from dnnlib.data.raw import Raw
from dnnlib.progress import progress

EXTENSIONS = {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}
LITTER = {"__MACOSX", "@eaDir", "$RECYCLE.BIN", "System Volume Information", "lost+found"}
TABLES = (".csv", ".parquet")  # beside which a command puts its picture
MADE = b"tEXtSoftware\0dnnlib"  # in such a picture
BUFFER = re.compile(r" <_io.BytesIO object at 0x[0-9a-f]+>")  # Pillow's name of bytes in memory
ORIENTATION = 0x0112  # EXIF's tag; from 5 on, width and height change places


@contextmanager
def of_one(say: Callable[[Exception], str] = str) -> Iterator[None]:
    """Whatever goes wrong with one image, as ``ValueError``: it is to cost this image alone.

    Pillow's errors are of every kind, and so are those of a person's transform, dataset and model.
    ``say``: the reason of an error, in words. Ctrl-C, and what is :func:`of_the_machine`, are no
    image's fault: they go through.

    >>> with of_one(lambda error: f"has no {error}"):
    ...     {}["pixels"]
    Traceback (most recent call last):
    ValueError: has no 'pixels'
    """
    try:
        yield
    except Exception as error:
        if of_the_machine(error):
            raise
        raise ValueError(say(error)) from error


def of_the_machine(error: BaseException) -> bool:
    """Whether an error says that no memory is left, here or on a GPU, or that a GPU has failed.

    >>> of_the_machine(MemoryError()), of_the_machine(ValueError("is torn"))
    (True, False)
    """
    return isinstance(error, MemoryError | torch.OutOfMemoryError | torch.AcceleratorError) or (
        isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error))


def unreadable(error: Exception) -> str:
    """The reason that Pillow gives, without its name of bytes in memory."""
    return f"is not a readable image: {BUFFER.sub('', str(error)) or type(error).__name__}"


def read(folder: Path, *, size: int | None = None, classes: tuple[str, ...] = ()) -> Raw:
    """The images of a folder.

    Classes are the sub-folders, :func:`in_order`, or ``classes``, of which some may be missing;
    a flat folder has none and labels of -1.
    With ``size`` an image is scaled to that short side and cropped at the centre; without it,
    all must have one size. Gray-scale if all images are, else RGB. A photo that says by EXIF how
    it was held is turned upright. Raises ``ValueError`` naming the file that is broken or differs,
    ``FileNotFoundError`` if there are no images.
    """
    paths, _, shut, _ = listed(folder)
    if shut:
        raise ValueError(f"{folder}: {' '.join(next(iter(shut.items())))}")
    names = tuple(p.relative_to(folder).as_posix() for p in paths)
    classes = classes or in_order(n.split("/")[0] for n in names if "/" in n)
    if other := sorted({n.split("/")[0] for n in names if "/" in n} - {*classes}):
        raise ValueError(f"{folder / other[0]}: expected a class of the training images, "
                         f"{', '.join(classes[:5])}")
    labels = torch.tensor([classes.index(n.split("/")[0]) if "/" in n else -1 for n in names])
    stats = [p.stat() for p in paths]
    key = {"folder": str(folder.resolve()), "size": size, "upright": True,
           "files": [[n, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino]  # ctime cannot be set
                     for n, s in zip(names, stats)]}
    images = files.cached("images", key, lambda: {"images": _decode(paths, size)})["images"]
    suffixes = {p.suffix.lower().lstrip(".").replace("jpg", "jpeg") for p in paths}
    return Raw(images, labels, classes, "+".join(sorted(suffixes)), names)


class Listed(NamedTuple):
    """``paths``: the images below a folder, in order; ``others``: how many other files there are;
    ``shut``: the reason for each folder that cannot be entered, and each link to an image that is
    not there; ``litter``: what other programs
    left there, and this one, relative to the folder."""

    paths: list[Path]
    others: int
    shut: dict[str, str]
    litter: tuple[str, ...]


def listed(folder: Path) -> Listed:
    """What lies below a folder; linked folders are walked too, each once.

    Raises ``FileNotFoundError`` if there are no images.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder")
    shut: dict[str, str] = {}

    def note(error: OSError) -> None:
        place = Path(error.filename).relative_to(folder).as_posix()
        shut[f"{place}/"] = f"cannot be entered: {error.strerror}"

    found, litter, walked = [], [], set()
    for place, inside, names in os.walk(folder, onerror=note, followlinks=True):
        at = Path(place)
        if (real := os.path.realpath(place)) in walked:  # a link to where we have been
            inside.clear()
            continue
        walked.add(real)
        left = {name for name in inside if _is_litter(at / name)}
        inside[:] = [name for name in inside if name not in left]
        litter += [f"{(at / name).relative_to(folder).as_posix()}/" for name in left]
        for path in (at / name for name in names):
            if path.is_file():
                if _is_litter(path):
                    litter.append(path.relative_to(folder).as_posix())
                else:
                    found.append(path)
            elif path.suffix.lower() in EXTENSIONS and not path.name.startswith("."):
                shut[path.relative_to(folder).as_posix()] = "is a link to nothing"
    paths = sorted(p for p in found if p.suffix.lower() in EXTENSIONS)
    if not paths:
        first = "".join(f"; {name} {why}" for name, why in [*shut.items()][:1])
        if any(path.suffix == ".arrow" for path in found):
            raise FileNotFoundError(f"{folder} holds no images but a dataset as save_to_disk of "
                                    "Hugging Face's datasets writes it; write it as Parquet, by "
                                    "load_from_disk and to_parquet, or give it loaded, in Python")
        raise FileNotFoundError(f"{folder} holds no images "
                                f"({', '.join(sorted(EXTENSIONS))}){first}")
    return Listed(paths, len(found) - len(paths), shut, tuple(sorted(litter)))


def _is_litter(path: Path) -> bool:
    """Whether it is hidden, another program's, the folder of a run, or a picture of a table."""
    if path.name.startswith(".") or path.name in LITTER:
        return True
    if path.is_dir():
        return path.suffix == ".run" or (path / "run.json").is_file()
    if path.suffix == ".png" and any(path.with_suffix(end).is_file() for end in TABLES):
        with path.open("rb") as file:
            return MADE in file.read(1000)
    return False


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """The names of classes in order of name; if all are numbers, in order of number.

    >>> in_order(["10", "9", "0"]), in_order(["dog", "10", "cat"])
    (('0', '9', '10'), ('10', 'cat', 'dog'))
    """
    found = sorted({*names})
    numbers = all(name.isdecimal() for name in found)
    return tuple(sorted(found, key=int) if numbers else found)


def any_image(folder: Path) -> bool:
    """Whether there is an image somewhere below a folder, by its ending."""
    return any(Path(name).suffix.lower() in EXTENSIONS and not name.startswith(".")
               for _, _, names in os.walk(folder, followlinks=True) for name in names)


def _decode(paths: list[Path], size: int | None) -> torch.Tensor:
    bar = progress(paths, desc=f"decoding {paths[0].parent.name}", leave=False)
    return stacked(paths, [opened(path, lambda image: fitted(image, size)) for path in bar])


def size_of(path: Path) -> tuple[int, int]:
    """Width and height, as the file's header says; ``ValueError`` for a broken one."""
    with of_one(lambda error: f"{path} {unreadable(error)}"), Image.open(path) as image:
        return image.size


def deep(image: Image.Image) -> str:
    """Why it cannot be taken as 8 bits a pixel, or ''; Pillow would clip it to white."""
    if 0 in image.size:
        return "has no pixels"
    return f"has more than 8 bits a pixel ({image.mode})" if image.mode[0] in "IF" else ""


def lies(image: Image.Image) -> bool:
    """Whether it is to be turned by a quarter, as EXIF says in a number from 1 to 8.

    What else stands there counts as 1. The method of PNG files would decode the whole file, to look
    for more behind the pixels.
    """
    found = Image.Image.getexif(image).get(ORIENTATION, 1)
    return isinstance(found, int) and found >= 5


def opened(path: Path, fit: Callable[[Image.Image], np.ndarray],
           mode: str | None = None) -> np.ndarray:
    """(H, W) or (H, W, 3), upright; without ``mode``, as the file has it."""
    try:
        return decoded(path, fit, mode)
    except ValueError as error:
        raise ValueError(f"{path} {error}") from error


def decoded(source: Path | io.BytesIO, fit: Callable[[Image.Image], np.ndarray],
            mode: str | None = None) -> np.ndarray:
    """As :func:`opened`, also of bytes in memory; ``ValueError`` with the reason alone.

    What ``fit`` raises is not the file's fault, and goes through.
    """
    with of_one(unreadable), Image.open(source) as image:
        reason = deep(image)
        mode = mode or ("L" if image.mode in ("1", "L") else "RGB")
        if not reason:
            upright = ImageOps.exif_transpose(image).convert(mode)
    if reason:
        raise ValueError(reason)
    return fit(upright)


def stacked(names: Sequence, decoded: list[np.ndarray]) -> torch.Tensor:
    """uint8 (N, C, H, W) of arrays of one size; ``ValueError`` naming one of another."""
    colour = any(a.ndim == 3 for a in decoded)
    shape = decoded[0].shape[:2]
    for name, array in zip(names, decoded):
        if array.shape[:2] != shape:
            raise ValueError(f"{name} is {array.shape[1]} x {array.shape[0]}, the first image "
                             f"{shape[1]} x {shape[0]}: give a size to fit them to")
    stack = np.stack([np.stack([a] * 3, -1) if colour and a.ndim == 2 else a for a in decoded])
    stack = stack if colour else stack[..., None]
    return torch.from_numpy(stack).permute(0, 3, 1, 2).contiguous()


def fitted(image: Image.Image, size: int | None) -> np.ndarray:
    """Scaled to ``size`` pixels on the short side and cropped at the centre; None: as it is."""
    if size is not None and image.size != (size, size):
        scale = size / min(image.size)
        width, height = (max(size, round(side * scale)) for side in image.size)
        image = image.resize((width, height), Image.Resampling.BILINEAR)
        left, top = (width - size) // 2, (height - size) // 2
        image = image.crop((left, top, left + size, top + size))
    return np.asarray(image)
