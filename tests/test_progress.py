"""Bars of nested loops in a kernel: seen while they go on, gone at the end, also from a saved notebook."""

import nbformat
from nbclient import NotebookClient

from dnnlib.progress import progress

NESTED = """
import time
from dnnlib.progress import progress
for _ in progress(range(2), desc="outer", leave=False):
    for _ in progress(range(3), desc="inner", leave=False, mininterval=0):
        time.sleep(0.05)
"""


class Listening(NotebookClient):
    """A client that keeps what each message of a display says."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.seen = []

    def process_message(self, message, cell, index):
        self.seen.append(message["content"].get("data", {}).get("text/plain", ""))
        return super().process_message(message, cell, index)


def test_bars_of_a_notebook_are_seen_and_leave_nothing(monkeypatch):
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(NESTED)])
    client = Listening(book, timeout=60)
    client.execute()
    nbformat.validate(book)
    assert any(text.startswith("outer:") and "1/2" in text for text in client.seen)
    assert any(text.startswith("inner:") and "2/3" in text for text in client.seen)
    assert {output["output_type"] for output in book.cells[0].outputs} == {"display_data"}
    assert [output["data"] for output in book.cells[0].outputs] == [{}, {}, {}]


def test_a_bar_outside_of_a_notebook_is_on_stderr(capsys):
    list(progress(range(2), desc="images"))
    assert "images: 100%" in capsys.readouterr().err
