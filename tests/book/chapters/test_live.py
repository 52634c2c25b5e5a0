"""Cells as people run them: alone, twice, all below; and a line of the method that is changed."""

import re
from contextlib import contextmanager

import nbformat
import pytest
from nbclient import NotebookClient

from dnnbook.chapters import notebooks, yours

SWARM, METHOD = "deepsensor_sensitivity/13", "nss/00"


@contextmanager
def opened(name, monkeypatch):
    """A chapter in a fresh kernel: its cells of code, and ``run(cell)``: what it says."""
    monkeypatch.delenv("DNNLIB_BOOK", raising=False)  # the committed records
    path = notebooks.find(name)
    book = nbformat.read(path, 4)
    client = NotebookClient(book, timeout=600, resources={"metadata": {"path": str(path.parent)}})
    cells = [cell for cell in book.cells if cell.cell_type == "code"]

    def run(cell):
        cell.outputs = []
        client.execute_cell(cell, book.cells.index(cell))
        return heard(cell)

    with client.setup_kernel():
        yield cells, run


def heard(cell):
    """What the outputs of a cell say; progress bars say how fast it was."""
    return [said(output) for output in cell.outputs if output.get("name") != "stderr"]


def said(output):
    data = output.get("data", {})
    return output.get("text") or next((data[kind] for kind in ("text/html", "text/markdown", "image/png", "text/plain")
                                       if kind in data), "")


@pytest.mark.parametrize("name", [SWARM, METHOD])
def test_a_cell_says_the_same_alone_and_twice(name, monkeypatch):
    with opened(name, monkeypatch) as (cells, run):
        first = [run(cell) for cell in cells]
        for cell, before in list(zip(cells, first))[::-1]:  # each alone, after all
            assert [run(cell), run(cell)] == [before, before], cell.source
        assert [run(cell) for cell in cells[len(cells) // 2:]] == first[len(cells) // 2:]  # all below


def edited(cells, line, other):
    cell, = (cell for cell in cells if line in cell.source)
    cell.source = cell.source.replace(line, other)
    return cells.index(cell)


@pytest.mark.parametrize("line, other, told", [
    ("ns = (phi[1:] - phi[:1]) / (x_p - x).norm", "ns = (phi[:1] - phi[1:]) / (x_p - x).norm", "`SensitiveNeurons`"),
    ("c2 * r_2 * (g_best - x_p)", "0 * r_2 * (g_best - x_p)", "`Swarm`")])
def test_a_changed_line_of_the_swarm_reaches_the_sentences_below(line, other, told, monkeypatch):
    with opened(SWARM, monkeypatch) as (cells, run):
        at = edited(cells, line, other)
        committed = [heard(cell) for cell in cells]
        now = [run(cell) for cell in cells]
    differs = [i for i, (a, b) in enumerate(zip(committed, now)) if a != b and i > at]
    texts = "".join(str(part) for i in differs for part in now[i])
    assert re.search(rf"differs from the engine's {told} on [\d,]+ of [\d,]+ \w+: from here on this page shows yours",
                     texts)
    assert len(differs) > 1 and not re.search("Error", texts)


def test_the_making_of_the_book_takes_a_difference_as_an_error(monkeypatch, capsys):
    import torch

    mine, engine = torch.tensor([1.0, 3.0]), torch.tensor([1.0, 2.0])
    assert yours.compared(mine, engine, "it") is mine
    assert "differs from the engine's `it` on 1 of 2 images" in capsys.readouterr().out
    assert yours.compared(mine[:1], engine, "it").shape == (1,)
    assert "gives (1,) where the engine's `it` gives (2,)" in capsys.readouterr().out
    monkeypatch.setenv(yours.MAKING, "1")
    with pytest.raises(AssertionError, match="1 of 2 images"):
        yours.compared(mine, engine, "it")
