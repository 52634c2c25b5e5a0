"""Tables of the page on replays, from the results as they are: what was replayed, what is old."""

import csv
from collections import Counter

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.application import Sphinx

from dnnbook import places
from dnnbook.records import ages

SHOWN = ("record", "date", "commit", "threads", "recorded with", "rows", "identical", "within",
         "different", "changed since")


def replayed() -> list[dict]:
    """The lines of ``results/replayed.csv``, by column; none if nothing was replayed."""
    path = places.results_dir() / "replayed.csv"
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [{name: line.get(name) or "" for name in SHOWN} for line in csv.DictReader(file)]


def never_replayed() -> list[dict]:
    """The experiments without such a line, and how many records each has."""
    done = {line["record"].rpartition("/")[0] for line in replayed()}
    root = places.results_dir()
    counts = Counter(path.parent.relative_to(root).as_posix() for path in root.glob("*/*/*.json"))
    return [{"experiment": name, "records": count} for name, count in sorted(counts.items())
            if name not in done]


def old() -> list[dict]:
    """How many records of each experiment are old, and why."""
    found, _ = ages.old()
    counts = Counter((f"{one.path.parent.parent.name}/{one.path.parent.name}",
                      ", ".join(one.reasons)) for one in found)
    return [{"experiment": experiment, "older than": reasons, "records": count}
            for (experiment, reasons), count in sorted(counts.items())]


def markdown(lines: list[dict]) -> list[str]:
    """A table in Markdown, or a line that says that there is nothing."""
    if not lines:
        return ["None."]
    names = list(lines[0])
    rows = [names, ["---"] * len(names), *([str(line[name]) for name in names] for line in lines)]
    return [f"| {' | '.join(row)} |" for row in rows]


class Replayed(Directive):
    """``{replayed}``: each record that was replayed, and how many of its rows came out the same."""

    rows = staticmethod(replayed)

    def run(self) -> list:
        place = nodes.container(classes=["checked"])
        self.state.nested_parse(StringList(markdown(self.rows()), "results"), self.content_offset,
                                place)
        return [place]


class Never(Replayed):
    """``{never_replayed}``: the experiments of which no record was replayed."""

    rows = staticmethod(never_replayed)


class Old(Replayed):
    """``{old_records}``: the records that are older than the code they rest on, counted."""

    rows = staticmethod(old)


def setup(app: Sphinx) -> dict:
    app.add_directive("replayed", Replayed)
    app.add_directive("never_replayed", Never)
    app.add_directive("old_records", Old)
    return {"parallel_read_safe": True}
