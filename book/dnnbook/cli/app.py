"""The command line of the book: ``dnnbook run``, ``notebooks``, ``sweep``, ``scoreboard``..."""

import logging
import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from dnnbook.cli.class_pack import class_
from dnnbook.cli.replay import replay
from dnnbook.cli.runs import runs
from dnnbook.cli.scoreboard import scoreboard
from dnnbook.cli.sweep import sweep
from dnnlib.cli import terminal
from dnnlib.cli.terminal import ended, err, examples, fault, out, print_table, say

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode="markdown",
                  help="Run the book's chapters again, with other data, networks and parameters.",
                  epilog="`--debug` anywhere shows the traceback of an error.")


@app.command("data", epilog=examples(
    "dnnbook data --download fashion_mnist"))
def list_data(download: Annotated[str, typer.Option(
        help="Fetch this dataset with torchvision.")] = "") -> None:
    """List the datasets: where each was found, its sizes, how to get what is missing."""
    import pandas as pd

    from dnnbook import data
    from dnnbook.data import sources
    from dnnlib import files

    if download:
        for split in ("train", "test"):
            out.print(data.load(download, split, download=True))
    rows = []
    for name, source in sources.SOURCES.items():
        places = {split: sources.locate(name, split) for split in ("train", "test")}
        found = [str(p) for p in places.values() if p]
        where = "embedded" if source.embedded else "\n".join(dict.fromkeys(found)) or "missing"
        rows.append({"dataset": name, "shape": " x ".join(map(str, source.shape)),
                     "classes": source.classes, "train": source.sizes["train"],
                     "test": source.sizes["test"], "found": where,
                     "to get it": "" if where != "missing" else source.get})
    print_table(pd.DataFrame(rows),
                f"Datasets under {files.data_dir()} (set DNNLIB_DATA to change)",
                {"missing": "[yellow]{}[/]"})


@app.command(epilog=examples(
    "dnnbook run nsatp/02 -p dataset mnist -p model_name net1",
    "dnnbook run nsatp/02 -p patch invert --html inverted.html",
    "dnnbook run nsatp/02 --list"))
def run(notebook: Annotated[str, typer.Argument(help="Path, or the start of a name: nsatp/02")],
        parameter: Annotated[list[str], typer.Option(
            "-p", "--parameter", metavar="NAME VALUE", help="Set a parameter; repeatable.")] = [],
        output: Annotated[str, typer.Option("-o", "--output", help="Where to write the run.")] = "",
        page: Annotated[str, typer.Option(
            "--html", metavar="FILE", help="Write it as one page of HTML too, which needs no "
                                           "network.")] = "",
        show: Annotated[bool, typer.Option(
            "--list", help="List the parameters, run nothing.")] = False,
        ) -> None:
    """Run a notebook with other parameters, into `runs/`.

    JupyterLab, VS Code and Colab show what is written as the book would; you can hand it on."""
    import pandas as pd

    from dnnbook import places
    from dnnbook.chapters import budget, notebooks
    from dnnlib import files

    path = notebooks.find(notebook)
    if show:
        if lines := notebooks.listed(path):
            print_table(pd.DataFrame(lines), str(path))
        else:
            say(f"{path.name} has no parameters")
        return
    values = notebooks.typed(path, dict(item.split("=", 1) for item in parameter))
    target = Path(output or f"runs/{path.resolve().parent.name}/{notebooks.called(path, values)}")
    if target.suffix != ".ipynb":
        target = target.with_name(f"{target.name}.ipynb")  # what programs take for a notebook
    files.writable(target, "--out")
    if page:
        files.writable(Path(page).expanduser(), "--html")
    notebooks.together(path, values)
    if values.get("profile") == "paper":
        places.own_results_dir()  # refused before a kernel starts
    say(f"{path} -> {target}")
    cell = notebooks.recorded(path, values) if values.get("profile") == "paper" else None
    if cell:
        say(budget.of_a_run(*cell))
    _attempt(notebooks.run, path, values, target)
    say(f"done: {target}")
    if page:
        files.write_atomically(Path(page).expanduser(), notebooks.web_page(target).encode())
        say(f"wrote {page}")
    if values.get("profile") == "paper":
        say(f"its record is below {places.own_results_dir()}; those of the book are as they were")


app.command(epilog=examples(
    "dnnbook sweep sweeps/smoke.toml",
    "dnnbook sweep sweeps/paper.toml --scheduler tcp://head:8786"))(sweep)


app.command(epilog=examples(
    "dnnbook runs nsatp/01",
    "dnnbook runs nsatp/01 --quantity eff --over trials --plot eff.png",
    "dnnbook runs nsatp/01 --quantity mean_eff_decided --over side --out eff.csv"))(runs)


app.command(epilog=examples(
    "dnnbook replay nss",
    "dnnbook replay nss --sample 1",
    "dnnbook replay --sample 5 --note",
    "dnnbook replay --old"))(replay)


app.command(epilog=examples(
    "dnnbook scoreboard nsatp",
    "dnnbook scoreboard --missing"))(scoreboard)


@app.command(epilog=examples(
    "dnnbook notebooks nsatp/02",
    "dnnbook notebooks --jobs 1"))
def notebooks(names: Annotated[list[str], typer.Argument(
        help="Starts of names; default: all.")] = [],
        jobs: Annotated[int, typer.Option(
            min=1, help="Chapters at a time; default: one for each core.")] = os.cpu_count() or 1,
        into: Annotated[str, typer.Option(
            help="A folder to write below; default: beside the sources.")] = "",
        ) -> None:
    """Make the book's notebooks from their sources, on the embedded default."""
    from dnnbook.chapters import notebooks as books

    sources = books.starting(names, ".py")
    target = Path(into).expanduser().resolve() if into else None
    with ProcessPoolExecutor(min(jobs, len(sources)), get_context("spawn")) as pool:
        running = [pool.submit(books.make, source, target) for source in books.dealt(sources, jobs)]
        try:
            for done in track(as_completed(running), total=len(running),
                              description="notebooks", console=err):
                made = _attempt(done.result)
                err.print(f"  {made.parent.name}/{made.stem}")
        finally:
            pool.shutdown(cancel_futures=True)


@app.command(epilog=examples(
    "dnnbook lab",
    "dnnbook lab ~/course --no-open"))
def lab(folder: Annotated[str, typer.Argument(
        help="Where the notebooks go; default: _build/lab of the checkout.")] = "",
        open_: Annotated[bool, typer.Option(
            "--open/--no-open", help="Open the folder in JupyterLab.")] = True) -> None:
    """Write the book as notebooks for JupyterLab, VS Code or Colab, and open them.

    A start page, then one file for each chapter, numbered in the book's order. What you change
    there stays yours: it is never overwritten, and changes neither the book nor its records.
    """
    from dnnbook.chapters import lab as labs

    target = Path(folder).expanduser() if folder else labs.default()
    new, kept = labs.write(target)
    for path in kept:
        say(f"kept as you changed it: {path.name}")
    say(f"{target}: {len(new)} files are new; begin with {labs.START}")
    if open_:
        labs.show(target)


app.command("class", epilog=examples(
    "dnnbook class nsatp/01 nsatp/02 --out course",
    "dnnbook class nsatp/02 --seed 7 --no-outputs --out exam"))(class_)


@app.command("figures", epilog=examples(
    "dnnbook figures nss/02 --out slides"))
def draw_figures(names: Annotated[list[str], typer.Argument(
        help="Starts of names; default: all.")] = [],
        output: Annotated[str, typer.Option(
            "-o", "--out", help="The folder for the pictures.")] = "figures") -> None:
    """Draw the chapters' figures as SVG and PNG, with their captions, for slides."""
    from dnnbook.chapters import figures
    from dnnbook.chapters import notebooks as books

    chosen = books.starting(names, ".ipynb")
    for path in track(chosen, description="figures", console=err):
        drawn = list(_attempt(figures.draw, path, Path(output).expanduser()))
        say(*map(str, drawn or [f"{path.parent.name}/{path.stem} has no figure with a caption"]))


def _attempt(action: Callable, *arguments):
    """What ``action`` returns; a failed cell ends the program with exit code 1, Ctrl-C with 130."""
    from dnnbook.chapters.notebooks import CellFailed

    try:
        return action(*arguments)
    except KeyboardInterrupt:
        if terminal.DEBUG:
            raise
        logging.getLogger("asyncio").disabled = True  # of the kernel's client, which is cut off
        err.print("stopped; the same command again goes on with what is in the cache",
                  soft_wrap=True)
        raise typer.Exit(130) from None
    except CellFailed as error:
        if terminal.DEBUG:
            raise
        fault(error)
        raise typer.Exit(1) from error


def main() -> None:
    """Entry point: a mistake is one line and code 2; a failed run, or what is missing, 1."""
    try:
        app(_pairs([a for a in sys.argv[1:] if a != "--debug"]))
    except (ValueError, TypeError, OSError, ModuleNotFoundError) as error:
        ended(error)


def _pairs(arguments: list[str]) -> list[str]:
    """Papermill's ``-p name value``, or ``-p name=value``, as one word: ``name=value``."""
    words, joined, given = iter(arguments), [], {}
    for word in words:
        joined.append(word)
        if word in ("-p", "--parameter"):
            name = next(words, None)
            name, equals, value = (name or "").partition("=")
            value = value if equals else next(words, None)
            if not name or value is None:
                raise ValueError("-p takes a name and a value: -p dataset mnist")
            if name in given:
                raise ValueError(f"-p {name}: expected one value, got {given[name]} and {value}")
            given[name] = value
            joined.append(f"{name}={value}")
    return joined


if __name__ == "__main__":
    main()
