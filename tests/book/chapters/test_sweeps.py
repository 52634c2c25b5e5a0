"""Sweeps, run on real Dask clusters whose workers and drivers get killed."""

import json
import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path

import jupytext
import pytest

from dnnbook.chapters import notebooks, sweeps
from dnnbook.data import known
from dnnbook.records import records
from dnnlib import inference
from dnnlib.custom import cluster

# a cell that waits for a file tells the test when it runs, and runs until the test lets it
TOY = '''
# %%
import os, pathlib, time
from dnnbook.chapters.experiments import Experiment
from dnnbook.data import load

# %% tags=["parameters"]
dataset = "digits"
seed = 0
gate = ""  # a folder: say that the cell runs, and wait for the file "go"
profile = "embedded"

# %%
assert "MALLOC_TRIM_THRESHOLD_" not in os.environ, "freed memory would not stay here"
if gate:
    (pathlib.Path(gate) / f"running{seed}").touch()
    while not (pathlib.Path(gate) / "go").exists():
        time.sleep(0.05)
if seed == 13:
    raise RuntimeError("unlucky")
run = Experiment("toy/luck", profile, dataset=dataset, seed=seed, kind="toy")
run.add([{"value": 7 * seed}])
run.save(load(dataset))
'''


@pytest.fixture
def toy(tmp_path):
    """A notebook as :func:`notebooks.make` leaves it: with what it declared."""
    path = tmp_path / "toys" / "01_toy.ipynb"
    path.parent.mkdir()
    notebook = jupytext.reads(TOY, "py:percent")
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3",
                                    "language": "python"}
    notebook.metadata["dnnlib"] = {"experiment": "toy/luck", "reads": [], "parameters": {
        "dataset": "digits", "seed": 0, "kind": "toy"}}
    jupytext.write(notebook, path)
    return path


@pytest.fixture
def sweep(tmp_path, toy):
    """``sweep("seed = [0, 1]")``: a sweep file with one grid of the toy notebook."""
    def make(lines: str) -> Path:
        path = tmp_path / "sweep.toml"
        path.write_text(f'[[grid]]\nnotebook = "{toy}"\nprofile = "paper"\n{lines}\n')
        return path
    return make


def values(root: Path) -> dict[int, list[dict]]:
    """Rows of the toy's records by seed."""
    return {r.parameters["seed"]: r.rows for r in records.find("toy/luck", root)}


def wait_for(folder: Path, pattern: str, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not list(folder.glob(pattern)):
        assert time.monotonic() < end, f"no {pattern} came within {seconds} s"
        time.sleep(0.05)


# ---- reading

def test_lists_are_multiplied_out_and_each_cell_comes_once(sweep):
    path = sweep('seed = [0, 1]\ndataset = ["digits", "mnist"]\nminutes = 2')
    path.write_text(path.read_text() + path.read_text())
    cells, root = sweeps.read(path)
    assert [(c.values["seed"], c.values["dataset"], c.minutes) for c in cells] == [
        (0, "digits", 2), (0, "mnist", 2), (1, "digits", 2), (1, "mnist", 2)]
    assert root is None and type(cells[0].values["seed"]) is int


def test_a_file_may_name_its_results_and_minutes_on_a_gpu(sweep):
    path = sweep("minutes = 9\ngpu_minutes = 0.5")
    path.write_text('results = "runs/x"\n' + path.read_text())
    (cell,), root = sweeps.read(path)
    assert root == Path("runs/x") and (cell.minutes, cell.gpu_minutes) == (9, 0.5)


@pytest.mark.parametrize("change, words", [
    (("\n[[grid]]", "\n[[grid]]"), None), (("seed = [0]", "seed = []"), "grid 1: seed: expected at"),
    (('profile = "paper"', ""), "expected profile = \"paper\", without which a run leaves no record"),
    (('profile = "paper"', 'profile = "embedded"'), "got 'embedded'")])
def test_what_would_leave_no_record_is_refused(sweep, change, words):
    path = sweep("seed = [0]")
    path.write_text(path.read_text().replace(*change))
    if words is None:
        assert len(sweeps.read(path)[0]) == 1
        return
    with pytest.raises(ValueError, match=f"1 problems, nothing was run\\n.*{words}"):
        sweeps.read(path)


def test_all_problems_are_named_at_once(sweep, tmp_path):
    path = sweep('dataset = ["digits", "mnits"]\nseed = ["one"]')
    path.write_text(path.read_text() + '[[grid]]\nnotebook = "nosuch/01"\n'
                    f'[[grid]]\nnotebook = "{tmp_path}/toys/01_toy.ipynb"\nprofile = "paper"\n'
                    'sede = 1\nminutes = -1\n')
    with pytest.raises(ValueError) as found:
        sweeps.read(path)
    text = str(found.value)
    assert "5 problems, nothing was run" in text and text.count("\n") == 5
    for part in ("grid 1, 01_toy: seed: expected a whole number", "unknown dataset 'mnits'",
                 "grid 2: unknown notebook 'nosuch/01'", "unknown parameter of 01_toy 'sede'",
                 "grid 3: minutes: expected a number above 0, got -1"):
        assert part in text


def test_a_notebook_without_a_record_cannot_be_swept(sweep, toy):
    jupytext.write(jupytext.reads(TOY, "py:percent"), toy)  # with nothing declared
    with pytest.raises(ValueError, match="saves no record"):
        sweeps.read(sweep("seed = 0"))


@pytest.mark.parametrize("text, words", [
    ("grid = 3", "expected \\[\\[grid\\]\\] tables"), ("[[grid", "is not a TOML file"),
    ("", "got no \\[\\[grid\\]\\]"), ("[[grid]]\nnotebook = 'x'\n[other]\na = 1", "got other")])
def test_other_files_are_refused(tmp_path, text, words):
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(ValueError, match=words):
        sweeps.read(tmp_path / "bad.toml")


@pytest.mark.parametrize("path", sorted(Path(__file__).parents[3].glob("sweeps/*.toml")),
                         ids=lambda path: path.stem)
def test_the_sweeps_of_the_project_can_be_read(path):
    cells, _ = sweeps.read(path)
    assert cells and all(cell.minutes for cell in cells)


def test_the_sweep_of_the_papers_makes_every_record():
    """But the models of one's own, whose record needs images that may not be republished.

    A record of a protocol that was the default once stays until its cell is run again; so does
    one on the JPEG copy, where the cell has the DeepSensors' own recipe since then.
    """
    root = Path(__file__).parents[3]
    cells, _ = sweeps.read(root / "sweeps" / "paper.toml")
    made = [notebooks.recorded(cell.notebook, cell.values) for cell in cells]

    def has(path):
        record = records.read(path)
        once = records.OLDER.get(record.experiment, {})
        if known.copy_of(str(record.provenance.get("data"))) == "JPEG copy":
            once = once | {"recipe": "nss"}
        return any(record.experiment == experiment and all(
            record.parameters.get(key) in (value, *([once[key]] if key in once else []))
            for key, value in wanted.items()) for experiment, wanted in made)

    missing = [path.name for path in sorted((root / "results").glob("*/*/*.json"))
               if path.parent.name != "your_own_model" and not has(path)]
    assert not missing


# ---- what is done

def test_done_is_the_record_of_the_same_parameters(sweep, tmp_path):
    cells, _ = sweeps.read(sweep("seed = [0, 1]"))
    save = {"dataset": "digits", "seed": 1, "kind": "toy"}
    records.save(records.Record("toy/luck", save | {"kind": "other"}, [{"value": 1}]), tmp_path)
    assert [sweeps.done(cell, tmp_path) for cell in cells] == [False, False]
    records.save(records.Record("toy/luck", save, [{"value": 1}]), tmp_path)
    assert [sweeps.done(cell, tmp_path) for cell in cells] == [False, True]


def test_a_truncated_record_is_set_aside(sweep, tmp_path):
    (cell,), _ = sweeps.read(sweep("seed = 1"))
    whole = records.save(records.Record("toy/luck", {"dataset": "digits", "seed": 1, "kind": "toy"},
                                        [{"value": 1}]), tmp_path)
    whole.write_bytes(whole.read_bytes()[:40])
    assert not sweeps.done(cell, tmp_path)
    assert sweeps.set_aside(tmp_path) == [whole.with_suffix(".damaged")]
    assert not records.find("toy/luck", tmp_path)


def test_a_records_parameters_are_read_from_the_notebook(toy):
    assert notebooks.recorded(toy, {"seed": 4}) == (
        "toy/luck", {"dataset": "digits", "seed": 4, "kind": "toy"})


# ---- running

def test_a_run_leaves_no_trace_in_the_environment(toy, monkeypatch, tmp_path):
    monkeypatch.setenv("DNNLIB_RESULTS", str(tmp_path / "mine"))
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "65536")
    before = dict(os.environ)
    made, seconds = sweeps.work(str(toy), {"seed": 3, "profile": "paper"})
    assert dict(os.environ) == before and seconds > 0
    assert not (tmp_path / "mine").exists()
    (name,) = [name for name in made if name.endswith(".json")]
    assert json.loads(made[name])["rows"] == [{"value": 21}] and "run.ipynb" in made


def test_a_run_without_a_record_says_why(toy):
    with pytest.raises(ValueError, match="does it need profile"):
        sweeps.work(str(toy), {"seed": 3})


def test_workers_keep_freed_memory_and_show_no_bars():
    with cluster.connected(workers=2) as client:
        found, other = client.run(lambda: dict(os.environ)).values()
    assert "MALLOC_TRIM_THRESHOLD_" not in found
    assert found["TQDM_DISABLE"] == found["OMP_NUM_THREADS"] == "1"
    assert found[inference.SHARE] == other[inference.SHARE] == "0.5"  # of a GPU, if they are on one


def test_a_failed_cell_stops_no_other(sweep, tmp_path):
    cells, _ = sweeps.read(sweep("seed = [13, 1, 2]"))
    with cluster.connected(workers=2) as client:
        ended = list(sweeps.run(cells, client, root=tmp_path, runs=tmp_path / "runs"))
    errors = {o.cell.values["seed"]: o.error for o in ended}
    assert errors.pop(13).endswith("RuntimeError: unlucky") and errors == {1: None, 2: None}
    assert values(tmp_path) == {1: [{"value": 7}], 2: [{"value": 14}]}
    assert len(list((tmp_path / "runs" / "toys").glob("01_toy-*.ipynb"))) == 2
    assert [sweeps.done(cell, tmp_path) for cell in cells] == [False, True, True]


def test_a_cell_with_many_settings_leaves_its_record_and_a_page_of_its_own(sweep, tmp_path):
    gate = tmp_path / ("x" * 120) / ("y" * 120)
    gate.mkdir(parents=True)
    (gate / "go").touch()
    cells, _ = sweeps.read(sweep(f'gate = "{gate}"\nseed = [1, 2]'))
    assert all(len(cell.name) > 255 for cell in cells)
    with cluster.connected(workers=1) as client:
        ended = list(sweeps.run(cells, client, root=tmp_path, runs=tmp_path / "runs"))
    assert [outcome.error for outcome in ended] == [None, None]
    assert values(tmp_path) == {1: [{"value": 7}], 2: [{"value": 14}]}
    assert len(list((tmp_path / "runs" / "toys").glob("01_toy-*.ipynb"))) == 2


@pytest.mark.parametrize("replace, kept", [(False, 3), (True, 7)])
def test_a_record_that_differs_is_replaced_when_told_to(sweep, tmp_path, replace, kept):
    cells, _ = sweeps.read(sweep("seed = 1"))
    there = records.save(records.Record("toy/luck", {"dataset": "digits", "seed": 1, "kind": "toy"},
                                        [{"value": 3}], {"processor": "an older one"}), tmp_path)
    with cluster.connected(workers=1) as client:
        (ended,) = sweeps.run(cells, client, root=tmp_path, runs=tmp_path / "runs", replace=replace)
    assert values(tmp_path) == {1: [{"value": kept}]}
    if replace:
        assert ended.error is None and ended.moved[:2] == (
            ": 3 -> 7", "was made on an older one")
        assert ended.moved[2].startswith(f"now made on {platform.machine()}, ")
    else:
        (own,) = (tmp_path / "runs" / "toys").glob("*.json")
        assert records.read(own).rows == [{"value": 7}]
        assert ended.error.startswith(f"{there} says something else and stays; this run's is {own}")


def test_only_the_books_sweeps_write_to_the_books_results(sweep):
    book = Path(__file__).resolve().parents[3] / "results"
    command = [sys.executable, "-m", "dnnbook.cli", "sweep", str(sweep("seed = 1")),
               "--results", str(book)]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 2 and "results: expected a folder of your own" in found.stderr


def test_a_killed_worker_loses_no_cell(sweep, tmp_path):
    gate = tmp_path / "gate"
    gate.mkdir()
    cells, _ = sweeps.read(sweep(f'seed = [1, 2, 3]\ngate = "{gate}"'))
    killed = []

    def watch(busy):
        if not killed and list(gate.glob("running*")):
            killed.extend(list(client.run(os.getpid).values())[:1])
            os.kill(killed[0], signal.SIGKILL)
            (gate / "go").touch()

    with cluster.connected(workers=2) as client:
        ended = list(sweeps.run(cells, client, root=tmp_path, runs=tmp_path / "runs", watch=watch))
    assert killed and [o.error for o in ended] == [None] * 3
    assert values(tmp_path) == {s: [{"value": 7 * s}] for s in (1, 2, 3)}


def test_a_killed_driver_loses_no_finished_cell(sweep, tmp_path):
    gate, root = tmp_path / "gate", tmp_path / "results"
    gate.mkdir()
    path = sweep("seed = 1")
    path.write_text(path.read_text() + path.read_text().replace(
        "seed = 1", f'seed = [2, 3]\ngate = "{gate}"'))
    command = [sys.executable, "-m", "dnnbook.cli", "sweep", str(path), "--workers", "3",
               "--results", str(root)]
    driver = subprocess.Popen(command, cwd=tmp_path, start_new_session=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wait_for(root, "toy/luck/*.json")  # cells are not taken in order: 2 and 3 wait at the gate
    wait_for(gate, "running*")
    os.killpg(driver.pid, signal.SIGKILL)
    driver.communicate()
    assert values(root) == {1: [{"value": 7}]}
    first = next((root / "toy" / "luck").glob("*.json")).stat().st_mtime_ns
    (gate / "go").touch()
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert "3 cells: 1 done, 2 waiting" in again.stdout and "3 cells: 3 done" in again.stdout
    assert values(root) == {s: [{"value": 7 * s}] for s in (1, 2, 3)}
    assert min(p.stat().st_mtime_ns for p in (root / "toy" / "luck").glob("*.json")) == first


def test_no_scheduler_is_a_clear_error_within_ten_seconds(sweep, tmp_path):
    start = time.monotonic()
    command = [sys.executable, "-m", "dnnbook.cli", "sweep", str(sweep("seed = 1")),
               "--scheduler", "tcp://127.0.0.1:9", "--results", str(tmp_path)]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert found.returncode == 1
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in found.stderr
    assert time.monotonic() - start < cluster.TIMEOUT + 60  # the rest is starting Python
