"""The galleries in Chromium: opened from disk without a network, sorted, filtered, light."""

import os

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch import nn

from dnnlib import custom
from dnnlib.custom import gallery
from dnnlib.data import audio

MANY = 10_000
SHOWN = """() => [...document.querySelectorAll(".tile")].filter(tile => {
  const box = tile.getBoundingClientRect();
  return box.bottom > 0 && box.top < innerHeight;
}).every(tile => tile.querySelector("img").naturalWidth > 0)"""
ODD = "<img src=x onerror=alert(1)>&\N{SNOWMAN}.png"


@pytest.fixture
def opened(browser, tmp_path):
    """``opened(page, ...)``: the page of these bytes; at the end, nothing went wrong in it."""
    contexts, errors = [], []

    def opened(content, size, scheme="light"):
        (tmp_path / "page.html").write_bytes(content)
        contexts.append(browser.new_context(viewport=size, color_scheme=scheme, offline=True,
                                            has_touch=size["width"] < 500))
        page = contexts[-1].new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: errors.append(request.url)
                if not request.url.startswith(("file:", "data:", "blob:")) else None)
        page.on("dialog", lambda dialog: errors.append(dialog.message))
        page.goto((tmp_path / "page.html").as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not errors


@pytest.fixture
def ranking(tmp_path):
    """Thirty photos of 80 pixels by three methods; the table, and the photos."""
    rng = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    for i in range(28):
        small = Image.fromarray(rng.integers(0, 256, (5, 5, 3), dtype=np.uint8))
        small.resize((80, 80)).save(tmp_path / "photos" / f"{i:02d}.png")
    os.link(tmp_path / "photos" / "00.png", tmp_path / "photos" / "again.png")
    os.rename(tmp_path / "photos" / "01.png", tmp_path / "photos" / ODD)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 80 * 80, 3))
    photos = custom.read_photos(tmp_path / "photos", model)
    return custom.rank(model, photos, "gini,random,margin", top=5), photos


def names(page):
    return [text.split(", ", 1)[1] for text in page.locator(".tile").evaluate_all(
        "tiles => tiles.map(tile => tile.ariaLabel)")]


def test_sorted_by_each_method(opened, looks, ranking):
    table, photos = ranking
    page = opened(custom.ranking_page(table, photos), looks.desk)
    for name in ("gini", "random", "margin"):
        page.get_by_label("Sort by").select_option(name)
        assert names(page) == table.sort_values(f"{name}_rank")["path"].tolist()
        page.wait_for_function(SHOWN)


def test_budget_class_and_duplicates(opened, looks, ranking, tmp_path):
    table, photos = ranking
    page = opened(custom.ranking_page(table, photos), looks.desk)
    assert page.locator(".tile.chosen").count() == 5
    page.get_by_label("Budget").fill("12")
    assert page.locator(".tile.chosen").count() == 12
    page.get_by_label("only the chosen").check()
    assert names(page) == table["path"][:12].tolist()
    page.get_by_label("Predicted class").select_option("1")
    first = table[:12]
    assert names(page) == first["path"][first["predicted"] == 1].tolist()
    page.get_by_label("only the chosen").uncheck()
    page.get_by_label("Predicted class").select_option("")
    page.get_by_label("hide duplicates").check()
    assert names(page) == table["path"][table["duplicate_of"].isna()].tolist()
    page.get_by_label("Predicted class").select_option("1")
    first = first[(first["predicted"] == 1) & first["duplicate_of"].isna()]
    with page.expect_download() as download:
        page.get_by_role("button", name=f"Save the chosen paths ({len(first)})").click()
    download.value.save_as(tmp_path / "chosen.txt")
    again = custom.read_photos(tmp_path / "chosen.txt", nn.Linear(1, 1))
    assert 0 < len(first) < 12 and list(again.source.files) == first["absolute_path"].tolist()
    page.get_by_label("Budget").fill("0")
    assert page.get_by_role("button", name="Save the chosen paths (0)").is_disabled()


def test_a_look_at_one_image(opened, looks, ranking):
    table, photos = ranking
    page = opened(custom.ranking_page(table, photos, title=ODD), looks.desk)
    assert page.title() == ODD == page.locator("h1").inner_text()
    page.locator(".tile").first.click()
    for path in table["path"][:3]:
        assert page.locator("dialog h2").inner_text() == path
        page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelector('dialog img').src.startsWith('file:')")
    page.keyboard.press("Escape")
    assert not page.locator("dialog").is_visible()


def test_ten_thousand_images_are_light(opened, looks):
    rng = np.random.default_rng(0)
    small = torch.from_numpy(rng.integers(0, 256, (50, 3, 6, 6), dtype=np.uint8)).float()
    x = nn.functional.interpolate(small, (224, 224), mode="bicubic").clamp(0, 255).byte()
    orders = [rng.permutation(MANY) + 1 for _ in "ab"]
    table = pd.DataFrame({
        "path": [f"{i}.jpg" for i in range(MANY)], "predicted": np.arange(MANY) % 10,
        "confidence": rng.random(MANY), "margin": rng.random(MANY)} | {
        f"{name}_{what}": values for name, order in zip("ab", orders) for what, values in (
            ("score", -order / MANY), ("rank", order), ("selected", order <= 500))})
    paths = tuple(table["path"])
    content = gallery.ranking_page(table, custom.Photos([x[i % 50] for i in range(MANY)], paths))
    assert len(content) < 30e6
    page = opened(content, looks.desk)
    for name, order in zip("ab", orders):
        page.get_by_label("Sort by").select_option(name)
        page.evaluate("scrollTo(0, document.body.scrollHeight / 2)")
        page.wait_for_function(f"document.querySelector('.tile').textContent.startsWith('{4}')")
        shown, by_rank = names(page), np.argsort(order)
        start = int(order[int(shown[0].removesuffix(".jpg"))]) - 1
        assert shown == [f"{i}.jpg" for i in by_rank[start:start + len(shown)]]
        assert len(shown) < 300  # of the others there is nothing on the page
        page.wait_for_function(SHOWN)


@pytest.fixture
def five_thousand():
    """A ranking of small pictures in their order, and the photos."""
    many = 5_000
    x = torch.randint(256, (20, 3, 12, 12), dtype=torch.uint8,
                      generator=torch.Generator().manual_seed(0))
    table = pd.DataFrame({
        "path": [f"{i}.png" for i in range(many)], "predicted": np.arange(many) % 10,
        "confidence": 0.5, "margin": 0.1, "gini_score": -np.arange(many) / many,
        "gini_rank": np.arange(many) + 1, "gini_selected": np.arange(many) < 100})
    return table, custom.Photos([x[i % 20] for i in range(many)], tuple(table["path"]))


def focused(page, label):
    """Wait until a tile has the focus: a dialog gives it back a moment after it closes."""
    page.wait_for_function("label => document.activeElement.ariaLabel === label", arg=label,
                           timeout=5_000)


def test_five_thousand_images_by_keys(opened, looks, five_thousand):
    page = opened(custom.ranking_page(*five_thousand), looks.desk)
    page.locator(".tile").first.focus()
    page.keyboard.press("ArrowRight")
    focused(page, "Rank 2, 1.png")
    page.keyboard.press("End")
    focused(page, "Rank 5000, 4999.png")
    page.keyboard.press("ArrowUp")
    columns = 5_000 - int(page.evaluate("document.activeElement.ariaLabel.match(/\\d+/)[0]"))
    assert 5 < columns < 20
    page.keyboard.press("Enter")
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Escape")
    focused(page, f"Rank {5_000 - columns - 3}, {5_000 - columns - 4}.png")
    page.wait_for_function(SHOWN)
    page.keyboard.press("Home")
    focused(page, "Rank 1, 0.png")
    assert page.evaluate("scrollY") < 400


def test_five_thousand_images_by_touch(opened, looks, five_thousand):
    page = opened(custom.ranking_page(*five_thousand), looks.phone)
    page.evaluate("scrollTo(0, document.body.scrollHeight / 2)")
    page.wait_for_function("Number(document.querySelector('.tile b').textContent) > 2000")
    page.locator(".tile").nth(12).tap()
    place = int(page.locator("dialog h2").inner_text().removesuffix(".png")) + 1
    assert 2_000 < place < 3_000
    fingers = page.context.new_cdp_session(page)

    def swipe(start, end):
        for kind, x in (("touchStart", start), ("touchMove", end), ("touchEnd", None)):
            fingers.send("Input.dispatchTouchEvent", {
                "type": kind, "touchPoints": [] if x is None else [{"x": x, "y": 300}]})

    swipe(300, 80)
    page.wait_for_function(f"document.querySelector('dialog h2').textContent === '{place}.png'")
    swipe(80, 300)
    swipe(200, 210)  # a tap that shook
    page.wait_for_function(
        f"document.querySelector('dialog h2').textContent === '{place - 1}.png'")
    page.get_by_role("button", name="Next").tap()
    page.get_by_role("button", name="Close").tap()
    focused(page, f"Rank {place + 1}, {place}.png")


@pytest.fixture
def failures(tmp_path):
    """A run on four pictures of sounds, of a model that looks at one band; and its photos."""
    x = torch.rand(4, 1, audio.MELS, audio.FRAMES, generator=torch.Generator().manual_seed(0))
    x = (x * 255).round() / 255
    model = nn.Sequential(nn.Flatten(), nn.Linear(audio.MELS * audio.FRAMES, 3))
    with torch.no_grad():
        model[1].weight.copy_(torch.randn(3, 4096, generator=torch.Generator().manual_seed(1)))
        model[1].bias -= model(x).mean(0)
    photos = custom.Photos(x, ("zero", ODD, "two", "three"), {})
    return custom.fuzz(model, photos, tmp_path / "run", by="noise", l2=8.0, iterations=30), photos


def test_failures_are_grouped_and_filtered(opened, looks, failures, tmp_path):
    found, photos = failures
    rows = found.failures.sort_values("l2")
    assert len(rows) > 2 and rows["predicted"].nunique() > 1
    page = opened(custom.failures_page(
        found, photos, tmp_path / "run", sound=lambda x: (np.sin(np.arange(800) / 3), 8000)),
        looks.desk)
    groups = page.locator(".group")
    assert groups.evaluate_all("all => all.map(one => one.ariaLabel)") == list(
        dict.fromkeys(rows["input"]))
    page.wait_for_selector(".group:last-child figure")
    assert page.locator("audio").count() == len(rows) + rows["input"].nunique()
    assert page.evaluate("""async () => { const sound = document.querySelector("audio");
      sound.load(); await new Promise(done => sound.onloadedmetadata = done);
      return sound.duration }""") == pytest.approx(0.1, abs=0.01)
    given = str(rows["predicted"].iloc[0])
    page.get_by_label("Taken for").select_option(given)
    expected = rows[rows["predicted"].astype(str) == given]
    page.wait_for_selector(".group:last-child figure")
    assert page.locator(".pair").count() == len(expected)
    page.get_by_label("Taken for").select_option("")
    page.get_by_label("L2 at most").fill("0")
    assert page.locator(".group").count() == 0


@pytest.mark.parametrize("size", ["desk", "phone"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_pages_can_be_read(opened, looks, ranking, failures, tmp_path, size, theme):
    for content in (custom.ranking_page(*ranking),
                    custom.failures_page(*failures, tmp_path / "run")):
        page = opened(content, getattr(looks, size), theme)
        page.wait_for_selector("img")
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert not looks.faint(page, theme)
        unnamed = page.evaluate("""() => [...document.querySelectorAll("button, input, select")]
          .filter(e => !e.ariaLabel && !e.textContent.trim() && !e.closest("label")?.textContent)
          .length""")
        assert not unnamed
