"""The command ``dnnbook replay``: records made again, and compared row by row."""

from pathlib import Path
from typing import Annotated

import typer

from dnnlib.cli.terminal import err, print_table, say

SHOWN = 20  # rows of a replay that are printed, without --rows
COLOURS = {"identical": "[green]{}[/]", "within": "[yellow]{}[/]", "different": "[red]{}[/]",
           "gone": "[red]{}[/]", "new": "[dim]{}[/]", "timed": "[dim]{}[/]"}
WORDS = {"agrees": "agree", "differs": "differ", "of another protocol": "are of another protocol",
         "failed": "failed", "did not fit": "did not fit into the minutes"}
OUTCOMES = {"agrees": "[green]{}[/]", "differs": "[red]{}[/]", "failed": "[red]{}[/]",
            "of another protocol": "[yellow]{}[/]", "did not fit": "[dim]{}[/]"}


def replay(names: Annotated[list[str], typer.Argument(
               metavar="RECORD...", help="Files, or the start of a name: nss/diversity/mnist. "
                                         "Several are listed.")] = [],
           sample: Annotated[int, typer.Option(
               min=0, help="Replay so many of these records, drawn at random.")] = 0,
           seed: Annotated[int, typer.Option(help="Of the draw.")] = 0,
           every: Annotated[bool, typer.Option(
               "--all", help="Replay all of these records.")] = False,
           each: Annotated[bool, typer.Option(
               "--each", help="Replay one of these records of each experiment, the cheapest "
                              "first, with one empty cache for all.")] = False,
           minutes: Annotated[float, typer.Option(
               min=0.1, help="With --each: start none that is expected to take longer than what "
                             "is left of so many minutes.")] = 60,
           threads: Annotated[int | None, typer.Option(
               min=1, help="Threads; default: those of the record, or 1 if it does not "
                           "say.")] = None,
           cache: Annotated[bool, typer.Option(
               "--cache", help="Take networks and measurements from the cache, where they are; "
                               "else all is made anew.")] = False,
           rows: Annotated[bool, typer.Option(
               "--rows", help="Print every row; default: the first that are not "
                              "identical.")] = False,
           keep: Annotated[str, typer.Option(
               help="A folder for the new record and the notebook that ran.")] = "",
           note: Annotated[bool, typer.Option(
               "--note", help="Write what came out into results/replayed.csv.")] = False,
           old: Annotated[bool, typer.Option(
               "--old", help="Instead: list the records that are older than the code they rest "
                             "on.")] = False) -> None:
    """Run a record's chapter again, and say of each row: identical, within the spread of the
    seeds, or different.

    It runs with the record's own parameters and number of threads, into a folder that is deleted.
    A value that is not identical is *within* if it lies in the 95 % interval in which one more
    seed of the same cell is expected. Seconds are not compared. Exit code 1 if a row is different,
    or is gone, or if a chapter fails; with --each a record from before a change of the protocol, or
    of its code, may differ, and is listed as such.
    """
    from dnnbook.chapters import replay as engine
    from dnnbook.chapters.notebooks import CellFailed

    if old:
        _old(names[0] if names else "")
        return
    if each:
        if sample or every or cache or keep or threads:
            raise ValueError("--each: only with --minutes, --rows and --note")
        _each(engine.find(names), minutes, rows, note)
        return
    if not names and not sample:
        raise ValueError("expected the name of a record, --sample or --each: "
                         "dnnbook replay --sample 5")
    paths = engine.find(names)
    if sample:
        paths = engine.sample(paths, sample, seed)
    elif len(paths) > 1 and not every:
        _listed(paths)
        return
    good = 0
    for number, path in enumerate(paths, 1):
        err.print(f"({number} of {len(paths)}) {path}", markup=False, highlight=False,
                  soft_wrap=True)
        try:
            done = engine.replay(path, threads=threads, cache=cache,
                                 keep=Path(keep).expanduser() if keep else None)
        except (CellFailed, ValueError) as error:
            say(f"{path}: cannot be replayed: {error}")
            continue
        _shown(done, rows)
        good += not done.differs
        if note:
            say(f"noted in {engine.note(done)}")
    if len(paths) > 1:
        say(f"{good} of {len(paths)} records: every row is identical or within the spread")
    if good < len(paths):
        raise typer.Exit(1)


def _each(paths: list[Path], minutes: float, rows: bool, note: bool) -> None:
    import pandas as pd

    from dnnbook.chapters import budget, replay

    ended = []
    for one in budget.each(paths, minutes):
        ended.append(one)
        if one.done is not None:
            _shown(one.done, rows)
            if note:
                say(f"noted in {replay.note(one.done)}")
        elif one.why:
            say(f"{one.record}: cannot be replayed: {one.why}")
    counts = [one.done.counts if one.done else {} for one in ended]
    print_table(pd.DataFrame(
        {"record": one.record, "outcome": one.outcome, "minutes": f"{one.minutes:.1f}",
         **{state: str(found.get(state, "")) for state in ("identical", "within")},
         "different": str(found["different"] + found["gone"]) if found else "",
         "changed since": one.why if one.done else ""}
        for one, found in zip(ended, counts)), f"{len(ended)} experiments", OUTCOMES)
    say(", ".join(f"{sum(one.outcome == outcome for one in ended)} {word}"
                  for outcome, word in WORDS.items()))
    if any(one.wrong for one in ended):
        raise typer.Exit(1)


def _shown(done, every: bool) -> None:
    rows = done.rows
    chosen = rows if every else rows[~rows["state"].isin(["identical", "timed"])].head(SHOWN)
    if not chosen.empty:
        number = {name: chosen[name].map(lambda v: "" if v is None or v != v else f"{v:.7g}")
                  for name in ("recorded", "replayed", "low", "high")}
        print_table(chosen.assign(**number), done.record.experiment, COLOURS)
    counts = {state: count for state, count in done.counts.items() if count}
    was, now = done.record.provenance, done.made.provenance
    say(f"{done.path.stem}: {len(rows)} rows: "
        + ", ".join(f"{count} {state}" for state, count in counts.items()),
        f"  made at {was.get('commit')}, torch {was['libraries']['torch']}, threads "
        f"{was.get('threads', 'unknown')}, {was.get('capability', 'processor unknown')}",
        f"  now  at {now['commit']}, torch {now['libraries']['torch']}, threads {now['threads']}, "
        f"{now['capability']}")
    if was["libraries"].get("torch") != now["libraries"]["torch"]:
        say("  other versions: each record names its own; constraints.txt has those of the newest "
            "(pip install -c constraints.txt -e .)")
    before, after = (each.get("device", "cpu") for each in (was, now))
    if before != after:
        say(f"  another device, {after} for {before}: no digit has to be the same; a row "
            "within the spread of the seeds agrees")


def _listed(paths: list[Path]) -> None:
    import pandas as pd

    from dnnbook.records import records

    found = [records.read(path) for path in paths]
    print_table(pd.DataFrame(
        {"record": f"{record.experiment}/{path.stem}", "rows": len(record.rows),
         "seconds": record.provenance.get("seconds"),
         "threads": str(record.provenance.get("threads", "unknown"))}
        for path, record in zip(paths, found)), f"{len(paths)} records")
    say("name one of them, or --sample 1, or --all")


def _old(paper: str) -> None:
    import pandas as pd

    from dnnbook.records import ages

    found, count = ages.old(paper)
    if found:
        print_table(pd.DataFrame(
            {"record": f"{one.path.parent.parent.name}/{one.path.parent.name}/{one.path.stem}",
             "older than": ", ".join(one.reasons)} for one in found), "Old records")
    say(f"{len(found)} of {count} records are old")
