"""``dnnlib stress``: ordinary changes of a person's own images, by strength."""

from pathlib import Path
from typing import Annotated

import typer

from dnnlib.cli import options as own
from dnnlib.cli.output import SKIPPED, left_out
from dnnlib.cli.terminal import print_table, say


def stress(model: own.Model = "", images: own.Images = "",
           by: Annotated[str, typer.Option(
               help="Changes, with commas: brightness, contrast, blur, noise, jpeg, rotation, "
                    "shift; or `all`.")] = "all",
           labels: own.Labels = "prediction", limit: own.Limit = None,
           output: Annotated[str, typer.Option(
               "-o", "--out", help="A folder of the run's own; what `dnnlib stress` wrote there "
                                   "before is written anew.")] = "stress",
           weights: own.Weights = "", size: own.Size = None, resize: own.Resize = None,
           crop: own.Crop = None, mean: own.Mean = "", std: own.Std = "",
           channels: own.Channels = None, classes: own.Classes = None, width: own.Width = None,
           class_names: own.ClassNames = "", device: own.Device = "auto",
           probabilities: own.Probabilities = None,
           seed: own.Seed = 0, batch_size: own.BatchSize = 64, workers: own.Workers = None,
           strict: own.Strict = False) -> None:
    """At which strength of light, blur, noise, JPEG, turning or shifting does your model fail?"""
    from dnnlib import checks, custom, files
    from dnnlib.custom import changes, stressing_page
    from dnnlib.custom.class_names import order_told

    target, called = Path(output).expanduser(), own.names_of(class_names, model, classes)
    changes.parse_changes(by)
    checks.known(labels, custom.LABELS, "labels")
    stressing_page.check_folder(target)
    files.writable(target / stressing_page.RUN, "--out")
    network, photos, _ = own.read(
        model, weights, images, "", size=size, resize=resize, crop=crop, mean=mean, std=std,
        channels=channels, device=device, classes=classes, width=width, strict=strict)
    found = custom.stress(network, photos, by, labels=labels, limit=limit, seed=seed,
                          probabilities=probabilities, class_names=called, batch_size=batch_size,
                          workers=workers)
    wrote = stressing_page.write(found, target, found.identity.facts,
                                 title=f"{Path(images).name} under ordinary changes")
    print_table(stressing_page.changes_table(found.changes), "Where it fails first")
    outcomes = found.images["outcome"].value_counts()
    lines = list(found.sentences)
    if "left out" in outcomes:
        lines.append(f"left out by --limit: {outcomes['left out']:,}")
    if labels == "folders" and not class_names:
        lines += order_told(photos.paths)
    say(*lines, *wrote, *left_out(images, photos, found.unread), found.identity.said(False))
    if photos.skipped or found.unread:
        raise typer.Exit(SKIPPED)
