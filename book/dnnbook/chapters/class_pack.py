"""Chapters for a class: students' copies without solutions, the teacher's with answers.

Both have an answer cell for each exercise, and nbgrader's marks: the teacher's folder is a `source`
as nbgrader has it, and the students' is what a class gets without nbgrader.
"""

import re
import tempfile
from base64 import b85encode
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import NamedTuple
from zlib import compress

from dnnbook.chapters import lab, lab_cells, notebooks, times
from dnnbook.chapters.lab_cells import CHECKED
from dnnbook.chapters.lab_markup import Page, markdown
from dnnlib import files

SOLUTION = re.compile(r"\n*<details><summary>Solution</summary>\n\n(.*?)\n\n</details>\n*", re.S)
CODE = re.compile(r"~~~python\n(.*?)\n~~~", re.S)
ALIVE = ('class="quiz"', "dnnlib-figure", "<style>")  # outputs that stay where others go
STUDENTS, TEACHER = "students", "teacher"
PRINTED = """<!doctype html><meta charset="utf-8"><title>90 minutes</title>
<style>@page { size: A4; margin: 15mm } body { font: 11pt sans-serif; max-width: 50em }
table { border-collapse: collapse } td, th { border: 1px solid; padding: .3em; text-align: left }
h2 { margin-top: 0 }</style>
"""
TEX = {r"\\mathrm\{(\w+)\}": r"\1", r"\\tfrac(\w)(\w)": r"\1/\2", r"\\sum": "Σ", "-": "−",
       r"_(\w)": r"<sub>\1</sub>", r"\^(\w)": r"<sup>\1</sup>"}  # as much as the plan has
HERE = "*Your answer:*"
PLAN = "90_minutes.html"
CHECK = """\
# The check. It is packed, because it knows the answer; nothing in it is for you to change.
from dnnbook.chapters.answers import judged, required, unpacked

exec(unpacked("{packed}"))
judged(is_right, required(globals().get("{name}")))"""


class Solution(NamedTuple):
    """A solution as it stands in a chapter; ``name``: what its code defines, '' for a text."""

    text: str
    name: str


def write(names: list[str], folder: Path, *, outputs: bool = True,
          seed: int | None = None) -> list[Path]:
    """Write the chapters whose names start so into ``folder``; the files.

    ``folder``/students/NN_name.ipynb, ``folder``/teacher/NN_name/NN_name.ipynb and, if a chapter
    is of the plan of the 90 minutes, that plan, which is the last. ``outputs``:
    whether the students see those of the book; quizzes and interactive figures stay in any case.
    ``seed``: of a run, by which the chapters are made again, as for an exam. Raises ``ValueError``
    for a folder that is not empty, before anything is run, and what :func:`notebooks.run` does.
    """
    import nbformat

    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"--out: expected a new or an empty folder, got {folder}")
    chosen = notebooks.starting(names, ".ipynb")
    root = notebooks.folder().resolve().parent
    order = lab.named([page for _, pages in lab.parts(root) for page in pages])
    read = {f"notebooks/{path.parent.name}/{path.stem}": path for path in chosen}
    beside = {page: file for page, file in order.items() if page in read}
    if seed is not None:
        for path in read.values():
            notebooks.together(path, notebooks.typed(path, {"seed": str(seed)}))
    written = []
    for page, file in beside.items():
        notebook = _shown(read[page], page, root, beside, seed)
        for kind, place in ((STUDENTS, Path(file)), (TEACHER, Path(Path(file).stem) / file)):
            made = for_students(notebook, outputs=outputs) if kind == STUDENTS else (
                for_teacher(notebook))
            written.append(folder / kind / place)
            files.write_atomically(written[-1], (nbformat.writes(made) + "\n").encode())
    if any(page in _plan(root) for page in beside):
        written.append(folder / PLAN)
        students = {page: f"{STUDENTS}/{file}" for page, file in beside.items()}
        files.write_atomically(written[-1], lesson(root, students).encode())
    return written


def _plan(root: Path) -> str:
    """The plan of the 90 minutes, as the page for teachers has it."""
    text = (root / "book" / "teaching.md").read_text("utf-8")
    return f"## 90 minutes{text.split('## 90 minutes')[1].split(chr(10) + '## ')[0]}"


def lesson(root: Path, beside: Mapping[str, str]) -> str:
    """The 90 minutes of the page for teachers as one page of HTML, to be printed, answers open.

    ``beside``: by page, its file in the pack, which the plan names; of others it says that they
    are pages of the book.

    >>> root = notebooks.folder().resolve().parent
    >>> "(03_a.ipynb)" in lesson(root, {"notebooks/nsatp/01_motivation": "students/03_a.ipynb"})
    True
    """
    from markdown_it import MarkdownIt
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    names = {page: Path(file).name for page, file in beside.items()}
    where = {page: f"{title} ({names.get(page, 'a page of the book')})"
             for page, title in lab.titles(root).items()}
    page = lab_cells.page_of("book/teaching", root, titles=where, beside=beside,
                             elsewhere=notebooks.published)
    parser = MarkdownIt("commonmark", {"html": True}).enable("table").use(
        dollarmath_plugin, renderer=lambda tex, options: _as_html(tex))
    body = parser.render(markdown(_plan(root), page))
    return PRINTED + body.replace("<details>", "<details open>")


def _as_html(tex: str) -> str:
    r"""The few signs of TeX that the plan has, as HTML.

    >>> _as_html(r"1 - \sum p_i^2")
    '1 − Σ p<sub>i</sub><sup>2</sup>'
    """
    for sign, html in TEX.items():
        tex = re.sub(sign, html, tex)
    return tex


def _shown(path: Path, page: str, root: Path, beside: dict, seed: int | None):
    """A chapter as any viewer shows it, as it was made or of a run with another seed."""
    import nbformat

    if seed is None:
        place: Page = lab_cells.page_of(page, root, beside=beside, elsewhere=notebooks.published)
        notebook = lab_cells.readable(nbformat.read(path, as_version=4), place)
    else:
        with tempfile.TemporaryDirectory() as work:
            values = notebooks.typed(path, {"seed": str(seed)})
            notebook = nbformat.read(notebooks.run(path, values, Path(work) / path.name), 4)
        notebook.cells = list(_in_place(notebook.cells, seed))
    notebook.metadata = {"kernelspec": lab.KERNEL, "language_info": lab.LANGUAGE}
    return notebook


def _in_place(cells: list, seed: int) -> Iterator:
    """The cells of a run with the seed among the parameters, where a run has a cell below them.

    What a run says below its title is the teacher's.
    """
    for cell in cells:
        tags = cell.metadata.get("tags", ())
        if "parameters" in tags:
            cell.source = re.sub(r"(?m)^seed = \d+", f"seed = {seed}", cell.source)
        if cell.source.startswith(notebooks.OWN):
            cell.source = f"Made with `seed = {seed}`: its numbers are not those of the book."
        if "injected-parameters" not in tags:
            yield cell


def for_students(notebook, *, outputs: bool = True):
    """A copy without solutions: a cell to answer in stands in the place of each.

    The code that checks an answer is packed, as it knows the right one.
    """
    made = _parted(notebook, told=False)
    for cell in made.cells:
        if cell.cell_type == "code" and not outputs:
            cell.execution_count = None
            cell.outputs = [output for output in cell.outputs if any(
                mark in output.get("data", {}).get("text/html", "") for mark in ALIVE)]
    return made


def for_teacher(notebook):
    """A copy with the answer in each answer cell, marked as nbgrader removes it again.

    Below the title it says how long the chapter takes, part by part: of a run, to run, too.
    """
    import nbformat

    made = _parted(notebook, told=True)
    parts = times.parts(notebook.cells)
    spent = times.worded(*(sum(getattr(part, count) for part in parts)
                           for count in ("words", "exercises")), "").capitalize()
    text = (f"**For the teacher.** {spent}. Answers stand in their cells; the students' copy has "
            f"none.\n\n{times.table(parts)}")
    made.cells.insert(1, nbformat.v4.new_markdown_cell(text, id="teacher"))
    return made


def _parted(notebook, *, told: bool):
    """A copy whose solutions are answer cells; ``told``: with the answers."""
    made = deepcopy(notebook)
    cells, made.cells = made.cells, []
    solved = {found.name: found.text for cell in cells if cell.cell_type == "markdown"
              for found in map(_solution, SOLUTION.findall(cell.source)) if found.name}
    for cell in cells:
        if cell.cell_type == "markdown":
            made.cells += _answered(cell, told, sum(
                each.get("id", "").startswith("answer-") for each in made.cells))
            continue
        made.cells.append(cell)
        if cell.cell_type != "code":
            continue
        name = next((name for name in solved if cell.source.startswith(f"{name} = None")), None)
        if name:
            cell.metadata["nbgrader"] = _mark(f"answer-{name}", solution=True)
            cell.source += _region(solved[name]) if told else ""
        elif (asked := CHECKED.search(cell.source)) and "def is_right" in cell.source:
            _pack(cell, asked[1])
    return made


def _answered(cell, told: bool, count: int) -> list:
    """The cells in the place of a text with solutions: what is asked, then where to answer."""
    import nbformat

    parts = SOLUTION.split(cell.source)
    found = []
    for number, part in enumerate(parts):
        if number % 2 == 0:
            if part.strip():
                text = deepcopy(cell)
                text.source, text.id = part.strip("\n"), f"{cell.get('id', 'text')[:50]}-{number}"
                found.append(text if len(parts) > 1 else cell)
        elif not _solution(part).name:
            count += 1
            found.append(nbformat.v4.new_markdown_cell(
                part if told else HERE, id=f"answer-{count}", metadata={
                    "nbgrader": _mark(f"answer-{count}", solution=True, grade=True)}))
    return found


def _solution(text: str) -> Solution:
    checked = CHECKED.search(text)
    return Solution(text, checked[1] if checked and CODE.search(text) else "")


def _region(solution: str) -> str:
    """The code of a solution as nbgrader takes it away again, what else it says as comments."""
    code = "\n\n".join(CHECKED.sub("", block).strip() for block in CODE.findall(solution))
    words = "\n".join(f"# {line}" for line in CODE.sub("", solution).strip().splitlines() if line)
    return f"\n### BEGIN SOLUTION\n{words}\n{code}\n### END SOLUTION".replace("\n\n###", "\n###")


def _pack(cell, name: str) -> None:
    """A cell that checks an answer: folded, and without the code that knows the right one."""
    code = CHECKED.sub("", cell.source).strip()
    cell.source = CHECK.format(packed=b85encode(compress(code.encode())).decode(), name=name)
    cell.outputs, cell.execution_count = [], None
    tags = {*cell.metadata.get("tags", ()), "raises-exception"}  # Run All goes on without an answer
    cell.metadata |= {"tags": sorted(tags), "jupyter": {"source_hidden": True},
                      "nbgrader": _mark(f"check-{name}", grade=True, locked=True)}


def _mark(name: str, *, solution: bool = False, grade: bool = False, locked: bool = False) -> dict:
    """A cell's metadata for nbgrader."""
    return {"schema_version": 3, "grade_id": name, "solution": solution, "grade": grade,
            "locked": locked, "task": False, **({"points": 1} if grade else {})}
