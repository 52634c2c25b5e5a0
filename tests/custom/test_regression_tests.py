"""Tests to keep: the files that ``--pytest`` writes, run by pytest, before and after a repair."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from dnnlib import custom, files
from dnnlib.custom import regression_tests
from dnnlib.custom.regression_tests import Setting

OWN = """
import torch
from torch import nn

class Bright(nn.Module):
    def __init__(self):
        super().__init__()
        self.bound = nn.Parameter(torch.tensor(0.0))

    def forward(self, x):
        assert x.shape[1:] == (1, 6, 6), x.shape
        mean = x.flatten(1).mean(1) - self.bound
        return 10 * torch.stack([-mean, mean], 1)

def build():
    return Bright()
"""
# 0 is gray 0.5 by these: without them, or without the size, the model answers otherwise
OPTIONS = ["--model", "models/own.py:build", "--weights", "models/w.safetensors", "--images",
           "photos", "--size", "6", "--mean", "0.5", "--std", "0.5", "--class-names", "dark,light"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Photos in folders by class, of which 126 and 127 are nearly light; a model; we are there."""
    monkeypatch.chdir(tmp_path)
    for i, (name, level) in enumerate([("dark", 10), ("dark", 126), ("dark", 127), ("dark", 127),
                                       ("light", 200), ("light", 240), ("light", 90)]):
        path = tmp_path / "photos" / name / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (9, 7), level).save(path)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "own.py").write_text(OWN)
    weights(tmp_path, 0.0)
    return tmp_path


def weights(folder, bound):
    files.save_tensors(folder / "models" / "w.safetensors", {"bound": torch.tensor(bound)})


def by_pytest(file: Path, place: Path):
    """pytest's own words on a file, run from another folder."""
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)],
                          cwd=place, capture_output=True, text=True,
                          env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
    return done.returncode, done.stdout


def test_failing_inputs_fail_until_the_model_gets_them_right(dnnlib, folder, tmp_path_factory):
    fuzz = ["fuzz", *OPTIONS, "--by", "noise", "--linf", "0.2", "--iterations", "12", "--out",
            "runs/failures", "--pytest", "tests/test_failures.py"]
    code, out, err = dnnlib(*fuzz)
    assert code == 0 and "run it with pytest tests/test_failures.py" in out, err
    made = pd.read_csv("runs/failures/failures.csv")
    names = {Path(name).name for name in made["file"]}
    assert len(names) > 1 and {*made["label"]} == {"dark"}  # of 126 and both 127
    file, elsewhere = folder / "tests" / "test_failures.py", tmp_path_factory.mktemp("elsewhere")
    assert len(file.read_text().splitlines()) < 60 and str(folder) not in file.read_text()
    code, said = by_pytest(file, elsewhere)
    assert code == 1 and f"{len(names)} failed" in said
    for name in names:
        assert f"test_failing_input[{name}]" in said
        assert f"{name}: label dark, prediction light" in said
    weights(folder, 0.2)  # from 0.6 on, images are light
    code, said = by_pytest(file, elsewhere)
    assert code == 0 and f"{len(names)} passed" in said
    assert dnnlib("fuzz", *fuzz[1:], "--seed", "1", "--out", "again")[0] == 0  # ours is written anew
    assert "again" not in file.read_text()  # nothing failed, and it says so
    weights(folder, 0.0)
    assert dnnlib(*fuzz, "--out", "again", "--labels", "folders")[0] == 2  # another run's folder
    assert dnnlib(*fuzz, "--out", "third", "--labels", "folders")[0] == 0
    assert 'HERE / "../third/images"' in file.read_text()


def test_the_fault_rate_stays_under_its_bound(dnnlib, folder, tmp_path_factory):
    code, out, err = dnnlib("rank", *OPTIONS, "--by", "gini", "--pytest", "tests/test_rate.py")
    assert code == 0 and "1 of 7 images are wrong; wrote tests/test_rate.py" in out, err
    file, elsewhere = folder / "tests" / "test_rate.py", tmp_path_factory.mktemp("elsewhere")
    [bound] = re.findall(r"^BOUND = (\S+)", file.read_text(), re.M)
    assert 1 / 7 <= float(bound) < 1 / 7 + 1e-4
    assert by_pytest(file, elsewhere)[0] == 0
    weights(folder, 0.8)  # 200 is dark now, too
    code, said = by_pytest(file, elsewhere)
    assert code == 1 and "2 of 7 images are wrong" in said
    assert "light/4.png: light taken for dark" in said and "light/6.png" in said


@pytest.mark.parametrize("command, more, words", [
    ("rank", ["--pytest", "t.txt"], "--pytest: expected a name that ends in .py, got t.txt"),
    ("rank", ["--pytest", "models/own.py"], "models/own.py is there, and not written by dnnlib"),
    ("fuzz", ["--pytest", "models/own.py"], "models/own.py is there, and not written by dnnlib"),
    ("rank", ["--pytest", "t.py", "--estimate"], "--pytest: only without --estimate"),
    ("fuzz", ["--pytest", "t.py", "--estimate"], "--pytest: only without --estimate"),
    ("rank", ["--pytest", "t.py", "--images", "photos/dark"],
     "labels: expected the class of every image, by the sub-folder"),
    ("rank", ["--pytest", "t.py", "--class-names", "a,b,c"], "class_names: expected 2")])
def test_a_test_that_cannot_be_is_told_at_once(dnnlib, folder, monkeypatch, command, more, words):
    before = sorted(folder.rglob("*"))
    monkeypatch.setattr(custom, {"rank": "rank", "fuzz": "fuzz"}[command],
                        lambda *_, **__: pytest.fail("computed"))
    given = ["--by", "noise", "--linf", "0.1"] if command == "fuzz" else []
    code, out, err = dnnlib(command, *OPTIONS, *given, *more)
    last = err.splitlines()[-1]
    assert code == 2 and last.startswith("error: ") and words in last and not out
    assert [p for p in sorted(folder.rglob("*")) if "__pycache__" not in str(p)] == before


def test_outputs_alone_have_no_test(dnnlib, folder):
    np.save("p.npy", np.array([[0.9, 0.1], [0.5, 0.5]]))
    code, _, err = dnnlib("rank", "--outputs", "p.npy", "--pytest", "t.py")
    assert code == 2 and "--pytest: needs a model and images" in err and not Path("t.py").exists()


def test_without_a_failing_input_there_is_no_test(dnnlib, folder):
    weights(folder, 0.3)
    code, out, err = dnnlib("fuzz", *OPTIONS, "--by", "noise", "--linf", "0.01", "--pytest", "t.py")
    assert code == 0 and "no test to write to t.py" in out and not Path("t.py").exists(), err


def built(setting, file):
    """What ``load_model``, ``prepare`` and ``device`` are called with by the lines of a setting."""
    calls = []

    class Stub:
        def __getattr__(self, name):
            return lambda *args, **named: calls.append((name, args, named)) or self

    body = f"def model():\n{setting.built(file)}\n"
    exec(body, scope := {"custom": Stub(), "inference": Stub(), "HERE": file.parent})
    scope["model"]()
    return {name: (args, named) for name, args, named in calls}


@pytest.mark.parametrize("model, expected", [
    ("torchvision:resnet18", "torchvision:resnet18"), ("lenet5", "lenet5"),
    ("models/own.py:build", "/a/tests/../models/own.py:build"),
    ("m.onnx", "/a/tests/../m.onnx")])
def test_the_model_is_built_as_by_the_command(monkeypatch, model, expected):
    monkeypatch.setattr(regression_tests.os.path, "abspath", lambda path: str(Path("/a") / path))
    found = built(Setting(model=model, weights="w.pt", size=32, mean="0.5", std="0.25", classes=10,
                          channels=3, width=0.75, device="cpu"), Path("/a/tests/test_it.py"))
    (name, given), named = found["load_model"]
    assert (name, str(given)) == (expected, "/a/tests/../w.pt")
    assert named == {"size": 32, "channels": 3, "classes": 10, "width": 0.75}
    assert found["prepare"][1] == {"mean": (0.5,), "std": (0.25,)}
    assert found["device"][0] == ("cpu",)


def test_a_folder_of_hugging_face_is_found_from_the_test(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vit").mkdir()
    (tmp_path / "vit" / "config.json").write_text('{"id2label": {"0": "cat", "1": "dog"}}')
    (name,), _ = built(Setting(model="vit"), tmp_path / "tests" / "test_it.py")["load_model"]
    assert name == str(tmp_path / "tests" / "../vit")
    assert 'str(HERE / "../vit")' in Setting(model="vit").named(tmp_path / "tests" / "test_it.py")


def test_a_crop_is_the_size_that_the_model_is_built_for():
    found = built(Setting(model="lenet5", resize=40, crop=32), Path("test_it.py"))
    assert found["load_model"] == (("lenet5",), {"size": 32})
    assert found["prepare"][1] == {"resize": 40, "crop": 32}
    assert "prepare" not in built(Setting(model="lenet5"), Path("test_it.py"))


@pytest.mark.parametrize("setting, words", [
    (Setting(model="lenet5"), ""), (Setting(model="torchvision:resnet18", classes=3), ""),
    (Setting(model="torchvision:resnet18"), 'class_names=custom.published_names("torchvision:resnet18")'),
    (Setting(model="lenet5", class_names="a,b"), 'class_names=("a", "b")'),
    (Setting(model="lenet5", class_names="c.txt"), 'class_names=custom.read_names(str(HERE / "c.txt"))')])
def test_the_names_of_classes_are_those_of_the_command(setting, words):
    assert setting.named(Path("test_it.py")).strip(",\n ") == words


def test_any_name_is_only_text(tmp_path):
    """Of a class and a folder; and what is said of the outputs stands in the file."""
    names = ('it"s', "caf\udce9", "3")
    found = custom.Found(pd.DataFrame(), pd.DataFrame(
        [("images/000000-1.png", *names[:2])], columns=["file", "label", "predicted"], dtype=object),
        class_names=names)
    source = regression_tests.failures_test(found, tmp_path / 'a"b', tmp_path / "t.py", Setting(
        model="lenet5", probabilities=True), labels="folders")
    exec(compile(source.split(b"\n\ndef load")[0], "t.py", "exec"),
         scope := {"__file__": str(tmp_path / "t.py")})
    assert scope["CLASSES"] == {0: names[0], 1: names[1]} and scope["LABELS"] == {"000000-1.png": 0}
    assert scope["IMAGES"] == tmp_path.resolve() / 'a"b' / "images"
    assert b"custom.classifier(model, some, probabilities=True)" in source


@pytest.mark.parametrize("wrong, images, bound", [(0, 9, "0.0"), (1, 3, "0.3334"), (3, 3, "1.0"),
                                                  (29, 100, "0.29")])
def test_the_bound_allows_what_was_measured(wrong, images, bound):
    found = custom.Faults(images, dict.fromkeys(map(str, range(wrong)), ""), {})
    source = regression_tests.rate_test(found, "photos", "t.py", Setting(model="lenet5")).decode()
    assert f"BOUND = {bound}  #" in source and found.rate <= float(bound) < found.rate + 1e-4
    compile(source, "t.py", "exec")


def test_faults_are_those_of_the_images_that_can_be_read(folder, dnnlib):
    (folder / "photos" / "dark" / "torn.png").write_bytes(b"")
    model = custom.prepare(custom.load_model("models/own.py:build"), mean=(0.5,), std=(0.5,))
    photos = custom.read_photos("photos", model, size=6)
    found = custom.fault_rate(model, photos, class_names=("dark", "light"))
    assert found.wrong == {"light/6.png": "light taken for dark"} and found.images == 7
    code, out, _ = dnnlib("rank", *OPTIONS, "--by", "gini", "--pytest", "t.py")
    assert code == 3 and "1 of 7 images are wrong" in out and Path("t.py").exists()


def test_faults_of_images_without_an_answer_are_no_rate(folder, monkeypatch):
    """All answer at the first look, and none afterwards."""
    model = custom.prepare(custom.load_model("models/own.py:build"), mean=(0.5,), std=(0.5,))
    monkeypatch.setattr("dnnlib.custom.faults.classes_of_photos", lambda _, photos, **__: (
        torch.full((len(photos),), -1), dict.fromkeys(range(len(photos)), "is gone")))
    with pytest.raises(ValueError, match="none can be tested; the first: dark/0.png is gone"):
        custom.fault_rate(model, custom.read_photos("photos", model, size=6))
