"""The plan of a sweep: what comes first, how long it takes, and how many workers memory carries."""

import math
import os
from collections.abc import Sequence
from typing import Protocol, TypeVar

import torch

from dnnlib import inference

GIB = 2**30
SHARED = ("dataset", "model_name", "recipe", "seed")  # of a trained network, kept in the cache


class Cell(Protocol):
    """What a plan has to know of a cell: see :class:`dnnbook.chapters.sweeps.Cell`."""

    @property
    def values(self) -> dict: ...
    @property
    def device(self) -> str: ...
    @property
    def takes(self) -> float | None: ...
    @property
    def memory_gib(self) -> float | None: ...
    @property
    def gpu_memory_gib(self) -> float | None: ...


C = TypeVar("C", bound=Cell)


def in_order(cells: Sequence[C]) -> list[C]:
    """One cell of each network first, which trains it; then the others, which find it trained.

    Networks are told apart by dataset, model, recipe and seed. Within both parts the order stays.
    Cells that fix none of these share nothing that is known here, and stay where they are.
    """
    seen, first, rest = set(), [], []
    for cell in cells:
        network = tuple(cell.values.get(name) for name in SHARED)
        (rest if network in seen else first).append(cell)
        if any(value is not None for value in network):
            seen.add(network)
    return first + rest


def hours(cells: Sequence[Cell]) -> float | None:
    """Of one core, or of one GPU for cells that run there; None if a cell has no estimate."""
    minutes = [cell.takes for cell in cells]
    return None if any(m is None for m in minutes) else sum(m for m in minutes if m) / 60


def workers(cells: Sequence[Cell], *, available: int | None = None,
            cores: int | None = None, free: int | None = None) -> int:
    """How many cells can run side by side on this machine: one a core, if memory carries them.

    ``available``: bytes that are free, and ``cores``, and ``free``: bytes on each GPU; default:
    this machine's. Each worker may get the cell that needs most; a cell without ``memory_gib``
    counts for nothing. If a cell for a GPU has no ``gpu_memory_gib``, there is one worker, else as
    many as the GPU's memory carries too. At least one.

    >>> from dnnbook.chapters.sweeps import Cell
    >>> cells = [Cell(None, {}, memory_gib=6.0), Cell(None, {})]
    >>> workers(cells, available=16 * GIB, cores=8), workers(cells, available=4 * GIB, cores=8)
    (2, 1)
    >>> cells = [Cell(None, {"device": "cuda"}, gpu_memory_gib=20.0)]
    >>> workers(cells, free=70 * GIB, cores=8)
    3
    """
    cores = cores or os.cpu_count() or 1
    most = max((cell.memory_gib or 0.0 for cell in cells), default=0.0)
    if most:
        if available is None:
            import psutil

            available = psutil.virtual_memory().available
        cores = min(cores, int(available / (most * GIB)))
    for gpu in {cell.device for cell in cells} - {"cpu"}:
        needs = [cell.gpu_memory_gib or math.inf for cell in cells if cell.device == gpu]
        room = inference.free_memory(torch.device(gpu)) if free is None else free
        cores = min(cores, int((room or 0) / (max(needs) * GIB)))
    return max(1, cores)
