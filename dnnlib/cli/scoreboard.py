"""The command ``dnnlib scoreboard``: claims and verdicts, their check, and what was not run."""

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from dnnlib.cli.terminal import err, print_table, say


def scoreboard(paper: Annotated[str, typer.Argument(help="One paper only.")] = "",
               check: Annotated[bool, typer.Option(
                   "--check", help="Instead: do the chapters show the records as they are now, and "
                                   "does every statement hold? Exit code 1 if not.")] = False,
               missing: Annotated[bool, typer.Option(
                   "--missing", help="Instead: what has not been run, the command, and about how "
                                     "long it takes.")] = False,
               output: Annotated[str, typer.Option(
                   "-o", "--out", help="Write the table as CSV too; results/scoreboard.csv is the "
                                       "one that was committed last.")] = "",
               readme: Annotated[str, typer.Option(
                   help="Instead: compute the table of what was run in this README.md.")] = "",
               ) -> None:
    """Every claim of the papers, and what the committed records say of it."""
    import pandas as pd

    from dnnlib import files
    from dnnlib.book import ages, evidence_map, extent, statements, verdicts
    from dnnlib.book import notebooks as books

    if readme:
        path = Path(readme).expanduser()
        files.write_atomically(path, extent.readme(path.read_text("utf-8")).encode())
        say(f"wrote {readme}")
        return
    if check:
        chosen = books.starting([paper] if paper else [], ".ipynb")
        broken = [found for path in track(chosen, description="statements", console=err)
                  for found in statements.check(path)]
        for found in broken:
            say(f"{found.chapter}: {found.why}")
        if flagged := ages.summary(paper):  # reported; their being old fails nothing
            say(flagged)
        names = [path.relative_to(books.folder()).with_suffix("").as_posix()
                 for path in chosen if books.stale(path)]
        if names:
            say("records have changed since these chapters were made:",
                f"dnnlib notebooks {' '.join(names)}")
        if names or broken:
            raise typer.Exit(1)
        say("every chapter shows the records as they are, and every statement holds")
        return
    if missing:
        papers = [paper] if paper else list(extent.NAMES)
        found = pd.concat([evidence_map.fields(name) for name in papers])
        print_table(evidence_map.missing(found),
                    "Not run, with fewer than three seeds, or larger than what was run")
        return
    board = verdicts.scoreboard(paper or None)
    if output:
        files.write_atomically(Path(output).expanduser(), board.to_csv().encode())
        say(f"wrote {output}")
    print_table(board.reset_index(drop=True), "Claims and verdicts", {
        "reproduced": "[green]{}[/]", "partly": "[yellow]{}[/]", "not reproduced": "[red]{}[/]",
        "undecided": "[dim]{}[/]", "not run": "[dim]{}[/]"})
