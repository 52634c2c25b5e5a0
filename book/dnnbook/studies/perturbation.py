"""A small random change of a person's own, in the place of the papers' patches."""

from collections.abc import Callable

import torch

from dnnbook.data import in_file
from dnnlib.custom.own_code import told
from dnnlib.perturb.vulnerability import changed


def called(name: str) -> str:
    """What records call a patch: a person's own by its function and a digest of its file.

    >>> called("random")
    'random'
    """
    return in_file.called(name, "patch")


def found(name: str) -> str | Callable:
    """The function of 'FILE.py:FUNCTION'; any other name as it is.

    >>> found("invert")
    'invert'
    """
    return in_file.found(name, "patch") if in_file.is_own(name) else name


def check(name: str, shape: tuple[int, int, int]) -> None:
    """Tries a person's own on two gray images of ``shape``; ``ValueError`` in one line."""
    change = found(name)
    if not callable(change):
        return
    try:
        changed(torch.full((2, *shape), 0.5), change, torch.Generator().manual_seed(0))
    except Exception as error:  # whatever their code raises
        said = str(error).removeprefix("patch: ") if type(error) is ValueError else told(error)
        raise ValueError(f"patch: {name} on images of {' x '.join(map(str, shape))}: "
                         f"{said}") from error
