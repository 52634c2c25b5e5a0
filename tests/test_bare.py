"""Without the extras and the book: the engine works, and what needs one says which, in one line."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from PIL import Image

from dnnlib import __version__

ROOT = Path(__file__).resolve().parents[1]
BARE = """
import sys

class Missing:
    names = {"IPython", "art", "dask", "distributed", "dnnbook", "jupytext", "matplotlib",
             "nbformat", "papermill", "pyarrow", "seaborn", "yaml"}

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""
ROOMS = sorted(path.name for path in (ROOT / "dnnlib").iterdir()
               if (path / "__init__.py").exists())
OWN = """from torch import nn
def build():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
"""


@pytest.fixture
def bare(tmp_path):
    """``bare(code)``: a Python program without what the extras install."""
    (tmp_path / "sitecustomize.py").write_text(BARE)

    def run(code, *arguments, engine=ROOT):
        path = os.pathsep.join([str(tmp_path), str(engine)])
        return subprocess.run([sys.executable, "-c", code, *map(str, arguments)], cwd=tmp_path,
                              env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True)
    return run


def test_every_room_is_there(bare):
    done = bare("\n".join(f"import dnnlib.{room}" for room in ROOMS))
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Where a wheel of the engine was unpacked."""
    place = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, place)
    shutil.copytree(ROOT / "dnnlib", place / "dnnlib", ignore=shutil.ignore_patterns("__pycache__"))
    build = "from setuptools import build_meta; build_meta.build_wheel('.')"
    subprocess.run([sys.executable, "-c", build], cwd=place, capture_output=True, check=True)
    (made,) = place.glob("*.whl")
    with zipfile.ZipFile(made) as packed:
        packed.extractall(place / "unpacked")
    return place / "unpacked"


def test_a_wheel_holds_the_engine_and_nothing_large(wheel):
    sizes = {path.relative_to(wheel).as_posix(): path.stat().st_size
             for path in wheel.rglob("*") if path.is_file()}
    assert {name.split("/")[0] for name in sizes} == {"dnnlib", f"dnnlib-{__version__}.dist-info"}
    assert len(sizes) > 80 and {name for name, size in sizes.items() if size > 300_000} == set()


def test_a_wheel_alone_ranks_and_fuzzes(wheel, bare, tmp_path):
    code, _, *options = own(tmp_path)
    code = f"import dnnlib; assert dnnlib.__file__.startswith({str(wheel)!r}); {code}"
    for command in (["rank", *options], ["rank", "--example"],
                    ["fuzz", *options[:4], "--size", "8", "--by", "noise", "--l2", "1"]):
        done = bare(code, *command, engine=wheel)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "ranking.csv").is_file() and (tmp_path / "failures").is_dir()


def test_type_checkers_can_follow_an_editable_install(tmp_path):
    """They read a path, and not the code that setuptools else puts in its place."""
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "dnnlib").mkdir()
    (tmp_path / "dnnlib" / "__init__.py").write_text('__version__ = "1.0"')
    build = "from setuptools import build_meta; print(build_meta.build_editable('.'))"
    done = subprocess.run([sys.executable, "-c", build], cwd=tmp_path, capture_output=True,
                          text=True, check=True)
    with zipfile.ZipFile(tmp_path / done.stdout.splitlines()[-1]) as wheel:
        (pointer,) = (name for name in wheel.namelist() if name.endswith(".pth"))
        assert wheel.read(pointer).decode().strip() == str(tmp_path)


def own(folder):
    """A model and photos of one's own, and the command that ranks them."""
    (folder / "own.py").write_text(OWN)
    (folder / "photos").mkdir()
    for i in range(4):
        Image.effect_noise((8, 8), 60 + i).save(folder / "photos" / f"{i}.png")
    return ("from dnnlib.cli import main; main()", "rank", "--model", "own.py:build",
            "--images", "photos", "--by", "gini", "--top", "50%")


def test_rank_needs_no_extra(bare, tmp_path):
    done = bare(*own(tmp_path))
    assert done.returncode == 0, done.stderr
    with Image.open(tmp_path / "ranking.png") as sheet:
        sheet.verify()


def test_a_command_names_its_extra(bare, tmp_path):
    done = bare(*own(tmp_path), "--out", "ranking.parquet")
    line = "error: this needs pyarrow; install it with: pip install -e '.[parquet]'"
    assert done.returncode == 1 and done.stderr.splitlines()[-1] == line


@pytest.mark.parametrize("code, module, extra", [
    ("from dnnlib.custom import cluster; cluster.connected().__enter__()", "dask", "cluster"),
    ("import torch; from torch import nn; from dnnlib.robustness import attack_success_rate as a\n"
     "m = nn.Sequential(nn.Flatten(), nn.Linear(4, 2)); x = torch.rand(2, 1, 2, 2)\n"
     "a(m, x, m(x).argmax(1))", "art", "attacks")])
def test_an_import_names_its_extra(bare, code, module, extra):
    line = f"this needs {module}; install it with: pip install -e '.[{extra}]'"
    assert bare(code).stderr.splitlines()[-1] == f"ModuleNotFoundError: {line}"
