import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from rich.console import Console

from dnnlib import files, models
from dnnlib.cli import terminal
from dnnlib.custom.options import METHODS
from dnnlib.selection import SELECTORS

COMMANDS = ["models", "rank", "fuzz", "compare", "stress", "layers"]


def one_line(text):
    return text.startswith("error: ") and text.endswith("\n") and text.count("\n") == 1


def squeezed(text, printed):
    """The words of ``text`` that do not stand whole in what was printed."""
    return set(text.split()) - set(printed.split())


# Help


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example(dnnlib, command):
    code, out, _ = dnnlib(command, "--help")
    assert code == 0 and f"dnnlib {command}" in out.split("Example")[1]


@pytest.mark.parametrize("command, names", [
    ("rank", SELECTORS), ("fuzz", METHODS), ("compare", [*SELECTORS, *METHODS])])
def test_help_names_every_method(dnnlib, command, names):
    _, out, _ = dnnlib(command, "--help")
    assert set(names) <= set(re.findall(r"\w+", out)) and "{" not in out


def test_help_lists_the_commands(dnnlib):
    code, out, _ = dnnlib("--help")
    assert code == 0 and all(f" {command} " in out for command in COMMANDS) and "--debug" in out


# Mistakes


@pytest.mark.parametrize("command", ["run", "scoreboard", "data"])
def test_a_command_of_the_book_is_named(dnnlib, command):
    code, out, err = dnnlib(command, "nsatp/02")
    assert code == 2 and one_line(err) and f"dnnbook {command}" in err and not out


@pytest.mark.parametrize("arguments", [["fly"], ["rank", "--fast"]])
def test_wrong_usage_ends_with_two(dnnlib, arguments):
    code, _, err = dnnlib(*arguments)
    assert code == 2 and "Usage" in err


# Ranking


OWN = """
import torch
from torch import nn

class Fixed(nn.Module):
    def __init__(self, values):
        super().__init__()
        self.values = nn.Parameter(torch.tensor(values))

    def forward(self, x):
        return self.values.expand(len(x), -1)

def linear(outputs=3):
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, outputs))

def raises():
    return {}["width"]

class Late(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = linear()

    def forward(self, x):
        return nosuch(self.inner(x))

def late():
    return Late()

def colour():
    return nn.Sequential(nn.Conv2d(3, 2, 3), nn.Flatten(), nn.Linear(72, 3))

def softmax():
    return nn.Sequential(linear(), nn.Softmax(1))

def one():
    return nn.Sequential(linear(1), nn.Sigmoid())

def constant():
    return Fixed([1.0, 2.0, 3.0])

def nan():
    return Fixed([1.0, float("nan"), 3.0])

def certain():
    model = linear()
    model[3].weight.data[:] *= 1e-3
    model[3].bias.data[:] = torch.tensor([0.0, 5.0, 0.0])
    return model

def number():
    return 3
"""


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """A folder with twenty images, one broken one and a text; a model in own.py; we are there."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for i in range(20):
        path = tmp_path / "photos" / "ab"[i % 2] / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (8, 8), dtype=np.uint8)).save(path)
    (tmp_path / "photos" / "torn.png").write_bytes(b"")
    (tmp_path / "photos" / "notes.txt").write_text("no image")
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "single").mkdir()
    (tmp_path / "single" / "0.png").write_bytes((tmp_path / "photos" / "a" / "0.png").read_bytes())
    return tmp_path / "photos"


def ranked(function="linear", by="gini", images="photos", *more):
    return ["rank", "--model", f"own.py:{function}", "--images", images, "--by", by, *more]


def test_rank_writes_all_images_and_their_sheet(dnnlib, photos, tmp_path):
    code, out, err = dnnlib(*ranked(by="gini,ats,dsa"), "--reference", "photos", "--top", "10%",
                            "--out", "out/first.csv")
    assert code == 3, err  # one image could not be read
    table = pd.read_csv(tmp_path / "out" / "first.csv")
    inside = sorted(p.relative_to(photos).as_posix() for p in photos.rglob("*.png"))
    assert sorted(table["path"]) == inside
    assert table["gini_rank"].tolist()[:20] == [*range(1, 21)]
    assert table["gini_score"][:20].is_monotonic_decreasing
    for name in ("gini", "ats", "dsa"):
        assert sorted(table[f"{name}_rank"][:20]) == [*range(1, 21)]
        assert table[f"{name}_selected"].tolist() == (table[f"{name}_rank"] <= 2).tolist()
        assert f"First by {name}" in out
    assert table["ats_score"].isna().all()
    torn = table.iloc[20]
    assert torn["path"] == "torn.png" and torn["note"].startswith("is not a readable image")
    assert torn[["gini_score", "gini_rank"]].isna().all()
    with Image.open(tmp_path / "out" / "first.png") as sheet:
        sheet.verify()
        assert sheet.format == "PNG"
    for words in ("20 images of 1 x 8 x 8 ranked, 2 selected", "wrote out/first.csv and first.png",
                  "images in photos that were skipped: 1\n  torn.png is not a readable image",
                  "files in photos that are not images by their ending: 1"):
        assert words in out
    assert "ranking" in err  # the bar


def test_rank_from_outputs_alone(dnnlib, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("p.npy", np.array([[0.9, 0.1], [0.5, 0.5], [0.7, 0.3]]))
    code, out, err = dnnlib("rank", "--outputs", "p.npy", "--by", "gini", "--top", "1")
    assert code == 0, err
    assert pd.read_csv("ranking.csv")["path"].tolist() == [1, 2, 0]
    assert "3 outputs of 2 classes ranked, 1 selected" in out
    for more, words in [(["--by", "nss"], "nss: needs a model and images"),
                        (["--by", "gini", "--model", "m.py:f"], "--outputs: either it"),
                        (["--by", "gini", "--logits"], "leave --logits out")]:
        code, _, err = dnnlib("rank", "--outputs", "p.npy", "--top", "1", *more)
        assert code == 2 and words in err
    for option, *value in [("--weights", "w.pt"), ("--reference", "photos"), ("--layers", "1"),
                           ("--size", "8"), ("--mean", "0.5"), ("--classes", "2"), ("--strict",),
                           ("--estimate",), ("--gallery", "a.html"), ("--scheduler", "tcp://a:1")]:
        code, _, err = dnnlib("rank", "--outputs", "p.npy", "--top", "1", option, *value)
        assert code == 2 and f"{option}: needs a model and images, and --outputs" in err
    code, _, err = dnnlib("rank", "--outputs", "p.npy", "--top", "1", "--class-names", "cat,dog",
                          "--gallery", "none")
    assert code == 0, err
    assert pd.read_csv("ranking.csv")["predicted_name"].tolist() == ["cat"] * 3
    code, _, err = dnnlib("rank", "--outputs", "p.npy", "--top", "1", "--class-names", "cat")
    assert code == 2 and "class_names: expected 2, one for each class" in err
    np.save("z.npy", np.array([[0.9, 0.1], [0.5, 3.0], [0.7, -0.3]]))
    code, _, err = dnnlib("rank", "--outputs", "z.npy", "--by", "gini", "--top", "1", "--logits")
    assert code == 0, err


def test_layers_are_listed(dnnlib, photos):
    code, out, err = dnnlib("layers", "--model", "own.py:linear", "--images", "photos")
    assert code == 0, err
    assert "Linear" in out and "3 layers, 35 neurons" in out and "left out: 1\n  0: only moves values" in out
    code, out, _ = dnnlib("layers", "--model", "own.py:linear", "--images", "photos",
                          "--match", "1,x*")
    assert code == 2
    code, _, err = dnnlib("layers", "--model", "own.py:linear")
    assert code == 2 and "--size: expected the pixels" in err


@pytest.mark.parametrize("more, words", [
    (["--device", "cdua"], "unknown device 'cdua'; did you mean 'cuda'"),
    (["--mean", "0.5"], "mean, std: expected both"), (["--size", "8", "--crop", "8"], "--size: either"),
    (["--crop", "9"], "smaller than the crop of 9"),
    (["--by", "gini,nac", "--layers", "1"], None),
    (["--by", "gini,pd", "--layers", "1"], "layers: only with methods that take some (--layers), got gini, pd"),
    (["--by", "nac", "--layers", "9*"], "nothing matches '9*'")])
def test_rank_options_of_images_and_layers(dnnlib, photos, more, words):
    code, _, err = dnnlib(*ranked(), *more)
    assert (code, words or "") == (2 if words else 3, (words or "") if (words or "") in err else err)


def test_rank_shows_five_rows_as_in_the_table(dnnlib, photos, tmp_path):
    _, out, _ = dnnlib(*ranked())
    shown = [line.split() for line in out.splitlines() if line.strip()[:1].isdigit()][:5]
    table = pd.read_csv(tmp_path / "ranking.csv")[:5]
    assert [row[2] for row in shown] == table["path"].tolist()
    assert [float(row[1]) for row in shown] == pytest.approx(table["gini_score"].tolist(), rel=1e-3)


def test_rank_takes_probabilities_when_told(dnnlib, photos, tmp_path):
    orders = []
    for i, arguments in enumerate([["linear"], ["softmax", "gini", "photos", "--probabilities"]]):
        assert dnnlib(*ranked(*arguments), "--out", f"{i}.csv")[0] == 3  # one cannot be read
        orders.append(pd.read_csv(tmp_path / f"{i}.csv")["path"].tolist())
    assert orders[0] == orders[1]


def test_rank_by_name_with_options(dnnlib, photos, tmp_path):
    network = models.build("mobilenet", shape=(3, 32, 32), classes=4, width=0.25)
    mobile = {name: 2 * value for name, value in network.state_dict().items()}  # fresh: constant
    files.save_tensors(tmp_path / "w.safetensors", mobile)
    code, out, err = dnnlib("rank", "--model", "mobilenet", "--width", 0.25, "--classes", 4,
                            "--size", 32, "--weights", "w.safetensors", "--images", "photos",
                            "--by", "margin", "--top", 3)
    assert code == 3 and "20 images of 3 x 32 x 32 ranked, 3 selected" in out, err


@pytest.mark.parametrize("arguments, code, words", [
    (ranked("one"), 2, "every output is in [0, 1], where logits are expected; say so (--prob"),
    (ranked("constant"), 2, "the same output for each of 20 images"),
    (ranked("nan"), 2, "finite outputs"),
    (ranked("softmax"), 2, "probabilities where logits are expected"),
    (ranked("linear", "gini", "photos", "--probabilities"), 2, "logits need no such option"),
    (ranked("number"), 2, "return a torch.nn.Module, or a pair"),
    (ranked("lniear"), 2, "did you mean 'linear'"),
    (ranked("linear", "gini", "single"), 2, "at least two candidates to order, got 1"),
    (ranked("linear", "dsa"), 2, "dsa: needs training images; give a folder of them (--reference)"),
    (ranked("certain", "dsa", "photos", "--reference", "photos"), 2,
     "dsa: reference: expected inputs of at least two predicted classes"),
    (ranked("linear", "ginni"), 2, "did you mean 'gini'"),
    (ranked("linear", "gini", "photos", "--top", "1%"), 2, "of 20 candidates is none"),
    *((ranked("linear", "gini", "photos", "--top", top), 2, f"(--top), got {top}")
      for top in ("0", "-5", "200%", "1.5")),
    (ranked("linear", "random", "photos", "--seed", "-1"), 2, "seed: expected a whole number from"),
    (ranked("linear", "random", "photos", "--seed", str(2**64)), 2, "seed: expected a whole number"),
    (ranked("linear", "gini", "photos", "--strict"), 2,
     "--strict: 1 cannot be read; the first: torn.png is not a readable image"),
    (ranked("linear", "gini", "photos", "--size", "100000"), 2, "at most 8192 pixels a side"),
    (ranked("linear", "gini", "photos", "--out", "own.py/x.csv"), 2, "own.py is not a folder"),
    (ranked("linear", "gini", "photos", "--out", "/proc/x.csv"), 2, "--out: cannot write /proc/x"),
    (ranked("raises"), 2, "raises() of own.py fails: own.py, line "),
    (ranked("raises"), 2, ": KeyError: 'width'"),
    (ranked("colour"), 2, "they are gray-scale, and it takes 3 channels: say so (--channels 3)"),
    (ranked("late"), 2, "NameError: name 'nosuch' is not defined"),
    (["rank", "--model", "torn.py:f", "--images", "photos", "--by", "gini"], 2,
     "torn.py does not run: torn.py, line 2: SyntaxError"),
    (ranked("linear", "gini", "photos", "--top", "21"), 2, "at most the 20 images"),
    (ranked("linear", "gini", "photos", "--out", "x.txt"), 2, "--out: expected a name that ends"),
    (ranked("linear", "gini", "photos", "--size", "9"), 2, "cannot take images of shape (1, 9, 9)"),
    (ranked("linear", "gini", "photos", "--batch-size", "0"), 2, "batch_size: expected"),
    (ranked("linear", "gini", "nowhere"), 1, "nowhere is not a folder"),
    (ranked("linear", "gini", "photos", "--weights", "w.txt"), 2, ".pt, .pth, .tar, got w.txt"),
    (ranked("linear", "gini", "photos", "--weights", "w.pt"), 1, "no weights at w.pt"),
    (["rank", "--model", "lenet5", "--images", "photos", "--by", "gini"], 2,
     "weights: expected a file with those of 'lenet5'"),
    (["rank", "--model", "lenet5", "--width", "2", "--images", "photos", "--by", "gini",
      "--weights", "w.safetensors"], 2, "width"),
    (["rank", "--model", "none.py:f", "--images", "photos", "--by", "gini"], 1, "no file none.py")])
def test_ranking_that_cannot_be(dnnlib, photos, tmp_path, arguments, code, words):
    (tmp_path / "torn.py").write_text("import torch\ndef f(:\n")
    before = sorted(tmp_path.rglob("*"))
    got, out, err = dnnlib(*arguments)
    last = err.splitlines()[-1]
    assert got == code and last.startswith("error: ") and words in last and not out
    assert [p for p in sorted(tmp_path.rglob("*")) if "__pycache__" not in str(p)] == before


# Lists


@pytest.mark.parametrize("width", [100, 120])
def test_models_show_the_published_counts(dnnlib, monkeypatch, width):
    monkeypatch.setattr(terminal, "out", Console(width=width))
    code, out, _ = dnnlib("models")
    assert code == 0 and max(map(len, out.splitlines())) <= width
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.strip()}
    for name, spec in models.SPECS.items():
        if spec.published:  # 1 x 28 x 28, classes, then ours and theirs of each
            theirs = [f"{spec.published[what]:,}" for what in ("parameters", "neurons")]
            assert [rows[name][7], rows[name][9]] == theirs
        assert not squeezed(spec.note, out)


def test_output_that_is_no_terminal_has_120_columns(tmp_path):
    done = subprocess.run([sys.executable, "-c", "from dnnlib.cli import terminal; print(terminal.out.width)"],
                          capture_output=True, text=True, env={"PATH": "", "HOME": str(tmp_path)})
    assert done.stdout == "120\n", done.stderr


def test_rank_hands_on_what_it_selects(dnnlib, photos, tmp_path):
    code, out, err = dnnlib(*ranked(by="gini,random"), "--top", "3", "--merge", "--copy-to", "first",
                            "--label-studio", "tasks.json", "--class-names",
                            "cat,dog,bird")
    assert code == 3, err  # one image could not be read
    table = pd.read_csv("ranking.csv")
    assert sorted(p.name for p in (tmp_path / "first").iterdir()) == [
        f"{i:04d}_{path.split('/')[-1]}" for i, path in enumerate(table["path"][:3], start=1)]
    assert table["merged_rank"][:3].tolist() == [1, 2, 3] and "First by merged" in out
    [choice] = json.loads((tmp_path / "tasks.json").read_text())[0]["predictions"][0]["result"]
    assert choice["value"]["choices"] == [("cat", "dog", "bird")[int(table["predicted"][0])]]
    assert f"DOCUMENT_ROOT={photos.parent}\n" in out and f"add {photos} under Cloud Storage" in out
    assert '<Choice value="bird"' in (tmp_path / "tasks.xml").read_text()
    assert "b/1.png" in (tmp_path / "ranking.html").read_text() and "wrote ranking.html" in out


@pytest.mark.parametrize("more, words", [
    (["--copy-to", "photos"], "--copy-to: expected a folder that is empty or not there"),
    (["--gallery", "page.pdf"], "--gallery: expected a name that ends in .html, or none"),
    (["--label-studio", "tasks.csv"], "--label-studio: expected a name that ends in .json"),
    (["--out", "ranking.txt"], "--out: expected a name that ends in .csv or .parquet")])
def test_rank_hands_nothing_on(dnnlib, photos, more, words):
    before = sorted(photos.parent.rglob("*"))
    code, _, err = dnnlib(*ranked(), *more)
    assert code == 2 and words in err and sorted(photos.parent.rglob("*")) == before


def test_compare_writes_table_picture_and_sentence(dnnlib, photos):
    (photos / "a" / "0.png").rename(photos / "c.png")
    (photos / "c").mkdir()
    (photos / "c.png").rename(photos / "c" / "0.png")
    arguments = ["compare", "--model", "own.py:linear", "--images", "photos", "--by", "gini,nac",
                 "--fuzz", "dlfuzz", "--l2", "1", "--iterations", "2", "--rates", "10 20"]
    code, out, err = dnnlib(*arguments)
    assert code == 3 and "torn.png is not a readable image" in out, err
    table = pd.read_csv("comparison.csv")
    assert len(table) == 2 * 4 + 1 and "At 10 %" in out and "best possible" in out
    with Image.open("comparison.png") as drawn:
        assert drawn.format == "PNG"
    code, _, err = dnnlib(*arguments, "--out", "a.txt")
    assert code == 2 and "--out: expected a name that ends in .csv" in err
    (photos.parent / "ranked.run").mkdir()
    code, _, err = dnnlib(*arguments, "--out", "ranked.csv")
    assert code == 2 and "--out: ranked.csv is a table of `dnnlib rank`, which keeps" in err
    code, _, err = dnnlib(*arguments[:5], "--by", "gini", "--l2", "1")
    assert code == 2 and "l2: only with fuzzers (--fuzz)" in err
    code, _, err = dnnlib(*arguments[:5], "--by", "gini", "--layers", "nonsense")
    assert code == 2 and "layers: only with methods that take some" in err


def test_compare_ends_with_three_if_a_method_of_ones_own_fails(dnnlib, photos):
    (photos / "torn.png").unlink()
    (photos / "c").mkdir()
    (photos / "a" / "0.png").rename(photos / "c" / "0.png")
    folder = photos.parent / "my methods"  # with a blank
    folder.mkdir()
    (folder / "late.py").write_text("""
from dataclasses import dataclass
from dnnlib.fuzzing import Budget, Noise
from dnnlib.selection import Scored

@dataclass(frozen=True, kw_only=True, eq=False)
class Late(Scored):
    def read(self, batch, known):
        if 9 in batch.places.tolist():
            raise OSError("no nine")
        return batch.p.amax(1)

@dataclass(frozen=True, kw_only=True)
class Long(Noise):
    def run(self, *given, iterations, **more):
        if iterations > 1:
            raise OSError("too long")
        return super().run(*given, iterations=iterations, **more)

Other = Late
""")
    (photos / "readme.txt").unlink(missing_ok=True)
    arguments = ["compare", "--model", "own.py:linear", "--images", "photos"]
    code, out, err = dnnlib(*arguments, "--by", "gini")
    assert code == 0, err
    for name, more in [("late", ("--by", "gini,my methods/late.py:Other")),
                       ("long", ("--by", "gini", "--l2", "1", "--iterations", "2",
                                 "--fuzz", "my methods/late.py:Long,dlfuzz"))]:
        code, out, err = dnnlib(*arguments, *more)
        assert code == 3 and f"left out: {name}: late.py, line " in out, err
