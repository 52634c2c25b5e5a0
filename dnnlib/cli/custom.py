"""The commands for a person's own model and images: ``dnnlib rank`` and ``dnnlib fuzz``."""

import io
from pathlib import Path
from typing import Annotated

import typer

from dnnlib.cli.terminal import print_table, say

LISTED = 10  # images that are named on the terminal; tables have all

Model = Annotated[str, typer.Option(help="FILE.py:FUNCTION, which returns a torch.nn.Module that "
                                    "gives logits, or a name from `dnnlib models`.")]
Images = Annotated[str, typer.Option(help="A folder of images, in sub-folders or not. The model "
                                     "sees values in [0, 1].")]
Weights = Annotated[str, typer.Option(help="The model's state dict, .safetensors.")]
Reference = Annotated[str, typer.Option(
    help="A folder of training images, for the methods that need them.")]
Size = Annotated[int | None, typer.Option(help="Pixels a side to fit the images to.")]
Channels = Annotated[int | None, typer.Option(help="1, gray-scale, or 3.")]
Classes = Annotated[int | None, typer.Option(help="Of a model by name.")]
Width = Annotated[float | None, typer.Option(help="Of MobileNet.")]
Probabilities = Annotated[bool, typer.Option(
    "--probabilities", help="The model gives probabilities, not logits.")]
BatchSize = Annotated[int, typer.Option(help="Images in one pass.")]


def rank(model: Model, images: Images,
         by: Annotated[str, typer.Option(help="Methods, with commas: nss,gini,...")],
         weights: Weights = "", reference: Reference = "",
         top: Annotated[str, typer.Option(help="To select: 5%, 0.05, or a count, 50.")] = "5%",
         output: Annotated[str, typer.Option(
             "-o", "--out", help="The table; the contact sheet goes beside it.")] = "ranking.csv",
         size: Size = None, channels: Channels = None, classes: Classes = None,
         width: Width = None, probabilities: Probabilities = False,
         seed: Annotated[int | None, typer.Option(help="Of what is random in a method.")] = None,
         batch_size: BatchSize = 64) -> None:
    """Rank your own images: which of them should be labelled first?"""
    target = Path(output).expanduser()
    if target.suffix != ".csv":
        raise ValueError(f"--out: expected a name that ends in .csv, got {output}")
    from dnnlib import custom, files

    custom.parse_methods(by, reference=bool(reference))
    network, photos, seen = _read(model, weights, images, reference, size, channels,
                                  {"classes": classes, "width": width})
    table = custom.rank(network, photos, by, reference=None if seen is None else seen.images,
                         top=top, seed=seed, probabilities=probabilities, batch_size=batch_size)
    files.write_atomically(target, table.to_csv(index=False).encode())
    firsts = custom.first(table, photos)
    _save(custom.sheet(firsts), target.with_suffix(".png"))
    for name in firsts:
        columns = {f"{name}_rank": "rank", f"{name}_score": "score", "path": "path"}
        rows = table.sort_values(f"{name}_rank")[:5][[*columns]].rename(columns=columns)
        print_table(rows.assign(score=[float(f"{score:.4g}") for score in rows["score"]]),
                    f"First by {name}")
    chosen = table[f"{name}_selected"].sum()
    say(f"{_many(photos)} ranked, {chosen:,} selected by each method",
        f"wrote {target} and {target.with_suffix('.png').name}",
        *_left(images, photos), *_left(reference, seen))


def fuzz(model: Model, images: Images,
         by: Annotated[str, typer.Option(help="deepsensor, noise, dlfuzz, deepxplore or "
                                         "deephunter.")] = "deepsensor",
         l2: Annotated[float | None, typer.Option(
             help="Greatest L2 distance from the input.")] = None,
         linf: Annotated[float | None, typer.Option(
             help="Greatest change of a pixel in [0, 1].")] = None,
         iterations: Annotated[int, typer.Option(
             help="How many examples are made of each input.")] = 20,
         population: Annotated[int | None, typer.Option(
             help="Particles to an input, with deepsensor; default 100.")] = None,
         labels: Annotated[str, typer.Option(
             help="What is right: the model's own `prediction` for the input, or `folders`, the "
                  "sub-folders in order of name.")] = "prediction",
         limit: Annotated[int | None, typer.Option(
             help="Inputs, spread over the images; default all.")] = None,
         output: Annotated[str, typer.Option("-o", "--out", help="A folder of the run's own; the "
                                             "same command again goes on there.")] = "failures",
         weights: Weights = "", reference: Reference = "",
         layers: Annotated[str, typer.Option(
             help="Modules whose channels are the neurons, with commas; default all that have no "
                  "parts. With deepsensor and deephunter.")] = "",
         size: Size = None, channels: Channels = None, classes: Classes = None,
         width: Width = None, probabilities: Probabilities = False,
         seed: Annotated[int, typer.Option(help="Of all that is random.")] = 0,
         block: Annotated[int | None, typer.Option(
             help="Inputs fuzzed at once, all that a run that is killed does again; default 4 with "
                  "deepsensor, else 32.")] = None,
         batch_size: BatchSize = 64) -> None:
    """Turn your own images into inputs that your model gets wrong."""
    from dnnlib import checks, custom

    options = custom.Options(
        by=by, l2=l2, linf=linf, iterations=iterations, population=population, labels=labels,
        limit=limit, seed=seed, block=block, batch_size=batch_size,
        layers=checks.words(layers, "layers") if layers else None)
    options.check_reference(bool(reference))
    network, photos, seen = _read(model, weights, images, reference, size, channels,
                                  {"classes": classes, "width": width})
    target = Path(output).expanduser()
    found = custom.fuzz(network, photos, target, options, probabilities=probabilities,
                       reference=None if seen is None else seen.images)
    wrote = "failures.csv, inputs.csv"
    if parts := custom.pictures(found, photos, target):
        columns = max(3, len(parts["inputs"][1]))
        _save(custom.sheet(parts, columns=columns), target / "sheet.png")
        wrote = "images, failures.csv, inputs.csv, sheet.png"
        print_table(found.failures.sort_values("l2", kind="stable")[:5], "Nearest failing inputs")
    outcomes = found.inputs["outcome"].value_counts()
    counts = ", ".join(f"{outcomes.get(name, 0):,} {name}" for name in ("broken", "held"))
    missed = found.inputs[found.inputs["outcome"] == "misclassified"]
    lines = [f"{_many(photos)}; of the inputs tried: {counts}; "
             f"failing inputs: {len(found.failures):,}",
             f"wrote {wrote} in {target}"]
    if "left out" in outcomes:
        lines.append(f"left out by --limit: {outcomes['left out']:,}")
    if len(missed):
        lines += [f"misclassified to begin with, and dropped: {len(missed):,}",
                  *(f"  {row.path}: {row.label} taken for {row.predicted}"
                    for row in missed[:LISTED].itertuples())]
    if len(missed) > LISTED:
        lines.append(f"  ... and {len(missed) - LISTED:,} more; inputs.csv has all")
    say(*lines, *_left(images, photos), *_left(reference, seen))


def _read(model: str, weights: str, images: str, reference: str, size: int | None,
          channels: int | None, options: dict):
    """The model, the images, and the training images if there are."""
    from dnnlib import custom

    given = {k: v for k, v in options.items() if v is not None}
    network = custom.load_model(model, weights or None, size=size, channels=channels, **given)
    photos = custom.read_photos(images, network, size=size, channels=channels)
    seen = custom.read_photos(reference, network, size=size,
                               channels=photos.images.shape[1]) if reference else None
    return network, photos, seen


def _save(sheet, path: Path) -> None:
    from dnnlib import files

    sheet.save(picture := io.BytesIO(), format="PNG")
    files.write_atomically(path, picture.getvalue())


def _many(photos) -> str:
    return f"{len(photos.paths):,} images of {' x '.join(map(str, photos.images.shape[1:]))}"


def _left(folder: str, photos) -> list[str]:
    """What of a folder was not used."""
    lines = []
    if photos is not None and photos.others:
        lines.append(f"files in {folder} that are no images by their ending: {photos.others:,}")
    if photos is not None and photos.skipped:
        lines += [f"images in {folder} that were skipped: {len(photos.skipped):,}",
                  *(f"  {name} {reason}" for name, reason in photos.skipped.items())]
    return lines
