"""The command ``dnnbook sweep``: a live table of cells, and what became of them."""

import time
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from dnnbook import places
from dnnlib.cli.terminal import out, say, table

COLOURS = {"done": "[green]{}[/]", "failed": "[red]{}[/]", "running": "[yellow]{}[/]",
           "waiting": "[dim]{}[/]"}
ROWS = 20  # cells shown at once


def sweep(file: Annotated[Path, typer.Argument(help="A sweep file, such as sweeps/smoke.toml.")],
          scheduler: Annotated[str, typer.Option(
              help="A Dask scheduler, tcp://HOST:8786; else workers on this machine.")] = "",
          workers: Annotated[int | None, typer.Option(
              help="Workers on this machine; one for each core, or as many as memory carries.",
              min=1)] = None,
          results: Annotated[str, typer.Option(
              help="Where the records go; else where the file says, or DNNLIB_RESULTS, or "
                   "runs/results; of the book's own sweeps results.")] = "",
          device: Annotated[str, typer.Option(
              help="Where all cells train and measure: cpu, cuda, mps or auto; else where the file "
                   "says, or the CPU.")] = "",
          replace: Annotated[bool, typer.Option(
              "--replace", "--again", help="Make old records again, in their place; those of "
                                           "the book are listed by `dnnbook replay --old`. It says "
                                           "what moved, and what each was made on.")] = False,
          show: Annotated[bool, typer.Option(
              "--list", help="List the cells, run nothing.")] = False) -> None:
    """Run a grid of notebooks, datasets, networks and seeds; what is done is not run again."""
    from dnnbook.chapters import plan, sweeps

    if scheduler and workers:
        raise ValueError("--workers: only without --scheduler, whose workers there are already")
    cells, named = sweeps.read(file, device=device, here=not scheduler)
    root = _root(file, results, named)
    kept = {cell.name: sweeps.kept(cell, root) for cell in cells}
    old = {name: path for name, path in kept.items() if path and sweeps.old(path)}
    states = {name: "done" if path and not (replace and name in old) else "waiting"
              for name, path in kept.items()}
    if old and not replace:
        say(f"{len(old)} records are old and stay, the first is {next(iter(old.values()))}; "
            "--replace makes them again")
    if not scheduler:  # whose GPUs are not known here
        cells = [sweeps.measured(cell, root) if states[cell.name] == "waiting" else cell
                 for cell in cells]
    left = [cell for cell in cells if states[cell.name] == "waiting"]
    for path in sweeps.set_aside(root):
        say(f"a record that cannot be read was set aside and does not count: {path}")
    if show:
        out.print(_cells(cells, states, {}))
    _summary(cells, states, root)
    if show or not left:
        return
    workers = workers or (None if scheduler else plan.workers(left))
    workers = workers and max(1, min(workers, len(left)))  # each has its share of a GPU
    errors = _run(cells, left, states, root, scheduler or None, workers, replace)
    _summary(cells, states, root)
    if errors:
        say("failed:", *(f"  {name}\n    {error}" for name, error in errors.items()))
        raise typer.Exit(1)


def _root(file: Path, results: str, named: Path | None) -> Path:
    """Where the records go: only the book's own sweeps write to the book's."""
    from dnnbook.chapters import sweeps

    asked = Path(results).expanduser() if results else named
    if sweeps.of_the_book(file):
        return asked or places.results_dir()
    return places.not_the_books(asked, "results") if asked else places.own_results_dir()


def _run(cells, left, states: dict[str, str], root: Path, scheduler: str | None,
         workers: int | None, replace: bool) -> dict[str, str]:
    """Run what is left, with a live table; the errors by name of cell."""
    from rich.live import Live

    from dnnbook.chapters import sweeps
    from dnnlib.custom import cluster

    errors, seconds, start = {}, {}, time.monotonic()
    with cluster.connected(scheduler, workers=workers) as client, Live(
            console=out, refresh_per_second=2, transient=True) as live:
        def watch(busy: set[str]) -> None:
            for name in states:
                if states[name] in ("waiting", "running"):
                    states[name] = "running" if name in busy else "waiting"
            live.update(_cells(cells, states, seconds, _time_left(left, states, start)))

        for ended in sweeps.run(left, client, root=root, watch=watch, replace=replace):
            name = ended.cell.name
            if ended.error is None:
                states[name], seconds[name] = "done", ended.seconds
            else:
                states[name], errors[name] = "failed", ended.error
            if not out.is_terminal:
                took = f"{ended.seconds:6.0f} s" if ended.error is None else 8 * " "
                say(f"{states[name]:7}{took}  {name}")
            if ended.moved:
                live.console.print("\n  ".join([f"replaced, {name}:", *ended.moved]),
                                   markup=False, highlight=False, soft_wrap=True)
    return errors


def _time_left(left, states: dict[str, str], start: float) -> str:
    """By what the ended cells took, as shares of the estimates."""
    weights = {cell.name: cell.takes or 1.0 for cell in left}
    ended = sum(w for name, w in weights.items() if states[name] in ("done", "failed"))
    if not ended:
        return "time left: unknown until a cell has ended"
    minutes = (time.monotonic() - start) / 60 / ended * (sum(weights.values()) - ended)
    return f"time left: about {minutes:.0f} min"


def _cells(cells, states: dict[str, str], seconds: dict[str, float], caption: str = ""):
    import pandas as pd

    order = ("running", "failed", "waiting", "done")
    chosen = sorted(cells, key=lambda cell: order.index(states[cell.name]))
    rows = [{"cell": cell.name, "state": states[cell.name],
             "estimate (min)": "" if cell.takes is None else f"{cell.takes:.3g}",
             "took (s)": f"{seconds[cell.name]:.0f}" if cell.name in seconds else ""}
            for cell in chosen[:ROWS if caption else None]]
    counts = Counter(states.values())
    title = ", ".join(f"{counts[state]} {state}" for state in reversed(order))
    made = table(pd.DataFrame(rows), f"{len(states)} cells: {title}", COLOURS)
    made.caption = caption
    return made


def _summary(cells, states: dict[str, str], root: Path) -> None:
    from dnnbook.chapters import plan

    waiting = [cell for cell in cells if states[cell.name] == "waiting"]
    left = ""
    for where in ("core", "GPU"):
        there = [cell for cell in waiting if (cell.device == "cpu") == (where == "core")]
        if hours := plan.hours(there):
            left += f", about {hours:.1f} h on one {where}"
            if where == "GPU" and any(cell.measured is None for cell in there):
                left += " (estimated)"
    counts = Counter(states.values())
    say(f"{len(states)} cells: " + ", ".join(f"{n} {state}" for state, n in counts.items())
        + f"{left}; records in {root}")
