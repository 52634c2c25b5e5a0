"""The command ``dnnbook scoreboard``: claims and verdicts, their check, and what was not run."""

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from dnnlib.cli.terminal import err, print_table, say


def scoreboard(paper: Annotated[str, typer.Argument(help="One paper only.")] = "",
               check: Annotated[bool, typer.Option(
                   "--check", help="Instead: are the records as they were made, do they keep their "
                                   "rules, do the chapters show them, and does every statement "
                                   "hold? Exit code 1 if not.")] = False,
               sign: Annotated[bool, typer.Option(
                   "--sign", help="Instead: sign records that were renamed, or made elsewhere, and "
                                  "print what moved. A value changed by hand is refused. A sweep "
                                  "signs what it saves.")] = False,
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

    from dnnbook import published
    from dnnbook.chapters import evidence_map
    from dnnbook.records import extent, verdicts
    from dnnlib import files

    if readme:
        path = Path(readme).expanduser()
        files.write_atomically(path, extent.readme(path.read_text("utf-8")).encode())
        say(f"wrote {readme}")
        return
    if sign:
        _sign()
        return
    if check:
        _check(paper)
        return
    if missing:
        papers = [paper] if paper else list(published.PAPERS)
        found = pd.concat([evidence_map.fields(name) for name in papers])
        print_table(evidence_map.missing(found),
                    "Not run, with fewer than three seeds, or larger than what was run")
        return
    board = verdicts.scoreboard(paper or None)
    if output:
        files.write_atomically(Path(output).expanduser(), board.to_csv().encode())
        say(f"wrote {output}")
    print_table(board.reset_index(drop=True), "Claims and verdicts", {
        "reproduced": "[green]{}[/]", "mostly": "[green]{}[/]",
        "partly, some fail": "[yellow]{}[/]", "not reproduced": "[red]{}[/]",
        "too few runs": "[dim]{}[/]",
        "nothing to compare": "[dim]{}[/]", "not run": "[dim]{}[/]"})


def _sign() -> None:
    from dnnbook.records import signed

    done, refused = signed.sign()
    for change in done:
        say(str(change))
    say(f"signed {len(done)} records in results/{signed.FILE}")
    if refused:
        say("not signed, as they were changed and not made again:", *map(str, refused))
        raise typer.Exit(1)


def _check(paper: str) -> None:
    from dnnbook.chapters import notebooks as books
    from dnnbook.chapters import statements
    from dnnbook.records import ages, origins, rules, signed

    wrong = [*map(str, signed.changed(paper)), *rules.broken(paper), *origins.wrong(paper)]
    say(*wrong)
    for change in signed.since_commit():  # reported; a record may be made again
        say(f"since the last commit, {change}")
    chosen = books.starting([paper] if paper else [], ".ipynb")
    broken = [found for path in track(chosen, description="statements", console=err)
              for found in statements.check(path)]
    say(*(f"{found.chapter}: {found.why}" for found in broken))
    for told in (ages.summary(paper), origins.summary(paper)):  # reported; these fail nothing
        if told:
            say(told)
    names = [path.relative_to(books.folder()).with_suffix("").as_posix()
             for path in chosen if books.stale(path)]
    if names:
        say("records have changed since these chapters were made:",
            f"dnnbook notebooks {' '.join(names)}")
    if names or broken or wrong:
        raise typer.Exit(1)
    say("every record is as it was signed and keeps its rules, every chapter shows the records as "
        "they are, and every statement holds")
