"""A run of ``dnnlib fuzz`` in its folder: begun, gone on with, and told as tables and pictures.

Inputs are fuzzed in blocks. What a block depends on is fixed before the first: its inputs, and
random numbers drawn from the seed and the block's number. So a run that was killed goes on with the
blocks that are left, and ends with the same files.
"""

import io
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pandas as pd
import torch
from PIL import Image
from torch import nn
from torchvision.transforms.v2.functional import pil_to_tensor, to_pil_image
from tqdm import tqdm

from dnnlib import __version__, files
from dnnlib.custom.classifier import PROBE, classifier
from dnnlib.custom.failures import nearest
from dnnlib.custom.options import Options
from dnnlib.custom.photos import Photos, shortened
from dnnlib.custom.rehearsal import outputs_only, rehearse_fuzzer
from dnnlib.inference import device_of, fast_layout, predict
from dnnlib.models.fingerprints import described, fingerprint
from dnnlib.neurons.layers import matching

INPUTS = ("path", "outcome", "label", "predicted", "failures", "note")
FAILURES = ("input", "label", "label_from", "predicted", "l2", "linf", "iteration", "file")


@dataclass(frozen=True, eq=False)
class Found:
    """``inputs``: every image once, with its 'outcome'; ``failures``: every failing input.

    Outcomes: 'broken', 'held' where nothing failed, 'misclassified' to begin with, 'left out' by
    the limit, 'unreadable'. 'l2' and 'linf' are distances from the input, 'iteration' counts from
    1, and 'file' is relative to the run's folder.
    """

    inputs: pd.DataFrame
    failures: pd.DataFrame


def fuzz(model: nn.Module, photos: Photos, folder: str | Path, options: Options, *,
         reference: torch.Tensor | None = None, probabilities: bool = False) -> Found:
    """Look for failing inputs, and write them below ``folder``; what is there is not made again.

    ``photos``: see :func:`read_photos`; ``reference``: training images (M, C, H, W) for
    'deephunter'; ``probabilities``: see :func:`classifier`. For each input and wrong class,
    the nearest example is kept. An example is judged after rounding to 8 bits, and is kept if
    the wrong class's probability leads by 1e-4, so that each file fails when it is loaded again.

    In the folder: ``images/``, PNG files named by the place of the input among the images and by
    the wrong class; ``failures.csv`` and ``inputs.csv``, see :class:`Found`; ``run.json``, of which
    options, model and images; ``blocks/``, what each block of inputs gave. Classes are named by
    their folders, or by their numbers. Raises ``ValueError`` for a folder that holds something
    else, a model whose outputs vary from pass to pass, and one that gets no image right.
    """
    folder, size = Path(folder).expanduser(), options.batch_size
    options.check_reference(reference is not None)
    model = classifier(model, photos.images, probabilities=probabilities)
    if options.layers is not None:
        outputs_only(options.by, model)
        options = replace(options, layers=matching(model, photos.images, options.layers))
    _check_steady(model, photos.images[:PROBE])
    p = predict(model, photos.images, batch_size=size)
    labels, names = _labelled(photos, p, options.labels)
    fuzzer = options.fuzzer(len(names), reference)
    rehearse_fuzzer(options.by, fuzzer, model, photos.images, labels)
    right = (p.argmax(1) == labels).nonzero()[:, 0]
    if not len(right):
        raise ValueError(f"labels: the model gets none of {len(labels)} images right; are the "
                         f"folders' names in the order of its classes: {', '.join(names[:3])}...?")
    count = min(options.limit or len(right), len(right))
    places = right[torch.arange(count) * len(right) // count]
    facts = {"dnnlib": __version__, "torch": torch.__version__, "device": device_of(model).type,
             "model": fingerprint(model), "probabilities": probabilities,
             "images": files.digest([described(photos.images), photos.paths, photos.skipped]),
             "reference": described(reference), **asdict(options)}
    _check_folder(folder, facts)
    dealt = places[torch.randperm(count, generator=torch.Generator().manual_seed(options.seed))]
    blocks = {folder / "blocks" / f"{number:05d}.json": block
              for number, block in enumerate(dealt.split(options.at_once))}
    done = sum(len(block) for path, block in blocks.items() if path.exists())
    with tqdm(total=count, initial=done, desc="inputs", unit="input") as bar:
        for number, (path, block) in enumerate(blocks.items()):
            if not path.exists():
                seed = int(files.digest([options.seed, number]), 16)
                made = nearest(model, fuzzer, photos.images[block], labels[block],
                               iterations=options.iterations, batch_size=size,
                               generator=torch.Generator().manual_seed(seed))
                _keep(folder, path, facts, made, block.tolist())
                bar.update(len(block))
    kept = sorted((failure for path in blocks for failure in json.loads(path.read_bytes())),
                  key=lambda failure: (failure["input"], failure["predicted"]))
    found = _tables(photos, labels, p.argmax(1), names, places, kept, options)
    for name, table in (("inputs", found.inputs), ("failures", found.failures)):
        files.write_atomically(folder / f"{name}.csv", table.to_csv(index=False).encode())
    return found


def _check_steady(model: nn.Module, x: torch.Tensor) -> None:
    with torch.inference_mode():
        one, other = (model(fast_layout(x, device_of(model))) for _ in range(2))
    if not torch.allclose(one, other, rtol=1e-3, atol=1e-3):
        raise ValueError("model: two passes over the same images give different outputs; is "
                         "dropout, or another source of noise, left on?")


def _labelled(photos: Photos, p: torch.Tensor, kind: str) -> tuple[torch.Tensor, Sequence[str]]:
    """The labels (N,), and the classes' names."""
    n = p.shape[1]
    if kind == "prediction":
        return p.argmax(1), [str(i) for i in range(n)]
    if flat := [path for path in photos.paths if "/" not in path]:
        raise ValueError(f"labels: expected every image in the sub-folder of its class, got "
                         f"{flat[0]}; without such folders, take the predictions as labels")
    names = sorted({path.split("/")[0] for path in [*photos.paths, *photos.skipped]
                    if "/" in path})
    if len(names) != n:
        raise ValueError(f"labels: expected {n} sub-folders, one for each class of the model, got "
                         f"{len(names)}: {', '.join(names[:5])}{', ...' if len(names) > 5 else ''}")
    return torch.tensor([names.index(path.split("/")[0]) for path in photos.paths]), names


def _check_folder(folder: Path, facts: dict) -> None:
    """``ValueError`` for another run's folder; what a killed run was writing is removed."""
    run = folder / "run.json"
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"out: expected a folder, got the file {folder}")
    half = re.compile(r"\..+\.(png|json|csv)\.\w{8}")
    rest = [p for p in folder.rglob("*") if p.is_file()]
    if rest and not run.exists() and not all(half.fullmatch(p.name) for p in rest):
        raise ValueError(f"out: {folder} holds files, and none is the run.json of a run to go on "
                         "with; give a folder of its own")
    if run.exists():
        try:
            before, now = json.loads(run.read_bytes()), json.loads(json.dumps(facts))
        except ValueError as error:
            raise ValueError(f"out: {run} is not of a run to go on with: {error}") from error
        if not isinstance(before, dict):
            raise ValueError(f"out: {run} is not of a run to go on with")
        changed = [f"{name} was {before.get(name)!r} and is {now.get(name)!r}"
                   for name in {**now, **before} if before.get(name) != now.get(name)]
        if changed:
            raise ValueError(f"out: {folder} holds another run: {'; '.join(changed)}. Give "
                             "another folder, or delete this one")
    for path in rest:
        if half.fullmatch(path.name):
            path.unlink()


def _keep(folder: Path, path: Path, facts: dict, made: list[dict], places: list[int]) -> None:
    """The images, then their facts: a block counts as done once its file is there."""
    if not (folder / "run.json").exists():
        files.write_atomically(folder / "run.json", json.dumps(facts, indent=1).encode() + b"\n")
    rows = []
    for failure in made:
        place = places[failure["input"]]
        name = f"images/{place:06d}-{failure['predicted']}.png"
        to_pil_image(failure["image"]).save(png := io.BytesIO(), format="PNG")
        files.write_atomically(folder / name, png.getvalue())
        rows.append({k: v for k, v in failure.items() if k != "image"}
                    | {"input": place, "file": name})
    files.write_atomically(path, json.dumps(rows, indent=1).encode() + b"\n")


def _tables(photos: Photos, labels: torch.Tensor, clean: torch.Tensor, names: Sequence[str],
            places: torch.Tensor, kept: list[dict], options: Options) -> Found:
    tried, counts = set(places.tolist()), Counter(failure["input"] for failure in kept)
    rows = []
    for i, (path, label, given) in enumerate(zip(photos.paths, labels.tolist(), clean.tolist())):
        outcome = ("misclassified" if label != given else "left out" if i not in tried
                   else "broken" if counts[i] else "held")
        rows.append((path, outcome, names[label], names[given], counts[i], ""))
    rows += [(path, "unreadable", "", "", 0, why) for path, why in photos.skipped.items()]
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
    if rows.empty:
        return {}
    inputs = photos.images[[photos.paths.index(path) for path in rows["input"]]]
    folder = Path(folder).expanduser()
    examples = torch.stack([pil_to_tensor(Image.open(folder / name)) / 255
                            for name in rows["file"]])
    return {"inputs": (inputs, [f"{a}\n{shortened(b)}"
                                for a, b in zip(rows["label"], rows["input"])]),
            "failing inputs": (examples, [f"{a}\nL2 {b:.2f}"
                                          for a, b in zip(rows["predicted"], rows["l2"])]),
            "difference, times ten": ((0.5 + 10 * (examples - inputs)).clamp(0, 1),
                                      [f"Linf {a:.3f}" for a in rows["linf"]])}
