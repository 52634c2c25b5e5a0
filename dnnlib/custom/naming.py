"""The names of a model's classes: from a list, or those that torchvision publishes."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from dnnlib import checks


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
    try:
        lines = path.read_text("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"class_names: {path.name} is not text in UTF-8") from error
    return tuple(line.strip() for line in lines if line.strip())


def published_names(model: str, classes: int | None = None) -> tuple[str, ...] | None:
    """Those of a network of torchvision with all classes it was published for; None: unknown.

    ``model``, ``classes``: as of :func:`loading.load_model`.

    >>> published_names("torchvision:resnet18")[:2], published_names("lenet5")
    (('tench', 'goldfish'), None)
    """
    library, _, name = model.partition(":")
    if library != "torchvision" or classes is not None:
        return None
    from torchvision.models import get_model_weights

    return tuple(next(iter(get_model_weights(name))).meta["categories"])


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
