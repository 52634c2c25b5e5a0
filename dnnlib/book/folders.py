"""A folder of images such as a reader may have, and the commands run on it as a reader would."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from dnnlib.data import Dataset


def save_photos(data: Dataset, folder: Path) -> Path:
    """Every image as a PNG file, in a sub-folder for each class; returns ``folder``."""
    from torchvision.io import write_png  # slow to import

    for i, (image, label) in enumerate(zip(data.images, data.labels)):
        path = folder / data.classes[label] / f"{i:04d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_png((image * 255).round().byte(), str(path))
    return folder


def command(work: Path, name: str, options: Mapping[str, object]) -> str:
    """The call of ``dnnlib <name>`` in the folder ``work``, and what it prints.

    Raises ``RuntimeError`` with its last line of errors if it fails; what leaves out images that
    cannot be read, exit code 3, does not.
    """
    words = [name, *(str(word) for option, value in options.items()
                     for word in (f"--{option}", value))]
    done = subprocess.run([sys.executable, "-m", "dnnlib.cli", *words], cwd=work,
                          env=os.environ | {"COLUMNS": "100"},  # as wide here as anywhere
                          capture_output=True, text=True)
    if done.returncode not in (0, 3):
        said = done.stderr.strip().splitlines() or ["nothing was said"]
        raise RuntimeError(f"dnnlib {name} ended with exit code {done.returncode}: "
                           f"{said[-1].removeprefix('error: ')}")
    return " ".join(["$ dnnlib", *words]) + "\n" + done.stdout
