"""Classes and labels: the names of a model's classes, and what images in folders or tables are."""

import logging
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from pathlib import Path, PurePosixPath

import torch

from dnnlib import checks
from dnnlib.custom import hugging_face
from dnnlib.custom.photos import Photos
from dnnlib.data import delimited
from dnnlib.data.folders import in_order
from dnnlib.data.pictures import Pictures

_log = logging.getLogger(__name__)  # to stderr, as it is


def read_names(text: str) -> tuple[str, ...]:
    """Names in a .txt file, one a line, or with commas; in the order of the model's outputs.

    >>> read_names("cat, dog")
    ('cat', 'dog')
    """
    path = Path(text).expanduser()
    if path.suffix != ".txt":
        return checks.words(text, "class_names")
    if not path.is_file():
        raise FileNotFoundError(f"class_names: there is no file {text}")
    lines = [line.strip() for line in delimited.lines(path)]
    if any("\udc80" <= character <= "\udcff" for line in lines for character in line):
        raise ValueError(f"class_names: {path.name} is not text in UTF-8")
    names = tuple(line for line in lines if line)
    numbers = [int(found[0]) for name in names if (found := re.match(r"\d+(?=[\s:,;])", name))]
    if sorted(numbers) == [*range(len(names))] != numbers:
        raise ValueError(f"class_names: expected the names in {path.name} in the order of the "
                         "model's outputs, got lines that are numbered in another")
    return names


class Published(tuple):
    """Names that came with a model: a person's folders may be called otherwise."""


def published_names(model: str, classes: int | None = None) -> Published | None:
    """Those of a network of torchvision with all classes it was published for, ImageNet's of one of
    timm that was, and those that a folder of Hugging Face names; None: unknown.

    ``model``, ``classes``: as of :func:`loading.load_model`.

    >>> published_names("torchvision:resnet18")[:2], published_names("lenet5")
    (('tench', 'goldfish'), None)
    """
    if classes is None and (Path(model).expanduser() / hugging_face.CONFIG).is_file():
        names = hugging_face.labels(Path(model).expanduser())
        return names and Published(names)
    library, _, name = model.partition(":")
    if library not in ("torchvision", "timm") or classes is not None:
        return None
    if library == "timm":
        name = "resnet18" if _of_imagenet(name) else ""  # whose names are in the same order
    from torchvision.models import get_model_weights, list_models

    return (Published(next(iter(get_model_weights(name))).meta["categories"])
            if name in list_models() else None)


def _of_imagenet(name: str) -> bool:
    """Whether a network of timm was last trained on ImageNet's 1,000 classes."""
    try:
        import timm

        about = timm.get_pretrained_cfg(name)
    except (ModuleNotFoundError, RuntimeError):  # no such tag: told when the network is built
        return False
    return (about is not None and "in1k" in (about.tag or "") and about.num_classes == 1000
            and not about.label_offset)


def classes_named(photos: Photos, n: int, kind: str,
                  names: Sequence[str] | None = None) -> Sequence[str]:
    """What the ``n`` classes are called; of :data:`options.LABELS`, ``kind`` is what is right.

    ``names``: of the classes, in the order of the model's outputs. If each image is in a sub-folder
    with the name of its class, these may be of some classes only; without such names they are all
    classes, in the order of their names, or of numbers: folders called 0 to n - 1 are these
    classes. If both are there and disagree, that is an error, but for published names. Images of a
    Parquet file bring the numbers and the names of their classes. Raises ``ValueError`` for classes
    that are not the model's, and for folders that are parts of a dataset.
    """
    published = isinstance(names, Published)  # others may call their folders otherwise
    names = None if names is None else distinct(names, n)
    numbers = [str(i) for i in range(n)]
    if kind == "prediction":
        return names or numbers
    if photos.labels is not None:
        if (photos.labels < 0).any():
            first = photos.paths[int((photos.labels < 0).nonzero()[0, 0])]
            raise ValueError(f"labels: expected the class of every image, {first} has none")
        if not photos.classes:
            if (last := int(photos.labels.max())) >= n:
                raise ValueError(f"labels: expected numbers from 0 to {n - 1}, one for each class "
                                 f"of the model, got {last}")
            return names or numbers
        if isinstance(photos.source, Pictures):
            known = {*photos.classes, *(() if published else names or ())}
            for path, label in zip(photos.paths, _labels_told(photos)):
                for folder in {path.split("/")[0], PurePosixPath(path).parent.name}:
                    if folder in known and folder != label:
                        raise ValueError(f"labels: {path} is in the folder {folder}, and has the "
                                         f"label {label} in the list")
        if set(photos.classes) <= set(numbers):
            return names or numbers
        if published and (spelt := as_folders(names, {*photos.classes})):
            return spelt
        if names is None and len(photos.classes) != n:
            raise ValueError(f"labels: expected {n} classes, as many as the model has, got "
                             f"{len(photos.classes)}: {', '.join(photos.classes[:5])}"
                             f"{', ...' if len(photos.classes) > 5 else ''}; give the names of all "
                             "(--class-names)")
        if names and (other := [name for name in photos.classes if name not in names]):
            raise ValueError(f"labels: expected classes among those of the model, got {other[0]}; "
                             "--class-names takes their names in the order of its outputs")
        return names or _in_turn(photos.classes)
    if flat := [path for path in photos.paths if "/" not in path]:
        raise ValueError(f"labels: expected every image in the sub-folder of its class, got "
                         f"{flat[0]}; without such folders, give a list or a Parquet file with a "
                         "column `label`, or a dataset with `targets`; fuzz and stress also take "
                         "the predictions as labels")
    named = {path.split("/")[0] for path in [*photos.paths, *photos.skipped] if "/" in path}
    if outside := [path for path in photos.paths if path.split("/")[0] in ("", "..")]:
        raise ValueError("labels: expected paths whose first part is the class, or a column "
                         f"'label' in the list, got {outside[0]}")
    if names and named <= set(names) or named <= set(numbers):
        return names or numbers
    if published and (spelt := as_folders(names, named)):
        return spelt
    if {name.lower() for name in named} <= PARTS and all(
            path.count("/") > 1 for path in photos.paths):
        raise ValueError(f"labels: expected a sub-folder for each class, got parts of a dataset, "
                         f"{' and '.join(in_order(named))}; give one of these folders")
    if names and not published and (other := [name for name in in_order(named)
                                              if name not in names and not name.isdecimal()]):
        raise ValueError(f"labels: expected sub-folders called as the classes are (--class-names), "
                         f"{', '.join(names[:5])}{', ...' if n > 5 else ''}; got {other[0]}")
    found = in_order(named)
    if len(found) != n:
        shown = f"{', '.join(found[:5])}{', ...' if len(found) > 5 else ''}"
        empty = f", and without an image {', '.join(photos.empty[:5])}" if photos.empty else ""
        raise ValueError(f"labels: expected {n} sub-folders, one for each class of the model, got "
                         f"{len(found)}: {shown}{empty}; for some classes only, give the names of "
                         "all (--class-names)")
    if published and names:
        _log.warning("classes: no folder is called as a class of the model, %s; the folders are "
                     "taken in their order, %s", ", ".join(names[:3]), ", ".join(found[:3]))
    return _in_turn(found)


def _in_turn(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of all classes, which are no numbers of the model's outputs: told if they look so."""
    if all(name.isdecimal() for name in names):
        _log.warning("classes: the labels %s to %s are taken in their order, for the model's "
                     "outputs 0 to %d", names[0], names[-1], len(names) - 1)
    return names


def labels_of(photos: Photos, names: Sequence[str]) -> torch.Tensor:
    """The class of each image, int64 (N,), by its number among ``names``: :func:`classes_named`.

    A label that is none of the names is the number of one.
    """
    if photos.labels is not None and not photos.classes:
        return photos.labels
    place = {name: i for i, name in reversed([*enumerate(names)])}
    named = ([path.split("/")[0] for path in photos.paths] if photos.labels is None
             else _labels_told(photos))
    return torch.tensor([place[name] if name in place else int(name) for name in named])


def _labels_told(photos: Photos) -> list[str]:
    """The name of each image's class, of a table that has labels."""
    return [photos.classes[i] for i in photos.labels.tolist()]


def order_told(paths: Sequence[str]) -> list[str]:
    """A line where the order of folders named by number is not that of their names as text.

    >>> order_told(["9/a.png", "10/b.png", "10/c.png"])
    ["classes: folders in order of number, 9, 10; as text, as torchvision's ImageFolder, 10, 9"]
    """
    found = in_order(path.split("/")[0] for path in paths if "/" in path)
    if (text := tuple(sorted(found))) == found:
        return []
    first, other = (", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
                    for names in (found, text))
    return [f"classes: folders in order of number, {first}; as text, as torchvision's "
            f"ImageFolder, {other}"]


PARTS = {"train", "training", "val", "valid", "validation", "dev", "test", "testing"}


def as_folders(names: Sequence[str], folders: Collection[str]) -> tuple[str, ...] | None:
    """Published names, spelt as the folders are; None if no folder is called as a class is.

    Capitals, blanks, dashes and underscores do not count. Where some folders only are called as
    classes are, these must be at their places in the order of the folders; else ``ValueError``.

    >>> as_folders(("dog", "sea lion", "ant"), {"Sea_Lion", "Dog"}), as_folders(("dog",), {"n02"})
    (('Dog', 'Sea_Lion', 'ant'), None)
    """
    def spelt(name: str) -> str:
        return re.sub(r"[\s_-]+", " ", name).strip().casefold()

    known = [spelt(name) for name in names]
    places = {folder: known.index(spelt(folder)) for folder in in_order(folders)
              if spelt(folder) in known}
    if len(places) == len(folders) == len({*places.values()}):
        called = {place: folder for folder, place in places.items()}
        return tuple(called.get(i, name) for i, name in enumerate(names))
    for folder, place in places.items():
        if (after := in_order(folders).index(folder)) != place or len(folders) != len(names):
            raise ValueError(
                f"labels: {folder} is class {place} of the model by its name, {names[place]}, and "
                f"folder {after} of {len(folders)} in order; call all folders as the classes are, "
                "or give the names (--class-names)")
    return None


def distinct(names: Sequence[str], n: int) -> tuple[str, ...]:
    """``names`` as those of ``n`` classes; of classes with the same name each has its number too.

    Raises ``ValueError`` if there are more or fewer, ``TypeError`` for what has no order, or two.

    >>> distinct(["crane", "dog", "crane"], 3)
    ('crane (0)', 'dog', 'crane (2)')
    """
    if isinstance(names, str | Mapping | Set) or not all(isinstance(each, str) for each in names):
        raise TypeError("class_names: expected a list of names in the order of the model's "
                        f"outputs, got a {type(names).__name__}"
                        + (f" of {type(next(iter(names), None)).__name__}"
                           if not isinstance(names, str) else ""))
    if len(names) != n:
        raise ValueError(f"class_names: expected {n}, one for each class of the model, got "
                         f"{len(names)}")
    counts = Counter(names)
    return tuple(name if counts[name] == 1 else f"{name} ({i})" for i, name in enumerate(names))
