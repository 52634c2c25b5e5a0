"""nbgrader makes, grades and tells of a chapter that `dnnbook class` wrote, as the page for teachers says."""

import subprocess
import sys
from copy import deepcopy

import nbformat
import pytest
from nbgrader.api import Gradebook

from dnnbook.chapters import class_pack, notebooks

NAME = "my_patched"
RIGHT, = (code.partition("is_right")[0] for code in notebooks.solutions(
    nbformat.read(notebooks.find("nsatp/01"), 4)) if f"def {NAME}" in code)
WRONG = f"def {NAME}(image, row, column):\n    return image"
ANSWERS = {"right": (RIGHT, 1, "Right."), "wrong": (WRONG, 0, "Not yet: for "),
           "empty": (None, 0, "Not yet: there is no answer")}
OPTIONS = ["--ExecutePreprocessor.timeout=600"]  # as the page says


def hand_in(released, answer):
    """What a student hands in: of the released cells those of answers and checks, as the whole takes minutes."""
    handed = deepcopy(released)
    graded = [cell for cell in handed.cells if "nbgrader" in cell.metadata]
    place, = (cell for cell in graded if cell.metadata.nbgrader.grade_id == f"answer-{NAME}")
    if answer is not None:
        place.source = answer
    handed.cells = [nbformat.v4.new_code_cell("import torch"), *graded]
    return handed


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course of one chapter, and ``nbgrader(command)`` in it."""
    for name in ("CONFIG", "DATA", "RUNTIME"):
        monkeypatch.setenv(f"JUPYTER_{name}_DIR", str(tmp_path / name.lower()))
    written = class_pack.write(["nsatp/01"], tmp_path / "class")
    chapter, folder = written[1].stem, tmp_path / "course"
    folder.mkdir()
    (tmp_path / "class" / class_pack.TEACHER).rename(folder / "source")

    def nbgrader(command):
        ran = subprocess.run([sys.executable, "-m", "nbgrader", command, chapter, *OPTIONS], cwd=folder,
                             capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr

    return folder, chapter, nbgrader


def test_nbgrader_grades_a_chapter_of_a_class_pack(course):
    folder, chapter, nbgrader = course
    nbgrader("generate_assignment")
    released = nbformat.read(folder / "release" / chapter / f"{chapter}.ipynb", 4)
    sources = "\n".join(cell.source for cell in released.cells)
    assert f"{NAME} = None" in sources and f"def {NAME}" not in sources
    for student, (answer, *_) in ANSWERS.items():
        place = folder / "submitted" / student / chapter / f"{chapter}.ipynb"
        place.parent.mkdir(parents=True)
        nbformat.write(hand_in(released, answer), place)
    nbgrader("autograde")
    nbgrader("generate_feedback")
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}") as book:
        for student, (_, points, told) in ANSWERS.items():
            check = book.find_grade(f"check-{NAME}", chapter, chapter, student)
            assert (check.auto_score, check.max_score) == (points, 1), student
            assert told in (folder / "feedback" / student / chapter / f"{chapter}.html").read_text("utf-8"), student
