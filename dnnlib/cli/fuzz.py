"""The command ``dnnlib fuzz``: inputs that a person's own model gets wrong."""

from pathlib import Path
from typing import Annotated

import typer

from dnnlib.cli import options as own
from dnnlib.cli.output import LISTED, SKIPPED, duration, gallery_page, left_out, many, save
from dnnlib.cli.terminal import print_table, say


def fuzz(model: own.Model, images: own.Images,
         by: Annotated[str, typer.Option(
             help="{fuzzers}; or your own, FILE.py:CLASS. Of the papers' fuzzers, dlfuzz broke "
                  "most near the inputs in the book's records; pgd and apgd are attacks of the "
                  "Adversarial Robustness Toolbox.")] = "dlfuzz",
         l2: own.L2 = None, linf: own.Linf = None,
         iterations: own.Iterations = 20, population: own.Population = None,
         labels: own.Labels = "prediction", limit: own.Limit = None,
         output: Annotated[str, typer.Option("-o", "--out", help="A folder of the run's own; the "
                                             "same command again goes on there.")] = "failures",
         weights: own.Weights = "", reference: own.Reference = "",
         layers: own.Layers = "", size: own.Size = None, resize: own.Resize = None,
         crop: own.Crop = None, mean: own.Mean = "", std: own.Std = "",
         channels: own.Channels = None, classes: own.Classes = None, width: own.Width = None,
         class_names: own.ClassNames = "",
         device: own.Device = "auto", probabilities: own.Probabilities = None,
         seed: own.Seed = 0,
         block: Annotated[int | None, typer.Option(help="{block}")] = None,
         batch_size: own.BatchSize = 64, workers: own.Workers = None, scheduler: own.Scheduler = "",
         processes: own.Processes = None,
         gallery: Annotated[str, typer.Option(
             help="The failing inputs as a page to sort and filter: FILE.html, or `none`; default "
                  "gallery.html in the run's folder.")] = "",
         sound: Annotated[bool, typer.Option(
             "--sound", help="The images are 64 x 64 log-mel pictures of sounds, as the book's: "
                             "the gallery plays them.")] = False,
         keep: Annotated[str, typer.Option(
             "--pytest", metavar="FILE.py", help="A test for pytest, which fails for each failing "
                                                 "input that the model still gets wrong.")] = "",
         noise: Annotated[bool, typer.Option(
             "--noise/--no-noise", help="{noise}")] = True,
         guess: Annotated[bool, typer.Option(
             "--estimate", help="Only say, by one block, what the whole will take.")] = False,
         strict: own.Strict = False) -> None:
    """Turn your own images into inputs that your model gets wrong."""
    from dnnlib import checks, custom, files
    from dnnlib.custom import regression_tests
    from dnnlib.custom.against_noise import beside
    from dnnlib.custom.class_names import order_told
    from dnnlib.data import audio

    options = custom.Options(
        by=by, l2=l2, linf=linf, iterations=iterations, population=population, labels=labels,
        limit=limit, seed=seed, block=block, batch_size=batch_size, noise=noise,
        layers=checks.words(layers, "layers") if layers else None)
    options.check_reference(bool(reference))
    if gallery not in ("", "none") and not gallery.endswith(".html"):
        raise ValueError(f"--gallery: expected a name that ends in .html, or none, got {gallery}")
    if keep:
        own.check_kept(keep, guess)
    target, called = Path(output).expanduser(), own.names_of(class_names, model, classes)
    files.writable(target / "run.json", "--out")
    network, photos, seen = own.read(
        model, weights, images, reference, size=size, resize=resize, crop=crop, mean=mean, std=std,
        channels=channels, device=device, classes=classes, width=width, strict=strict)
    if sound and photos.shape != (1, audio.MELS, audio.FRAMES):
        raise ValueError(f"--sound: expected images of shape {(1, audio.MELS, audio.FRAMES)}, got "
                         f"{photos.shape}")
    if guess:
        _estimate(custom.forecast(network, photos, options, reference=seen,
                                  probabilities=probabilities, class_names=called),
                  options, processes)
        return
    with own.cluster(scheduler, processes) as client:
        found = custom.fuzz(network, photos, target, options, probabilities=probabilities,
                            reference=seen, workers=workers, client=client,
                            class_names=called)
    wrote = "failures.csv, inputs.csv"
    if parts := custom.pictures(found, photos, target):
        columns = max(3, len(parts["inputs"][1]))
        save(custom.sheet(parts, columns=columns), target / "sheet.png")
        wrote = "images, failures.csv, inputs.csv, sheet.png"
        print_table(found.failures.sort_values("l2", kind="stable")[:5], "Nearest failing inputs")
    outcomes = found.inputs["outcome"].value_counts()
    counts = ", ".join(f"{outcomes.get(name, 0):,} {name}" for name in ("broken", "held"))
    missed = found.misclassified
    unread = found.inputs[found.inputs["outcome"] == "unreadable"]
    failed = unread[unread["path"].isin(photos.paths)]  # whose header was whole
    lines = [f"{many(photos, failed)}; of the inputs tried: {counts}; "
             f"failing inputs: {len(found.failures):,}",
             *beside(found, options.name), f"wrote {wrote} in {target}"]
    if parts:
        page = Path(gallery).expanduser() if gallery else target / "gallery.html"
        lines += gallery_page(page, gallery, lambda: custom.failures_page(
            found, photos, target, title=f"{Path(images).name} by {options.name}",
            sound=(lambda x: (audio.resynthesise(x), audio.RATE)) if sound else None))
    if keep and found.failures.empty:
        lines.append(f"no input failed, so that there is no test to write to {keep}")
    elif keep:
        files.write_atomically(test := Path(keep).expanduser(), regression_tests.failures_test(
            found, target, test, regression_tests.Setting(
                model=model, weights=weights, size=size, resize=resize, crop=crop, mean=mean,
                std=std, channels=channels, classes=classes, width=width, device=device,
                probabilities=probabilities), labels=labels))
        lines.append(f"wrote {keep}: run it with pytest {keep}")
    if "left out" in outcomes:
        lines.append(f"left out by --limit: {outcomes['left out']:,}")
    if len(missed):
        lines += ["wrong before any change, and not fuzzed: "
                  f"{len(missed):,}, listed in misclassified.csv",
                  *(f"  {row.path}: {row.label} taken for {row.predicted}"
                    for row in missed[:LISTED].itertuples())]
    if len(missed) > LISTED:
        lines.append(f"  ... and {len(missed) - LISTED:,} more; misclassified.csv has all")
    if labels == "folders" and not class_names:
        lines += order_told(photos.paths)
    say(*lines, *left_out(images, photos, dict(zip(unread["path"], unread["note"]))),
        *left_out(reference, seen, found.reference), found.used)
    if len(unread) or found.reference:
        raise typer.Exit(SKIPPED)


def _estimate(found, options, processes: int | None) -> None:
    """By one block: passes, and time here and on workers."""
    import pandas as pd

    rows = [("here", found.seconds())] + [
        (f"on {n} workers or processes with a core like this", found.seconds(n))
        for n in sorted({2, 4, 16, 64} | ({processes} if processes else set()))]
    print_table(pd.DataFrame([(where, duration(seconds)) for where, seconds in rows],
                             columns=["where", "time"]),
                f"{found.inputs:,} inputs of {found.images:,} images by {options.name}, about")
    say(f"passes over an input in {options.iterations} iterations: {found.passes:,.0f}; seconds: "
        f"{found.fuzzing:.2f}",
        "not in it: reading the images, and the inputs that the model gets wrong to begin with, "
        "which are not fuzzed")
