"""``dnnlib stress``: what it prints and writes, what it refuses, and what it exits with."""

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image

OWN = """
import torch
from torch import nn

class Bright(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(10.0))

    def forward(self, x):
        mean = x.flatten(1).mean(1)
        return self.scale * torch.stack([0.5 - mean, mean - 0.5], 1)

def build():
    return Bright()
"""


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """24 gray photos by brightness, in folders by class; a model in own.py; we are there."""
    monkeypatch.chdir(tmp_path)
    for i, level in enumerate(np.linspace(10, 245, 24)):
        path = tmp_path / "photos" / ("dark", "light")[int(level > 127)] / f"{i:02d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (9, 7), int(level)).save(path)
    (tmp_path / "own.py").write_text(OWN)
    return tmp_path / "photos"


def stressed(*more):
    return ["stress", "--model", "own.py:build", "--images", "photos", *more]


def test_stress_prints_what_its_tables_hold(dnnlib, photos):
    code, out, err = dnnlib(*stressed("--by", "brightness", "--labels", "folders"))
    assert code == 0, err
    strengths = pd.read_csv("stress/strengths.csv")
    assert strengths["n"].tolist() == [24] * 12
    first = strengths[(strengths["direction"] == "darker") & (strengths["right"] < 24)].iloc[0]
    lost = 24 - first["right"]
    assert f"brightness darker {first['strength']:g} ({lost} of 24)" in out
    assert "24 images were changed" in out and "Where it fails first" in out
    assert "light (brightness darker" in out and "wrote stress.html, " in out
    assert "changing" in err  # the bar
    run = json.loads((photos.parent / "stress" / "run.json").read_bytes())
    assert run["command"] == "stress" and run["labels"] == "folders" and run["images"]["count"] == 24
    code, _, err = dnnlib(*stressed("--by", "blur", "--limit", "5"))  # its own folder, written anew
    assert code == 0 and {*pd.read_csv("stress/strengths.csv")["change"]} == {"blur"}, err


def test_what_lies_in_the_folder_of_photos_is_no_photo(dnnlib, photos):
    for _ in range(2):
        code, out, err = dnnlib(*stressed("--by", "blur", "--out", "photos/stress"))
        assert code == 0 and "24 images were changed" in out, err


def test_a_photo_that_cannot_be_read_ends_with_three(dnnlib, photos):
    (photos / "light" / "torn.png").write_bytes(b"")
    code, out, _ = dnnlib(*stressed("--by", "blur", "--labels", "folders", "--limit", "10"))
    assert code == 3 and "light/torn.png is not a readable image" in out
    assert "left out by --limit: 14" in out
    code, _, err = dnnlib(*stressed("--strict"))
    assert code == 2 and "--strict: 1 cannot be read" in err


@pytest.mark.parametrize("more, words", [
    (["--by", "blurr"], "unknown change 'blurr'; did you mean 'blur'?"),
    (["--by", "blur,blur"], "expected each once"), (["--labels", "names"], "unknown labels 'names'"),
    (["--out", "photos"], "holds files that `dnnlib stress` did not write"),
    (["--out", "own.py"], "expected a folder, got the file own.py"),
    (["--out", "own.py/x"], "own.py is not a folder"), (["--limit", "0"], "limit: expected"),
    (["--class-names", "a,b,c"], "class_names: expected 2")])
def test_stress_that_cannot_be(dnnlib, photos, more, words):
    before = sorted(photos.parent.rglob("*"))
    code, out, err = dnnlib(*stressed(*more))
    last = err.splitlines()[-1]
    assert code == 2 and last.startswith("error: ") and words in last and not out
    assert [p for p in sorted(photos.parent.rglob("*")) if "__pycache__" not in str(p)] == before
