"""Copies for a class: no solution in the students' source, each answer in the teacher's."""

import re

import jupytext
import nbformat
import pytest
from nbclient import NotebookClient

from dnnbook.chapters import class_pack, lab, lab_cells, notebooks

CHAPTERS = notebooks.starting([], ".ipynb")
ROOT = notebooks.folder().resolve().parent
SMALL = '''\
# %% [markdown]
# # A chapter
#
# ## Exercises
#
# **1. Think.** Why?
#
# ```{admonition} Solution
# :class: dropdown
# Because of $x$.
# ```
#
# **2. Code.** Write `my_sum(x)`.

# %%
my_sum = None  # of a list

# %% tags=["hide-input"]
from dnnbook.chapters.practice import check


def is_right(answer):
    check(answer, sum, ([1, 2],))


is_right(my_sum)

# %% [markdown]
# ```{admonition} Solution
# :class: dropdown
# ~~~python
# def my_sum(x):
#     return x[0] + x[1]
#
# is_right(my_sum)
# ~~~
#
# There is no more to it.
# ```
'''


def shown(notebook, name="notebooks/nss/00_method"):
    page = lab_cells.page_of(name, ROOT, elsewhere=lambda file: "", strict=False)
    return lab_cells.readable(notebook, page)


@pytest.fixture
def small():
    return shown(jupytext.reads(SMALL, fmt="py:percent"))


def ran(notebook, *answers):
    """What the check says of each of ``answers``, the source of the cell to answer in."""
    for answer in answers:
        notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
        place, check = (next(cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get(
            "grade_id") == f"{kind}-my_sum") for kind in ("answer", "check"))
        place.source = answer
        NotebookClient(notebook).execute()  # goes on where there is no answer
        output, = check.outputs
        yield output.get("text") or "".join(output.traceback)


def test_a_students_copy_is_answered_and_checked(small):
    copy = class_pack.for_students(small)
    assert [cell.source for cell in copy.cells][1:3] == [class_pack.HERE, "**2. Code.** Write `my_sum(x)`."]
    assert list(ran(copy, "my_sum = None", "# not run", "my_sum = sum", "my_sum = max", "my_sum = lambda x: None")) == [
        *2 * ["Not yet: there is no answer; run the cell of your answer first"], "Right.\n", "Not yet: for [1, 2] expected 3, got 2",
        "Not yet: for [1, 2] your function returned nothing; did you forget `return`?"]


def test_the_teachers_copy_has_the_answers_between_marks(small):
    copy = class_pack.for_teacher(small)
    assert "about 5 min to read, 20 for exercises" in copy.cells[1].source.lower()
    answer = next(cell for cell in copy.cells if cell.source.startswith("my_sum"))
    assert answer.source == ("my_sum = None  # of a list\n### BEGIN SOLUTION\n# There is no more to it.\n"
                             "def my_sum(x):\n    return x[0] + x[1]\n### END SOLUTION")
    assert list(ran(copy, answer.source)) == ["Right.\n"]
    assert any(cell.source == "Because of $x$." for cell in copy.cells)


def test_the_teachers_copy_has_the_time_of_each_part(small):
    told = class_pack.for_teacher(small).cells[1].source
    assert "| Exercises | 1 | 20 |" in told and "seconds" not in told  # nobody measured
    for cell, seconds in zip((cell for cell in small.cells if cell.cell_type == "code"), (1.7, 40.6)):
        cell.metadata["papermill"] = {"duration": seconds}  # as in a run
    told = class_pack.for_teacher(small).cells[1].source
    assert "| seconds of its cells |" in told and "| Exercises | 1 | 20 | 42 |" in told


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_no_students_copy_has_a_solution(path):
    notebook = nbformat.read(path, 4)
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    asked = sum(text.count("{admonition} Solution") for text in texts)
    made = class_pack.for_students(shown(notebook, f"notebooks/{path.parent.name}/{path.stem}"), outputs=False)
    sources = "\n".join(cell.source for cell in made.cells)
    assert "Solution" not in re.sub(r"(?m)^#.*$", "", sources)
    given = "\n".join(cell.source for cell in notebook.cells
                      if cell.cell_type == "code" and "def is_right" not in cell.source)  # what the page shows
    for code in notebooks.solutions(notebook):
        lines = [line for line in map(str.strip, code.splitlines()) if len(line) > 30 and line not in given]
        assert not any(line in sources for line in lines), lines
    marks = [cell.metadata["nbgrader"] for cell in made.cells if "nbgrader" in cell.metadata]
    assert sum(mark["solution"] for mark in marks) == asked
    coded = sum(text.count(". Code.**") for text in texts)
    assert sum(mark["grade_id"].startswith("check-") for mark in marks) == coded  # packed
    assert len({mark["grade_id"] for mark in marks}) == len(marks)
    assert all(re.fullmatch(r"[\w-]+", mark["grade_id"]) for mark in marks)
    nbformat.validate(made)


def test_the_plan_is_left_out_where_no_chapter_is_of_it(tmp_path):
    written = class_pack.write(["synthesis/06"], tmp_path / "class")
    assert [path.suffix for path in written] == [".ipynb", ".ipynb"]


def test_the_command_writes_both_and_a_page_to_print(tmp_path, capsys):
    out = tmp_path / "class"
    written = class_pack.write(["nsatp/01", "nsatp/04"], out, outputs=False)
    assert [re.sub(r"\d+_(?!minutes)", "", path.relative_to(out).as_posix()) for path in written] == [
        "students/motivation.ipynb", "teacher/motivation/motivation.ipynb",
        "students/which_distance.ipynb", "teacher/which_distance/which_distance.ipynb",
        "90_minutes.html"]
    student = nbformat.read(written[0], 4)
    kept = [o for cell in student.cells for o in cell.get("outputs", ())]
    assert kept and all(any(mark in o.data["text/html"] for mark in class_pack.ALIVE) for o in kept)
    page = written[-1].read_text("utf-8")
    assert "<table>" in page and "<details open>" in page and "{doc}" not in page
    for path, name in zip(written[:4:2], ("01_motivation", "04_which_distance")):
        title = lab.titles(ROOT)[f"notebooks/nsatp/{name}"]
        assert f'<a href="students/{path.name}">{title} ({path.name})</a>' in page
    assert f"{lab.titles(ROOT)['notebooks/nsatp/03_against_random']} (a page of the book)" in page
    assert not re.search(r"[$\\]|_i\b", page) and "1 − Σ p<sub>i</sub><sup>2</sup>" in page
    with pytest.raises(ValueError, match="expected a new or an empty folder, got"):
        class_pack.write(["nsatp/01"], out)


def test_a_seed_stands_where_a_reader_changes_it(tmp_path):
    (folder := tmp_path / "notebooks" / "nsatp").mkdir(parents=True)
    book = jupytext.reads('# %% tags=["parameters"]\nseed = 0  # of all\nmore = 10\n\n# %%\nseed + more', fmt="py:percent")
    book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(book, folder / "01_motivation.ipynb")
    made = class_pack._shown(folder / "01_motivation.ipynb", "notebooks/nsatp/01_motivation", ROOT, {}, 7)
    first, second = (cell for cell in made.cells if cell.cell_type == "code")
    assert first.source == "seed = 7  # of all\nmore = 10"
    assert second.outputs[0].data["text/plain"] == "17"  # and it ran with it
    assert "Made with `seed = 7`: its numbers are not those of the book." in [c.source for c in made.cells]


def test_a_seed_that_a_chapter_does_not_take_is_told_before_a_run(tmp_path):
    with pytest.raises(ValueError, match="seed: expected a whole number"):
        class_pack.write(["nsatp/04"], tmp_path / "class", seed=-1)
