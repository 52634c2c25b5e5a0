"""The picture of ordinary changes on the page on your own model: digits under a small network.

``python book/extensions/stress_picture.py`` draws book/assets/stress.svg again, in about a minute.
"""

from pathlib import Path

import matplotlib

from dnnbook import training
from dnnbook.data import load
from dnnlib import custom
from dnnlib.custom.stressing_page import figure

TARGET = Path(__file__).resolve().parents[1] / "assets" / "stress.svg"


def measured() -> custom.Stressed:
    """A LeNet-5, trained on the embedded digits, on test digits that it did not see."""
    model, digits = training.trained("lenet5", "mnist_small", seed=0), load("mnist_small", "test")
    names = tuple(map(str, range(len(digits))))
    return custom.stress(model, custom.Photos(digits.images, names, labels=digits.labels,
                                              classes=digits.classes), labels="folders")


def draw(found: custom.Stressed, target: Path = TARGET) -> None:
    """The figure as SVG: the same bytes from the same numbers."""
    with matplotlib.rc_context({"svg.hashsalt": "stress"}):
        figure(found).savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    draw(found := measured())
    print(*found.sentences, sep="\n")
