"""Sweeps on a GPU: asked for, checked and estimated; no test here needs one."""

import sys
from pathlib import Path

import jupytext
import pytest
import torch

from dnnbook.chapters import plan, sweeps
from dnnbook.chapters.sweeps import Cell
from dnnbook.cli import app
from dnnbook.records import records
from dnnlib import inference
from dnnlib.custom import cluster

TOY = '''
# %%
from dnnbook.chapters.experiments import Experiment
from dnnbook.data import load

# %% tags=["parameters"]
dataset = "digits"
seed = 0
device = "auto"
profile = "embedded"

# %%
run = Experiment("toy/place", profile, dataset=dataset, seed=seed)
run.add([{"value": 1, "where": device}])
run.save(load(dataset), device=device)
'''


@pytest.fixture
def sweep(tmp_path):
    """``sweep("seed = [0, 1]")``: a sweep file with one grid of a toy notebook."""
    toy = tmp_path / "toys" / "01_toy.ipynb"
    toy.parent.mkdir()
    notebook = jupytext.reads(TOY, "py:percent")
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3",
                                    "language": "python"}
    notebook.metadata["dnnlib"] = {"experiment": "toy/place", "reads": [], "parameters": {
        "dataset": "digits", "seed": 0}}
    jupytext.write(notebook, toy)

    def make(*grids: str) -> Path:
        path = tmp_path / "sweep.toml"
        path.write_text("".join(f'[[grid]]\nnotebook = "{toy}"\nprofile = "paper"\n{lines}\n'
                                for lines in grids))
        return path
    return make


@pytest.fixture
def gpu(monkeypatch):
    """As if there were GPUs, of which nothing is asked but their name and their free memory."""
    monkeypatch.setattr(inference, "device", torch.device)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Toy 9")
    monkeypatch.setattr(inference, "free_memory", lambda device: 40 * plan.GIB)


@pytest.fixture
def dnnbook(monkeypatch, capsys):
    """``dnnbook("sweep", ...)``: exit code, stdout and stderr of a command that may start nothing."""
    def started(*arguments, **options):
        raise AssertionError("workers were started")

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["dnnbook", *map(str, arguments)])
        monkeypatch.setattr(cluster, "connected", started)
        with pytest.raises(SystemExit) as stop:
            app.main()
        return stop.value.code or 0, *capsys.readouterr()
    return call


def made(root: Path, seed: int, seconds: float, device: str = "cpu", gpu: str = "AVX2") -> None:
    records.save(records.Record("toy/place", {"dataset": "digits", "seed": seed}, [{"value": 1}],
                                {"device": device, "capability": gpu, "seconds": seconds}), root)


def test_all_cells_get_the_device_and_keep_their_names(sweep, gpu):
    path = sweep("seed = [0, 1]", 'seed = 2\ndevice = "cpu"')
    before, after = sweeps.read(path)[0], sweeps.read(path, device="cuda")[0]
    assert [cell.device for cell in after] == 3 * ["cuda"]
    assert [cell.name for cell in after] == [cell.name for cell in before]


def test_what_is_done_is_done_wherever_it_ran(sweep, gpu, tmp_path):
    made(tmp_path, 0, 60)
    cells = sweeps.read(sweep("seed = [0, 1]"), device="cuda")[0]
    assert [sweeps.done(cell, tmp_path) for cell in cells] == [True, False]


@pytest.mark.parametrize("device, words", [
    ("foo", "error: unknown device 'foo';"), ("cuda:99", "error: device: cuda:99 is not there;")])
def test_another_device_is_one_line_before_anything_starts(sweep, dnnbook, device, words):
    code, _, err = dnnbook("sweep", sweep("seed = 0"), "--device", device)
    assert code == 2 and err.startswith(words) and err.count("\n") == 1


def test_a_device_in_the_file_is_refused_with_all_other_problems(sweep):
    path = sweep('seed = -1\ndevice = "foo"', 'device = "cuda:99"')
    with pytest.raises(ValueError, match="3 problems, nothing was run") as refused:
        sweeps.read(path)
    assert [word in str(refused.value) for word in (
        "grid 1, 01_toy: seed", "grid 1, 01_toy: unknown device 'foo'",
        "grid 2, 01_toy: device: cuda:99 is not there")] == 3 * [True]


def test_two_devices_would_replace_each_others_record(sweep, gpu):
    with pytest.raises(ValueError, match="expected one device, as it has one record, got cpu and"):
        sweeps.read(sweep('device = ["cpu", "cuda"]'))


def test_a_chapter_without_a_device_cannot_be_sent_to_one(sweep, gpu, tmp_path):
    path = sweep("seed = 0")
    toy = tmp_path / "toys" / "01_toy.ipynb"
    toy.write_text(toy.read_text().replace('device = \\"auto\\"', 'x = 1'))
    with pytest.raises(ValueError, match="unknown parameter of 01_toy 'device'"):
        sweeps.read(path, device="cuda")


def test_minutes_are_those_of_other_seeds_on_such_a_gpu(sweep, gpu, tmp_path):
    (cell,), _ = sweeps.read(sweep("seed = 9\nminutes = 50\ngpu_minutes = 5"), device="cuda:1")
    made(tmp_path, 0, 6000)
    made(tmp_path, 1, 600, "cuda", "Toy 1")
    assert sweeps.measured(cell, tmp_path).takes == 5
    made(tmp_path, 2, 120, "cuda", "Toy 9")
    made(tmp_path, 3, 240, "cuda:1", "Toy 9")
    assert sweeps.measured(cell, tmp_path).takes == 3
    (there,), _ = sweeps.read(sweep('seed = 9\nminutes = 50\ndevice = "cpu"'))
    assert sweeps.measured(there, tmp_path).takes == 50


def test_the_summary_says_which_hours_are_estimated(sweep, gpu, dnnbook, tmp_path):
    asked = ("sweep", sweep("seed = [8, 9]\nminutes = 600\ngpu_minutes = 60"), "--list",
             "--results", tmp_path)
    assert "about 20.0 h on one core;" in dnnbook(*asked, "--device", "cpu")[1]
    assert "about 2.0 h on one GPU (estimated);" in dnnbook(*asked, "--device", "cuda")[1]
    made(tmp_path, 0, 1800, "cuda", "Toy 9")
    assert "about 1.0 h on one GPU;" in dnnbook(*asked, "--device", "cuda")[1]


@pytest.mark.parametrize("needs, expected", [((18.0, 9.0), 2), ((9.0, 9.0), 4), ((9.0, None), 1),
                                             ((4.0, 4.0), 8), ((90.0, 1.0), 1)])
def test_workers_are_as_many_as_the_gpu_carries(gpu, needs, expected):
    cells = [Cell(None, {"device": "cuda"}, gpu_memory_gib=need) for need in needs]
    assert plan.workers(cells, cores=8) == expected


def test_the_machines_own_memory_still_counts(gpu):
    cells = [Cell(None, {"device": "cuda"}, memory_gib=8.0, gpu_memory_gib=4.0)]
    assert plan.workers(cells, available=17 * plan.GIB, cores=8) == 2


def test_workers_elsewhere_without_the_gpu_are_found_before_anything_runs(sweep, tmp_path):
    from distributed import Client

    (cell,), _ = sweeps.read(sweep('device = "cuda:99"'), here=False)
    with Client(processes=False, n_workers=1, threads_per_worker=1,
                dashboard_address=":0") as client:
        with pytest.raises(ValueError, match="cuda:99 is not there"):
            next(sweeps.run([cell], client, root=tmp_path, runs=tmp_path / "runs"))
    assert not (tmp_path / "runs").exists()


def test_a_chapter_is_told_the_device(sweep):
    (cell,), _ = sweeps.read(sweep("seed = 0"), device="cpu")
    files, _ = sweeps.work(str(cell.notebook), cell.values)
    (record,) = [text for name, text in files.items() if name.endswith(".json")]
    assert b'"where": "cpu"' in record
