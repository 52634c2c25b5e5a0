"""Tests to keep: files for pytest that fail while a model gets wrong what it got wrong here."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dnnlib import checks, files
from dnnlib.custom.class_names import published_names, read_names
from dnnlib.custom.faults import Faults
from dnnlib.custom.formats import SUFFIXES
from dnnlib.custom.fuzzing_run import Found

MARK = "# Written by dnnlib --pytest; the same command writes it anew."
DIGITS = 4  # of the bound, rounded up
FAILURES = '''{mark}
"""Images that the model gets wrong: each test fails until it gets its image right."""

from pathlib import Path

import pytest
import torch
from PIL import Image
from torchvision.transforms.v2.functional import pil_to_tensor

from dnnlib import custom, inference

HERE = Path(__file__).resolve().parent
IMAGES = {images}
CLASSES = {classes}
LABELS = {{  # by file: {right}
{labels}
}}


def load(file):
    with Image.open(IMAGES / file) as image:
        return pil_to_tensor(image) / 255


@pytest.fixture(scope="module")
def model():
{model}
    some = torch.stack([load(file) for file in [*LABELS][:64]])
    return custom.classifier(model, some{probabilities})


@pytest.mark.parametrize("file", LABELS)
def test_failing_input(model, file):
    label = LABELS[file]
    given = inference.predict(model, load(file)[None]).argmax(1).item()
    assert given == label, (f"{{file}}: label {{CLASSES.get(label, label)}}, "
                            f"prediction {{CLASSES.get(given, given)}}")
'''
RATE = '''{mark}
"""The model gets no more of these images wrong than it did."""

from pathlib import Path

from dnnlib import custom, inference

HERE = Path(__file__).resolve().parent
BOUND = {bound}  # the share that may be wrong: {wrong:,} of {images:,} were; lower it at will
IMAGES = {images}  # at least so many must be answered: a share of few says little


def test_fault_rate():
{model}
    photos = custom.read_photos({photos})
    found = custom.fault_rate(model, photos{names}{probabilities})
    assert found.images >= IMAGES, f"{{found.images}} images of {{IMAGES}} can be read and answered"
    first = "; ".join(f"{{path}}: {{what}}" for path, what in [*found.wrong.items()][:5])
    assert found.rate <= BOUND, (f"{{len(found.wrong)}} of {{found.images}} images are wrong, "
                                 f"{{found.rate:.4f}} > {{BOUND}}: {{first}}")
'''


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What decides a model's answers: the options of the command, '' or None for none."""

    model: str
    weights: str = ""
    size: int | None = None
    resize: int | None = None
    crop: int | None = None
    mean: str = ""
    std: str = ""
    channels: int | None = None
    classes: int | None = None
    width: float | None = None
    class_names: str = ""
    device: str = "auto"
    probabilities: bool | None = None

    def built(self, file: Path) -> str:
        """The lines of a function that make ``model``, in a test at ``file``."""
        path, colon, function = self.model.rpartition(":")
        if path.endswith(".py"):
            name = f"str({below_here(path, file)}) + {text(colon + function)}"
        elif Path(self.model).suffix in SUFFIXES or Path(self.model).expanduser().is_dir():
            name = f"str({below_here(self.model, file)})"
        else:
            name = text(self.model)
        lines = [_call("model = custom.load_model", [
            name, *([below_here(self.weights, file)] if self.weights else []), *_given(
                size=self.size or self.crop, channels=self.channels, classes=self.classes,
                width=self.width)])]
        numbers = {key: checks.numbers(value, key) for key, value
                   in (("mean", self.mean), ("std", self.std)) if value}
        if changed := _given(resize=self.resize, crop=self.crop, **numbers):
            lines.append(_call("model = custom.prepare", ["model", *changed]))
        return "\n".join([*lines, f"    model = model.to(inference.device({text(self.device)}))"])

    @property
    def said(self) -> str:
        """What is said of the outputs, as one more argument."""
        return "" if self.probabilities is None else f", probabilities={self.probabilities}"

    def named(self, file: Path) -> str:
        """The names of the classes, as one more argument."""
        if self.class_names.endswith(".txt"):
            found = f"custom.read_names(str({below_here(self.class_names, file)}))"
        elif self.class_names:
            found = f"({', '.join(map(text, read_names(self.class_names)))})"
        elif published_names(self.model, self.classes) is not None:
            found = (f"custom.published_names(str({below_here(self.model, file)}))"
                     if Path(self.model).expanduser().is_dir()
                     else f"custom.published_names({text(self.model)})")
        else:
            return ""
        return f",\n                              class_names={found}"


def check_file(file: Path) -> None:
    """``ValueError`` if a test may not be written there: it is somebody else's, or no .py.

    >>> check_file(Path("tests.txt"))
    Traceback (most recent call last):
    ValueError: --pytest: expected a name that ends in .py, got tests.txt
    """
    if file.suffix != ".py":
        raise ValueError(f"--pytest: expected a name that ends in .py, got {file}")
    files.writable(file, "--pytest")
    if file.exists() and not file.read_bytes().startswith(MARK.encode() + b"\n"):
        raise ValueError(f"--pytest: {file} is there, and not written by dnnlib; give another name")


def failures_test(found: Found, folder: str | Path, file: str | Path, setting: Setting, *,
                  labels: str = "prediction") -> bytes:
    """A test for each failing input of :func:`fuzz`, which wrote them below ``folder``.

    ``file``: where the test is to lie; its paths are relative to that. ``labels``: as of the run.
    A test passes once the model gives the image its label. ``ValueError`` if nothing failed.
    """
    rows, file = found.failures, Path(file)
    if rows.empty:
        raise ValueError("--pytest: no input failed, so that there is nothing to test")
    number = {name: i for i, name in enumerate(found.class_names)}
    names = {number[name]: name for column in ("label", "predicted") for name in rows[column]}
    names = {i: name for i, name in sorted(names.items()) if name != str(i)}
    return FAILURES.format(
        mark=MARK, images=below_here(Path(folder) / "images", file), classes=_dict(names),
        right=("what the model said of the unchanged image" if labels == "prediction"
               else "the class of the image"),
        labels="\n".join(f"    {text(Path(name).name)}: {number[label]},"
                         for name, label in zip(rows["file"], rows["label"])),
        model=setting.built(file), probabilities=setting.said).encode()


def rate_test(found: Faults, images: str, file: str | Path, setting: Setting) -> bytes:
    """A test that the fault rate over ``images``, as the command takes them, is at most as found.

    ``file``: where the test is to lie; its paths are relative to that.
    """
    file = Path(file)
    bound = math.ceil(found.rate * 10**DIGITS - 1e-9) / 10**DIGITS
    photos = [below_here(images, file), "model",
              *_given(size=setting.size, channels=setting.channels)]
    return RATE.format(mark=MARK, bound=bound, wrong=len(found.wrong), images=found.images,
                       model=setting.built(file), photos=", ".join(photos),
                       names=setting.named(file), probabilities=setting.said).encode()


def below_here(path: str | Path, file: Path) -> str:
    """``path`` as an expression in a test at ``file``, whose folder is HERE.

    >>> below_here("/a/w.pt", Path("/a/tests/test_model.py"))
    'HERE / "../w.pt"'
    """
    whole = Path(os.path.abspath(Path(path).expanduser()))
    whole = whole.parent.resolve() / whole.name  # a link to the newest weights stays a link
    try:
        near = os.path.relpath(whole, Path(os.path.abspath(file)).parent.resolve())
    except ValueError:  # another drive
        return f"Path({text(str(whole))})"
    return f"HERE / {text(Path(near).as_posix())}"


def text(value: str) -> str:
    """A string as Python writes it, in double quotes where these can be.

    >>> text('a"b'), text("caf\\udce9")
    ('"a\\\\"b"', "'caf\\\\udce9'")
    """
    try:
        value.encode()
    except UnicodeEncodeError:
        return repr(value)
    return json.dumps(value, ensure_ascii=False)


def _given(**options) -> list[str]:
    return [f"{name}={value!r}" for name, value in options.items() if value is not None]


def _call(name: str, arguments: Sequence[str]) -> str:
    """A line of a function's body, or one for each argument if it would be long."""
    line = f"    {name}({', '.join(arguments)})"
    if len(line) <= 90:
        return line
    return "\n".join([f"    {name}(", *(f"        {argument}," for argument in arguments), "    )"])


def _dict(names: Mapping[int, str]) -> str:
    return "{" + ", ".join(f"{i}: {text(name)}" for i, name in names.items()) + "}"
