"""What a run is of: so that an old result is never given for a new question.

Options count as they were given, libraries by their versions, weights by their bytes wherever they
lie, images by what tells that one has changed. What a person's own code does cannot be read off
it: what the model answers, and what the images come to, decides. A model that answers otherwise is
another run; one that answers the same goes on, and a line tells that its file has changed.
"""

import hashlib
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import nn

from dnnlib import __version__
from dnnlib.custom import preparation as prepared
from dnnlib.custom import run_folder
from dnnlib.custom.answering import unanswered
from dnnlib.custom.classifier import unwrapped
from dnnlib.custom.looks import Looked
from dnnlib.custom.photos import Photos
from dnnlib.data.pictures import Pictures, Rows
from dnnlib.inference import device_of, fast_layout
from dnnlib.models import fingerprints, sources

FEW = 16  # training images whose pixels are kept
WHOLE = 1024  # images of a dataset that are all read; of a larger one, so many of them
SAME = 1e-3  # of how far outputs go apart: what passes on one machine may differ by
_log = logging.getLogger(__name__)  # to stderr, as it is


@dataclass(frozen=True, eq=False)
class Images:
    """What tells images from others, or from what they were.

    ``count``: of all; ``preparation``: in words; ``pixels``: a hash of some of them, as they are
    prepared; ``labels``: a hash of all. ``names``, ``states``: int64 (M,), of each of the ``kind``
    that is compared: images, files of rows, or, of a large dataset, some images.
    """

    count: int
    kind: str
    preparation: str
    pixels: str
    labels: str
    names: torch.Tensor
    states: torch.Tensor

    def said(self, again: bool) -> str:
        """In words; ``again``: they are what they were when the run began."""
        rest = {"images": "", "files": f" in {len(self.names)} file(s)",
                "some images": f", of which {len(self.names):,} are compared when a run goes on"}
        return (f"{self.count:,} given images{rest[self.kind]}, {self.preparation}"
                + (f", none{' of these' * (self.kind == 'some images')} changed since the run began"
                   if again else ""))

    def changed(self, before: Mapping, names: torch.Tensor, states: torch.Tensor) -> str:
        """What is other than it was, in words, '' for nothing; ``before``: the plain facts."""
        word = self.kind.removeprefix("some ")
        if self.count != before["count"]:
            return f"was {before['count']:,} images that can be read, and is {self.count:,}"
        if not torch.equal(self.names, names):
            new = len({*self.names.tolist()} - {*names.tolist()})
            return (f"was other {word}: {new:,} of {len(names):,} have other names" if new else
                    f"was the same {word} in another order")
        if other := int((self.states != states).sum()):
            return f"was other {word}: of {len(names):,}, {other:,} changed since"
        if self.labels != before["labels"]:
            return "was the same images with other labels"
        if self.pixels != before["pixels"]:
            return (f"was prepared otherwise: {before['preparation']}, and is {self.preparation}"
                    if before["preparation"] != self.preparation else
                    "was the same, and has other pixels: another transform, or some can be read "
                    "that could not")
        return ""


def images_of(photos: Photos, some: torch.Tensor, *, compared: bool = True) -> Images:
    """Files by name, size and time of change; what is in memory by its bytes; a dataset's items as
    they are read: all of at most 1,024, and so many of a larger one, spread over all. ``some``: of
    them, as they are prepared. Without ``compared``, as where no folder is left,
    none is looked at."""
    source, n = photos.source, len(photos)
    names: Sequence[str] = photos.paths
    if not compared:
        names, states = [], []
    elif isinstance(source, Pictures | Rows):
        states = [_number(stamp.tobytes()) for stamp in source.stamps]
        if isinstance(source, Rows):
            names = [Path(file).name for file in source.files]
    elif isinstance(source, torch.Tensor):
        states = [_number(fingerprints.content(image)) for image in source]
    else:
        places = torch.linspace(0, n - 1, min(n, WHOLE)).long().tolist()
        names = [names[i] for i in places]
        states = [_number(fingerprints.content(image)) for i in places
                  for image in photos.those([i]).values() or [torch.empty(0)]]
    pixels = hashlib.sha256(str(tuple(some.shape)).encode())
    pixels.update(fingerprints.content(some))
    return Images(n, "images" if not compared or len(names) == n else
                  "files" if isinstance(source, Rows) else "some images",
                  photos.preparation.described or "as they are", pixels.hexdigest()[:12],
                  "" if photos.labels is None else hashlib.sha256(
                      fingerprints.content(photos.labels)).hexdigest()[:12],
                  torch.tensor([_number(os.fsencode(name)) for name in names], dtype=torch.int64),
                  torch.tensor(states, dtype=torch.int64))


def _number(data: bytes | memoryview) -> int:
    """64 bits of a hash."""
    return int.from_bytes(hashlib.sha256(data).digest()[:8], "big", signed=True)


class Other(ValueError):
    """A folder holds another run; ``found`` says where, and in what it differs."""

    def __init__(self, folder: Path, changed: Sequence[str]):
        self.found = f"{folder} holds another run: {'; '.join(changed)}"
        super().__init__(f"out: {self.found}. Give another --out, or delete this one")


@dataclass(frozen=True, eq=False)
class Identity:
    """What a run is of.

    ``options``: all that was given, as JSON holds it, and the versions of libraries. ``weights``,
    ``layers``: see :mod:`dnnlib.models.fingerprints`; ``code``: the person's own files, each with
    a hash; ``answers``: the model's outputs for some of the images, (n, classes).
    """

    options: Mapping
    weights: str
    layers: str
    code: Mapping[str, str]
    output: str
    answers: torch.Tensor
    images: Images
    reference: Images | None

    @property
    def facts(self) -> dict:
        """As ``run.json`` has them; what is many numbers is in ``run.safetensors``."""
        plain = {name: asdict(images) for name, images in self._seen.items()}
        for images in plain.values():
            del images["names"], images["states"]
        return {**self.options, "model": {"weights": self.weights, "layers": self.layers,
                                          "code": dict(self.code), "output": self.output}, **plain}

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """Answers, and what tells each image."""
        return {"answers": self.answers} | {
            f"{name}.{what}": getattr(images, what) for name, images in self._seen.items()
            for what in ("names", "states")}

    @property
    def _seen(self) -> dict[str, Images]:
        found = {"images": self.images, "reference": self.reference}
        return {name: images for name, images in found.items() if images is not None}

    def check(self, folder: Path) -> bool:
        """Whether ``folder`` holds a run of the same; ``Other`` if it is of another.

        A file of code that has changed, and answers the same, is told.
        """
        before = run_folder.opened(folder)
        if before is None:
            return False
        facts, tensors = before
        try:
            changed = [*self._other(facts, tensors)]
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"out: {folder / 'run.json'} is not of a run to go on with; give "
                             "another --out, or delete the folder") from error
        if changed:
            raise Other(folder, changed)
        code = facts["model"]["code"]
        if other := [k for k in {**code, **self.code} if code.get(k) != self.code.get(k)]:
            _log.warning("model: %s changed since the run began; it goes on, as the model answers "
                         "the same for %d images", ", ".join(other), len(self.answers))
        return True

    def _other(self, facts: Mapping, tensors: Mapping[str, torch.Tensor]):
        options = {k: v for k, v in facts.items() if k not in ("model", "images", "reference")}
        for name in {**self.options, **options}:
            if options.get(name) != self.options.get(name):
                yield f"{name} was {options.get(name)!r} and is {self.options.get(name)!r}"
        same = True
        for name, known in (("images", self.images), ("reference", self.reference)):
            if (known is None) != (name not in facts):
                yield f"{name} was {'given' if known is None else 'not given'}, and now is" + (
                    " not" if known is None else "")
            elif known is not None and (words := known.changed(
                    facts[name], tensors[f"{name}.names"], tensors[f"{name}.states"])):
                same = same and name != "images"
                yield f"{name} {words}"
        for name, words in (("weights", "other weights"), ("layers", "other layers"),
                            ("output", "another output")):
            if facts["model"][name] != getattr(self, name):
                yield f"model was one of {words}"
                same = False
        if same and not _answer_alike(tensors["answers"], self.answers):
            off = (tensors["answers"] - self.answers).abs().max().item() if (
                tensors["answers"].shape == self.answers.shape) else float("nan")
            yield ("model was one of the same weights that answers otherwise"
                   + (f", by up to {off:.3g}" if off == off else ""))

    def said(self, again: bool) -> str:
        """One line: of what this run was; ``again``: a run before was gone on with."""
        parts = [self.images.said(again), f"weights {self.weights[:8]}"]
        if self.reference is not None:
            parts.append(f"{self.reference.count:,} training images")
        parts.append(self.output)
        return f"used: {'; '.join(parts)}"


def check_left_out(folder: Path, model: nn.Module, photos: Photos, places: Sequence[int]) -> None:
    """``ValueError`` if an image at one of these ``places``, which the run in ``folder`` left out,
    can be read and answered by now: it would be missing without need."""
    device = device_of(model)
    for i in places:
        image = photos.those([i]).get(i)
        if image is not None and image.shape == photos.shape and not unanswered(
                lambda x: model(fast_layout(x, device)), image[None]):
            raise ValueError(f"out: {folder} holds a run that left out {photos.paths[i]}, which "
                             "can be read and answered now. Give another --out, or delete this one")


def _answer_alike(before: torch.Tensor, now: torch.Tensor) -> bool:
    """Up to rounding, in the columns that vary: a class may be masked by a large constant."""
    if before.shape != now.shape:
        return False
    varied = (before != before[0]).any(0)
    size = (before[:, varied] - before[:, varied].mean()).abs().max() if varied.any() else 0.0
    same = (before - now).abs() <= SAME * torch.where(varied, size, before.abs())
    return bool((same | (before == now)).all())


def identity_of(look: Looked, photos: Photos, reference: Photos | None,
                options: Mapping, *, compared: bool = True) -> Identity:
    """Of a run of what :func:`looks.first_look` gave.

    ``options``: what else decides what the run makes, as JSON can hold it. ``compared``: whether a
    later run will be compared with it.
    """
    model = look.model
    own = unwrapped(model)
    fit = photos.preparation
    things = [*{type(module) for module in own.modules()}, *prepared.steps_of(fit)]
    things += [base for kind in things if isinstance(kind, type) for base in kind.__mro__]
    return Identity({"dnnlib": __version__, **sources.versions(things), "torch": torch.__version__,
                     "device": device_of(model).type, **options},
                    fingerprints.weights(own), fingerprints.layers(own), sources.own_files(things),
                    look.output, look.answers,
                    images_of(photos, look.images, compared=compared),
                    None if reference is None else
                    images_of(reference, reference.some(FEW), compared=compared))
