"""Datasets that the book does not name: of torchvision, and of a function in a file."""

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import datasets

from dnnbook import data
from dnnbook.chapters import declared, notebooks, sweeps
from dnnbook.chapters.experiments import Experiment
from dnnbook.data import own, sources

FILE = '''
import numpy as np
import torch
from torch.utils.data import TensorDataset

def dots(split):
    """The row of the bright pixel is the class."""
    labels = np.arange(40 if split == "train" else 20) % 2
    images = np.zeros((len(labels), 8, 8))
    images[np.arange(len(labels)), labels * 4, 3] = 0.5
    return images, labels, ("up", "down")

def items(split):
    images, labels, _ = dots(split)
    return TensorDataset(torch.tensor(images, dtype=torch.float32)[:, None], torch.tensor(labels))

def nothing(split):
    dots(split)

def bright(split):
    images, labels, _ = dots(split)
    return images * 3, labels

def wide(split):
    return np.zeros((4, 1, 8, 9)), [0, 1, 0, 1]

def short(split):
    return np.zeros((4, 1, 8, 8)), [0, 1, 0]

def one(split):
    return np.zeros((4, 1, 8, 8)), [0, 0, 0, 0]

def other(split):
    images, labels, classes = dots(split)
    return images, labels, classes if split == "train" else ("a", "b")

def broken(split):
    return dots(split)[7]

def both():
    return dots("train")

def named(split):
    return np.zeros((2, 8, 8)), ["cat", "dog"]

def alike(split):
    images, labels, _ = dots("train")
    order = np.random.default_rng().permutation(40)
    return images[order], labels[order]
'''


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return path


def test_arrays_of_a_function(file):
    found = data.load(f"{file}:dots", "train")
    assert found.images.shape == (40, 1, 8, 8) and found.images.max() == pytest.approx(0.5, abs=0.003)
    assert found.classes == ("up", "down") and found.labels[:3].tolist() == [0, 1, 0]
    assert len(data.load(f"{file}:dots", limit=5)) == 5


def test_items_of_a_dataset_are_the_same_images(file):
    first, second = (data.load(f"{file}:{name}") for name in ("dots", "items"))
    assert first.fingerprint == second.fingerprint and second.classes == ("0", "1")


@pytest.mark.parametrize("shape", [(3, 8, 8), (8, 8, 3)])
def test_colour_in_either_layout(shape, tmp_path):
    path = tmp_path / "colour.py"
    path.write_text(f"import numpy as np\ndef mine(split):\n"
                    f"    return np.zeros((4, *{shape}), dtype=np.uint8), [0, 1, 0, 1]\n")
    assert data.load(f"{path}:mine").shape == (3, 8, 8)


@pytest.mark.parametrize("function, words", [
    ("nothing", "got NoneType; did you forget `return`"), ("bright", r"floats in \[0, 1\], got 0 to 1.5"),
    ("wide", "square images of one or three channels, got 4 of 1 x 8 x 9"),
    ("short", r"a label for each of 4 images, got labels \(3,\)"), ("one", "at least two classes, got 0"),
    ("other", "expected classes up, down in both parts of .*, got a, b in the test part"),
    ("both", r"mine.py:both \(train\): TypeError: both\(\) takes 0 positional arguments but 1 was given$"),
    ("named", r"mine.py:named \(train\): expected whole numbers as labels, got \['cat'\]"),
    ("alike", "other images for test than for train of .*mine.py:alike, got the same 40; does it look at its split"),
    ("broken", "mine.py, line 38: IndexError"), ("dot", "did you mean 'dots'")])
def test_what_will_not_do_is_told_before_a_kernel_starts(file, function, words):
    with pytest.raises(ValueError, match=words) as told:
        notebooks.together(notebooks.find("nss/04"), {"dataset": f"{file}:{function}"})
    assert "\n" not in str(told.value)


def test_a_sweep_names_what_will_not_do_before_one_runs(file):
    path = file.with_name("sweep.toml")
    path.write_text("".join(
        f'[[grid]]\nnotebook = "nss/02"\nprofile = "paper"\ndataset = "{file}:{name}"\n'
        for name in ("nothing", "nope", "dots")))
    with pytest.raises(ValueError, match="2 problems, nothing was run") as told:
        sweeps.read(path)
    first, second = str(told.value).splitlines()[1:]
    assert "grid 1, " in first and first.endswith("got NoneType; did you forget `return`?")
    assert "grid 2, " in second and "unknown function of mine.py 'nope'" in second


def test_no_such_file():
    with pytest.raises(FileNotFoundError, match="dataset: there is no file nowhere.py"):
        sources.check("nowhere.py:mine")


def test_a_run_a_sweep_and_a_record_call_it_alike(file, monkeypatch):
    monkeypatch.chdir(file.parent)
    path = notebooks.find("nss/04")
    values = notebooks.typed(path, {"dataset": "mine.py:dots"})
    assert values["dataset"] == f"{file}:dots"  # the notebook runs in its own folder
    run = Experiment("nss/diversity", "embedded", dataset=values["dataset"], seed=0)
    assert run.parameters["dataset"] == own.called(f"{file}:dots")
    assert notebooks.recorded(path, values)[1]["dataset"] == run.parameters["dataset"]
    before = own.called(f"{file}:dots")
    file.write_text(FILE.replace("0.5", "0.25"))
    assert own.called(f"{file}:dots") != before


class Pictures(torch.utils.data.Dataset):
    """As torchvision's: ten pictures, kept below ``root``."""

    classes = ["no", "yes"]

    def __init__(self, root, train=True, download=False):
        place = root / "Pictures" / ("train" if train else "test")
        if download:
            place.mkdir(parents=True)
            for i in range(10):
                Image.fromarray(np.full((8, 8), 20 * i + train, dtype=np.uint8)).save(place / f"{i}.png")
        if not place.is_dir():
            raise RuntimeError("Dataset not found. You can use download=True to download it")
        self.paths = sorted(place.iterdir())

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        return Image.open(self.paths[i]), int(i > 4)


def test_a_dataset_of_torchvision_is_fetched_when_asked(folders, monkeypatch):
    monkeypatch.setattr(datasets, "Pictures", Pictures, raising=False)
    monkeypatch.setattr(datasets, "__all__", (*datasets.__all__, "Pictures"))
    with pytest.raises(data.MissingData, match="`dnnbook data --download torchvision:Pictures`"):
        data.load("torchvision:Pictures")
    for split in ("train", "test"):
        found = data.load("torchvision:Pictures", split, download=True)
        assert found.shape == (1, 8, 8) and found.labels.tolist() == [0] * 5 + [1] * 5
    assert data.load("torchvision:Pictures").classes == ("no", "yes")
    assert declared.check("nss/diversity", dataset="torchvision:Pictures", seed=0)


@pytest.mark.parametrize("name, words", [
    ("KMINST", "unknown dataset of torchvision 'KMINST'"), ("ImageFolder", "has not just the parts train and test"),
    ("EMNIST", "name that as FILE.py:FUNCTION")])
def test_what_torchvision_has_not(name, words):
    with pytest.raises(ValueError, match=words):
        sources.check(f"torchvision:{name}")
