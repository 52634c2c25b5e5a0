"""A run of ``dnnlib fuzz`` in its folder: begun, gone on with, and told as tables and pictures.

Inputs are fuzzed in blocks. What a block depends on is fixed before the first: its inputs, and
random numbers drawn from the seed and the block's number. So a run that was killed goes on with the
blocks that are left, and ends with the same files.
"""

import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Unpack

import pandas as pd
import torch
from PIL import Image
from torch import nn
from torchvision.transforms.v2.functional import pil_to_tensor, to_pil_image

from dnnlib import files
from dnnlib.custom import cluster, run_folder, tables
from dnnlib.custom.class_names import classes_named, labels_of
from dnnlib.custom.failures import nearest
from dnnlib.custom.identity import Identity, check_left_out, identity_of
from dnnlib.custom.looks import Looked, first_look
from dnnlib.custom.methods import said
from dnnlib.custom.options import Given, Options
from dnnlib.custom.own_code import reason
from dnnlib.custom.photos import Images, Photos, photos_of, shortened
from dnnlib.custom.rehearsal import outputs_only, rehearse_fuzzer
from dnnlib.custom.scores import all_of, classes_of_photos
from dnnlib.data.folders import of_one
from dnnlib.fuzzing import Fuzzer
from dnnlib.fuzzing.protocol import Unbound
from dnnlib.inference import leaves_modes, predict
from dnnlib.neurons.layers import matching
from dnnlib.progress import progress

INPUTS = ("path", "outcome", "label", "predicted", "failures", "noise", "note")
FAILURES = ("input", "label", "label_from", "predicted", "l2", "linf", "iteration", "file")


@dataclass(frozen=True, eq=False)
class Found:
    """``inputs``: every image once, with its 'outcome'; ``failures``: every failing input.

    Outcomes: 'broken', 'held' where nothing failed, 'misclassified' to begin with, 'left out' by
    the limit, 'unreadable', or the model fails on it. 'noise' is 'broken' or 'held' too: whether
    as many examples of noise at the same distance break the input; empty where none was made. 'l2'
    and 'linf' are distances from the input, 'iteration' counts from 1, and 'file' is relative to
    the run's folder. ``reference``: the reasons for training images that are left out, by name.
    ``passes``: over an input that was tried, by the fuzzer and, if it was made, by 'noise'.
    ``class_names``: of all classes, in the order of the model's outputs. ``used``: a line that says
    of what the run was.
    """

    inputs: pd.DataFrame
    failures: pd.DataFrame
    reference: Mapping[str, str] = field(default_factory=dict)
    class_names: Sequence[str] = ()
    used: str = ""
    passes: Mapping[str, float] = field(default_factory=dict)

    @property
    def misclassified(self) -> pd.DataFrame:
        """What the model got wrong before any change: 'path', 'label' and 'predicted'."""
        rows = self.inputs[self.inputs["outcome"] == "misclassified"]
        return rows[["path", "label", "predicted"]].reset_index(drop=True)


@dataclass(frozen=True, eq=False)
class Campaigns:
    """What the failing inputs of each block depend on; it can be sent to another machine.

    ``dealt``: the places of the inputs in each block; ``labels``: of all images (N,).
    """

    model: nn.Module
    fuzzer: Fuzzer
    photos: Photos
    labels: torch.Tensor
    dealt: tuple[torch.Tensor, ...]
    options: Options

    def run(self, numbers: Sequence[int], workers: int | None = None) -> Iterator[dict[str, bytes]]:
        """Those blocks, one after the other, each as its files: the images, then what they are.

        If a block fails, its inputs are fuzzed one by one, and the reasons for those that fail
        alone are in the file.
        """
        for number in numbers:
            block, left = self.dealt[number], {}
            try:
                with of_one(reason):
                    made = self._made(block, [number])
            except ValueError as failed:
                _refused(failed)
                made = []
                for i, place in enumerate(block.split(1)):
                    try:
                        with of_one(reason):
                            made += [row | ({"input": i} if "input" in row else {})
                                     for row in self._made(place, [number, i])]
                    except ValueError as error:
                        _refused(error)
                        left[place.item()] = str(error)
            yield _files(block_name(number), made, block.tolist(), left)

    def _made(self, block: torch.Tensor, numbers: list[int]) -> list[dict]:
        """The failing inputs; which of the inputs noise breaks; and the passes of both."""
        def by(fuzzer: Fuzzer, *more: str) -> tuple[list[dict], int]:
            seed = int(files.digest([self.options.seed, *numbers, *more]), 16)
            return nearest(self.model, fuzzer, x, self.labels[block],
                           iterations=self.options.iterations, batch_size=self.options.batch_size,
                           generator=torch.Generator().manual_seed(seed))

        x = self.photos.take(block)
        made, passes = by(self.fuzzer)
        taken = {"passes": {self.options.name: passes}}
        noise = self.options.beside
        if noise is not None:
            broken, taken["passes"]["noise"] = by(noise, "noise")
            made += [{"input": i, "noise": "broken"} for i in
                     sorted({row["input"] for row in broken})]
        return [*made, taken]


def _refused(error: ValueError) -> None:
    """A fuzzer that goes beyond its budget is no matter of one input."""
    if isinstance(error.__cause__, Unbound):
        raise error.__cause__


def block_name(number: int) -> str:
    """The file that says that a block is done."""
    return f"blocks/{number:05d}.json"


@leaves_modes
def fuzz(model: nn.Module, images: Images, folder: str | Path, options: Options | None = None, *,
         reference: Images | None = None, probabilities: bool | None = None,
         workers: int | None = None, client=None, class_names: Sequence[str] | None = None,
         **given: Unpack[Given]) -> Found:
    """Look for failing inputs, and write them below ``folder``; what is there is not made again.

    ``images``, ``reference``: what :func:`photos_of` takes; the latter are training images, for a
    fuzzer that needs them, as 'deephunter'. ``options``, or the options of :class:`Options` by
    name. ``probabilities``: see :func:`classifier`; ``client``: of a Dask cluster, whose workers
    fuzz the blocks; they need the same files.

    - ``workers``: processes that read images ahead; default one for each core, at most 8.

    For each input and wrong class, the nearest example is kept. An example is judged after rounding
    to 8 bits, and is kept if the wrong class's probability leads by 1e-4, so that each file fails
    when it is loaded again. What noise at the same distance breaks, of as many examples, is judged
    in the same way, and kept block by block too.

    In the folder: ``images/``, PNG files named by the place of the input among the images and by
    the wrong class; ``failures.csv`` and ``inputs.csv``, see :class:`Found`; if there are some,
    ``misclassified.csv``; ``run.json`` and ``run.safetensors``, of which options, model and images;
    ``clean.safetensors``, the classes given to the images; ``blocks/``, what each block of inputs
    gave. Classes are named by ``class_names``, in the order of the model's outputs, or else by
    their folders or numbers: see :func:`classes_named`. Raises ``ValueError`` for a folder that
    holds something else, a model
    whose outputs vary from pass to pass, and one that gets no image right.
    """
    folder = Path(folder).expanduser()
    look, fuzzer, photos, seen, names, options = prepare_run(
        model, images, options or Options(**given), reference=reference,
        probabilities=probabilities, class_names=class_names)
    model = look.model
    identity = identity_of(look, photos, seen, {
        "probabilities": bool(probabilities),
        "class_names": [*names] if options.labels == "folders" else None,
        **json.loads(json.dumps(asdict(options) | {"by": said(options.name, options.kind)}))})
    again = identity.check(folder)
    clean, labels, unread = _clean(folder, identity, model, photos, names, options, workers)
    places = ((clean == labels) & (clean >= 0)).nonzero()[:, 0]
    count = min(options.limit or len(places), len(places))
    places = places[torch.arange(count) * len(places) // count]
    dealt = places[torch.randperm(count, generator=torch.Generator().manual_seed(options.seed))]
    job = Campaigns(model, fuzzer, photos, labels, dealt.split(options.at_once), options)
    left = [number for number in range(len(job.dealt)) if not _done(folder, number)]
    done = count - sum(len(job.dealt[number]) for number in left)
    with progress(total=count, initial=done, desc="inputs", unit="input") as bar:
        made = zip(left, job.run(left)) if client is None else cluster.run(client, job, left)
        for number, content in made:
            for name, data in content.items():
                files.write_atomically(folder / name, data)
            bar.update(len(job.dealt[number]))
    rows = [row for number in range(len(job.dealt))
            for row in json.loads((folder / block_name(number)).read_bytes())]
    found = sorted((row for row in rows if "file" in row),
                   key=lambda failure: (failure["input"], failure["predicted"]))
    late = {row["input"]: row["left"] for row in rows if "left" in row}
    clean[list(late)], unread = -1, unread | {photos.paths[i]: why for i, why in late.items()}
    by_noise = {row["input"] for row in rows if "noise" in row}
    passes = sum((Counter(row["passes"]) for row in rows if "passes" in row), Counter())
    tried = max(1, count - len(late))
    told = replace(
        _tables(photos, unread, labels, clean, names, places, found, by_noise, options),
        reference=seen.skipped if seen else {}, class_names=tuple(names), used=identity.said(again),
        passes={name: total / tried for name, total in passes.items()})
    for name, table in (("inputs", told.inputs), ("failures", told.failures)):
        tables.write(table, folder / f"{name}.csv")
    if len(told.misclassified):
        tables.write(told.misclassified, folder / "misclassified.csv")
    return told


def _done(folder: Path, number: int) -> bool:
    """Whether a block is whole, with its images."""
    path = folder / block_name(number)
    try:
        rows = json.loads(path.read_bytes()) if path.exists() else None
    except ValueError:  # damaged: made again
        rows = None
    return rows is not None and all((folder / row["file"]).exists() for row in rows
                                    if "file" in row)


def prepare_run(model: nn.Module, images: Images, options: Options, *,
                reference: Images | None = None, probabilities: bool | None = None,
                class_names: Sequence[str] | None = None,
                ) -> tuple[Looked, Fuzzer, Photos, Photos | None, Sequence[str], Options]:
    """What a run needs: model, fuzzer, images, training images, classes' names, whole options.

    Arguments as of :func:`fuzz`. Raises ``ValueError`` for what cannot be run, before it is.
    """
    options.check_reference(reference is not None)
    photos = photos_of(images, model)
    seen = None if reference is None else photos_of(reference, model)
    look = first_look(model, photos, seen, probabilities=probabilities, budget=options.budget)
    model, some = look.model, look.images
    if options.layers is not None:
        outputs_only(options.name, model)
        options = replace(options, layers=matching(model, some, options.layers))
    p = predict(model, some, batch_size=options.batch_size)
    names = classes_named(photos, p.shape[1], options.labels, class_names)
    x, unread = all_of(model, seen, options.batch_size) if seen is not None else (None, {})
    seen = seen and replace(seen, skipped=seen.skipped | unread)
    fuzzer = options.fuzzer(x)
    rehearse_fuzzer(options.name, fuzzer, model, some, p.argmax(1))
    return look, fuzzer, photos, seen, names, options


def _clean(folder: Path, identity: Identity, model: nn.Module, photos: Photos, names: Sequence[str],
           options: Options, workers: int | None,
           ) -> tuple[torch.Tensor, torch.Tensor, dict[str, str]]:
    """The classes given to the images, kept, and the labels: (N,), and what cannot be read.

    The class of that is -1; its reasons come by name.
    """
    path = folder / "clean.safetensors"
    if run_folder.whole(path):
        tensors, notes = files.load_tensors(path)
        clean, skipped = tensors["classes"], notes["skipped"]
        check_left_out(folder, model, photos, (clean < 0).nonzero()[:, 0].tolist())
    else:
        clean, found = classes_of_photos(model, photos, batch_size=options.batch_size,
                                         workers=workers)
        skipped = {photos.paths[i]: why for i, why in found.items()}
    labels = clean if options.labels == "prediction" else labels_of(photos, names)
    if not (clean == labels)[clean >= 0].any():
        raise ValueError(f"labels: the model gets none of {len(labels)} images right; are the "
                         f"folders' names in the order of its classes: {', '.join(names[:3])}...?")
    if not path.exists():
        run_folder.begin(folder, identity.facts, identity.tensors)
        files.save_tensors(path, {"classes": clean}, skipped=skipped)
    return clean, labels, skipped


def _files(name: str, made: list[dict], places: list[int],
           left: Mapping[int, str]) -> dict[str, bytes]:
    """The images, then their facts: a block counts as done once its file is there."""
    found: dict[str, bytes] = {}
    rows: list[dict] = [{"input": place, "left": why} for place, why in left.items()]
    for failure in made:
        if "image" not in failure:
            rows.append(failure | ({"input": places[failure["input"]]} if "input" in failure
                                   else {}))
            continue
        place = places[failure["input"]]
        image = f"images/{place:06d}-{failure['predicted']}.png"
        to_pil_image(failure["image"]).save(png := io.BytesIO(), format="PNG")
        found[image] = png.getvalue()
        rows.append({k: v for k, v in failure.items() if k != "image"}
                    | {"input": place, "file": image})
    return found | {name: json.dumps(rows, indent=1).encode() + b"\n"}


def _tables(photos: Photos, unread: dict[str, str], labels: torch.Tensor, clean: torch.Tensor,
            names: Sequence[str], places: torch.Tensor, kept: list[dict], by_noise: set[int],
            options: Options) -> Found:
    tried, counts = set(places.tolist()), Counter(failure["input"] for failure in kept)
    beside = options.beside is not None
    rows = []
    for i, (path, label, given) in enumerate(zip(photos.paths, labels.tolist(), clean.tolist())):
        if given < 0:
            continue
        outcome = ("misclassified" if label != given else "left out" if i not in tried
                   else "broken" if counts[i] else "held")
        noise = "" if not beside or i not in tried else "broken" if i in by_noise else "held"
        rows.append((path, outcome, names[label], names[given], counts[i], noise, ""))
    rows += [(path, "unreadable", "", "", 0, "", why)
             for path, why in (unread | photos.skipped).items()]
    failures = [(photos.paths[f["input"]], names[labels[f["input"]]], options.labels,
                 names[f["predicted"]], round(f["l2"], 6), round(f["linf"], 6), f["iteration"],
                 f["file"]) for f in kept]
    return Found(pd.DataFrame(rows, columns=INPUTS), pd.DataFrame(failures, columns=FAILURES))


def pictures(found: Found, photos: Photos, folder: str | Path, *,
             limit: int = 8) -> dict[str, tuple[torch.Tensor, list[str]]]:
    """The nearest failing inputs of at most ``limit`` inputs, for :func:`sheet`.

    In columns: the input, the example, and what changed, times ten, on gray where nothing did.
    Empty if nothing failed.
    """
    rows = found.failures.sort_values("l2", kind="stable").drop_duplicates("input")[:limit]
    there = {photos.paths[i]: image for i, image in photos.those(
        [photos.paths.index(path) for path in rows["input"]]).items()}  # it was there before
    rows = rows[rows["input"].isin([*there])]
    if rows.empty:
        return {}
    inputs = torch.stack([there[path] for path in rows["input"]])
    folder = Path(folder).expanduser()
    examples = torch.stack([pil_to_tensor(Image.open(folder / name)) / 255
                            for name in rows["file"]])
    return {"inputs": (inputs, [f"{a}\n{shortened(b)}"
                                for a, b in zip(rows["label"], rows["input"])]),
            "failing inputs": (examples, [f"{a}\nL2 {b:.2f}"
                                          for a, b in zip(rows["predicted"], rows["l2"])]),
            "difference, times ten": ((0.5 + 10 * (examples - inputs)).clamp(0, 1),
                                      [f"Linf {a:.3f}" for a in rows["linf"]])}
