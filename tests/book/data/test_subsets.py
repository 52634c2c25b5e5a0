"""The parts of MNIST and Fashion-MNIST that come with the package."""

import numpy as np
import pytest
import torch

from dnnbook.data import load, subsets
from dnnlib.data.raw import Raw


@pytest.mark.parametrize("name", ["mnist_small", "fashion_mnist_small"])
def test_each_part_is_balanced_and_needs_no_data_folder(name, tmp_path, monkeypatch):
    monkeypatch.setenv("DNNLIB_DATA", str(tmp_path))
    for split, each in (("train", 500), ("test", 100)):
        data = load(name, split)
        assert data.shape == (1, 28, 28) and data.form == "embedded"
        assert torch.bincount(data.labels).tolist() == [each] * 10
        assert data.images.max() == 1 and len(set(data.classes)) == 10


def test_no_test_image_is_a_training_image():
    for name in ("mnist", "fashion_mnist"):
        train, test = ({image.numpy().tobytes() for image in subsets.read(name, split).images}
                       for split in ("train", "test"))
        assert not train & test


def full(count, seed):
    numbers = np.random.default_rng(seed)
    return Raw(torch.from_numpy(numbers.integers(0, 256, (count, 1, 4, 4), dtype=np.uint8)),
               torch.from_numpy(numbers.integers(0, 3, count)), ("a", "b", "c"), "idx")


def test_a_part_holds_the_first_images_of_every_class_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr(subsets, "FOLDER", tmp_path)
    monkeypatch.setattr(subsets, "EACH", {"train": 5, "test": 2})
    train, test = full(60, 0), full(40, 1)
    subsets.write(tmp_path / "toy.npz", train, test)
    for split, raw, each in (("train", train, 5), ("test", test, 2)):
        part = subsets.read("toy", split)
        assert part.classes == raw.classes
        places = [next(i for i, other in enumerate(raw.images) if torch.equal(image, other))
                  for image in part.images]
        assert places == sorted(places) and torch.equal(part.labels, raw.labels[places])
        for label in range(3):
            whole = (raw.labels == label).nonzero()[:each, 0].tolist()
            assert [i for i in places if raw.labels[i] == label] == whole


def test_a_class_with_too_few_images():
    with pytest.raises(ValueError, match="class [abc]: expected 30 images, got [0-9]+"):
        subsets.take(full(60, 0), 30)
