"""What `make lab` opens in JupyterLab: figures that move, solutions that fold out, links that lead."""

import nbformat

from tests.browser import files

CHAPTER, NEXT = (files.of(f"nsatp/{name}") for name in ("01_motivation", "02_noise_sensitivity"))


def test_a_figure_of_a_trusted_chapter_moves(opened):
    figure = opened(CHAPTER)
    figure.locator("canvas").first.wait_for()
    figure.get_by_role("button", name="Throw 100 patches").click()
    figure.get_by_text("of 100 patches").wait_for()


def test_a_chapter_leads_to_its_page_as_the_book_has_it(opened):
    page = opened(CHAPTER).page
    with page.context.expect_page() as led:
        page.get_by_role("link", name="Its page").click()
    built = led.value
    built.wait_for_selector("article h1")
    assert built.url.endswith("/static/notebooks/nsatp/01_motivation.html")
    assert built.evaluate("getComputedStyle(document.body).fontFamily") != "Times"
    built.close()


def test_a_notebook_that_nobody_trusted_shows_the_still_picture(lab, opened):
    notebook = nbformat.read(lab.folder / f"{CHAPTER}.ipynb", 4)
    notebook.cells[0].source = "# A sentence of somebody else"
    nbformat.write(notebook, lab.folder / "other.ipynb")
    figure = opened("other")
    figure.locator("img.still").wait_for()
    assert not figure.locator("canvas").count()


def test_a_solution_folds_out_and_a_link_leads_on(opened):
    solution = opened(NEXT, "details:has(pre)")
    code = solution.locator("pre").first
    assert not code.is_visible()
    solution.locator("summary").click()
    assert code.is_visible() and "def my_certainty" in code.inner_text()
    page = solution.page
    assert page.locator("abbr[title]").count() > 5
    assert page.locator("details mjx-container").count()  # equations are drawn inside too
    assert not page.locator(".jp-Notebook img:not([alt])").count()
    page.get_by_role("link", name="←").click()
    page.locator(".lm-TabBar-tab.jp-mod-current", has_text=CHAPTER).wait_for()


def test_the_scoreboard_has_its_squares(opened):
    board = opened("02_scoreboard", "details.board")
    board.locator("summary").click()
    square = board.locator(".square.holds").first.bounding_box()
    assert square["width"] > 10 and square["height"] > 10
