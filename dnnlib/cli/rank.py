"""The command ``dnnlib rank``: a person's own images in the order of their worth."""

import math
from pathlib import Path
from typing import Annotated

import typer

from dnnlib.cli import options as own
from dnnlib.cli.output import SKIPPED, duration, gallery_page, left_out, many, save
from dnnlib.cli.terminal import print_table, say


def rank(model: own.Model = "", images: own.Images = "",
         by: Annotated[str, typer.Option(
             help="Methods, with commas: {selectors}; or your own, FILE.py:CLASS.")] = "gini",
         weights: own.Weights = "", reference: own.Reference = "",
         outputs: Annotated[str, typer.Option(
             help="Instead of a model and images: what any framework saved, softmax vectors in "
                  ".npy, .csv or .parquet, a row an image.")] = "",
         top: Annotated[str, typer.Option(help="{top}")] = "",
         merge: Annotated[bool, typer.Option("--merge", help="{merge}")] = False,
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
                                    "predicted classes; FILE.xml beside it is the labelling "
                                    "interface.")] = "",
         layers: own.Layers = "", size: own.Size = None, resize: own.Resize = None,
         crop: own.Crop = None, mean: own.Mean = "", std: own.Std = "",
         channels: own.Channels = None, classes: own.Classes = None, width: own.Width = None,
         class_names: own.ClassNames = "",
         device: own.Device = "auto", probabilities: own.Probabilities = None,
         seed: Annotated[int | None, typer.Option(help="{seed}")] = None,
         batch_size: own.BatchSize = 64,
         block: Annotated[int, typer.Option(help="{block}")] = 1024,
         workers: own.Workers = None, scheduler: own.Scheduler = "",
         keep: Annotated[str, typer.Option(
             "--pytest", metavar="FILE.py", help="A test for pytest: the model gets no more of "
                                                 "these images wrong than now. They are in folders "
                                                 "named by class, or have labels in Parquet. It "
                                                 "takes one more pass.")] = "",
         example: Annotated[bool, typer.Option(
             "--example", help="A first try that needs nothing: a small network and 200 digits are "
                               "put into the folder `example`, and ranked there.")] = False,
         guess: Annotated[bool, typer.Option(
             "--estimate", help="Only say, by a few batches, what the whole will take.")] = False,
         strict: own.Strict = False) -> None:
    """Rank your own images: which of them should be labelled first?"""
    if example:
        model, weights, images, output = _example(model or weights or images or outputs, output)
    target = Path(output).expanduser()
    copies, tasks = Path(copy_to).expanduser(), Path(studio).expanduser()
    page = Path(gallery).expanduser() if gallery else target.with_suffix(".html")
    if gallery != "none" and page.suffix != ".html":
        raise ValueError(f"--gallery: expected a name that ends in .html, or none, got {gallery}")
    if studio and tasks.suffix != ".json":
        raise ValueError(f"--label-studio: expected a name that ends in .json, got {studio}")
    from dnnlib import checks, custom, files
    from dnnlib.custom import regression_tests
    from dnnlib.custom.faults import check_labelled
    from dnnlib.data.parquet import Rows

    custom.check_target(target, "--out")
    files.writable(target, "--out")
    if copy_to:
        custom.check_copies(copies, *(Path(each).expanduser() for each in (images, reference)
                                      if each))
    if keep:
        own.check_kept(keep, guess)
    if outputs:
        if keep:
            raise ValueError("--pytest: needs a model and images, and --outputs has neither")
        if copy_to or studio:
            raise ValueError("--copy-to, --label-studio: need images, and --outputs has none")
        if model or images:
            raise ValueError("--outputs: either it, or --model and --images")
        if other := [name for name, value in {
                "weights": weights, "reference": reference, "layers": layers, "size": size,
                "resize": resize, "crop": crop, "mean": mean, "std": std, "channels": channels,
                "classes": classes, "width": width, "scheduler": scheduler, "strict": strict,
                "estimate": guess, "gallery": gallery != "none" and gallery}.items() if value]:
            raise ValueError(f"--{other[0]}: needs a model and images, and --outputs has neither")
        called = custom.read_names(class_names) if class_names else None
        found = custom.read_outputs(outputs, probabilities=probabilities is not False)
        if called:
            found.check_names(called)
        p = found.probabilities
        table = custom.rank_outputs(p, found.names, by, top=top or None, seed=seed, merge=merge,
                                    class_names=called, unread=found.unread)
        custom.write(table, target)
        methods = custom.methods_of(table)
        _show(table, methods)
        say(*found.said, f"{len(p):,} outputs of {p.shape[1]} classes ranked, "
            f"{table[f'{methods[0]}_selected'].sum():,} selected by each method",
            f"wrote {target}", *left_out(outputs, None, found.unread, "rows"))
        if found.unread:
            raise typer.Exit(SKIPPED)
        return
    asked = custom.parse_methods(  # a file of one's own runs once
        by, reference=bool(reference), layers=layers)
    kept, called = target.with_suffix(".run"), own.names_of(class_names, model, classes)
    network, photos, seen = own.read(
        model, weights, images, reference, size=size, resize=resize, crop=crop, mean=mean, std=std,
        channels=channels, device=device, classes=classes, width=width, strict=strict)
    if studio and isinstance(photos.source, Rows):
        raise ValueError("--label-studio: needs images in files of their own, got a Parquet file")
    if keep:
        check_labelled(photos)
    if guess:
        _estimate(custom.prepared_job(
            network, photos, asked, reference=seen, seed=seed,
            layers=checks.words(layers, "layers") if layers else None,
            probabilities=probabilities, batch_size=batch_size, block=block), seen, workers)
        return
    faults = custom.fault_rate(network, photos, class_names=called, probabilities=probabilities,
                               batch_size=batch_size, workers=workers) if keep else None
    with own.cluster(scheduler) as client:
        table = custom.rank(network, photos, asked, reference=seen, top=top or None, seed=seed,
                            layers=checks.words(layers, "layers") if layers else None,
                            probabilities=probabilities, batch_size=batch_size, block=block,
                            workers=workers, folder=kept, client=client, merge=merge,
                            class_names=called)
    custom.write(table, target)
    firsts = custom.first(table, photos)
    save(custom.sheet(firsts), target.with_suffix(".png"))
    if faults is not None:
        files.write_atomically(test := Path(keep).expanduser(), regression_tests.rate_test(
            faults, images, test, regression_tests.Setting(
                model=model, weights=weights, size=size, resize=resize, crop=crop, mean=mean,
                std=std, channels=channels, classes=classes, width=width, class_names=class_names,
                device=device, probabilities=probabilities)))
    methods = custom.methods_of(table)
    _show(table, methods)
    chosen = table[f"{methods[0]}_selected"].sum()
    say(f"{many(photos, table.attrs['unread'])} ranked, {chosen:,} selected by each method",
        f"wrote {target} and {target.with_suffix('.png').name}; its scores stay in {kept.name}",
        *gallery_page(page, gallery, lambda: custom.ranking_page(
            table, photos, title=f"{Path(images).name} by {', '.join(methods)}")),
        *_handed(table, photos, copies if copy_to else None, tasks if studio else None, model),
        *([] if faults is None else [
            f"{len(faults.wrong):,} of {faults.images:,} images are wrong; wrote {keep}, which "
            f"allows no more: run it with pytest {keep}"]),
        *left_out(images, photos, table.attrs["unread"]),
        *left_out(reference, seen, table.attrs["reference"]), table.attrs["used"])
    if failed := table.attrs["failed"]:
        say(*(f"failed: {name}: {why}" for name, why in failed.items()))
        raise typer.Exit(1)
    if photos.skipped or table.attrs["unread"] or seen and seen.skipped or table.attrs["reference"]:
        raise typer.Exit(SKIPPED)


def _example(given: str, output: str) -> tuple[str, str, str, str]:
    """Model, weights and images of the example, which are written, and where its table goes."""
    from dnnlib.custom import example

    if given:
        raise ValueError("--example: brings its own model and images; leave out the others")
    folder = Path("example")
    example.write(folder)
    options = f"--model {example.MODEL} --weights {folder / example.WEIGHTS}"
    images = folder / "digits"
    say(f"dnnlib rank {options} --images {images}",
        f"next, for example: dnnlib rank {options} --images {images} --by gini,nss --out both.csv",
        f"                   dnnlib fuzz {options} --images {images} --l2 2 --limit 50",
        f"                   dnnlib compare {options} --images {images}")
    return (example.MODEL, str(folder / example.WEIGHTS), str(images),
            output if output != "ranking.csv" else str(folder / output))


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
    print_table(pd.DataFrame([(where, duration(seconds), round(found.images / seconds))
                              for where, seconds in rows],
                             columns=["where", "time", "images/s"]),
                f"{found.images:,} images by {', '.join(job.selectors)}, about")
    say(f"passes over an image: {found.passes}"
        + (f"; over each of {found.reference:,} training images: {found.passes_reference}"
           if found.reference else ""),
        f"reading: {1000 * found.reading:.1f} ms an image on one core; passing, with what the "
        f"methods take of it: {1000 * found.passing:.1f} ms",
        (f"memory of this look, a few passes: {found.peak / 1e6:,.0f} MB; " if found.peak else "")
        + f"memory that grows with the images: {found.memory / 1e6:,.0f} MB; disk for scores while "
        f"it runs: {found.disk / 1e6:,.0f} MB",
        "not in it: the orders in the end, which take longest for nac, kmnc, npc, ats and dsa")


def _show(table, methods: list[str]) -> None:
    """The first five by each method."""
    for name in methods:
        columns = {f"{name}_rank": "rank", f"{name}_score": "score", "path": "path"}
        rows = table.sort_values(f"{name}_rank")[:5][[*columns]].rename(columns=columns)
        print_table(rows.assign(score=[float(f"{score:.4g}") for score in rows["score"]]),
                    f"First by {name}")


def _handed(table, photos, copies: Path | None, tasks: Path | None, model: str) -> list[str]:
    """Copies and tasks of the images selected, where they are wanted; what was done."""
    from dnnlib import custom, files

    lines = []
    if copies is not None:
        lines.append(f"copied {custom.copy_first(table, copies, photos):,} images to {copies}")
    if tasks is not None:
        made, interface = custom.label_studio(table, model=model), tasks.with_suffix(".xml")
        files.write_atomically(tasks, made.tasks)
        files.write_atomically(interface, made.interface)
        lines += [f"wrote {tasks} and {interface.name}, for Label Studio:",
                  "  run it with LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true "
                  f"LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT={made.root}",
                  f"  in a project's settings, paste {interface.name} as code of the Labeling "
                  f"Interface, and add {made.folder} under Cloud Storage as Local Files",
                  f"  import {tasks.name}"]
    return lines
