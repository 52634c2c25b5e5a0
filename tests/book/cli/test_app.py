import subprocess
import sys

import jupytext
import nbformat
import pytest
from rich.console import Console

from dnnbook import published
from dnnbook.chapters import notebooks
from dnnbook.cli import app as cli
from dnnbook.data import sources
from dnnlib.cli import terminal

COMMANDS = ["data", "run", "scoreboard", "replay", "notebooks", "figures", "lab", "sweep",
            "runs"]


@pytest.fixture
def dnnbook(monkeypatch, capsys):
    """``dnnbook("run", ...)``: exit code, stdout and stderr of a command."""
    def call(*arguments, debug: bool = False):
        monkeypatch.setattr(sys, "argv", ["dnnbook", *map(str, arguments)])
        monkeypatch.setattr(terminal, "DEBUG", debug)
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
def test_help_shows_an_example(dnnbook, command):
    code, out, _ = dnnbook(command, "--help")
    assert code == 0 and f"dnnbook {command}" in out.split("Example")[1]


def test_help_lists_the_commands(dnnbook):
    code, out, _ = dnnbook("--help")
    assert code == 0 and all(f" {command} " in out for command in COMMANDS) and "--debug" in out


# Mistakes


def test_a_traceback_only_on_request():
    def program(*arguments):
        return subprocess.run([sys.executable, "-m", "dnnbook.cli", *arguments],
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
def test_mistakes_end_with_two(dnnbook, arguments, words):
    code, out, err = dnnbook(*arguments)
    assert code == 2 and one_line(err) and words in err and not out


@pytest.mark.parametrize("arguments", [["fly"], ["run"], ["run", "a", "--fast"]])
def test_wrong_usage_ends_with_two(dnnbook, arguments):
    code, _, err = dnnbook(*arguments)
    assert code == 2 and "Usage" in err


def test_debug_lets_the_error_through(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["dnnbook", "run", "nsatp/02", "-p", "seed", "two", "--debug"])
    monkeypatch.setattr(terminal, "DEBUG", True)
    with pytest.raises(ValueError, match="seed: expected"):
        cli.main()


# Runs


@pytest.mark.parametrize("words", [["-p", "trials=5", "-p", "seed", "3"],
                                   ["-p", "trials", "5", "-p", "seed=3"]])
def test_both_forms_of_a_parameter_are_one(words):
    assert cli._pairs(words) == ["-p", "trials=5", "-p", "seed=3"]


def test_a_value_may_have_an_equals_sign_and_none_is_given_twice(dnnbook):
    assert cli._pairs(["-p", "dataset", "/a=b"]) == ["-p", "dataset=/a=b"]
    code, _, said = dnnbook("run", "nsatp/01", "-p", "seed", "3", "-p", "seed=4")
    assert code == 2 and one_line(said) and "-p seed: expected one value, got 3 and 4" in said


def test_ctrl_c_is_one_line(dnnbook, monkeypatch):
    def stopped(*arguments, **options):
        raise KeyboardInterrupt
    monkeypatch.setattr(notebooks, "run", stopped)
    code, _, said = dnnbook("run", "nsatp/01", "-p", "trials", "5")
    assert code == 130 and said.splitlines()[-1].startswith("stopped")
    assert "Traceback" not in said


def test_run_writes_below_runs(dnnbook, page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = page("x + 1")
    code, out, _ = dnnbook("run", path, "-p", "x", "41")
    target = tmp_path / "runs" / tmp_path.name / "page-x-41.ipynb"
    assert code == 0 and f"{path} -> {target.relative_to(tmp_path)}\n" in out  # not wrapped
    assert nbformat.read(target, 4).cells[-1].outputs[0]["data"]["text/plain"] == "42"


def test_a_name_without_ending_is_a_notebook(dnnbook, page, tmp_path, recwarn):
    for name in ("mine", "at-0.5"):
        code, out, _ = dnnbook("run", page("x + 1"), "-o", tmp_path / name)
        assert code == 0 and f"done: {tmp_path / name}.ipynb\n" in out
        assert nbformat.read(tmp_path / f"{name}.ipynb", 4).cells and not (tmp_path / name).exists()
    assert not [each for each in recwarn if "papermill" in each.filename]


def test_failing_cell_ends_with_one_and_keeps_what_ran(dnnbook, page, tmp_path):
    target = tmp_path / "partial.ipynb"
    code, _, err = dnnbook("run", page("1 / 0"), "-o", target)
    assert code == 1
    assert err.splitlines()[-1].startswith("error: cell ")
    assert "ZeroDivisionError" in err and str(target) in err and "Traceback" not in err
    texts = [o.get("text") for c in nbformat.read(target, 4).cells for o in c.get("outputs", ())]
    assert "x is 1\n" in texts


def test_missing_data_says_where_it_looked(dnnbook, page, tmp_path):
    code, _, err = dnnbook("run", page('from dnnbook.data import load; load("mnist")'),
                          "-o", tmp_path / "out.ipynb")
    assert code == 1 and "MissingData" in err
    for words in (str(tmp_path / "data"), "MNIST/raw", "dnnbook data --download mnist",
                  "DNNLIB_DATA"):
        assert words in err


def test_data_that_cannot_be_downloaded(dnnbook, tmp_path):
    code, _, err = dnnbook("data", "--download", "imagenet")
    assert code == 1 and one_line(err)
    assert str(tmp_path / "data") in err and "image-net.org" in err


def test_parameters_are_listed(dnnbook, page):
    code, out, _ = dnnbook("run", page("x"), "--list")
    assert code == 0 and out.splitlines()[-2].split() == ["x", "1", "int", "a", "number"]


def test_a_chapter_without_parameters_says_so(dnnbook):
    code, out, _ = dnnbook("run", "synthesis/00", "--list")
    assert code == 0 and out == "00_welcome.ipynb has no parameters\n"


# Lists


def test_data_says_what_is_missing_and_how_to_get_it(dnnbook, tmp_path, monkeypatch):
    monkeypatch.setattr(terminal, "out", Console(width=160))  # however long the path is
    code, out, _ = dnnbook("data")
    assert code == 0
    rows = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert set(rows) >= set(sources.SOURCES)
    for name in sources.SOURCES:
        assert ("embedded" if sources.SOURCES[name].embedded else "missing") in rows[name]
        assert sources.SOURCES[name].embedded or not squeezed(sources.SOURCES[name].get, out)
    assert "70,000" not in out and "60,000" in rows["mnist"] and "10,000" in rows["mnist"]
    assert str(tmp_path / "data") in out.replace("\n", "")


def test_found_data_is_shown(dnnbook, tmp_path):
    (tmp_path / "data" / "svhn" / "test" / "[b]").mkdir(parents=True)
    _, out, _ = dnnbook("data")
    svhn = out[out.index("svhn"):].split("imagenet")[0]
    assert "missing" not in svhn.split("73,257")[1].splitlines()[0]


@pytest.mark.parametrize("stale, code, last", [
    (["nss/02_b"], 1, "dnnbook notebooks nss/02_b"),
    ([], 0, "and every statement holds")])
def test_scoreboard_check_names_chapters_made_before_their_records(dnnbook, monkeypatch, tmp_path,
                                                                   stale, code, last):
    monkeypatch.setattr(notebooks, "folder", lambda: tmp_path)
    for name in ("nss/01_a", "nss/02_b"):
        (tmp_path / f"{name}.ipynb").parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.ipynb").write_text(
            '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    monkeypatch.setattr(notebooks, "stale",
                        lambda path: f"{path.parent.name}/{path.stem}" in stale)
    found, out, _ = dnnbook("scoreboard", "--check")
    assert found == code and out.strip().endswith(last)


@pytest.mark.parametrize("width", [100, 120])
@pytest.mark.parametrize("paper", [None, "peacepact"])
def test_scoreboard_prints_all_claims(dnnbook, monkeypatch, width, paper):
    monkeypatch.setattr(terminal, "out", Console(width=width))
    code, out, _ = dnnbook("scoreboard", *filter(None, [paper]))
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
