"""What a person wrote in a file of their own and names as 'FILE.py:NAME'.

A network, a dataset, a patch. The engine's loader is imported where it is needed: it is slow."""

import hashlib
from collections.abc import Callable
from pathlib import Path


def is_own(name) -> bool:
    """Whether a name means a function of a person's own, 'FILE.py:NAME'.

    >>> is_own("net.py:small"), is_own("lenet5")
    (True, False)
    """
    return isinstance(name, str) and ".py:" in name


def found(name: str, what: str) -> Callable:
    """The function itself. ``what``: the parameter that an error is to name.

    Raises ``FileNotFoundError`` or ``ValueError``, in one line.

    >>> found("nowhere.py:small", "model_name")
    Traceback (most recent call last):
    FileNotFoundError: model_name: there is no file nowhere.py
    """
    from dnnlib.custom.loading import of_file

    return of_file(name, what)


def called(name: str, what: str) -> str:
    """What records call it: its own name and a digest of its files, also of what they import.

    Any other name stays as it is. A changed file is so another thing, and the same file in another
    folder the same. Raises as :func:`found`.
    """
    from dnnlib.models import sources

    if not is_own(name):
        return name
    contents = sources.own_files([found(name, what)]).values()
    return (f"{name.rpartition(':')[2]} "
            f"{hashlib.sha256(''.join(sorted(contents)).encode()).hexdigest()[:8]}")


def absolute(name: str) -> str:
    """The same with the file's whole path: a notebook runs in a folder of its own.

    >>> absolute("/home/me/net.py:small")
    '/home/me/net.py:small'
    """
    file, _, function = name.rpartition(":")
    return f"{Path(file).expanduser().resolve()}:{function}"
