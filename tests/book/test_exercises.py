"""Every chapter asks its reader: to predict before a plot, to think, and to write code."""

import ast
import re

import jupytext
import pytest
import torch

from dnnbook.chapters import notebooks, practice
from dnnbook.chapters.answers import NotYet
from dnnlib import fuzzing

PAGES = ("00_welcome", "05_amendments", "06_scoreboard", "07_evidence_map", "08_test_your_model")
CHAPTERS = [path for path in sorted(notebooks.folder().glob("*/*.py")) if path.stem not in PAGES]

chapter = pytest.mark.parametrize("source", CHAPTERS, ids=lambda p: f"{p.parent.name}/{p.stem}")


def cells(source):
    return jupytext.read(source).cells


def exercises(source) -> str:
    """The text below the heading 'Exercises', code left out."""
    text = "\n\n".join(cell.source for cell in cells(source) if cell.cell_type == "markdown")
    assert text.count("\n## Exercises\n") + text.startswith("## Exercises") == 1
    return text.split("## Exercises\n")[1]


@chapter
def test_a_chapter_asks_to_predict_to_think_and_to_write_code(source):
    found = exercises(source)
    numbers, kinds = zip(*re.findall(r"^\*\*(\d)\. (\w+)\.\*\* ", found, flags=re.M))
    assert numbers == tuple(str(i + 1) for i in range(len(numbers)))  # all of them have a kind
    assert len(numbers) == found.count("{admonition} Solution")
    asked = [cell for cell in cells(source) if re.search(r"\b(quiz|bet)\(", cell.source)]
    assert asked or "Predict" in kinds
    assert {"Think", "Code"} <= {*kinds} <= {"Predict", "Think", "Code", "Try"}


@chapter
def test_the_committed_records_answer_each_bet(source, monkeypatch):
    monkeypatch.delenv("DNNLIB_BOOK", raising=False)
    for claim in re.findall(r'^bet\("(.+)"\)', source.read_text(), flags=re.M):
        assert practice.bet(claim).options


def test_what_is_no_number_does_not_stay_near_the_input(capsys):
    source = notebooks.folder() / "deepsensor_sensitivity" / "13_swarm_by_hand.py"
    *_, cell = (cell.source for cell in cells(source) if "def is_right" in cell.source)
    names = {"torch": torch, "fuzzing": fuzzing, "my_within": None}
    exec(cell, names)
    for answer, told in ((lambda x_p, x: x_p * float("nan"), "at [0, 0]: expected 0.4, got nan"), (lambda x_p, x: x_p, "at [2, 0]"),
                         (lambda x_p, x: x_p.numpy()[0], "expected shape (5, 2), got shape (2,)"),
                         (lambda x_p, x: None, "returned nothing")):
        with pytest.raises(NotYet, match=re.escape(told)):
            names["is_right"](answer)


def test_a_patch_in_the_image_itself_is_no_copy():
    def in_place(image, row, column):
        image[row:row + 2, column:column + 2] = 1 - image[row:row + 2, column:column + 2]
        return image

    *_, cell = (cell.source for cell in cells(notebooks.folder() / "nsatp" / "01_motivation.py")
                if "def is_right" in cell.source)
    exec(cell, names := {"torch": torch, "my_patched": None})
    with pytest.raises(NotYet, match="changes what it gets"):
        names["is_right"](in_place)


@chapter
def test_its_questions_have_an_answer_and_its_solution_of_the_code_is_right(source, monkeypatch,
                                                                           capsys):
    monkeypatch.delenv("DNNLIB_BOOK", raising=False)
    code = [cell.source for cell in cells(source) if cell.cell_type == "code"]
    names = {"display": lambda shown: None}  # IPython's own
    for node in (node for text in code for node in ast.parse(text).body):
        if isinstance(node, ast.Import | ast.ImportFrom):
            exec(ast.unparse(node), names)
    for text in code:
        if re.search(r"\b(quiz|bet|is_right)\(", text):
            if name := re.search(r"^is_right\((\w+)\)", text, flags=re.M):
                names[name[1]] = None
            exec(text, names)
    assert capsys.readouterr().out == "No answer yet.\n"
    solution = [text for text in notebooks.solutions(jupytext.read(source)) if "is_right" in text]
    assert len(solution) == 1
    exec(solution[0], names)
    assert capsys.readouterr().out == "Right.\n"
    with pytest.raises((AssertionError, TypeError, ValueError, IndexError)):
        names["is_right"](-12345.0 if source.stem == "00_players" else lambda *case: -12345.0)
