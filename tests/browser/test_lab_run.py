"""Chapters in JupyterLab with a kernel: run whole, from the middle, and with a changed line."""

import re

import nbformat
import pytest

from dnnbook.chapters import class_pack, notebooks
from tests.browser import files

METHOD = "nss/00_method"
OTHERS = ["synthesis/05_amendments", "nsatp/01_motivation", "peacepact/01_motivation",
          "deepsensor_sensitivity/13_swarm_by_hand", "deepsensor_excitable/05_clever"]
IDLE = "jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
SHUT_DOWN = "jupyterapp.shell.currentWidget.sessionContext.shutdown()"
RUN = "command => jupyterapp.commands.execute(command)"  # what the menu Run does
CHOOSE = """async at => {
  const notebook = jupyterapp.shell.currentWidget.content;
  notebook.activeCellIndex = at;
  await notebook.scrollToItem(at);
}"""
CELLS = """[...jupyterapp.shell.currentWidget.content.model.cells].map(cell => ({
  source: cell.sharedModel.getSource(), count: cell.executionCount,
  outputs: cell.type === 'code' ? cell.outputs.toJSON() : null}))"""


@pytest.fixture
def started(opened):
    """``started(chapter)``: its page in JupyterLab, once its kernel waits for a cell to run."""
    pages = []

    def start(chapter):
        page = opened(files.of(chapter), ".jp-Cell").page
        page.wait_for_function(IDLE)
        pages.append(page)
        return page

    yield start
    for page in pages:
        page.evaluate(SHUT_DOWN)


def said(cell):
    """What a cell's outputs say; a progress bar that is done has no data."""
    datas = [output.get("data", {}) | {"text": output.get("text")} for output in cell["outputs"]
             if output.get("name") != "stderr" and output.get("data", 1)]
    kinds = ("text/html", "text/markdown", "image/png", "text/plain", "text")
    return [next(data[kind] for kind in kinds if data.get(kind)) for data in datas]


def ran(page, *, at=None):
    """What each cell of code says, by its place, once all ran, or this one and all below it."""
    if at is not None:
        page.evaluate(CHOOSE, at)
    page.evaluate(RUN, f"notebook:run-all-{'cells' if at is None else 'below'}")
    cells = {i: cell for i, cell in enumerate(page.evaluate(CELLS))
             if cell["outputs"] is not None and i >= (at or 0)}
    counts = [cell["count"] for cell in cells.values()]
    assert counts == list(range(counts[0], counts[0] + len(cells)))  # of this kernel, to the end
    errors = [output for cell in cells.values() for output in cell["outputs"]
              if output["output_type"] == "error"]
    assert not errors
    return {i: said(cell) for i, cell in cells.items()}


@pytest.mark.parametrize("chapter", OTHERS)
def test_all_cells_of_a_chapter_run(started, chapter):
    assert any(ran(started(chapter)).values())


def test_a_chapter_runs_from_its_middle_and_with_a_changed_line(started):
    page = started(METHOD)
    first = ran(page)
    middle = list(first)[len(first) // 2]
    assert ran(page, at=middle) == {i: told for i, told in first.items() if i >= middle}
    sources = [cell["source"] for cell in page.evaluate(CELLS)]
    line, other = "moved[:, chosen].sum(1)", "moved.sum(1)"
    at, = (i for i, source in enumerate(sources) if line in source)
    figure, = (i for i, source in enumerate(sources) if "plots.images(candidates[ends]" in source)
    page.evaluate(CHOOSE, at)
    page.locator(".jp-Cell.jp-mod-active .cm-content").click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text(sources[at].replace(line, other))
    now = ran(page, at=at)
    assert now[figure] != first[figure]
    page.evaluate(CHOOSE, at + 1)
    page.get_by_text("from here on this page shows yours").first.wait_for()


def test_an_arrow_key_moves_the_slider_of_a_figure(opened):
    figure = opened(files.of(METHOD))
    mutated = figure.get_by_role("img", name="The mutated image")
    before = mutated.evaluate("canvas => canvas.toDataURL()")
    slider = figure.locator("label.slider", has_text="Strength")
    slider.get_by_role("slider").press("ArrowLeft")
    assert mutated.evaluate("canvas => canvas.toDataURL()") != before
    assert slider.get_by_role("slider").input_value() == slider.locator("output").inner_text()


def test_a_students_copy_has_no_solution_in_its_source(lab, opened):
    student = class_pack.write(["nsatp/01"], lab.folder / "class")[0]
    page = opened(student.relative_to(lab.folder).with_suffix(""), ".jp-Cell").page
    source = "\n".join(cell["source"] for cell in page.evaluate(CELLS))
    solutions = notebooks.solutions(nbformat.read(notebooks.find("nsatp/01"), 4))
    names = re.findall(r"^def (my_\w+)", "\n".join(solutions), re.M)
    assert names and all(f"{name} = None" in source for name in names)
    assert not any(f"def {name}" in source for name in names)
    assert class_pack.HERE in source and "<summary>Solution" not in source
