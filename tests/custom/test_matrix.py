"""Networks that nobody here wrote: three rows of the page, which benchmarks/matrix.py makes."""

from pathlib import Path

import pytest
import torch
from torchvision.models import VisionTransformer

from dnnlib import custom, selection

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def matrix(benchmark_named):
    return benchmark_named("matrix")


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


@pytest.fixture(scope="module")
def page():
    """The committed table: the methods, the cells of each network, and the answers."""
    lines = (ROOT / "book" / "matrix.md").read_text().splitlines()
    header, _, *rows = (line for line in lines if line.startswith("|"))
    found = {name: rest for name, *rest in map(cells, rows)}
    answers = dict(line.split(" `", 1) for line in lines if line.startswith("("))
    return cells(header)[1:], found, {sign: text.rstrip("`") for sign, text in answers.items()}


def test_page_has_every_network_and_method(matrix, page):
    methods, rows, _ = page
    assert [*rows] == [*matrix.MODELS]
    assert methods == [*selection.SELECTORS, *(f"fuzz {name}" for name in custom.METHODS)]


@pytest.mark.parametrize("name", ["shufflenet_v2_x0_5", "mobilenet_v3_small", "googlenet"])
def test_row_is_as_on_the_page(matrix, page, name):
    methods, rows, answers = page
    shown = {method: answers.get(cell, "") for method, cell in zip(methods, rows[name])}
    assert set(rows[name]) <= {"✓", *answers}
    assert matrix.row(name) == shown


def test_a_small_transformer(matrix):
    torch.manual_seed(0)
    model = VisionTransformer(image_size=64, patch_size=16, num_layers=2, num_heads=2,
                              hidden_dim=16, mlp_dim=32, num_classes=4).eval()
    matrix.centred(model)
    for name in selection.SELECTORS:
        answer = matrix.selector(model, name)
        assert not answer or name == "npc" and "no rule for attention" in answer, (name, answer)
    for name in custom.METHODS:
        assert not matrix.fuzzer(model, name)
