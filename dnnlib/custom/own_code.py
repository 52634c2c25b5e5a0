"""What a person's own code said when it failed: the error, and the line that raised it."""

import traceback
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from dnnlib.data.folders import of_one
from dnnlib.models.sources import own


def told(error: BaseException) -> str:
    """One line: the kind of error, what it says, and, where it was raised in their code, the line.

    >>> told(KeyError("width"))
    "KeyError: 'width'"
    """
    said = sentence(error)
    name = type(error).__name__
    if isinstance(error, SyntaxError) and error.filename:
        return f"{Path(error.filename).name}, line {error.lineno}: {name}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)  # the first is of the file that caught it
    theirs = [f for f in frames if own(f.filename) and f.filename != frames[0].filename]
    place = f"{Path(theirs[-1].filename).name}, line {theirs[-1].lineno}: " if theirs else ""
    return place + name + (f": {said}" if said else "")


def sentence(error: BaseException) -> str:
    """The line of what an error says that gives the reason: the first, but the last of what wraps
    another's error, as TorchScript and torch.compile do.

    >>> sentence(RuntimeError("The following operation failed in the TorchScript interpreter.\\n"
    ...                       "Traceback of TorchScript:\\n\\nRuntimeError: of other shapes"))
    'RuntimeError: of other shapes'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    wraps = lines[0].endswith(":") or "TorchScript interpreter" in lines[0]
    return lines[-1 if wraps else 0]


def reason(error: BaseException) -> str:
    """The same of an error that costs one image: one of our own says by itself what is wrong.

    >>> reason(ValueError("is torn")), reason(KeyError("width"))
    ('is torn', "KeyError: 'width'")
    """
    kind = type(error)
    ours = kind is ValueError or not is_own(kind)
    return told(error).replace(f"{kind.__name__}: " if ours else "", "", 1)


def class_of(kind) -> type:
    """The class of a selector or a fuzzer that is given as its class, or as an instance of it."""
    return kind if isinstance(kind, type) else type(kind)


def made_of(kind, options: Mapping[str, object]):
    """An instance with these options; an instance that is given keeps its others."""
    return kind(**options) if isinstance(kind, type) else replace(kind, **options)


def is_own(kind) -> bool:
    """Whether a class is a person's own: a selector or a fuzzer that is not of this package.

    >>> is_own(Path)
    True
    """
    return not kind.__module__.startswith("dnnlib.")


def own_code(kind, prefix: str = "") -> AbstractContextManager:
    """Within it, whatever a method of one's own raises is ``ValueError`` with its file and line.

    Nobody can list what errors a person's code has, and each is to cost its method alone; of the
    package's methods, an error of another kind than is known is a fault to be seen.
    """
    return of_one(lambda error: prefix + reason(error)) if is_own(kind) else nullcontext()
