"""A first run that needs nothing: a small network and 200 digits, which travel with the package."""

import io
from pathlib import Path

import numpy as np
from PIL import Image

from dnnlib import files

ASSETS = Path(__file__).parent / "assets" / "example"
MODEL, WEIGHTS, SHEET = "lenet1", "weights.safetensors", "digits.png"
COLUMNS, SIDE = 20, 28


def write(folder: Path) -> None:
    """Put ``weights.safetensors`` and ``digits/CLASS/NUMBER.png`` into ``folder``.

    LeNet-1, trained on digits of MNIST, and 200 digits of its test set that it did not see. What is
    there already stays. Raises ``ValueError`` for a folder that another program made.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     write(Path(place) / "example")
    ...     len([*Path(place).glob("example/digits/*/*.png")])
    200
    """
    weights = (ASSETS / WEIGHTS).read_bytes()
    if folder.exists():
        mine = folder / WEIGHTS
        if not folder.is_dir() or not mine.is_file() or mine.read_bytes() != weights:
            raise ValueError(f"--example: writes into a new folder, {folder}, and it is there "
                             "already; run it in another place")
    with Image.open(ASSETS / SHEET) as sheet:
        pixels, labels = np.asarray(sheet), sheet.info["labels"]
    digits = pixels.reshape(-1, SIDE, COLUMNS, SIDE).swapaxes(1, 2).reshape(-1, SIDE, SIDE)
    folder.mkdir(parents=True, exist_ok=True)
    files.write_atomically(folder / WEIGHTS, weights)
    for number, (digit, label) in enumerate(zip(digits, labels)):
        path = folder / "digits" / label / f"{number:03}.png"
        if not path.exists():  # with another date it would count as another image
            Image.fromarray(digit).save(content := io.BytesIO(), "PNG")
            path.parent.mkdir(parents=True, exist_ok=True)
            files.write_atomically(path, content.getvalue())
