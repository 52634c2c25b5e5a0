"""Fixtures shared by all tests: private folders, and a small model and dataset."""

import os

os.environ.pop("TQDM_DISABLE", None)  # tqdm reads it when imported, and tests look for its bars

import importlib.util
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from dnnbook.data import Dataset


@pytest.fixture(scope="session")
def benchmark_named():
    """``benchmark_named(name)``: a module of benchmarks/, which is no package."""
    def load(name):
        path = Path(__file__).resolve().parents[1] / "benchmarks" / f"{name}.py"
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    return load


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    """Every test reads and writes below its own folder."""
    for name in ("DATA", "CACHE", "RESULTS"):
        monkeypatch.setenv(f"DNNLIB_{name}", str(tmp_path / name.lower()))
    monkeypatch.setenv("DNNLIB_BOOK", str(tmp_path / "results"))  # what a run saves is read again
    return tmp_path


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory, worker_id):
    """One cache, in all workers of a run, for tests that train the same networks."""
    base = tmp_path_factory.getbasetemp()
    return (base if worker_id == "master" else base.parent) / "shared_cache"


@pytest.fixture
def generator():
    """``generator(seed)``: a fresh source of random numbers."""
    return lambda seed=0: torch.Generator().manual_seed(seed)


@pytest.fixture
def tiny_model():
    """``tiny_model(seed)``: 8 x 8 gray images to 3 classes, decided by few pixels."""
    def make(seed: int = 0) -> nn.Module:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))
        return model.to(memory_format=torch.channels_last).eval()
    return make


@pytest.fixture
def tiny_data():
    """40 random 8 x 8 gray images; the class is told by the brightest of three rows."""
    images = torch.rand(40, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    labels = images[:, 0, :3].mean(2).argmax(1)
    return Dataset("tiny", "train", images, labels, ("a", "b", "c"), "tiny-000000000000")


@pytest.fixture
def dnnlib(monkeypatch, capsys):
    """``dnnlib("rank", ...)``: exit code, stdout and stderr of a command."""
    from dnnlib.cli import app, terminal

    def call(*arguments, debug: bool = False):
        monkeypatch.setattr(sys, "argv", ["dnnlib", *map(str, arguments)])
        monkeypatch.setattr(terminal, "DEBUG", debug)
        with pytest.raises(SystemExit) as stop:
            app.main()
        return stop.value.code or 0, *capsys.readouterr()
    return call
