"""A folder of images such as a reader may have, and the commands run on it as a reader would."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from dnnbook.data import Dataset


def named(classes: Sequence[str]) -> list[str]:
    """A folder for each class: its number, with which the order of names is that of the classes,
    and its name, as far as a folder can have it.

    >>> named(["T-shirt/top", "Trouser"]), named(["0", "1"])
    (['0_T-shirt_top', '1_Trouser'], ['0', '1'])
    """
    width = len(str(len(classes) - 1))
    numbers = [f"{i:0{width}d}" for i in range(len(classes))]
    plain = [re.sub(r"[^\w-]+", "_", name) for name in classes]
    return [number if name == str(i) else f"{number}_{name}"
            for i, (number, name) in enumerate(zip(numbers, plain))]


def save_photos(data: Dataset, folder: Path) -> Path:
    """Every image as a PNG file, in a sub-folder for each class (:func:`named`); ``folder``."""
    from torchvision.io import write_png  # slow to import

    places = named(data.classes)
    for i, (image, label) in enumerate(zip(data.images, data.labels)):
        path = folder / places[label] / f"{i:04d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_png((image * 255).round().byte(), str(path))
    return folder


def command(work: Path, name: str, options: Mapping[str, object]) -> str:
    """The call of ``dnnlib <name>`` in the folder ``work``, and what it prints.

    Runs that were kept there are removed first, so that the same call says the same again.
    Raises ``RuntimeError`` with its last line of errors if it fails; what leaves out images that
    cannot be read, exit code 3, does not.
    """
    words = [name, *(str(word) for option, value in options.items()
                     for word in (f"--{option}", value))]
    for run in work.glob("*/run.json"):
        shutil.rmtree(run.parent)
    done = subprocess.run([sys.executable, "-m", "dnnlib.cli", *words], cwd=work,
                          env=os.environ | {"COLUMNS": "100"},  # as wide here as anywhere
                          capture_output=True, text=True)
    if done.returncode not in (0, 3):
        said = done.stderr.strip().splitlines() or ["nothing was said"]
        raise RuntimeError(f"dnnlib {name} ended with exit code {done.returncode}: "
                           f"{said[-1].removeprefix('error: ')}")
    # digits of weights follow from their last bits, which machines round differently
    said = re.sub(r"weights [0-9a-f]{8}", "weights ...", done.stdout)
    return " ".join(["$ dnnlib", *words]) + "\n" + said
