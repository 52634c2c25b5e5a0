"""The chapters in JupyterLab: `make lab` trusts them, so that their figures move there too."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest
from nbformat.sign import NotebookNotary

CHAPTER = Path(__file__).resolve().parents[2] / "notebooks" / "nsatp" / "01_motivation.ipynb"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Where JupyterLab serves a copy of a chapter, ``trusted``, and one changed since, ``other``."""
    work = tmp_path_factory.mktemp("lab")
    shutil.copy(CHAPTER, work / "trusted.ipynb")
    (work / "data").mkdir()
    notary = NotebookNotary(data_dir=str(work / "data"))
    notebook = nbformat.read(work / "trusted.ipynb", 4)
    notary.sign(notebook)
    notary.store.close()
    notebook.cells[0].source = "# A sentence of somebody else"
    nbformat.write(notebook, work / "other.ipynb")
    with contextlib.closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    folders = {f"JUPYTER_{name}_DIR": str(work / name.lower()) for name in
               ("DATA", "CONFIG", "RUNTIME")}
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", "--allow-root", "--no-browser", f"--port={port}",
         f"--ServerApp.root_dir={work}", "--IdentityProvider.token="], env=os.environ | folders,
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

    def open_(name):
        page.goto(f"{lab}{name}.ipynb?reset", wait_until="domcontentloaded")
        page.wait_for_selector(".dnnlib-figure", state="attached")
        return page.locator(".dnnlib-figure").first

    yield open_
    page.close()


def test_a_figure_of_a_trusted_chapter_moves(opened):
    figure = opened("trusted")
    figure.locator("canvas").first.wait_for()
    figure.get_by_role("button", name="Throw 100 patches").click()
    figure.get_by_text("of 100 patches").wait_for()


def test_a_notebook_that_nobody_trusted_shows_the_still_picture(opened):
    figure = opened("other")
    figure.locator("img.still").wait_for()
    assert not figure.locator("canvas").count()
