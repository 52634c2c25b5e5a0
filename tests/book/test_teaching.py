"""The answers on the page for teachers are those of the engine."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from dnnbook.chapters import notebooks
from dnnlib.measures import first_success, uncertainty
from tests.book import cells

ROOT = Path(__file__).resolve().parents[2]
PAGE = " ".join((ROOT / "book" / "teaching.md").read_text("utf-8").split())


@pytest.mark.parametrize("vector", re.findall(r"\(([\d., ]+)\) has PD ([\d.]+), PV ([\d.]+) and PE ([\d.]+\d)", PAGE))
def test_vectors_by_hand(vector):
    p = torch.tensor([[float(part) for part in vector[0].split(",")]], dtype=torch.float64)
    for said, measure in zip(vector[1:], uncertainty.DISTANCES.values(), strict=True):
        digits = len(said.partition(".")[2])
        assert round(float(measure(p)), digits) == float(said)


def test_two_vectors_stand_on_the_page():
    assert len(re.findall(r"\) has PD", PAGE)) == 2


def test_the_place_of_the_first_image_that_breaks_in_a_random_order():
    fragile, images, place = re.search(r"With the book's seed it is (\d+) of ([\d,]+) images, so ([\d.]+)\.", PAGE).groups()
    success = torch.zeros(int(images.replace(",", "")), 2, dtype=torch.bool)
    success[:int(fragile)] = True
    found = first_success.expected_f_measure(success.numpy(), unit="examples", order="random")
    assert round(found, 1) == float(place)


def test_the_scatter_is_drawn_alone_and_before_the_chapter_is_opened():
    plan = PAGE.partition("## 90 minutes")[2]
    assert plan.index("scatter alone") < plan.index("Only now open the chapter") < plan.index("02_noise_sensitivity`")
    line = re.search(r"```python (.+?) ```", plan)[1]
    source = "\n".join(cell.source for cell in cells.code(notebooks.folder() / "nsatp" / "02_noise_sensitivity.py"))
    assert {"pd", "eff", "distances"} <= cells.names(source)[1]
    eff, pd_ = np.array([0.3, 0.0, 0.1]), np.array([0.2, 0.9, 0.5])
    drawn, = eval(line, {"pd": pd, "eff": eff, "distances": {"pd": pd_}}).lines
    assert drawn.get_linestyle() == "None" and drawn.get_xydata().tolist() == np.stack([pd_, eff], 1).tolist()


def test_what_needs_no_installation_comes_first():
    assert PAGE.startswith("# For teachers Without any installation, ") and "`_build/html`. It opens from there" in PAGE


def test_the_memory_of_a_kernel_is_that_of_the_benchmark():
    measured = json.loads((ROOT / "benchmarks" / "measured.json").read_text())
    said = re.search(r"has (\d+) MB of resident memory once its imports ran, and at most (\d+) MB until its end\. "
                     r"At its end it has (\d+) MB to itself", PAGE).groups()
    of_a_kernel = [measured[f"a kernel of a chapter {what}"]["figure"] for what in (
        "with its imports, resident memory", "at its end, the most of resident memory", "at its end, memory to itself")]
    assert [*map(int, said)] == [*map(round, of_a_kernel)]
    assert f"count {said[2]} MB for each student" in PAGE and "`python benchmarks/bench_kernel.py`" in PAGE


def test_the_plan_takes_90_minutes():
    plan = PAGE.partition("## 90 minutes")[2].partition("Answers, block by block")[0]
    assert sum(map(int, re.findall(r"\| (\d+) \| ", plan))) == 90


def test_the_exercise_to_take_home():
    vector, value = re.search(r"softmax vector \(([\d., ]+)\).*?= ([\d.]+)\. ```", PAGE).groups()
    p = torch.tensor([[float(part) for part in vector.split(",")]])
    assert float(uncertainty.probability_difference(p)) == pytest.approx(float(value))
