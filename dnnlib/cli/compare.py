"""``dnnlib compare``: which method is worth its passes on a person's own model."""

from pathlib import Path
from typing import Annotated

import typer

from dnnlib.cli import options as own
from dnnlib.cli.output import SKIPPED, left_out
from dnnlib.cli.terminal import print_table, say


def compare(model: own.Model = "", images: own.Images = "",
            by: Annotated[str, typer.Option(
                help="Methods, with commas: {selectors}; your own, FILE.py:CLASS; or `all` that "
                     "can work.")] = "all",
            fuzz: Annotated[str, typer.Option(
                help="Fuzzers too, with commas, or `all`: {fuzzers}. With --l2 or --linf.")] = "",
            weights: own.Weights = "", reference: own.Reference = "",
            rates: Annotated[str, typer.Option(help="{rates}")] = "",
            l2: own.L2 = None, linf: own.Linf = None,
            iterations: own.Iterations = 20, population: own.Population = None,
            limit: Annotated[int, typer.Option(help="{limit}")] = 100, layers: own.Layers = "",
            output: Annotated[str, typer.Option(
                "-o", "--out", help="The table; a picture goes beside it.")] = "comparison.csv",
            size: own.Size = None, resize: own.Resize = None, crop: own.Crop = None,
            mean: own.Mean = "", std: own.Std = "", channels: own.Channels = None,
            classes: own.Classes = None, width: own.Width = None, class_names: own.ClassNames = "",
            device: own.Device = "auto", probabilities: own.Probabilities = None,
            resamples: Annotated[int, typer.Option(help="{resamples}")] = 1000,
            seed: own.Seed = 0, batch_size: own.BatchSize = 64,
            workers: own.Workers = None) -> None:
    """Which method finds the most faults of your model? On images in a folder for each class."""
    target = Path(output).expanduser()
    if target.suffix != ".csv":
        raise ValueError(f"--out: expected a name that ends in .csv, got {output}")
    from dnnlib import checks, custom, files
    from dnnlib.custom.class_names import order_told
    from dnnlib.custom.comparing_picture import picture
    from dnnlib.custom.worth import fuzzers_table, selectors_table

    files.writable(target, "--out")
    if target.with_suffix(".run").exists():
        raise ValueError(f"--out: {output} is a table of `dnnlib rank`, which keeps its scores "
                         f"beside it, in {target.with_suffix('.run').name}; give another name")
    asked = by if by == "all" else custom.parse_methods(
        by, reference=bool(reference), layers=layers)
    shares = checks.numbers(rates, "rates", 0) if rates else None
    called = own.names_of(class_names, model, classes)
    network, photos, seen = own.read(
        model, weights, images, reference, size=size, resize=resize, crop=crop, mean=mean, std=std,
        channels=channels, device=device, classes=classes, width=width)
    found = custom.compare(
        network, photos, asked, reference=seen, fuzz=fuzz, l2=l2, linf=linf, iterations=iterations,
        population=population, limit=limit, rates=shares, resamples=resamples, seed=seed,
        probabilities=probabilities, class_names=called,
        layers=checks.words(layers, "layers") if layers else None,
        batch_size=batch_size, workers=workers)
    import pandas as pd

    print_table(selectors_table(found.selectors), "Faults among the first images, in %")
    tables = [found.selectors.assign(kind="selector")]
    if len(found.fuzzers):
        print_table(fuzzers_table(found.fuzzers), "Inputs broken, in %")
        tables.append(found.fuzzers.rename(columns={"fuzzer": "method"}).assign(kind="fuzzer"))
    files.write_atomically(target, pd.concat(tables).to_csv(index=False).encode())
    wrote = f"wrote {target}"
    try:
        files.write_atomically(target.with_suffix(".png"), picture(found))
        wrote += f" and {target.with_suffix('.png').name}"
    except ModuleNotFoundError as error:
        wrote += f"; no picture: {error}"
    say(*([] if class_names else order_told(photos.paths)),
        f"{found.images:,} images; the model gets {found.wrong:,} of them wrong",
        *(f"left out: {name}: {why}" for name, why in found.left.items()),
        *found.sentences, wrote, *left_out(images, photos, found.unread),
        *left_out(reference, seen, found.reference), found.used)
    if (photos.skipped or found.unread or seen and seen.skipped or found.reference
            or found.failed):
        raise typer.Exit(SKIPPED)
