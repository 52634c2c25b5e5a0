"""The command ``dnnbook runs``: your own runs beside the book's, as a table and a plot."""

from pathlib import Path
from typing import Annotated

import typer

from dnnbook import places
from dnnlib.cli.terminal import print_table, say


def runs(notebook: Annotated[str, typer.Argument(help="Path, or the start of a name: nsatp/01")],
         quantity: Annotated[str, typer.Option(
             help="What was measured: a name, or a part of several. Without it, all are "
                  "listed.")] = "",
         over: Annotated[str, typer.Option(
             help="The parameter that differs between your runs, such as trials.")] = "",
         where: Annotated[str, typer.Option(
             help="Which rows are meant: a query, such as \"fuzzer == 'dlfuzz'\".")] = "",
         results: Annotated[str, typer.Option(
             help="Where your records are; else DNNLIB_RESULTS, or runs/results.")] = "",
         plot: Annotated[str, typer.Option(help="A picture to write, such as eff.png.")] = "",
         output: Annotated[str, typer.Option("-o", "--out", help="A CSV file to write.")] = "",
         ) -> None:
    """Show a quantity over a parameter, of your own runs of a chapter and of the book's.

    Numbers are means over the seeds, with the range in brackets. Nothing else is averaged.
    """
    import pandas as pd

    from dnnbook.chapters import declared, notebooks, parameters
    from dnnbook.chapters import runs as own_runs
    from dnnlib import files

    if (plot or output) and not quantity:
        raise ValueError("--quantity: expected one with --plot or --out")
    if plot and not Path(plot).suffix:
        plot += ".png"
    for name, path in (("--plot", plot), ("--out", output)):
        if path:
            files.writable(Path(path).expanduser(), name)
    chapter = notebooks.find(notebook)
    about = notebooks.recorded(chapter, {})
    if about is None:
        raise ValueError(f"{chapter.name} saves no record, so no run of it can be shown")
    experiment = about[0]
    folder = Path(results).expanduser() if results else places.own_results_dir()
    names = {declared.stored(name, experiment): name for name in notebooks.parameters(chapter)}
    rows = own_runs.gathered(experiment, folder).rename(columns=names)  # as the chapter calls them
    if not quantity:
        listed = rows.groupby(["quantity", "run"]).size().unstack(fill_value=0).reset_index()
        print_table(listed, f"Quantities of {experiment}: rows of your records and the book's")
        return
    if not over:
        differ = [name for name in names.values()
                  if name != "seed" and name in rows and rows[name].nunique() > 1]
        raise ValueError("--over: expected the parameter to show it over; your runs and the "
                         f"book's differ in {', '.join(differ) or 'none'}")
    over, = parameters.renamed(chapter, {over: ""})
    table = own_runs.over(rows, quantity, over, where)
    if output:
        files.write_atomically(Path(output).expanduser(), table.to_csv(index=False).encode())
        say(f"wrote {output}")
    if plot:
        target = Path(plot).expanduser()
        target.parent.mkdir(parents=True, exist_ok=True)
        own_runs.draw(table, over).savefig(target, dpi=150, bbox_inches="tight")
        say(f"wrote {plot}")
    texts = [f"{mean:.4g}" if seeds == 1 else f"{mean:.4g} [{low:.4g}, {high:.4g}]"
             for mean, low, high, seeds in table[["mean", "least", "greatest", "seeds"]].values]
    print_table(pd.DataFrame(table.drop(columns=["mean", "least", "greatest"]).assign(
        value=texts).astype(str)), f"{chapter.stem} over {over}, mean [least, greatest] of seeds")
