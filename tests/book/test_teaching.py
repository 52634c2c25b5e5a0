"""The answers on the page for teachers are those of the engine."""

import re
from pathlib import Path

import pytest
import torch

from dnnlib.measures import first_success, uncertainty

PAGE = " ".join((Path(__file__).resolve().parents[2] / "book" / "teaching.md").read_text("utf-8").split())


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


def test_the_exercise_to_take_home():
    vector, value = re.search(r"softmax vector \(([\d., ]+)\).*?= ([\d.]+)\. ```", PAGE).groups()
    p = torch.tensor([[float(part) for part in vector.split(",")]])
    assert float(uncertainty.probability_difference(p)) == pytest.approx(float(value))
