"""What a person's own code said when it failed: the error, and the line that raised it."""

import traceback
from pathlib import Path

from dnnlib.models.sources import own


def told(error: BaseException) -> str:
    """One line: the kind of error, what it says, and, where it was raised in their code, the line.

    >>> told(KeyError("width"))
    "KeyError: 'width'"
    """
    said = (str(error).strip().splitlines() or [""])[0]
    name = type(error).__name__
    if isinstance(error, SyntaxError) and error.filename:
        return f"{Path(error.filename).name}, line {error.lineno}: {name}: {error.msg}"
    theirs = [f for f in traceback.extract_tb(error.__traceback__) if own(f.filename)]
    place = f"{Path(theirs[-1].filename).name}, line {theirs[-1].lineno}: " if theirs else ""
    return place + name + (f": {said}" if said else "")


def reason(error: BaseException) -> str:
    """The same of an error that costs one image: one of our own says by itself what is wrong.

    >>> reason(ValueError("is torn")), reason(KeyError("width"))
    ('is torn', "KeyError: 'width'")
    """
    return told(error).removeprefix("ValueError: ")
