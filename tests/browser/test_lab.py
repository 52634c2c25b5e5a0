"""What `make lab` opens in JupyterLab: figures that move, solutions that fold out, links that lead."""

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.request

import nbformat
import pytest

from dnnbook.chapters import lab as labs
from dnnbook.chapters import notebooks

ORDER = labs.named([page for _, pages in labs.parts(notebooks.folder().resolve().parent)
                    for page in pages])
CHAPTER, NEXT = (ORDER[f"notebooks/nsatp/{name}"].removesuffix(".ipynb")
                 for name in ("01_motivation", "02_noise_sensitivity"))


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Where JupyterLab serves the folder, and a chapter that somebody changed since, ``other``."""
    work = tmp_path_factory.mktemp("lab")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_DATA_DIR", str(work / "data"))
        labs.write(work / "book")
    notebook = nbformat.read(work / "book" / f"{CHAPTER}.ipynb", 4)
    notebook.cells[0].source = "# A sentence of somebody else"
    nbformat.write(notebook, work / "book" / "other.ipynb")
    with contextlib.closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    folders = {f"JUPYTER_{name}_DIR": str(work / name.lower()) for name in
               ("DATA", "CONFIG", "RUNTIME")}
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", "--no-browser", f"--port={port}",
         *labs.options(work / "book"), "--IdentityProvider.token="], env=os.environ | folders,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}/lab/tree/"
    for _ in range(120):
        with contextlib.suppress(OSError):
            urllib.request.urlopen(address, timeout=5).close()
            break
        assert server.poll() is None, "JupyterLab did not start; is the extra lab installed?"
        time.sleep(0.5)
    yield address
    server.terminate()
    try:
        server.wait(60)  # it stops its kernels first, which a busy machine may put off
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


@pytest.fixture
def opened(lab, browser):
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    page.set_default_timeout(60_000)

    def open_(name, seen=".dnnlib-figure"):
        page.goto(f"{lab}{name}.ipynb?reset", wait_until="domcontentloaded")
        page.wait_for_selector(seen, state="attached")
        return page.locator(seen).first

    yield open_
    page.close()


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


def test_a_notebook_that_nobody_trusted_shows_the_still_picture(opened):
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
