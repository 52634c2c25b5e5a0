"""The command line: ``dnnlib data``, ``models``, ``rank``, ``run``, ``scoreboard``..."""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from dnnlib.cli_sweep import sweep
from dnnlib.terminal import err, out, print_table, say

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode="markdown",
                  help="Find the inputs that break a neural network, and find them first.",
                  epilog="`--debug` anywhere shows the traceback of an error.")
DEBUG = "--debug" in sys.argv[1:]


@app.command("data", epilog="Example: `dnnlib data --download fashion_mnist`")
def list_data(download: Annotated[str, typer.Option(
        help="Fetch this dataset with torchvision.")] = "") -> None:
    """List the datasets: where each was found, its sizes, how to get what is missing."""
    import pandas as pd

    from dnnlib import data, files
    from dnnlib.data import sources

    if download:
        for split in ("train", "test"):
            out.print(data.load(download, split, download=True))
    rows = []
    for name, source in sources.SOURCES.items():
        places = {split: sources.locate(name, split) for split in ("train", "test")}
        found = [str(p) for p in places.values() if p]
        where = "embedded" if name == "digits" else "\n".join(dict.fromkeys(found)) or "missing"
        rows.append({"dataset": name, "shape": " x ".join(map(str, source.shape)),
                     "classes": source.classes, "train": source.sizes["train"],
                     "test": source.sizes["test"], "found": where,
                     "to get it": "" if where != "missing" else source.get})
    print_table(pd.DataFrame(rows),
                f"Datasets under {files.data_dir()} (set DNNLIB_DATA to change)",
                {"missing": "[yellow]{}[/]"})


@app.command("models", epilog="Example: `dnnlib models`")
def list_models() -> None:
    """List the networks: parameters and neurons beside the published counts."""
    from dnnlib import models

    print_table(models.table().reset_index(), "Networks of the five papers")


@app.command(epilog="Examples: `dnnlib run nsatp/02 -p dataset mnist -p model net1`, "
                    "`dnnlib run nsatp/02 --list`")
def run(notebook: Annotated[str, typer.Argument(help="Path, or the start of a name: nsatp/02")],
        parameter: Annotated[list[str], typer.Option(
            "-p", "--parameter", metavar="NAME VALUE", help="Set a parameter; repeatable.")] = [],
        output: Annotated[str, typer.Option("-o", "--output", help="Where to write the run.")] = "",
        show: Annotated[bool, typer.Option(
            "--list", help="List the parameters, run nothing.")] = False,
        ) -> None:
    """Run a notebook with other parameters, into `runs/`."""
    import pandas as pd

    from dnnlib import notebooks

    path = notebooks.find(notebook)
    if show:
        known = notebooks.parameters(path).values()
        rows = [{"parameter": p.name, "type": type(p.default).__name__,
                 "default": repr(p.default), "meaning": p.help} for p in known]
        print_table(pd.DataFrame(rows), str(path))
        return
    values = notebooks.typed(path, dict(item.split("=", 1) for item in parameter))
    tail = "".join(f"-{k}-{v}" for k, v in values.items()).replace("/", "_")
    target = Path(output or f"runs/{path.resolve().parent.name}/{path.stem}{tail}.ipynb")
    say(f"{path} -> {target}")
    _attempt(notebooks.run, path, values, target)
    say(f"done: {target}")


app.command(epilog="Examples: `dnnlib sweep sweeps/smoke.toml`, `dnnlib sweep sweeps/paper.toml "
            "--scheduler tcp://head:8786`")(sweep)


@app.command(epilog="Example: `dnnlib scoreboard nsatp`")
def scoreboard(paper: Annotated[str, typer.Argument(help="One paper only.")] = "") -> None:
    """Every claim of the papers, and what the committed records say of it."""
    from dnnlib import compare

    board = compare.scoreboard(paper or None).reset_index(drop=True)
    print_table(board, "Claims and verdicts", {
        "reproduced": "[green]{}[/]", "partly": "[yellow]{}[/]", "not reproduced": "[red]{}[/]",
        "not run": "[dim]{}[/]"})


@app.command(epilog="Example: `dnnlib notebooks nsatp/02`")
def notebooks(names: Annotated[list[str], typer.Argument(
        help="Starts of names; default: all.")] = []) -> None:
    """Regenerate the book's notebooks from their sources, on the embedded default."""
    from dnnlib import notebooks as books

    every = sorted(books.folder().glob("*/*.py"))
    chosen = [p for p in every if not names or any(
        p.relative_to(books.folder()).as_posix().startswith(n) for n in names)]
    if not chosen:
        raise ValueError(f"no source below {books.folder()} starts with {', '.join(names)}")
    for source in track(chosen, description="notebooks", console=err):
        err.print(f"  {source.parent.name}/{source.stem}")
        _attempt(books.make, source)


@app.command("rank", epilog="Examples: `dnnlib rank --model my.py:build --weights w.safetensors "
             "--images photos --by nss,gini --top 5%`, `dnnlib rank --model mobilenet --width 0.75 "
             "--weights mobilenet.safetensors --images photos --by nac,random --top 50`")
def rank_images(
        model: Annotated[str, typer.Option(help="FILE.py:FUNCTION, which returns a torch.nn.Module "
                                           "that gives logits, or a name from `dnnlib models`.")],
        images: Annotated[str, typer.Option(help="A folder of images, in sub-folders or not. The "
                                            "model sees values in [0, 1].")],
        by: Annotated[str, typer.Option(help="Methods, with commas: nss,gini,...")],
        weights: Annotated[str, typer.Option(help="The model's state dict, .safetensors.")] = "",
        reference: Annotated[str, typer.Option(
            help="A folder of training images, for the methods that need them.")] = "",
        top: Annotated[str, typer.Option(help="To select: 5%, 0.05, or a count, 50.")] = "5%",
        output: Annotated[str, typer.Option(
            "-o", "--out", help="The table; the contact sheet goes beside it.")] = "ranking.csv",
        size: Annotated[int | None, typer.Option(
            help="Pixels a side to fit the images to.")] = None,
        channels: Annotated[int | None, typer.Option(help="1, gray-scale, or 3.")] = None,
        classes: Annotated[int | None, typer.Option(help="Of a model by name.")] = None,
        width: Annotated[float | None, typer.Option(help="Of MobileNet.")] = None,
        probabilities: Annotated[bool, typer.Option(
            "--probabilities", help="The model gives probabilities, not logits.")] = False,
        seed: Annotated[int | None, typer.Option(help="Of what is random in a method.")] = None,
        batch_size: Annotated[int, typer.Option(help="Images in one pass.")] = 64) -> None:
    """Rank your own images: which of them should be labelled first?"""
    target = Path(output).expanduser()
    if target.suffix != ".csv":
        raise ValueError(f"--out: expected a name that ends in .csv, got {output}")
    from dnnlib import files, own, plots, ranking

    ranking.parse_methods(by, reference=bool(reference))
    options = {k: v for k, v in (("classes", classes), ("width", width)) if v is not None}
    network = own.load_model(model, weights or None, size=size, channels=channels, **options)
    photos = ranking.read_photos(images, network, size=size, channels=channels)
    seen = ranking.read_photos(reference, network, size=size,
                               channels=photos.images.shape[1]) if reference else None
    table = ranking.rank(network, photos, by, reference=None if seen is None else seen.images,
                         top=top, seed=seed, probabilities=probabilities, batch_size=batch_size)
    files.write_atomically(target, table.to_csv(index=False).encode())
    firsts = ranking.first(table, photos)
    plots.sheet(firsts).savefig(picture := io.BytesIO(), dpi=150)
    files.write_atomically(target.with_suffix(".png"), picture.getvalue())
    for name in firsts:
        columns = {f"{name}_rank": "rank", f"{name}_score": "score", "path": "path"}
        rows = table.sort_values(f"{name}_rank")[:5][[*columns]].rename(columns=columns)
        print_table(rows.assign(score=[float(f"{score:.4g}") for score in rows["score"]]),
                    f"First by {name}")
    shape, chosen = " x ".join(map(str, photos.images.shape[1:])), table[f"{name}_selected"].sum()
    lines = [f"{len(photos.paths):,} images of {shape} ranked, {chosen:,} selected by each method",
             f"wrote {target} and {target.with_suffix('.png').name}"]
    for folder, what in ((images, photos), (reference, seen)):
        if what is not None and what.others:
            lines.append(f"files in {folder} that are no images by their ending: {what.others:,}")
        if what is not None and what.skipped:
            lines += [f"images in {folder} that were skipped: {len(what.skipped):,}",
                      *(f"  {name} {reason}" for name, reason in what.skipped.items())]
    say(*lines)


def _attempt(action: Callable, *arguments) -> None:
    """Call ``action``; a failed cell ends the program with exit code 1."""
    from dnnlib.notebooks import CellFailed

    try:
        action(*arguments)
    except CellFailed as error:
        if DEBUG:
            raise
        err.print(f"error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(1) from error


def main() -> None:
    """Entry point: a user's mistake is one line and exit code 2, a failed run or missing data 1."""
    try:
        app(_pairs([a for a in sys.argv[1:] if a != "--debug"]))
    except (ValueError, TypeError, FileNotFoundError, ConnectionError) as error:
        if DEBUG:
            raise
        err.print(f"error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(1 if isinstance(error, OSError) else 2)


def _pairs(arguments: list[str]) -> list[str]:
    """Papermill's ``-p name value`` as one word, ``name=value``."""
    words, joined = iter(arguments), []
    for word in words:
        joined.append(word)
        if word in ("-p", "--parameter"):
            name, value = next(words, None), next(words, None)
            if name is None or value is None:
                raise ValueError("-p takes a name and a value: -p dataset mnist")
            joined.append(f"{name}={value}")
    return joined


if __name__ == "__main__":
    main()
