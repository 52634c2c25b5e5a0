"""The built book, read in a browser that reaches nothing but the book: `make browse`."""

import functools
import http.server
import io
import re
import threading
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import numpy as np
import pytest
from PIL import Image

SITE = Path(__file__).resolve().parents[2] / "_build" / "html"
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html")
               if "_static" not in path.parts)

# what of a page is wrong, as its own scripts left it
LOOK = """() => {
  const article = document.querySelector('article') ?? document.body;
  const images = [...article.querySelectorAll('img')];
  const named = image => image.src.split('/').pop();
  return {
    broken: images.filter(i => i.complete && !i.naturalWidth).map(named),
    unnamed: images.filter(i => !i.alt || i.alt.includes('_images/')).map(named),
    searches: [...document.querySelectorAll('.search-button__button, input[type=search]')].filter(
      e => e.checkVisibility()).length,
    equations: article.querySelectorAll('.math').length,
    typeset: article.querySelectorAll('.math mjx-container').length,
    bad: article.querySelectorAll('mjx-merror, [data-mjx-error]').length,
    still: [...article.querySelectorAll('.dnnlib-figure')].filter(
      f => !f.querySelector('.play canvas')?.checkVisibility()).length,
  };
}"""

SMALL = """() => [...document.querySelectorAll('article figure:not(.fitted) > img[src$=".png"]')].filter(
  i => i.getBoundingClientRect().width < 0.55 * i.naturalWidth).map(i => i.src.split('/').pop())"""
PARTS = """() => [...document.querySelectorAll('article figure')].filter(
  f => f.querySelector(':scope > img') && f.scrollWidth - f.clientWidth >= 8).map(f => f.id)"""


# blocks that go on behind an edge of their frame which does not fade
MUTE = """() => [...document.querySelectorAll('article *')].filter(e => {
  const style = getComputedStyle(e);
  return e.checkVisibility() && /auto|scroll/.test(style.overflowX) && e.clientWidth >= 20
    && e.scrollWidth - e.clientWidth >= 8 && style.maskImage === 'none'
    && !e.closest('svg, button, .headerlink, .more-left, .more-right')
    && !e.querySelector('.more-left, .more-right');
}).map(e => `${e.tagName}.${e.className}`).slice(0, 3)"""


class Anchors(HTMLParser):
    """The ids and the links of a page."""

    def __init__(self, path: Path):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids |= {found[key] for key in ("id", "name") if found.get(key)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])


@functools.cache
def anchors(page: str) -> Anchors:
    return Anchors(SITE / page)


@pytest.fixture(scope="session")
def address():
    """Where the book is served."""
    assert PAGES, f"{SITE} has no pages; build the book first: make html"

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words):
            pass

    handler = functools.partial(Quiet, directory=SITE)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(params=[page for page in PAGES if not page.startswith("_modules/")])
def opened(request, browser, address, looks):
    """A page of the book that has loaded, its name, and what went wrong on the way."""
    wrong = []
    page = browser.new_page(viewport=looks.desk)
    page.set_default_timeout(10_000)

    def guard(route):
        if route.request.url.startswith((address, "data:", "blob:")):
            route.continue_()
        else:
            wrong.append(f"asks for {route.request.url}")
            route.abort()

    page.route("**/*", guard)
    page.on("console", lambda said: said.type == "error" and wrong.append(said.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("response", lambda got: got.status >= 400 and wrong.append(f"{got.status} {got.url}"))
    page.goto(address + request.param, wait_until="networkidle")
    yield page, request.param, wrong
    page.close()


def test_a_page_is_whole_on_screen_and_on_a_phone(opened, looks):
    page, name, wrong = opened
    page.evaluate("() => document.querySelectorAll('img').forEach(i => i.loading = 'eager')")
    if page.evaluate("() => !!document.querySelector('.math')"):
        page.wait_for_function("() => window.MathJax?.startup?.promise")
        page.evaluate("() => MathJax.startup.promise.then(() => 0)")
    page.wait_for_function("() => [...document.images].every(i => i.complete)")
    found = page.evaluate(LOOK)
    assert found["typeset"] >= found["equations"] and not found["bad"], found
    assert found["searches"] == 1 or name == "search.html", "not one search box"
    assert not found["broken"], f"figures that did not load: {found['broken']}"
    assert not found["still"], "interactive figures that do not move"
    assert not found["unnamed"], f"figures without alternative text: {found['unnamed']}"
    assert page.evaluate(MUTE) == [], "cut off without a sign"
    for theme in ("light", "dark"):
        assert looks.faint(page, theme) == [], theme
    if name.startswith("notebooks/"):
        assert re.match(r"Time: about \d+ min", page.inner_text("h1 + p.time"))
    page.set_viewport_size(looks.phone)
    assert looks.wide(page) == [], "wider than a phone"
    page.evaluate("() => new Promise(done => setTimeout(done, 100))")  # sizes are looked at
    assert page.evaluate(PARTS) == [], "pictures not whole on a phone"
    assert page.evaluate(SMALL) == [], "figures too small to read on a phone"
    assert page.evaluate(MUTE) == [], "cut off without a sign on a phone"
    assert not wrong


def test_a_wide_picture_is_whole_on_a_phone_and_a_button_enlarges_it(browser, address, looks):
    page = browser.new_page(viewport=looks.phone)
    page.goto(f"{address}notebooks/nss/04_diversity.html", wait_until="networkidle")
    page.evaluate("() => document.querySelectorAll('img').forEach(i => i.loading = 'eager')")
    button = page.get_by_role("button", name="enlarge").first
    button.wait_for()
    figure = page.locator("figure.fitted").first.element_handle()
    button = figure.query_selector("button")
    hidden = "f => f.scrollWidth - f.clientWidth"
    assert figure.evaluate(hidden) < 8 and page.evaluate(SMALL) == []
    button.press("Enter")
    assert figure.evaluate(hidden) > 100 and page.evaluate(SMALL) == []
    page.wait_for_function("f => f.matches('.more-right')", arg=figure)  # and fades where it goes on
    button.press("Enter")
    assert figure.evaluate(hidden) < 8 and button.get_attribute("aria-expanded") == "false"
    page.set_viewport_size(looks.desk)
    assert not button.is_visible()
    page.close()


def test_a_wide_table_fades_where_it_goes_on_and_keeps_its_first_column(browser, address, looks):
    page = browser.new_page(viewport=looks.phone)
    page.goto(f"{address}notebooks/nss/02_fault_detection.html", wait_until="networkidle")
    table = page.locator("table.dataframe.more-right:has(tbody th)").first.element_handle()
    first = table.query_selector("tbody th")
    before = first.bounding_box()["x"]
    assert "gradient" in table.evaluate("e => getComputedStyle(e).maskImage")
    table.evaluate("e => e.scrollLeft = e.scrollWidth")
    page.wait_for_function("e => e.matches('.more-left:not(.more-right)')", arg=table)
    assert abs(first.bounding_box()["x"] - before) < 2
    page.close()


BAR = ".cell:not(.prompted, .tag_hide-cell) > details.above-input > summary"


def test_one_switch_shows_the_bars_of_folded_code_and_remembers_it(browser, address, looks):
    page = browser.new_page(viewport=looks.desk)
    page.goto(f"{address}notebooks/nsatp/02_noise_sensitivity.html", wait_until="networkidle")
    bars, switch = page.locator(BAR), page.get_by_role("button", name="Code", exact=True)
    silent = page.locator(".cell:not(.prompted):has(> details.above-input:only-child)").first  # imports
    assert bars.count() > 10 and switch.get_attribute("aria-pressed") == "false"
    assert not any(bar.is_visible() for bar in bars.all()) and not silent.bounding_box()
    assert page.locator(".cell:has(> details.above-input) > .cell_output").first.is_visible()
    named = page.locator(".cell.prompted > details > summary")
    assert all(bar.is_visible() for bar in named.all())
    switch.click()
    assert all(bar.is_visible() for bar in bars.all()) and silent.is_visible()
    page.reload(wait_until="networkidle")
    assert switch.get_attribute("aria-pressed") == "true" and bars.first.is_visible()
    switch.press("Enter")
    assert not any(bar.is_visible() for bar in bars.all())
    assert all(bar.is_visible() for bar in named.all())
    page.emulate_media(media="print")
    assert bars.first.is_visible()
    page.close()


def test_a_bar_that_says_what_it_opens_stays(browser, address, looks):
    page = browser.new_page(viewport=looks.desk)
    page.goto(f"{address}notebooks/nsatp/02_noise_sensitivity.html", wait_until="networkidle")
    bar = page.locator(BAR).first.element_handle()
    bar.evaluate("e => e.closest('.cell').classList.add('prompted')")  # as pages.Prompted does
    assert bar.is_visible()
    page.close()


def test_without_scripts_all_bars_and_rows_are_there(browser, address, looks):
    page = browser.new_page(viewport=looks.desk, java_script_enabled=False)
    page.goto(f"{address}notebooks/nsatp/03_against_random.html")
    assert all(bar.is_visible() for bar in page.locator(BAR).all())
    table = page.locator("table.dataframe:has(tbody > tr:nth-child(17))").first
    assert table.locator("tbody > tr").last.is_visible()
    page.close()


def test_a_long_table_opens_with_10_rows_and_unfolds_by_key_and_on_paper(browser, address, looks):
    page = browser.new_page(viewport=looks.desk)
    page.goto(f"{address}notebooks/nsatp/03_against_random.html", wait_until="networkidle")
    table = page.locator("table.folded").first
    rows, button = table.locator("tbody > tr"), page.locator("table.folded + button").first
    seen = "rows => rows.filter(row => row.checkVisibility()).length"
    assert rows.count() > 16 and rows.evaluate_all(seen) == 10
    assert button.inner_text() == f"show all {rows.count()} rows"
    page.emulate_media(media="print")
    assert rows.evaluate_all(seen) == rows.count() and not button.is_visible()
    page.emulate_media(media="screen")
    table, button = table.element_handle(), button.element_handle()  # it is folded no longer
    button.press("Enter")
    assert table.evaluate("t => [...t.tBodies[0].rows].every(row => row.checkVisibility())")
    assert button.get_attribute("aria-expanded") == "true"
    button.press("Space")
    assert not table.evaluate("t => t.tBodies[0].rows[10].checkVisibility()")
    page.close()


def test_a_tall_picture_of_verdicts_opens_with_its_first_claims_and_is_whole_on_paper(browser, address, looks):
    page = browser.new_page(viewport=looks.desk)
    page.goto(f"{address}notebooks/nss/02_fault_detection.html", wait_until="networkidle")
    page.evaluate("() => document.querySelectorAll('img').forEach(i => i.loading = 'eager')")
    picture, button = page.locator("img.folded"), page.locator("img.folded + button.more-rows")
    picture.wait_for()
    assert picture.bounding_box()["height"] < 400 and button.get_attribute("aria-expanded") == "false"
    page.emulate_media(media="print")
    assert picture.bounding_box()["height"] > 1000 and not button.is_visible()
    page.emulate_media(media="screen")
    picture, button = picture.element_handle(), button.element_handle()  # it is folded no longer
    button.press("Enter")
    assert picture.bounding_box()["height"] > 1000 and button.get_attribute("aria-expanded") == "true"
    page.close()


def test_a_picture_that_opens_a_chapter_stands_before_the_parameters(browser, address, looks):
    page = browser.new_page(viewport=looks.desk)
    page.goto(f"{address}notebooks/nss/02_fault_detection.html", wait_until="networkidle")
    picture, bar = page.locator("#fig-nss-fdr-dots img"), page.get_by_text("Parameters: run this chapter")
    assert picture.bounding_box()["y"] < bar.bounding_box()["y"]
    page.close()


@pytest.mark.parametrize("question, first", [
    ("swarm", "notebooks/deepsensor_sensitivity/13_swarm_by_hand"), ("Table V", "book/papers"),
    ("NSS Table VII", "notebooks/nss/04_diversity")])
def test_the_search_finds_the_swarm_and_a_table_by_its_number(browser, address, looks, question, first):
    page = browser.new_page(viewport=looks.desk)
    page.goto(f"{address}search.html?q={question.replace(' ', '+')}")
    page.locator("#search-results li a").nth(1).wait_for()
    led = [link.get_attribute("href") for link in page.locator("#search-results li a").all()[:2]]
    assert any(href.startswith(first) for href in led), led
    page.close()


def test_the_gallery_of_the_example_works_on_its_page(browser, address, looks):
    page = browser.new_page(viewport=looks.desk)
    page.goto(f"{address}book/own_model.html")
    page.locator("iframe.gallery").scroll_into_view_if_needed()
    frame = page.frame_locator("iframe.gallery")
    first = frame.locator(".tile").first
    by_gini = first.get_attribute("aria-label")
    assert frame.locator(".tile.chosen").count() == 10 and first.locator("img").evaluate("i => i.naturalWidth") == 28
    frame.get_by_label("Sort by").select_option("random")
    assert first.get_attribute("aria-label") != by_gini
    first.click()
    assert frame.get_by_role("dialog").locator("a").count() == 0  # a reader does not have the files
    page.close()


def test_a_table_of_a_paper_is_two_clicks_away(browser, address, looks):
    page = browser.new_page(viewport=looks.desk)
    page.goto(address, wait_until="networkidle")
    page.locator(".bd-sidebar-primary").get_by_role("link", name="Where is Table V?").click()
    row = page.locator("section#tables-and-figures-of-nss tr").filter(has_text=re.compile(r"Table\sVII\b"))
    row.get_by_role("link").click()
    assert page.locator("article h1").inner_text().startswith("NSS 4. ")
    page.close()


SHARED = """<table class="dataframe"><thead>
<tr><th></th><th></th><th></th><th colspan="2">value</th></tr>
<tr><th>dataset</th><th>network</th><th>rate</th><th></th><th></th></tr></thead><tbody>
<tr><th rowspan="2">MNIST</th><th rowspan="2">LeNet-5</th><th>5</th><td>7</td><td></td></tr>
<tr><th>10</th><td>7</td><td></td></tr></tbody></table>"""


def test_what_all_rows_share_stands_above_the_table_and_empty_columns_go(browser):
    page = browser.new_page()
    script = (SITE.parents[1] / "book" / "assets" / "tables.js").read_text("utf-8")
    page.set_content(f"<script>{script}</script><article>{SHARED}</article>")
    assert page.locator("p.all-rows").inner_text() == "All rows: dataset: MNIST; network: LeNet-5"
    rows = [row.split() for row in page.locator("tr").all_inner_texts()]
    assert rows == [["rate", "value"], ["5", "7"], ["10", "7"]]  # equal results stay in their places
    assert [row.locator("td, th").count() for row in page.locator("tr").all()] == [2, 2, 2]
    page.close()


def test_a_bet_is_short_until_it_is_made(browser, address, looks):
    page = browser.new_page(viewport=looks.desk)
    page.goto(f"{address}notebooks/nsatp/02_noise_sensitivity.html", wait_until="networkidle")
    quiz = page.locator(".quiz").first
    tops = {option.bounding_box()["y"] for option in quiz.locator("details").all()}
    assert len(tops) == 1 and quiz.bounding_box()["height"] <= 130
    quiz.locator("summary").first.press("Enter")
    assert quiz.locator("details[open] p").is_visible()
    page.close()


def pixels(figure) -> np.ndarray:
    """What of a figure is on the screen: (height, width, 3), from 0 to 255."""
    return np.asarray(Image.open(io.BytesIO(figure.screenshot())).convert("RGB")).astype(int)


def commonest(shown: np.ndarray) -> np.ndarray:
    colours, counts = np.unique(shown.reshape(-1, 3), axis=0, return_counts=True)
    return colours[counts.argmax()]


def test_in_the_dark_theme_charts_are_dark_and_inputs_stay_as_they_are(browser, address, looks):
    page = browser.new_page(viewport=looks.desk)
    page.goto(f"{address}notebooks/nsatp/01_motivation.html", wait_until="networkidle")
    chart, inputs = page.locator("#fig-nsatp-many-pairs img"), page.locator("#fig-nsatp-pair img")
    middle = "e => { const r = e.getBoundingClientRect(); return [r.width, r.height]; }"
    found = {}
    for theme in ("light", "dark"):
        assert looks.faint(page, theme) == []  # sets the theme, too
        drawn = pixels(inputs)
        width, height = inputs.evaluate(middle)
        found[theme] = (pixels(chart), drawn[int(0.5 * height), int(0.1 * width):int(0.9 * width)])
    light, dark = found["light"][0], found["dark"][0]
    ground = [int(v) for v in re.findall(r"\d+", page.evaluate(
        "() => getComputedStyle(document.body).backgroundColor"))][:3]
    assert (commonest(light) > 250).all() and abs(commonest(dark) - ground).max() <= 3
    assert np.quantile(dark.min(2), 0.999) > 200  # the axes' text, black in the light theme
    blue = light[(light[..., 2] - light[..., 0] > 100)].mean(0)
    still = dark[(dark[..., 2] - dark[..., 0] > 100)].mean(0)
    assert blue.argsort().tolist() == still.argsort().tolist()  # hues stay
    line, other = found["light"][1], found["dark"][1]
    assert abs(np.sort(line.mean(1))[[5, -6]] - np.sort(other.mean(1))[[5, -6]]).max() < 10
    assert np.median(other) < 60  # a digit's ground is black
    page.close()


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    lost = []
    for link in anchors(page).links:
        target = urlsplit(urljoin(page, link))
        if target.scheme or target.netloc:
            continue
        path = unquote(target.path)
        if not (SITE / path).is_file():
            lost.append(link)
        elif target.fragment and path.endswith(".html"):
            if unquote(target.fragment) not in anchors(path).ids | {"top"}:
                lost.append(link)
    assert not lost
