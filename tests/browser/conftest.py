"""Chromium, JupyterLab, and what tests of pages look for."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from types import SimpleNamespace

import pytest
from playwright.sync_api import sync_playwright

from dnnbook.chapters import lab as labs

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update"]
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1300, "height": 900}
LEGIBLE = 4.5  # contrast of text with what is behind it, WCAG 2.2, level AA

WIDE = """() => [...document.querySelectorAll('article *')].filter(e => {
  if (e.getBoundingClientRect().right <= innerWidth + 1 || !e.offsetParent) return false;
  for (let box = e; box && box.tagName !== 'ARTICLE'; box = box.parentElement)
    if (/auto|scroll|hidden/.test(getComputedStyle(box).overflowX)) return false;
  return !e.closest('mjx-container, .headerlink');
}).map(e => `${e.tagName}.${e.className}`).slice(0, 3)"""
FAINT = """([theme, least]) => {
  document.documentElement.dataset.mode = document.documentElement.dataset.theme = theme;
  const parse = text => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const light = rgb => rgb.slice(0, 3).map(v => v / 255).map(
    v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = element => {
    for (let e = element; e; e = e.parentElement) {
      const rgba = parse(getComputedStyle(e).backgroundColor);
      if (rgba.length === 3 || rgba[3] > 0.5) return rgba;
    }
    return theme === 'dark' ? [0, 0, 0] : [255, 255, 255];
  };
  const seen = new Map();
  const article = document.querySelector('article');
  if (!article) return [];  // the page of the search
  const walk = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement, style = getComputedStyle(e);
    if (!walk.currentNode.data.trim() || !e.checkVisibility() || e.closest('mjx-container, svg')
        || style.opacity < 1 || e.closest('.headerlink')) continue;
    const [a, b] = [light(parse(style.color)), light(behind(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < least) seen.set(`${e.tagName}.${e.className} ${ratio.toFixed(1)}`,
                                walk.currentNode.data.trim().slice(0, 30));
  }
  return [...seen].slice(0, 5).map(pair => pair.join(': '));
}"""


@pytest.fixture(scope="session")
def browser():
    path = shutil.which("chromium") or shutil.which("google-chrome")
    assert path, "there is no Chromium: apt install chromium"
    with sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def looks():
    """Sizes of screens, and what of a page's article is too wide or too faint to read."""
    return SimpleNamespace(phone=PHONE, desk=DESK, wide=lambda page: page.evaluate(WIDE),
                           faint=lambda page, theme: page.evaluate(FAINT, [theme, LEGIBLE]))


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    """Where JupyterLab serves the book's notebooks, ``address``, and the folder that they lie in."""
    work = tmp_path_factory.mktemp("lab")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_DATA_DIR", str(work / "data"))
        labs.write(work / "book")
    with contextlib.closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    folders = {f"JUPYTER_{name}_DIR": str(work / name.lower()) for name in
               ("DATA", "CONFIG", "RUNTIME")} | {"DNNLIB_RESULTS": str(work / "results")}
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", "--no-browser", f"--port={port}",
         *labs.options(work / "book"), "--IdentityProvider.token=", "--expose-app-in-browser"], env=os.environ | folders,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}/lab/tree/"
    for _ in range(120):
        with contextlib.suppress(OSError):
            urllib.request.urlopen(address, timeout=5).close()
            break
        assert server.poll() is None, "JupyterLab did not start; is the extra lab installed?"
        time.sleep(0.5)
    yield SimpleNamespace(address=address, folder=work / "book")
    server.terminate()
    try:
        server.wait(60)  # it stops its kernels first, which a busy machine may put off
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


@pytest.fixture
def opened(lab, browser):
    """``opened(name)``: a notebook in JupyterLab, and the first of what was ``seen`` in it."""
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    page.set_default_timeout(60_000)

    def open_(name, seen=".dnnlib-figure"):
        page.goto(f"{lab.address}{name}.ipynb?reset", wait_until="domcontentloaded")
        page.wait_for_selector(seen, state="attached")
        return page.locator(seen).first

    yield open_
    page.close()
