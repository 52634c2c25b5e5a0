"""A look whether a dataset is there, before a kernel starts."""

import numpy as np
import pytest
from PIL import Image

from dnnbook.data import MissingData, sources


@pytest.fixture
def dataset(tmp_path):
    """``dataset(classes, size)``: a folder with train and test, two images for each class."""
    def make(classes=("a", "b"), size=(6, 6), images=2):
        for split in ("train", "test"):
            for name in classes:
                place = tmp_path / "own" / split / name
                place.mkdir(parents=True)
                for i in range(images):
                    Image.fromarray(np.zeros(size[::-1], np.uint8)).save(place / f"{i}.png")
        return tmp_path / "own"
    return make


def test_what_is_there(dataset):
    assert sources.check(dataset()) is None and sources.check("digits") is None


@pytest.mark.parametrize("made, error, words", [
    ({"classes": ["a"]}, ValueError, "each of at least two classes, got a"),
    ({"classes": []}, FileNotFoundError, "is not a folder"),
    ({"images": 0}, FileNotFoundError, "train holds no images"),
    ({"size": (6, 4)}, ValueError, "expected square images, got .* of 6 x 4 pixels")])
def test_what_will_not_do(dataset, made, error, words):
    with pytest.raises(error, match=words):
        sources.check(dataset(**made))


def test_what_is_not_there(tmp_path):
    with pytest.raises(MissingData, match="dataset 'svhn' .test. is not under .* To get it"):
        sources.check("svhn")
    with pytest.raises(ValueError, match="did you mean 'mnist'"):
        sources.check("mnits")
