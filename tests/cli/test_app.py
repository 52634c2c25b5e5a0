import json
import subprocess
import sys

import jupytext
import nbformat
import numpy as np
import pandas as pd
import pytest
from PIL import Image
from rich.console import Console

from dnnlib import files, models, published
from dnnlib.book import notebooks
from dnnlib.cli import app as cli
from dnnlib.cli import terminal
from dnnlib.data import sources

COMMANDS = ["data", "models", "rank", "fuzz", "run", "scoreboard", "replay", "notebooks",
            "figures", "lab"]


@pytest.fixture
def dnnlib(monkeypatch, capsys):
    """``dnnlib("run", ...)``: exit code, stdout and stderr of a command."""
    def call(*arguments, debug: bool = False):
        monkeypatch.setattr(sys, "argv", ["dnnlib", *map(str, arguments)])
        monkeypatch.setattr(cli, "DEBUG", debug)
        with pytest.raises(SystemExit) as stop:
            cli.main()
        return stop.value.code or 0, *capsys.readouterr()
    return call


@pytest.fixture
def page(tmp_path):
    """``page(code)``: a notebook with a parameter x = 1, a cell that prints it, and ``code``."""
    def make(code: str):
        path = tmp_path / "page.ipynb"
        text = '# %% tags=["parameters"]\nx = 1  # a number\n# %%\nprint("x is", x)\n# %%\n' + code
        notebook = jupytext.reads(text, "py:percent")
        notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3",
                                        "language": "python"}
        jupytext.write(notebook, path)
        return path
    return make


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


def test_help_lists_the_commands(dnnlib):
    code, out, _ = dnnlib("--help")
    assert code == 0 and all(f" {command} " in out for command in COMMANDS) and "--debug" in out


# Mistakes


def test_a_traceback_only_on_request():
    def program(*arguments):
        return subprocess.run([sys.executable, "-m", "dnnlib.cli", *arguments],
                              capture_output=True, text=True)

    short = program("run", "nsatp/02", "-p", "dataset")
    assert short.returncode == 2 and one_line(short.stderr) and not short.stdout
    long = program("run", "nsatp/02", "-p", "dataset", "mnits", "--debug")
    assert long.returncode != 0 and "Traceback" in long.stderr
    assert "unknown dataset 'mnits'; did you mean 'mnist'?" in " ".join(long.stderr.split())


@pytest.mark.parametrize("arguments, words", [
    (["run", "nsatp/02", "-p", "dataset", "mnits"], "did you mean 'mnist'?"),
    (["run", "nsatp/02", "-p", "modle_name", "net1"], "did you mean 'model_name'?"),
    (["run", "nsatp/02", "-p", "model_name", "net3"], "unknown model_name 'net3'; did you mean 'net"),
    (["run", "nsatp/02", "-p", "seed", "two"], "seed: expected a whole number from 0"),
    (["run", "nsatp/02", "-p", "seed", "-1"], "seed: expected a whole number from 0"),
    (["run", "nsatp/02", "-p", "seed", str(2**70)], "seed: expected a whole number from 0"),
    (["run", "deepsensor_sensitivity/02", "-p", "distances", "-4"], "distances: expected numbers above 0"),
    (["run", "deepsensor_sensitivity/02", "-p", "others", "lenet5", "-p", "model_name", "lenet5"],
     "others: lenet5 is the network under test; name another one"),
    (["run", "deepsensor_sensitivity/02", "-p", "device", "cdua"], "did you mean 'cuda'"),
    (["run", "nsatp/02", "-o", "/proc/x.ipynb"], "--out: cannot write /proc/x.ipynb"),
    (["run", "nsatp/02", "-p", "dataset"], "-p takes a name and a value"),
    (["run", "nsatp/02", "-p"], "-p takes a name and a value"),
    (["run", "nsatp/02", "--parameter", "dataset"], "-p takes a name and a value"),
    (["run", "nsapt/02_noise_sensitivity"], "did you mean 'nsatp/02_noise_sensitivity'?"),
    (["run", "nsatp/"], "one of several"),
    (["scoreboard", "nsapt"], "unknown paper 'nsapt'; did you mean 'nsatp'?"),
    (["data", "--download", "mnits"], "unknown dataset 'mnits'; did you mean 'mnist'?"),
    (["notebooks", "nsapt"], "starts with nsapt")])
def test_mistakes_end_with_two(dnnlib, arguments, words):
    code, out, err = dnnlib(*arguments)
    assert code == 2 and one_line(err) and words in err and not out


@pytest.mark.parametrize("arguments", [["fly"], ["run"], ["run", "a", "--fast"]])
def test_wrong_usage_ends_with_two(dnnlib, arguments):
    code, _, err = dnnlib(*arguments)
    assert code == 2 and "Usage" in err


def test_debug_lets_the_error_through(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["dnnlib", "run", "nsatp/02", "-p", "seed", "two", "--debug"])
    monkeypatch.setattr(cli, "DEBUG", True)
    with pytest.raises(ValueError, match="seed: expected"):
        cli.main()


# Runs


@pytest.mark.parametrize("words", [["-p", "trials=5", "-p", "seed", "3"],
                                   ["-p", "trials", "5", "-p", "seed=3"]])
def test_both_forms_of_a_parameter_are_one(words):
    assert cli._pairs(words) == ["-p", "trials=5", "-p", "seed=3"]


def test_a_value_may_have_an_equals_sign_and_none_is_given_twice(dnnlib):
    assert cli._pairs(["-p", "dataset", "/a=b"]) == ["-p", "dataset=/a=b"]
    code, _, said = dnnlib("run", "nsatp/01", "-p", "seed", "3", "-p", "seed=4")
    assert code == 2 and one_line(said) and "-p seed: expected one value, got 3 and 4" in said


def test_ctrl_c_is_one_line(dnnlib, monkeypatch):
    def stopped(*arguments, **options):
        raise KeyboardInterrupt
    monkeypatch.setattr(notebooks, "run", stopped)
    code, _, said = dnnlib("run", "nsatp/01", "-p", "trials", "5")
    assert code == 130 and said.splitlines()[-1].startswith("stopped")
    assert "Traceback" not in said


def test_run_writes_below_runs(dnnlib, page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = page("x + 1")
    code, out, _ = dnnlib("run", path, "-p", "x", "41")
    target = tmp_path / "runs" / tmp_path.name / "page-x-41.ipynb"
    assert code == 0 and f"{path} -> {target.relative_to(tmp_path)}\n" in out  # not wrapped
    assert nbformat.read(target, 4).cells[-1].outputs[0]["data"]["text/plain"] == "42"


def test_failing_cell_ends_with_one_and_keeps_what_ran(dnnlib, page, tmp_path):
    target = tmp_path / "partial.ipynb"
    code, _, err = dnnlib("run", page("1 / 0"), "-o", target)
    assert code == 1
    assert err.splitlines()[-1].startswith("error: cell ")
    assert "ZeroDivisionError" in err and str(target) in err and "Traceback" not in err
    texts = [o.get("text") for c in nbformat.read(target, 4).cells for o in c.get("outputs", ())]
    assert "x is 1\n" in texts


def test_missing_data_says_where_it_looked(dnnlib, page, tmp_path):
    code, _, err = dnnlib("run", page('from dnnlib.data import load; load("mnist")'),
                          "-o", tmp_path / "out.ipynb")
    assert code == 1 and "MissingData" in err
    for words in (str(tmp_path / "data"), "MNIST/raw", "dnnlib data --download mnist",
                  "DNNLIB_DATA"):
        assert words in err


def test_data_that_cannot_be_downloaded(dnnlib, tmp_path):
    code, _, err = dnnlib("data", "--download", "imagenet")
    assert code == 1 and one_line(err)
    assert str(tmp_path / "data") in err and "image-net.org" in err


def test_parameters_are_listed(dnnlib, page):
    code, out, _ = dnnlib("run", page("x"), "--list")
    assert code == 0 and out.splitlines()[-2].split() == ["x", "1", "int", "a", "number"]


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
    (["--crop", "9"], "smaller than the crop of 9"), (["--layers", "0"], None),
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
    (ranked("linear", "gini", "photos", "--weights", "w.bin"), 2, ".pt or .pth file, got w.bin"),
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


def test_data_says_what_is_missing_and_how_to_get_it(dnnlib, tmp_path, monkeypatch):
    monkeypatch.setattr(terminal, "out", Console(width=160))  # however long the path is
    code, out, _ = dnnlib("data")
    assert code == 0
    rows = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert set(rows) >= set(sources.SOURCES)
    for name in sources.SOURCES:
        assert ("embedded" if sources.SOURCES[name].embedded else "missing") in rows[name]
        assert sources.SOURCES[name].embedded or not squeezed(sources.SOURCES[name].get, out)
    assert "70,000" not in out and "60,000" in rows["mnist"] and "10,000" in rows["mnist"]
    assert str(tmp_path / "data") in out.replace("\n", "")


def test_found_data_is_shown(dnnlib, tmp_path):
    (tmp_path / "data" / "svhn" / "test" / "[b]").mkdir(parents=True)
    _, out, _ = dnnlib("data")
    svhn = out[out.index("svhn"):].split("imagenet")[0]
    assert "missing" not in svhn.split("73,257")[1].splitlines()[0]


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


@pytest.mark.parametrize("stale, code, last", [
    (["nss/02_b"], 1, "dnnlib notebooks nss/02_b"),
    ([], 0, "and every statement holds")])
def test_scoreboard_check_names_chapters_made_before_their_records(dnnlib, monkeypatch, tmp_path,
                                                                   stale, code, last):
    monkeypatch.setattr(notebooks, "folder", lambda: tmp_path)
    for name in ("nss/01_a", "nss/02_b"):
        (tmp_path / f"{name}.ipynb").parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.ipynb").write_text(
            '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    monkeypatch.setattr(notebooks, "stale",
                        lambda path: f"{path.parent.name}/{path.stem}" in stale)
    found, out, _ = dnnlib("scoreboard", "--check")
    assert found == code and out.strip().endswith(last)


@pytest.mark.parametrize("width", [100, 120])
@pytest.mark.parametrize("paper", [None, "peacepact"])
def test_scoreboard_prints_all_claims(dnnlib, monkeypatch, width, paper):
    monkeypatch.setattr(terminal, "out", Console(width=width))
    code, out, _ = dnnlib("scoreboard", *filter(None, [paper]))
    assert code == 0 and max(map(len, out.splitlines())) <= width
    claims = published.claims(paper)
    starts = [line.split()[0] for line in out.splitlines() if line.strip()]
    assert sum(start in published.tables() for start in starts) == len(claims)
    assert out.count("not run") == len(claims)
    for claim in claims:
        assert not squeezed(claim.statement, out) and not squeezed(claim.place, out)
        assert f"({claim.expected})" in out
    left = out.index("claim") - out.rindex("\n", 0, out.index("claim"))
    right = out.index("place") - out.rindex("\n", 0, out.index("place"))
    assert right - left >= 25  # columns for the sentence


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
    assert code == 0, err
    table = pd.read_csv("comparison.csv")
    assert len(table) == 2 * 4 + 1 and "At 10 %" in out and "best possible" in out
    with Image.open("comparison.png") as drawn:
        assert drawn.format == "PNG"
    code, _, err = dnnlib(*arguments, "--out", "a.txt")
    assert code == 2 and "--out: expected a name that ends in .csv" in err
