"""The swarm by hand in Chromium: it flies as the engine does, and over ground that one draws."""

import pytest
import torch
from torch import nn

from dnnbook import interactive
from dnnbook.interactive.movie import flown
from dnnlib.fuzzing import Constant, Swarm
from dnnlib.neurons.sensitivity import SensitiveNeurons

IMAGE, LABEL, ITERATIONS = torch.tensor([[[0.35, 0.6]]]), 1, 8
S = 400  # the width of the picture in its own units
PLACES = """() => [...document.querySelectorAll("circle.point")].map(
  dot => [+dot.getAttribute("cx"), +dot.getAttribute("cy")])"""


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(2, 12), nn.Tanh(), nn.Linear(12, 2)).eval()


def engine(fitness, inertia=(0.4, 0.9)) -> torch.Tensor:
    """Where the engine's particles are in the last iteration, in units of the picture."""
    swarm = Swarm(fitness=fitness, population=6, inertia=inertia)
    x = flown(swarm, network(), IMAGE, LABEL, iterations=ITERATIONS)[0][-1].flatten(1)
    return torch.stack([S * x[:, 0], S * (1 - x[:, 1])], 1)


@pytest.fixture
def opened(browser, looks):
    page = browser.new_page(viewport=looks.desk)
    page.set_default_timeout(10_000)
    block = interactive.swarm_ground(network(), IMAGE, LABEL, iterations=ITERATIONS)
    page.set_content(f"<article>{block._repr_html_()}</article>")
    page.get_by_role("slider", name="Iteration").press("End")
    yield page
    page.close()


def flies(page, fitness, **options) -> bool:
    return torch.allclose(torch.tensor(page.evaluate(PLACES)), engine(fitness, **options), atol=0.01)


def best(page) -> tuple[float, float]:
    """Where the diamond is: left and right pixel."""
    box, square = (page.locator(name).bounding_box() for name in (".best", ".stage canvas"))
    return ((box["x"] + box["width"] / 2 - square["x"]) / square["width"],
            1 - (box["y"] + box["height"] / 2 - square["y"]) / square["height"])


def at(page, left: float, right: float) -> tuple[float, float]:
    """Where on the screen an image of two pixels is."""
    box = page.locator(".stage canvas").bounding_box()
    return box["x"] + left * box["width"], box["y"] + (1 - right) * box["height"]


def test_lambda_and_inertia_fly_what_the_engine_flies(opened):
    assert flies(opened, SensitiveNeurons())
    opened.get_by_role("slider", name="Threshold λ").fill("0.2")
    assert flies(opened, SensitiveNeurons(threshold=0.2))
    assert not flies(opened, SensitiveNeurons())
    opened.get_by_role("slider", name="Inertia, end").press("Home")
    assert flies(opened, SensitiveNeurons(threshold=0.2), inertia=(0.4, 0.0))
    opened.get_by_role("button", name="Reset").click()
    opened.get_by_role("slider", name="Iteration").press("End")
    assert flies(opened, SensitiveNeurons())


@pytest.mark.parametrize("width", [1300, 700, 390])
def test_points_lie_on_their_images_however_high_the_controls_are(opened, width):
    opened.set_viewport_size({"width": width, "height": 900})
    picture, points = (opened.locator(name).bounding_box() for name in (".stage canvas", ".stage svg"))
    assert picture == pytest.approx(points, abs=1)


def test_a_higher_lambda_darkens_the_ground_below_the_same_colour_bar(opened):
    mean = """() => { const c = document.querySelector(".stage canvas");
      const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
      return d.filter((_, i) => i % 4 === 1).reduce((sum, v) => sum + v, 0); }"""
    before, scale = opened.evaluate(mean), opened.locator(".scale").inner_text()
    opened.get_by_role("slider", name="Threshold λ").press("End")
    assert opened.evaluate(mean) < before and opened.locator(".scale").inner_text() == scale


def test_on_ground_that_nobody_has_drawn_yet_it_flies_as_with_a_constant_fitness(opened):
    opened.get_by_role("button", name="draw your own").click()
    assert flies(opened, Constant())
    assert opened.get_by_role("slider", name="Threshold λ").is_disabled()
    assert opened.locator(".scale").inner_text().split() == ["high", "low"]


@pytest.mark.parametrize("left, right", [(0.2, 0.15), (0.9, 0.6)])
def test_the_best_place_is_where_one_drew(opened, left, right):
    opened.get_by_role("button", name="draw your own").click()
    opened.mouse.move(*at(opened, left - 0.1, right))
    opened.mouse.down()
    opened.mouse.move(*at(opened, left + 0.1, right), steps=12)
    opened.mouse.up()
    found = best(opened)
    assert abs(found[0] - left) < 0.25 and abs(found[1] - right) < 0.15
    opened.get_by_role("button", name="lower").click()  # a hill that is taken away again
    opened.mouse.move(*at(opened, left - 0.2, right))
    opened.mouse.down()
    opened.mouse.move(*at(opened, left + 0.2, right), steps=40)
    opened.mouse.up()
    assert "height 0.00" in opened.locator(".said").inner_text()


def test_the_keyboard_draws(opened):
    opened.get_by_role("button", name="draw your own").press("Enter")
    field = opened.locator(".stage canvas")
    assert "space raises" in field.get_attribute("aria-label")
    field.focus()
    for _ in range(6):
        opened.keyboard.press("ArrowRight")
    for _ in range(8):
        opened.keyboard.press("Space")
    found = best(opened)
    assert abs(found[0] - 0.8) < 0.25 and abs(found[1] - 0.5) < 0.25
    for _ in range(8):
        opened.keyboard.press("Shift+Space")
    assert "height 0.00" in opened.locator(".said").inner_text()


def test_it_plays_to_its_end(opened):
    opened.get_by_role("button", name="Play").press("Enter")
    opened.get_by_text("Iteration 2 of 7").wait_for()
    opened.get_by_role("slider", name="Threshold λ").fill("1")  # it flies on
    opened.get_by_text("Iteration 3 of 7").wait_for()
    opened.get_by_role("button", name="Pause").click()
    assert opened.get_by_role("button", name="Play").is_visible()
