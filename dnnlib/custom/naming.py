"""The names of a model's classes: from a list, or those that torchvision publishes."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

from dnnlib import checks
from dnnlib.custom import hugging_face
from dnnlib.data import delimited
from dnnlib.data.folders import in_order


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
    return tuple(line for line in lines if line)


class Published(tuple):
    """Names that came with a model: a person's folders may be called otherwise."""


def published_names(model: str, classes: int | None = None) -> Published | None:
    """Those of a network of torchvision with all classes it was published for, and those that a
    folder of Hugging Face names; None: unknown.

    ``model``, ``classes``: as of :func:`loading.load_model`.

    >>> published_names("torchvision:resnet18")[:2], published_names("lenet5")
    (('tench', 'goldfish'), None)
    """
    if classes is None and (Path(model).expanduser() / hugging_face.CONFIG).is_file():
        names = hugging_face.labels(Path(model).expanduser())
        return names and Published(names)
    library, _, name = model.partition(":")
    if library != "torchvision" or classes is not None:
        return None
    from torchvision.models import get_model_weights

    return Published(next(iter(get_model_weights(name))).meta["categories"])


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

    Raises ``ValueError`` if there are more or fewer.

    >>> distinct(["crane", "dog", "crane"], 3)
    ('crane (0)', 'dog', 'crane (2)')
    """
    if len(names) != n:
        raise ValueError(f"class_names: expected {n}, one for each class of the model, got "
                         f"{len(names)}")
    counts = Counter(names)
    return tuple(name if counts[name] == 1 else f"{name} ({i})" for i, name in enumerate(names))
