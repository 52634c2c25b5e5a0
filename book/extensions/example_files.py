"""The files of ``dnnlib rank --example``: a small network, and digits that it did not see.

``python book/extensions/example_files.py`` makes them again, in about a minute.
"""

from pathlib import Path

import numpy as np
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from dnnbook import training
from dnnbook.data import load
from dnnlib import files
from dnnlib.custom import example

COUNT = 200


def make(folder: Path) -> None:
    """LeNet-1, trained on the embedded digits, and the first test digits in rows of 20."""
    model, digits = training.trained(example.MODEL, "mnist_small", seed=0), load(
        "mnist_small", "test")
    folder.mkdir(parents=True, exist_ok=True)
    files.save_tensors(folder / example.WEIGHTS, model.state_dict())
    pixels = (digits.images[:COUNT, 0] * 255).round().byte().numpy()
    rows = [np.concatenate(list(row), 1) for row in pixels.reshape(-1, example.COLUMNS, 28, 28)]
    told = PngInfo()
    told.add_text("labels", "".join(map(str, digits.labels[:COUNT].tolist())))
    Image.fromarray(np.concatenate(rows)).save(folder / example.SHEET, pnginfo=told, optimize=True)


if __name__ == "__main__":
    make(example.ASSETS)
