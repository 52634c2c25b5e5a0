"""The interactive figures, played in Chromium: mouse, keyboard, phone, both themes, no network."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from dnnbook import interactive
from dnnbook.interactive.movie import flown
from dnnlib.fuzzing import Campaign, Constant, Swarm
from dnnlib.measures.uncertainty import DISTANCES

COLOURS = {"light": "", "dark": "--pst-color-text-base:#ced6dd;--pst-color-text-muted:#9ca4af;"
           "--pst-color-background:#14181e;--pst-color-surface:#29313d;--pst-color-border:#48566b"}
PAGE = """<html data-theme="{theme}"><meta name="viewport" content="width=device-width">
<style>html {{ {colours}; color: var(--pst-color-text-base);
background: var(--pst-color-background, #fff) }}</style><body><article>{blocks}</article>"""
# as JupyterLab does it: innerHTML runs no scripts, so each is put in again
AS_IN_A_LAB = """html => {
  const place = document.createElement("div");
  place.innerHTML = html;
  for (const old of place.querySelectorAll("script")) {
    const script = document.createElement("script");
    for (const { name, value } of old.attributes) script.setAttribute(name, value);
    script.textContent = old.textContent;
    old.replaceWith(script);
  }
  document.querySelector("article").append(place);
}"""
UNNAMED = """() => [...document.querySelectorAll(".play :is(button, input, select, canvas[tabindex])")]
  .filter(e => !(e.textContent.trim() && e.tagName === "BUTTON") && !e.ariaLabel
               && !e.closest("label")?.querySelector("span")?.textContent).map(e => e.outerHTML)"""
SIZE = 12  # pixels a side


def spot() -> nn.Module:
    """Class 1 where the pixel in row 5, column 7 is bright, else class 0."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(SIZE**2, 2))
    with torch.no_grad():
        model[1].weight.zero_()
        model[1].weight[1, 5 * SIZE + 7] = 8
        model[1].bias.copy_(torch.tensor([4.0, 0.0]))
    return model.eval()


def painter() -> interactive.Block:
    images = torch.zeros(4, 1, SIZE, SIZE)
    images[[1, 3], 0, 5, 7] = 1
    images[2, 0, 5, 7] = 0.5
    return interactive.patch_painter(spot(), images, torch.tensor([0, 1, 1, 0]),
                                     classes=["dark", "bright"])


def distances() -> interactive.Block:
    """Noise never breaks the first image; the other method does from a distance of 2 on."""
    images = torch.zeros(2, 1, SIZE, SIZE)
    images[1, 0, 5, 7] = 1

    def campaign(pixel: float) -> Campaign:
        x = images.clone()
        x[:, 0, 5, 7] = torch.tensor([pixel, 1 - pixel])
        moved = torch.full((3, 2), pixel)
        predicted = torch.stack([spot()(x).argmax(1)] * 3)
        return Campaign(torch.tensor([0, 1]), predicted, torch.tensor([[0, 1]] * 3), moved, moved,
                        x, 6, 0.0)

    return interactive.distance_slider(
        spot(), images, torch.tensor([0, 1]), classes=["dark", "bright"], source="Records",
        found={1: {"noise": campaign(0.0), "search": campaign(0.4)},
               2.5: {"noise": campaign(0.0), "search": campaign(1.0)}},
        curves={"search": {1: 0, 2.5: 80}})


def brightness(model, inputs, labels):
    """A fitness: how bright the pixel is that decides."""
    return lambda x, of: x[:, 0, 5, 7]


def movie() -> interactive.Block:
    swarm = Swarm(population=6)
    return interactive.swarm_movie(
        spot(), torch.zeros(1, SIZE, SIZE), 0, classes=["dark", "bright"], iterations=5,
        swarms={"bright": replace(swarm, fitness=brightness),
                "constant": replace(swarm, fitness=Constant())})


def lighting() -> interactive.Block:
    images = torch.rand(2, 1, SIZE, SIZE, generator=torch.Generator().manual_seed(0))
    darker = torch.stack([images * factor for factor in (0.9, 0.6, 0.3)])
    return interactive.lighting_up(maps(), images, torch.tensor([0, 1]), layers=["0", "2"],
                                   mutated={"darker": darker, "turned": images.flip(2)[None]})


def shares() -> interactive.Block:
    images = torch.rand(2, 1, SIZE, SIZE, generator=torch.Generator().manual_seed(0))
    return interactive.lighting_up(
        maps(), images, torch.tensor([0, 1]), layers=["2"], threshold=0.5,
        mutated={"darker": torch.stack([images * 0.9, images * 0.3])},
        values={"darker": torch.tensor([[[0.2, 0.6, -0.1], [0.7, 0.8, 0.9]],
                                        [[0.55, 1.5, 0.1], [0.0, 0.1, 0.2]]])})


def maps() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 3, 3), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten(),
                         nn.Linear(75, 2)).eval()


def game() -> interactive.Block:
    """Ten candidates, of which the last three are wrong: one order has them first, one last."""
    images = (torch.arange(10) / 9).view(10, 1, 1, 1).expand(10, 1, SIZE, SIZE).clone()
    truth, order = torch.zeros(10, dtype=torch.long), torch.arange(10)
    return interactive.label_game(
        images, truth, truth + (order > 6), {"good": order.flip(0), "bad": order},
        knowing={"bad": order.roll(3)}, classes=["cat", "dog"])


def ground() -> interactive.Block:
    """Of :mod:`test_swarm_ground`."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2)).eval()
    return interactive.swarm_ground(model, torch.tensor([[[0.3, 0.6]]]), 0, iterations=5)


FIGURES = {"painter": painter, "distances": distances, "movie": movie, "lighting": lighting,
           "shares": shares, "game": game, "ground": ground}


@pytest.fixture(scope="module")
def blocks():
    """``blocks(name)``: a figure, made once."""
    made: dict[str, interactive.Block] = {}
    return lambda name: made.setdefault(name, FIGURES[name]())


@pytest.fixture
def opened(browser, blocks):
    """``opened(name)``: a page with a figure that loads nothing and says no error."""
    pages, wrong = [], []

    def opened(name: str, *, theme: str = "light", count: int = 1, viewport=None, **options):
        page = browser.new_page(viewport=viewport, **options)
        pages.append(page)
        page.set_default_timeout(10_000)
        page.on("request", lambda asked: asked.url.startswith("data:") or wrong.append(asked.url))
        page.on("console", lambda said: said.type == "error" and wrong.append(said.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.set_content(PAGE.format(theme=theme, colours=COLOURS[theme],
                                     blocks=blocks(name)._repr_html_() * count))
        return page
    yield opened
    assert not wrong
    for page in pages:
        page.close()


@pytest.mark.parametrize("name", FIGURES)
def test_it_fits_a_phone_and_is_legible_in_both_themes(opened, looks, name):
    for theme in COLOURS:
        page = opened(name, theme=theme, viewport=looks.phone)
        assert page.locator(".play").is_visible() and not page.locator("img.still").is_visible()
        assert looks.wide(page) == []
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        assert looks.faint(page, theme) == []
    assert page.evaluate(UNNAMED) == []


@pytest.mark.parametrize("name", FIGURES)
def test_a_picture_stands_in_on_paper_and_without_scripts(opened, name):
    page = opened(name)
    page.emulate_media(media="print")
    assert page.locator("img.still").is_visible() and not page.locator(".play").is_visible()
    still = opened(name, java_script_enabled=False).locator("img.still")
    assert still.is_visible() and still.bounding_box()["width"] > 200
    assert len(still.get_attribute("alt")) > 20


@pytest.mark.parametrize("name", FIGURES)
def test_it_lives_twice_on_a_page_and_in_a_lab(opened, blocks, name):
    page = opened(name, count=2)
    page.evaluate(AS_IN_A_LAB, blocks(name)._repr_html_())
    assert page.locator(".dnnlib-figure > .play").count() == 3
    assert page.evaluate("() => Object.keys(dnnlibFigures).length") == 1


def test_keys_stay_in_a_figure(opened, blocks):
    """In JupyterLab, x would cut the cell and an arrow would leave it."""
    for name in FIGURES:
        page = opened(name)
        page.evaluate("() => document.addEventListener('keydown', (e) => (window.heard ??= []).push(e.key))")
        page.locator(".play").locator("button, input, select").first.focus()
        for key in ("x", "ArrowRight", "Control+b"):
            page.keyboard.press(key)
        assert page.evaluate("() => heard") == ["Control", "b"], name


# The patch painter


def place(page, row: float, column: float) -> tuple[float, float]:
    """Where on the screen a pixel of the painter's image is."""
    box = page.locator(".stage canvas").bounding_box()
    return (box["x"] + (column + 1) / SIZE * box["width"], box["y"] + (row + 1) / SIZE * box["height"])


def test_it_opens_broken_and_says_the_true_class_and_what_a_patch_mends(opened):
    page = opened("painter")
    said = page.locator(".said")
    assert said.inner_text().endswith("no longer dark, but bright with 0.98. The patch has broken it.")
    assert page.get_by_text("True class: dark").is_visible()
    page.get_by_role("button", name="class dark; the network says bright").click()
    assert said.inner_text().endswith("no longer bright, but dark with 0.98. The patch has mended it.")
    page.get_by_role("button", name="Draw one").click()
    page.get_by_role("button", name="Done").click()
    assert page.get_by_text("Your own image").is_visible() and "broken" not in said.inner_text()


def test_a_dragged_patch_changes_what_the_network_says(opened):
    page = opened("painter")
    said = page.locator(".said")
    page.mouse.move(*place(page, 0, 0))
    page.mouse.down()
    assert "row 1, column 1: still dark with 0.98" in said.inner_text()
    page.mouse.move(*place(page, 4, 6), steps=4)
    page.mouse.up()
    assert "row 5, column 7: no longer dark, but bright with 0.98" in said.inner_text()
    page.mouse.move(*place(page, 9, 9))  # without a button nothing moves
    assert "row 5, column 7" in said.inner_text()


def test_the_measures_are_the_engines(opened):
    page = opened("painter")
    for name, pixel in (("image of class dark; the network says dark", 0.0), ("the network says bright with 0.50", 128 / 255)):
        page.get_by_role("button", name=name).click()
        x = torch.zeros(1, 1, SIZE, SIZE)
        x[0, 0, 5, 7] = pixel
        p = spot()(x).softmax(1).detach()
        shown = page.locator(".facts dd").all_inner_texts()
        assert [float(text.split()[0]) for text in shown] == pytest.approx(
            [float(measure(p)[0]) for measure in DISTANCES.values()], abs=0.006)


def test_every_place_is_tried_once(opened):
    page = opened("painter")
    page.get_by_role("button", name="Try every place").click()
    page.get_by_text(f"of {(SIZE - 1) ** 2} patches").wait_for()
    assert page.locator(".eff").inner_text().startswith("Eff = 4 of 121 patches")  # those over the spot
    page.get_by_role("button", name="Throw 100 patches").click()
    page.get_by_text("of 221 patches").wait_for()
    page.get_by_role("button", name="Clear the map").click()
    assert "No patch" in page.locator(".eff").inner_text()


def test_every_image_that_is_tried_adds_a_point_of_its_pd_and_eff(opened):
    page = opened("painter")
    dots = """() => [...document.querySelectorAll(".chart circle")].map(
      dot => [dot.cx.baseVal.value, dot.cy.baseVal.value])"""
    every = page.get_by_role("button", name="Try every place")
    assert page.evaluate(dots) == [] and "no images tried" in page.locator(".chart").get_attribute("aria-label")
    every.click()
    page.get_by_text("Eff = 4 of 121").wait_for()
    page.get_by_role("button", name="the network says bright with 0.50").click()
    assert len(page.evaluate(dots)) == 1 and page.locator(".chart .now").count() == 0
    every.click()
    page.get_by_text("of 121 patches").wait_for()
    (sure, few), (unsure, more) = page.evaluate(dots)
    assert unsure < sure and page.locator(".chart .now").count() == 1
    said = page.locator(".chart").get_attribute("aria-label")
    assert "2 images tried. PD 0.96, Eff 0.03; PD 0.01, Eff 0.03" in said
    page.get_by_role("button", name="Clear the map").click()
    assert len(page.evaluate(dots)) == 1
    page.locator("select").select_option("grey")  # another patch has another Eff
    assert page.evaluate(dots) == []


def test_the_keyboard_moves_the_patch_and_draws(opened):
    page = opened("painter")
    page.locator(".stage canvas").focus()
    for _ in range(20):
        page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowRight")
    assert "row 1, column 8" in page.locator(".said").inner_text()
    page.get_by_role("button", name="Draw one").press("Enter")
    page.locator(".stage canvas").focus()
    for _ in range(5):
        page.keyboard.press("ArrowDown")
    assert "The network says dark" in page.locator(".said").inner_text()
    page.keyboard.press("Space")
    assert "The network says bright" in page.locator(".said").inner_text()
    page.get_by_role("button", name="Done").press("Enter")
    assert "no longer bright, but dark" in page.locator(".said").inner_text()  # the patch is there


def test_a_finger_moves_the_patch(opened, looks):
    page = opened("painter", viewport=looks.phone, has_touch=True, is_mobile=True)
    page.touchscreen.tap(*place(page, 4, 6))
    assert "row 5, column 7: no longer dark" in page.locator(".said").inner_text()


def test_a_patch_of_one_brightness(opened):
    page = opened("painter")
    page.mouse.click(*place(page, 4, 6))
    page.locator("select").select_option("grey")
    page.get_by_role("slider", name="Brightness").fill("0")
    assert "still dark with 0.98" in page.locator(".said").inner_text()
    page.get_by_role("slider", name="Brightness").press("End")
    assert "no longer dark" in page.locator(".said").inner_text()


# The distance slider


def test_the_slider_opens_where_one_method_breaks_the_image_and_another_does_not(opened):
    page = opened("distances")
    assert page.get_by_role("slider").get_attribute("aria-valuetext") == "2.5"
    assert page.locator(".tile.wrong .head").all_inner_texts() == ["search"]
    page.get_by_role("slider").press("ArrowLeft")
    assert page.locator(".tile.wrong").count() == 0


def test_the_slider_shows_what_each_method_made_within_the_bound(opened):
    page = opened("distances")
    bound, said = page.get_by_role("slider"), page.locator(".said")
    bound.press("Home")
    assert bound.get_attribute("aria-valuetext") == "0" and page.locator(".tile.wrong").count() == 0
    page.keyboard.press("ArrowRight")
    assert said.inner_text().startswith("Within L2 = 1") and "no example" in said.inner_text()
    page.keyboard.press("End")
    assert "Within L2 = 2.5" in said.inner_text() and "search (bright)" in said.inner_text()
    assert page.locator(".tile.wrong").inner_text().split() == (
        "search bright with 0.98; L2 = 1.0; errors: 3 of 3".split())
    page.get_by_role("button", name="image of class bright").click()
    assert "search (dark)" in said.inner_text()


def test_the_slider_moves_by_mouse_and_its_line_with_it(opened, looks):
    page = opened("distances", viewport=looks.phone)
    page.get_by_role("slider").press("Home")
    line = page.locator(".chart .cursor")
    before = float(line.get_attribute("x1"))
    box = page.get_by_role("slider").bounding_box()
    page.mouse.move(box["x"] + 9, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 5, box["y"] + box["height"] / 2, steps=3)
    page.mouse.up()
    assert "Within L2 = 2.5" in page.locator(".said").inner_text()
    assert float(line.get_attribute("x1")) > before
    assert page.locator(".chart circle").count() == 2


def test_the_slider_shows_the_pixels_of_the_examples(opened):
    page = opened("distances")
    page.get_by_role("slider").press("End")
    shown = page.evaluate("""() => [...document.querySelectorAll(".tile canvas")].map(
      c => c.getContext("2d").getImageData(7, 5, 1, 1).data[0])""")
    assert shown == [0, 0, 255]


# The swarm movie


@pytest.mark.parametrize("name, act", [
    ("movie", lambda page: (page.get_by_role("button", name="constant").click(),
                            page.get_by_role("button", name="Step").click())),
    ("distances", lambda page: (page.get_by_role("button", name="image of class bright").click(),
                                page.get_by_role("slider").press("End"))),
    ("lighting", lambda page: (page.get_by_label("Mutation").select_option(label="turned"),
                               page.get_by_label("Layer").select_option(index=1))),
    ("game", lambda page: (page.get_by_role("checkbox").check(), page.get_by_role("slider").press("Home"))),
    ("ground", lambda page: (page.get_by_role("button", name="draw your own").click(),
                             page.get_by_role("slider", name="Inertia, start").press("End")))])
def test_the_address_opens_a_figure_as_one_left_it(browser, blocks, tmp_path, name, act):
    file = tmp_path / "page.html"
    file.write_text(f"<article class='bd-article'>{blocks('painter')._repr_html_()}{blocks(name)._repr_html_()}"
                    "</article>", "utf-8")
    page = browser.new_page()
    state = """() => [...document.querySelectorAll(".play")].map(play => [...play.querySelectorAll(
      "input, select, [aria-pressed], .said")].map(e => e.matches(".said") ? e.textContent :
      e.getAttribute("aria-pressed") ?? (e.type === "checkbox" ? e.checked : e.value)).join())"""
    page.goto(file.as_uri())
    fresh = page.evaluate(state)
    assert "#" not in page.url
    act(page.locator(".dnnlib-figure").nth(1))
    left = page.evaluate(state)
    assert left[0] == fresh[0] and left[1] != fresh[1] and "#figure=2&" in page.url
    other = browser.new_page()
    other.goto(page.url)
    assert other.evaluate(state) == left
    other.goto(f"{file.as_uri()}#figure=2&Layer=none&Fitness=length&Iteration=a")  # what no control knows
    other.reload()
    assert other.evaluate("() => document.querySelectorAll('.dnnlib-figure[data-live]').length") == 2
    page.close()
    other.close()


def test_the_address_is_left_alone_outside_the_book(opened):
    page = opened("movie")
    page.get_by_role("button", name="constant").click()
    assert "#" not in page.url


def places(page) -> list[tuple[float, float]]:
    """Where the particles are in the plane."""
    return page.evaluate("""() => [...document.querySelectorAll(".dot")].map(
      dot => [+dot.getAttribute("cx"), +dot.getAttribute("cy")])""")


def test_the_swarm_flies_step_by_step(opened):
    page = opened("movie")
    said, before = page.locator(".said"), places(page)
    assert said.inner_text().startswith("Iteration 1 of 5, fitness bright") and len(before) == 6
    page.get_by_role("button", name="Step").click()
    assert said.inner_text().startswith("Iteration 2 of 5") and places(page) != before
    for _ in range(3):
        page.get_by_role("button", name="Step").click()
    assert page.get_by_role("button", name="Step").is_disabled()
    x, fitness = flown(Swarm(population=6, fitness=brightness), spot(), torch.zeros(1, SIZE, SIZE), 0,
                       iterations=5)
    wrong = int(spot()(x[-1]).argmax(1).sum())
    assert f"Best so far: {fitness.max():#.3g}" in said.inner_text()
    assert f"{wrong} of 6 particles have another class than dark" in said.inner_text()
    assert page.locator(".particle.wrong").count() == page.locator(".dot.wrong").count() == wrong


def test_the_movie_plays_and_pauses(opened):
    page = opened("movie")
    page.get_by_role("button", name="Play").press("Enter")
    page.get_by_text("Iteration 3 of 5").wait_for()
    page.get_by_role("button", name="Pause").press("Enter")
    stopped = page.locator(".said").inner_text()
    page.wait_for_timeout(1500)
    assert page.locator(".said").inner_text() == stopped
    page.get_by_role("button", name="Play").click()
    page.get_by_text("Iteration 5 of 5").wait_for()
    page.get_by_role("button", name="Play").wait_for()  # it has come to its end


def test_another_fitness_starts_alike_and_flies_elsewhere(opened, looks):
    page = opened("movie", viewport=looks.phone, has_touch=True)
    start = places(page)
    page.get_by_role("slider", name="Iteration").press("End")
    end = places(page)
    page.get_by_role("button", name="constant").tap()
    assert "Iteration 5 of 5, fitness constant" in page.locator(".said").inner_text()
    assert "Best so far: 0.00, found in iteration 1" in page.locator(".said").inner_text()
    assert places(page) != end
    page.get_by_role("slider", name="Iteration").press("Home")
    assert places(page) == start


def test_the_fitness_is_told_in_neurons_where_it_is_a_share_of_them(browser):
    model, image = spot(), torch.zeros(1, SIZE, SIZE)
    half = Swarm(population=3, fitness=lambda *_: lambda x, of: torch.full((len(x),), 0.5))
    block = interactive.swarm_movie(model, image, 0, {"half": half}, iterations=2, neurons={"half": 268})
    page = browser.new_page()
    page.set_content(block._repr_html_())
    assert "Best so far: 134 of 268 neurons, found in iteration 1" in page.locator(".said").inner_text()
    page.close()


def test_a_fitness_that_never_rises_is_said_on_the_picture(opened):
    page = opened("movie")
    flat = page.get_by_text("the best fitness never rises")
    assert not flat.is_visible()  # under the fitness bright it rises
    page.get_by_role("button", name="constant").click()
    assert flat.is_visible()
    page.get_by_role("button", name="bright").click()
    assert not flat.is_visible()


def test_the_thumbnails_are_the_particles(opened):
    page = opened("movie")
    page.get_by_role("slider", name="Iteration").press("End")
    x, _ = flown(Swarm(population=6, fitness=brightness), spot(), torch.zeros(1, SIZE, SIZE), 0,
                 iterations=5)
    shown = page.evaluate("""() => [...document.querySelectorAll(".particle canvas")].slice(1).map(
      c => [...c.getContext("2d").getImageData(0, 0, c.width, c.height).data].filter((_, i) => i % 4 == 0))""")
    expected = (x[-1] * 15).round() * 17  # 16 levels of grey
    assert (torch.tensor(shown) - expected.flatten(1)).abs().max() <= 1


# Neurons lighting up


def change(layer: str, strength: int) -> torch.Tensor:
    """How far the neurons of a layer move, for the first image of :func:`lighting`."""
    x = (torch.rand(2, 1, SIZE, SIZE, generator=torch.Generator().manual_seed(0))[:1] * 255).round() / 255
    y = (torch.rand(2, 1, SIZE, SIZE, generator=torch.Generator().manual_seed(0))[:1]
         * (0.9, 0.6, 0.3)[strength - 1] * 255).round() / 255
    with torch.no_grad():
        return (maps()[:int(layer) + 1](y) - maps()[:int(layer) + 1](x)).abs()


def test_neurons_are_marked_above_the_threshold(opened):
    page = opened("lighting")
    said, threshold = page.locator(".said"), page.get_by_role("slider", name="Mark changes above")
    moved = change("2", 3)
    threshold.press("Home")
    assert said.inner_text().startswith("75 of 75 neurons change by more than 0.00")
    assert f"is {moved.sum():.2f}, 100 % of the change" in said.inner_text()
    for _ in range(30):
        threshold.press("ArrowRight")
    limit = float(threshold.input_value())
    marked = int((moved > limit).sum())
    assert 0 < marked < 75 and said.inner_text().startswith(f"{marked} of 75 neurons")
    assert sum(int(text.split(": ")[1].split(" ")[0])
               for text in page.locator(".map .quiet").all_inner_texts()) == marked
    threshold.press("End")
    assert page.locator(".map.marked").count() == 0


def test_strength_mutation_layer_and_image_can_be_changed(opened, looks):
    page = opened("lighting", viewport=looks.phone)
    said = page.locator(".said")
    page.get_by_role("slider", name="Mark changes above").press("Home")
    page.get_by_role("slider", name="Strength").press("ArrowLeft")
    assert f"is {change('2', 2).sum():.2f}" in said.inner_text()
    page.locator("select").nth(1).select_option("0")
    assert "of 300 neurons" in said.inner_text() and f"is {change('0', 2).sum():.2f}" in said.inner_text()
    page.locator("select").first.select_option(label="turned")
    turned = said.inner_text()
    page.get_by_role("button", name="image of class 1").click()
    assert said.inner_text() != turned


def test_shapley_values_frame_the_maps_that_carry_the_loss(opened):
    page = opened("shares")
    said, framed = page.locator(".said"), page.locator(".map.marked")
    assert said.inner_text().startswith("2 of 3 maps have a Shapley value above 0.50")
    assert "add up to 2.05, those of all maps to 2.15" in said.inner_text()
    assert framed.all_inner_texts() == ["map 1: 0.55", "map 2: 1.50"]
    page.get_by_role("slider", name="Strength").press("ArrowLeft")
    assert framed.all_inner_texts() == ["map 2: 0.60"]
    page.get_by_role("button", name="image of class 1").click()
    assert framed.count() == 3
    page.get_by_role("slider", name="Mark values above").press("End")
    assert framed.count() == 0


def test_what_adds_to_the_loss_and_what_takes_from_it_differ_in_colour(opened):
    page = opened("shares")
    page.get_by_role("slider", name="Strength").press("ArrowLeft")
    assert page.locator(".map .adds").all_inner_texts() == ["map 1: 0.20", "map 2: 0.60"]
    assert page.locator(".map .takes").all_inner_texts() == ["map 3: -0.10"]
    colours = page.evaluate("""() => [".adds", ".takes"].map(
      kind => getComputedStyle(document.querySelector(kind)).borderBottomColor)""")
    assert len(set(colours)) == 2


def test_it_opens_on_an_image_that_loses_its_class(browser):
    images = torch.zeros(3, 1, SIZE, SIZE)
    model = nn.Sequential(nn.Conv2d(1, 2, 1), nn.Flatten(), nn.Linear(2 * SIZE**2, 2)).eval()
    with torch.no_grad():
        model[2].weight.copy_(torch.stack([-torch.ones(2 * SIZE**2), torch.ones(2 * SIZE**2)]))
        model[2].bias.copy_(torch.tensor([1.0, 0.0]))
        model[0].weight.fill_(1)
        model[0].bias.zero_()
    brighter = images.clone()
    brighter[[0, 2]] = 1
    block = interactive.lighting_up(model, images, torch.tensor([1, 0, 0]), {"brighter": brighter[None]},
                                    layers=["0"])  # the first was misread before
    page = browser.new_page()
    page.set_content(block._repr_html_())
    thumbs = page.get_by_role("group", name="Choose an image").get_by_role("button")
    assert [b.get_attribute("aria-pressed") for b in thumbs.all()] == ["false", "false", "true"]
    assert page.locator(".inputs canvas.broken").count() == 1
    thumbs.nth(1).click()
    assert page.locator(".inputs canvas.broken").count() == 0
    page.close()


# The label-budget game


def test_labels_count_faults(opened):
    page = opened("game")
    said, budget = page.locator(".said"), page.get_by_role("slider", name="Labels")
    assert said.inner_text() == "good: 1 of 10 labelled, 1 of them wrong. FDR = 100 %."  # a tenth at first
    budget.press("Home")
    assert "the truth is hidden" in said.inner_text()
    assert page.locator(".candidate.wrong, .candidate.right").count() == 0
    for _ in range(4):
        budget.press("ArrowRight")
    assert said.inner_text() == "good: 4 of 10 labelled, 3 of them wrong. FDR = 75 %."
    assert page.locator(".candidate.wrong").count() == 3
    assert page.locator(".candidate.wrong").first.get_attribute("title") == (
        "class cat, the network says dog")
    page.get_by_role("button", name="bad").click()
    assert said.inner_text() == "bad: 4 of 10 labelled, 0 of them wrong. FDR = 0 %."
    assert page.locator(".score").all_inner_texts() == [
        "good\n75 %", "bad\n0 %", "any order, expected\n30 %"]


def test_knowing_the_originals_changes_what_can_use_them(opened, looks):
    page = opened("game", viewport=looks.phone, has_touch=True)
    page.get_by_role("slider", name="Labels").fill("5")
    page.get_by_role("button", name="bad").tap()
    page.get_by_label("the original of every candidate is known").press("Space")
    assert page.locator(".said").inner_text() == (
        "bad, originals known: 5 of 10 labelled, 3 of them wrong. FDR = 60 %.")
    page.get_by_role("button", name="good").tap()
    assert "3 of them wrong. FDR = 60 %" in page.locator(".said").inner_text()
    page.get_by_label("the original of every candidate is known").tap()
    page.get_by_role("button", name="bad").tap()
    assert "0 of them wrong" in page.locator(".said").inner_text()


def test_labels_show_the_true_class_and_the_line_of_each_method_tried(opened):
    page = opened("game")
    page.get_by_role("slider", name="Labels").fill("4")
    assert [text.strip() for text in page.locator(".truth").all_inner_texts()] == ["cat"] * 4 + [""] * 6
    ends = """() => [...document.querySelectorAll(".chart polyline:not(.chance-line)")].map(
      line => line.getAttribute("points").split(" ").map(point => +point.split(",")[1]))"""
    line, = page.evaluate(ends)
    assert line[3] < line[1] < line[0] and line[3] == line[10]  # the first three are all the faults
    page.get_by_role("button", name="bad").click()
    assert page.locator(".chart polyline.before").count() == page.locator(".chart polyline.now").count() == 1
    late = page.evaluate(ends)[1]
    assert late[0] == late[7] > late[8] > late[10] == line[10]


def test_the_queue_shows_its_order(opened):
    page = opened("game")
    first = """() => document.querySelector(".candidate canvas").getContext("2d")
      .getImageData(0, 0, 1, 1).data[0]"""
    assert page.evaluate(first) == 255
    page.get_by_role("button", name="bad").press("Enter")
    assert page.evaluate(first) == 0
