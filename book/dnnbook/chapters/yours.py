"""The method that stands open on a page beside the engine's: equal, or from here on the reader's.

A reader who changes a line is to see what it changes. Only the making of the book takes a
difference as an error. A record says which code made it, so a run of other code leaves none: what
differs from the engine (:func:`compared`), and cells that are not the chapter's (:func:`others`).
"""

import ast
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch

from dnnbook.chapters import defaults

MAKING = "DNNBOOK_MAKING"  # set where the book is made, of what the kernel reads
changed: set[str] = set()  # what differs from the engine, since the experiment began


class Unlike(ValueError):
    """Values that cannot stand in the place of the engine's, said in one line."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


def compared(mine: torch.Tensor, engine: torch.Tensor, name: str, *, of: str = "images",
             but: str = "", tolerance: float = 1e-5) -> torch.Tensor:
    """``mine``, after a line that says on how many items it equals what ``name`` gives.

    ``mine``, ``engine``: tensors (N, ...), an item in each row; ``of``: what the items are;
    ``but``: what further down stays the engine's.
    A run that shows the reader's leaves no record: see :meth:`experiments.Experiment.save`.
    Raises :class:`Unlike` for what is no tensor of the engine's shape, or has NaN where the
    engine's has none, and ``AssertionError`` for a difference where the book is made.

    >>> _ = compared(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0]), "nss.score")
    The code above equals the engine's `nss.score` on 2 of 2 images.
    >>> compared(torch.tensor([1.0, 3.0]), torch.tensor([1.0, 2.0]), "nss.score")
    The code above differs from the engine's `nss.score` on 1 of 2 images: from here on this page \
shows yours.
    tensor([1., 3.])
    """
    if not isinstance(mine, torch.Tensor) or mine.shape != engine.shape:
        came = (f"a tensor {tuple(mine.shape)}" if isinstance(mine, torch.Tensor) else
                "None; did you forget `return`?" if mine is None else type(mine).__name__)
        raise Unlike(f"`{name}` gives a tensor {tuple(engine.shape)}, the code above {came}")
    if n := int((mine.isnan() & ~engine.isnan()).sum()):
        raise Unlike(f"the code above gives NaN {n:,} times where `{name}` gives numbers")
    close = torch.isclose(mine.double(), engine.double(), rtol=tolerance, atol=tolerance,
                          equal_nan=True).reshape(len(mine), -1).all(1)
    equal, n = bool(close.all()), len(close)
    said = (f"The code above equals the engine's `{name}` on {n:,} of {n:,} {of}." if equal else
            f"The code above differs from the engine's `{name}` on {int((~close).sum()):,} of "
            f"{n:,} {of}: from here on this page shows yours"
            + f", but for {but}" * bool(but) + ".")
    if not equal and os.environ.get(MAKING):
        raise AssertionError(said)
    (changed.discard if equal else changed.add)(name)
    print(said)
    return mine


def chapter(experiment: str) -> list[str]:
    """The cells of code of the chapter that declares an experiment, up to the last that saves.

    None for an experiment of one's own.
    """
    cells: list[str] = []
    made = [source.with_suffix(".ipynb") for source in defaults.sources(experiment)]
    for path in filter(Path.is_file, made):
        book = json.loads(path.read_text("utf-8"))
        code = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]
        cells += code[:max((i + 1 for i, cell in enumerate(code) if ".save(" in cell), default=0)]
    return cells


def ran() -> list[str]:
    """The cells that this kernel ran, the present one last; none where there is no kernel."""
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    return [] if shell is None else list(shell.history_manager.input_hist_parsed)


def others(ran: Iterable[str], chapter: Sequence[str]) -> list[str]:
    """The first lines of the cells that ran in the place of the chapter's.

    They are none of the ``chapter``'s cells, and give one of its names another value, or add rows.
    Where there is no chapter, nothing is in its place.

    >>> others(["x = 1", "x = 2  # mine", "x + 1", "y = 3"], ["x = 1", "run.add({'x': x})"])
    ['x = 2  # mine']
    """
    own = {cell.strip() for cell in chapter}
    names = {name for cell in own for name in _given(cell)}
    return [cell.strip().partition("\n")[0] for cell in ran if cell.strip() not in own
            and (own and "run.add(" in cell or not names.isdisjoint(_given(cell)))]


def _given(cell: str) -> set[str]:
    """The names that a cell gives a value, or a part of one; none if it cannot run."""
    try:
        nodes = [*ast.walk(ast.parse(cell))]
    except SyntaxError:
        return set()
    kept = [node for node in nodes if isinstance(getattr(node, "ctx", None), ast.Store)]
    return {name.id for node in kept for name in ast.walk(node) if isinstance(name, ast.Name)} | {
        node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
