"""The commands for a person's own model and images: ``dnnlib rank`` and ``dnnlib fuzz``."""

import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from dnnlib.cli.reading import (
    BatchSize,
    Channels,
    Classes,
    Crop,
    Device,
    Images,
    Mean,
    Model,
    Probabilities,
    Reference,
    Resize,
    Scheduler,
    Size,
    Std,
    Weights,
    Width,
    Workers,
    cluster,
    read,
)
from dnnlib.cli.terminal import print_table, say

LISTED = 10  # images that are named on the terminal; tables have all


def rank(by: Annotated[str, typer.Option(help="Methods, with commas: nss,gini,...")],
         model: Model = "", images: Images = "", weights: Weights = "", reference: Reference = "",
         outputs: Annotated[str, typer.Option(
             help="Instead of a model and images: what any framework saved, softmax vectors in "
                  ".npy, .csv or .parquet, a row an image.")] = "",
         logits: Annotated[bool, typer.Option("--logits", help="That file holds logits.")] = False,
         top: Annotated[str, typer.Option(help="To select: 5%, 0.05, or a count, 50.")] = "5%",
         merge: Annotated[bool, typer.Option(
             "--merge", help="One list from all methods, before theirs: by the mean of an image's "
                             "ranks; among equals the first method decides.")] = False,
         output: Annotated[str, typer.Option(
             "-o", "--out", help="The table, .csv or .parquet; the contact sheet and the gallery "
                                 "go beside it.")] = "ranking.csv",
         gallery: Annotated[str, typer.Option(
             help="The images as a page to sort and filter, which needs no server: FILE.html, or "
                  "`none`; default beside the table.")] = "",
         copy_to: Annotated[str, typer.Option(
             help="A new folder for copies of the images selected by the first method, or by the "
                  "merged list: 0001_name.jpg, ...")] = "",
         studio: Annotated[str, typer.Option(
             "--label-studio", help="The same images as tasks of Label Studio, FILE.json, with the "
                                    "predicted classes.")] = "",
         layers: Annotated[str, typer.Option(
             help="Layers whose neurons count, by name or pattern, with commas: 'layer3.*'; "
                  "`dnnlib layers` lists them. With nac, kmnc, npc; nss, dsa, lsa, mdsa, "
                  "mlsa and mmdsa take the last.")] = "",
         size: Size = None, resize: Resize = None, crop: Crop = None, mean: Mean = "",
         std: Std = "", channels: Channels = None, classes: Classes = None, width: Width = None,
         device: Device = "auto", probabilities: Probabilities = False,
         seed: Annotated[int | None, typer.Option(help="Of what is random in a method.")] = None,
         batch_size: BatchSize = 64,
         block: Annotated[int, typer.Option(
             help="Images whose scores are kept at once: all that a run that is killed does "
                  "again.")] = 1024,
         workers: Workers = None, scheduler: Scheduler = "",
         guess: Annotated[bool, typer.Option(
             "--estimate", help="Only say, by a few batches, what the whole will take.")] = False,
         ) -> None:
    """Rank your own images: which of them should be labelled first?"""
    target = Path(output).expanduser()
    copies, tasks = Path(copy_to).expanduser(), Path(studio).expanduser()
    page = Path(gallery).expanduser() if gallery else target.with_suffix(".html")
    if gallery != "none" and page.suffix != ".html":
        raise ValueError(f"--gallery: expected a name that ends in .html, or none, got {gallery}")
    if studio and tasks.suffix != ".json":
        raise ValueError(f"--label-studio: expected a name that ends in .json, got {studio}")
    from dnnlib import checks, custom

    custom.check_target(target, "--out")
    if copy_to:
        custom.check_copies(copies)
    if outputs:
        if copy_to or studio:
            raise ValueError("--copy-to, --label-studio: need images, and --outputs has none")
        if model or images:
            raise ValueError("--outputs: either it, or --model and --images")
        p, names = custom.read_outputs(outputs, probabilities=not logits)
        table = custom.rank_outputs(p, names, by, top=top, seed=seed, merge=merge)
        custom.write(table, target)
        methods = [c.removesuffix("_rank") for c in table if c.endswith("_rank")]
        _show(table, methods)
        say(f"{len(p):,} outputs of {p.shape[1]} classes ranked, "
            f"{table[f'{methods[0]}_selected'].sum():,} selected by each method", f"wrote {target}")
        return
    custom.parse_methods(by, reference=bool(reference))
    kept = target.with_suffix(".run")
    network, photos, seen = read(
        model, weights, images, reference, size=size, resize=resize, crop=crop, mean=mean, std=std,
        channels=channels, device=device, classes=classes, width=width)
    if guess:
        _estimate(custom.prepared_job(
            network, photos, custom.parse_methods(by, reference=bool(reference)), reference=seen,
            seed=seed, layers=checks.words(layers, "layers") if layers else None,
            probabilities=probabilities, batch_size=batch_size, block=block), seen, workers)
        return
    with cluster(scheduler) as client:
        table = custom.rank(network, photos, by, reference=seen, top=top, seed=seed,
                            layers=checks.words(layers, "layers") if layers else None,
                            probabilities=probabilities, batch_size=batch_size, block=block,
                            workers=workers, folder=kept, client=client, merge=merge)
    custom.write(table, target)
    firsts = custom.first(table, photos)
    _save(custom.sheet(firsts), target.with_suffix(".png"))
    _show(table, list(firsts))
    chosen = table[f"{[*firsts][0]}_selected"].sum()
    say(f"{_many(photos)} ranked, {chosen:,} selected by each method",
        f"wrote {target} and {target.with_suffix('.png').name}; its scores stay in {kept.name}",
        *_gallery(page, gallery, lambda: custom.ranking_page(
            table, photos, title=f"{Path(images).name} by {', '.join(firsts)}")),
        *_handed(table, copies if copy_to else None, tasks if studio else None, model),
        *_left(images, photos, table.attrs["unread"]),
        *_left(reference, seen, table.attrs["reference"]))
    if failed := table.attrs["failed"]:
        say(*(f"failed: {name}: {why}" for name, why in failed.items()))
        raise typer.Exit(1)


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
             help="Layers whose channels are the neurons, by name or pattern, with commas; default "
                  "all of `dnnlib layers`. With deepsensor and deephunter.")] = "",
         size: Size = None, resize: Resize = None, crop: Crop = None, mean: Mean = "",
         std: Std = "", channels: Channels = None, classes: Classes = None, width: Width = None,
         device: Device = "auto", probabilities: Probabilities = False,
         seed: Annotated[int, typer.Option(help="Of all that is random.")] = 0,
         block: Annotated[int | None, typer.Option(
             help="Inputs fuzzed at once, all that a run that is killed does again; default 4 with "
                  "deepsensor, else 32.")] = None,
         batch_size: BatchSize = 64, workers: Workers = None, scheduler: Scheduler = "",
         gallery: Annotated[str, typer.Option(
             help="The failing inputs as a page to sort and filter: FILE.html, or `none`; default "
                  "gallery.html in the run's folder.")] = "",
         sound: Annotated[bool, typer.Option(
             "--sound", help="The images are 64 x 64 log-mel pictures of sounds, as the book's: "
                             "the gallery plays them.")] = False) -> None:
    """Turn your own images into inputs that your model gets wrong."""
    from dnnlib import checks, custom
    from dnnlib.data import audio

    options = custom.Options(
        by=by, l2=l2, linf=linf, iterations=iterations, population=population, labels=labels,
        limit=limit, seed=seed, block=block, batch_size=batch_size,
        layers=checks.words(layers, "layers") if layers else None)
    options.check_reference(bool(reference))
    if gallery not in ("", "none") and not gallery.endswith(".html"):
        raise ValueError(f"--gallery: expected a name that ends in .html, or none, got {gallery}")
    network, photos, seen = read(
        model, weights, images, reference, size=size, resize=resize, crop=crop, mean=mean, std=std,
        channels=channels, device=device, classes=classes, width=width)
    target = Path(output).expanduser()
    if sound and photos.shape != (1, audio.MELS, audio.FRAMES):
        raise ValueError(f"--sound: expected images of shape {(1, audio.MELS, audio.FRAMES)}, got "
                         f"{photos.shape}")
    with cluster(scheduler) as client:
        found = custom.fuzz(network, photos, target, options, probabilities=probabilities,
                            reference=seen, workers=workers, client=client)
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
    if parts:
        page = Path(gallery).expanduser() if gallery else target / "gallery.html"
        lines += _gallery(page, gallery, lambda: custom.failures_page(
            found, photos, target, title=f"{Path(images).name} by {by}",
            sound=(lambda x: (audio.resynthesise(x), audio.RATE)) if sound else None))
    if "left out" in outcomes:
        lines.append(f"left out by --limit: {outcomes['left out']:,}")
    if len(missed):
        lines += [f"misclassified to begin with, and dropped: {len(missed):,}",
                  *(f"  {row.path}: {row.label} taken for {row.predicted}"
                    for row in missed[:LISTED].itertuples())]
    if len(missed) > LISTED:
        lines.append(f"  ... and {len(missed) - LISTED:,} more; inputs.csv has all")
    unread = found.inputs[found.inputs["outcome"] == "unreadable"]
    say(*lines, *_left(images, photos, dict(zip(unread["path"], unread["note"]))),
        *_left(reference, seen))


def _estimate(job, reference, workers: int | None) -> None:
    """By a few batches: passes, time here, on workers and on a GPU, memory and disk."""
    import pandas as pd

    from dnnlib import custom
    from dnnlib.inference import device_of

    found = custom.estimate(job, reference)
    rows = [(f"here, on {device_of(job.model)}", found.seconds())]
    if not math.isnan(found.gpu):
        rows.append(("here, with --device cuda", found.seconds(gpu=True)))
    rows += [(f"--scheduler, {n} workers of one core", found.seconds(n))
             for n in sorted({2, 4, 16, 64} | ({workers} if workers else set()))]
    print_table(pd.DataFrame([(where, _time(seconds), round(found.images / seconds))
                              for where, seconds in rows],
                             columns=["where", "time", "images/s"]),
                f"{found.images:,} images by {', '.join(job.readers)}, about")
    say(f"passes over an image: {found.passes}"
        + (f"; over each of {found.reference:,} training images: {found.passes_reference}"
           if found.reference else ""),
        f"reading: {1000 * found.reading:.1f} ms an image on one core; passing, with what the "
        f"methods take of it: {1000 * found.passing:.1f} ms",
        f"memory that grows with the images: {found.memory / 1e6:,.0f} MB; disk for scores while "
        f"it runs: {found.disk / 1e6:,.0f} MB",
        "not in it: the orders in the end, which take longest for nac, kmnc, npc, ats and dsa")


def _time(seconds: float) -> str:
    return (f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
            if seconds < 7200 else f"{seconds / 3600:.1f} h")


def _show(table, methods: list[str]) -> None:
    """The first five by each method."""
    for name in methods:
        columns = {f"{name}_rank": "rank", f"{name}_score": "score", "path": "path"}
        rows = table.sort_values(f"{name}_rank")[:5][[*columns]].rename(columns=columns)
        print_table(rows.assign(score=[float(f"{score:.4g}") for score in rows["score"]]),
                    f"First by {name}")


def _gallery(page: Path, wanted: str, make: Callable[[], bytes]) -> list[str]:
    from dnnlib import files

    if wanted == "none":
        return []
    files.write_atomically(page, content := make())
    return [f"wrote {page}, {len(content) / 1e6:.1f} MB: open it in a browser"]


def _handed(table, copies: Path | None, tasks: Path | None, model: str) -> list[str]:
    """Copies and tasks of the images selected, where they are wanted; what was done."""
    from dnnlib import custom, files

    lines = []
    if copies is not None:
        lines.append(f"copied {custom.copy_first(table, copies):,} images to {copies}")
    if tasks is not None:
        content, root = custom.label_studio(table, model=model)
        files.write_atomically(tasks, content)
        lines.append(f"wrote {tasks}; run Label Studio with LABEL_STUDIO_LOCAL_FILES_SERVING_"
                     f"ENABLED=true LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT={root}")
    return lines


def _save(sheet, path: Path) -> None:
    from dnnlib import files

    sheet.save(picture := io.BytesIO(), format="PNG")
    files.write_atomically(path, picture.getvalue())


def _many(photos) -> str:
    return f"{len(photos.paths):,} images of {' x '.join(map(str, photos.shape))}"


def _left(folder: str, photos, unread: dict[str, str] = {}) -> list[str]:
    """What of a folder was not used; ``unread``: what only a look at the whole file showed."""
    lines, skipped = [], (photos.skipped if photos is not None else {}) | unread
    if photos is not None and photos.others:
        lines.append(f"files in {folder} that are no images by their ending: {photos.others:,}")
    if skipped:
        lines += [f"images in {folder} that were skipped: {len(skipped):,}",
                  *(f"  {name} {reason}" for name, reason in [*skipped.items()][:LISTED])]
    if len(skipped) > LISTED:
        lines.append(f"  ... and {len(skipped) - LISTED:,} more")
    return lines
