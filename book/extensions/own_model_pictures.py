"""The pictures of the page on your own model, of what travels with the project and its libraries.

``python book/extensions/own_model_pictures.py`` makes them again in book/assets, in about a minute.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib
import torch
from matplotlib.cbook import get_sample_data
from PIL import Image, ImageDraw
from torchvision.models import ResNet18_Weights
from torchvision.transforms.v2.functional import pil_to_tensor

from dnnbook import training
from dnnbook.data import load
from dnnlib import custom
from dnnlib.custom import example, preparation
from dnnlib.custom.stressing_page import figure

ASSETS = Path(__file__).resolve().parents[1] / "assets"
STRESS, FAILURES, PREPARED, KEPT = (ASSETS / name for name in (
    "stress.svg", "failures.png", "prepared.png", "test_to_keep.txt"))


def stressed() -> custom.Stressed:
    """A LeNet-5, trained on the embedded digits, on test digits that it did not see."""
    model, digits = training.trained("lenet5", "mnist_small", seed=0), load("mnist_small", "test")
    names = tuple(map(str, range(len(digits))))
    return custom.stress(model, custom.Photos(digits.images, names, labels=digits.labels,
                                              classes=digits.classes), labels="folders")


def draw_stress(found: custom.Stressed, target: Path = STRESS) -> None:
    """The figure as SVG: the same bytes from the same numbers."""
    with matplotlib.rc_context({"svg.hashsalt": "stress"}):
        figure(found).savefig(target, metadata={"Date": None})


def draw_failures(target: Path = FAILURES) -> None:
    """What `dnnlib fuzz` finds first for the network and the digits of `rank --example`."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "example"
        example.write(folder)
        model = custom.load_model(example.MODEL, folder / example.WEIGHTS)
        photos = custom.read_photos(folder / "digits", model)
        found = custom.fuzz(model, photos, Path(place) / "failures", l2=2.0, limit=32)
        parts = custom.pictures(found, photos, Path(place) / "failures", limit=6)
        custom.sheet(parts, columns=6).save(target, optimize=True)


def draw_prepared(target: Path = PREPARED) -> int:
    """A photograph as a published network takes it, and how far ``--size 224`` is from that.

    Returns the largest difference, in levels of 255, from what torchvision itself makes of it.
    """
    photo = Image.open(get_sample_data("grace_hopper.jpg", asfileobj=False)).convert("RGB")
    weights = ResNet18_Weights.IMAGENET1K_V1
    published = preparation.prepared(weights.transforms())
    ours = [pil_to_tensor(Image.fromarray(p.apply(photo))).int()
            for p in (published, preparation.Preparation(resize=224, crop=224))]
    mean, std = (torch.tensor(each).view(3, 1, 1) for each in (published.mean, published.std))
    theirs = (255 * (weights.transforms()(photo) * std + mean)).round().int()
    apart = [int((each - theirs).abs().max()) for each in ours]
    framed, side = photo.copy(), round(224 / 256 * min(photo.size))
    left, top = ((edge - side) // 2 for edge in photo.size)
    ImageDraw.Draw(framed).rectangle([left, top, left + side, top + side], None, "white", 6)
    shown = [pil_to_tensor(framed.resize((224, round(224 * photo.height / photo.width)))),
             *(each.byte() for each in ours), (128 + (ours[1] - theirs)).clamp(0, 255).byte()]
    square = [torch.nn.functional.pad(each, (0, 263 - each.shape[2], 0, 263 - each.shape[1]),
                                      value=255) for each in shown]
    titles = [f"a photograph\n{photo.width} x {photo.height}",
              f"as published\n{apart[0]} levels off",
              f"--size 224\nup to {apart[1]} levels off", "the difference\ngray: none"]
    custom.sheet({"": (torch.stack(square) / 255, titles)}, columns=4).save(target, optimize=True)
    return apart[0]


def tell_test(target: Path = KEPT) -> None:
    """The test that ``--pytest`` writes, and what pytest says of it."""
    with tempfile.TemporaryDirectory() as place:
        def run(*arguments: str) -> str:
            done = subprocess.run([sys.executable, "-m", *arguments], cwd=place, text=True,
                                  capture_output=True, env={**os.environ, "TQDM_DISABLE": "1",
                                                               "COLUMNS": "125"})
            return done.stdout

        example.write(Path(place) / "example")
        run("dnnlib.cli", "fuzz", "--model", example.MODEL,
            "--weights", f"example/{example.WEIGHTS}", "--images", "example/digits",
            "--l2", "1", "--limit", "32", "--out", "failures", "--pytest", "test_failures.py")
        said = run("pytest", "-q", "--tb=no", "-p", "no:cacheprovider", "test_failures.py")
        test = (Path(place) / "test_failures.py").read_text("utf-8")
        said = re.sub(r"in [\d.]+s", "in a moment", said.replace(str(Path(place).resolve()), "."))
        lines = [f"# {line}\n" for line in said.splitlines() if line.strip()]
        target.write_text(f"{test}\n# $ pytest -q test_failures.py\n{''.join(lines)}", "utf-8")


if __name__ == "__main__":
    draw_failures()
    print(draw_prepared(), "levels off")
    tell_test()
    draw_stress(found := stressed())
    print(*found.sentences, sep="\n")
