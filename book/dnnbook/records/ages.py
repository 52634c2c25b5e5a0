"""Records that are older than the code they rest on, or do not say how they were made."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dnnbook import places, reproducible, training
from dnnbook.data import known
from dnnbook.records import records
from dnnbook.records.records import Record


@dataclass(frozen=True)
class Old:
    """A record in ``path`` that should be made again, and why."""

    path: Path
    reasons: tuple[str, ...]


def reasons(record: Record, made: Mapping | None = None) -> tuple[str, ...]:
    """Why a record is old; none if it is not.

    - 'training', 'campaigns' or another name: it precedes the present revision of these
      (:data:`reproducible.REVISIONS`).
    - 'edited files': the code was not that of any commit.
    - 'lost commit': its commit stands in the table 'lost' of ``made``: there is no such commit.
    - 'JPEG copy': its pictures are a copy of its dataset that was stored as JPEG.
    - 'unnamed threads': the record does not say how many threads it was made with.
    - 'unknown revisions': neither the record nor ``made``, the table for records from before
      their provenance named revisions (``results/made.toml``), tells.

    >>> new = {"commit": "0123456789ab", "revisions": {"training": 1}, "threads": 1}
    >>> reasons(Record("toy/x", {}, [], new))
    ('training',)
    """
    commit, _, edited = record.provenance.get("commit", "unknown").partition("+")
    found = record.provenance.get("revisions")
    if found is None:
        made = made or {}
        rests = made.get("rests", {})
        names = rests.get(record.experiment, rests.get(record.experiment.split("/")[0]))
        told = next((m["revisions"] for m in made.get("made", ()) if commit in m["commits"]), None)
        if told is not None and names is not None:
            found = {name: told.get(name, 0) for name in names}
    if found is not None and "training" in found and _augments(record):
        found = {"augmentation": 1} | found  # a record from before this had a revision of its own
    if found is not None and record.experiment == "nss/diversity":
        found = {"kinds": 1} | found
    why = ["unknown revisions"] if found is None else [
        name for name, revision in found.items()
        if name in reproducible.REVISIONS and revision < reproducible.revision(name)]
    return (*why, *(["edited files"] if edited else []),
            *(["lost commit"] if commit in (made or {}).get("lost", {}) else []),
            *(["JPEG copy"] if known.copy_of(str(record.provenance.get("data"))) == "JPEG copy"
              else []),
            *([] if "threads" in record.provenance else ["unnamed threads"]))


def another_protocol(record: Record, made: Mapping | None = None) -> tuple[str, ...]:
    """What has changed since a record was made, so that its values may differ: a parameter that
    chapters set otherwise now (:data:`records.OLDER`), a revision of the code, the pictures.

    ``made``: as for :func:`reasons`, of which a lost commit or edited files excuse nothing.

    >>> another_protocol(Record("nsatp/motivation", {"one_class": False}, [], {"revisions": {}}))
    ('one_class',)
    """
    older = records.OLDER.get(record.experiment, {})
    return (*(name for name, value in older.items() if record.parameters.get(name) == value),
            *(why for why in reasons(record, made)
              if why in reproducible.REVISIONS or why == "JPEG copy"))


def _augments(record: Record) -> bool:
    """Whether its networks were trained on images cropped and flipped at random."""
    asked = record.parameters
    name = asked.get("recipe", record.experiment.split("/")[0])  # chapters of NSS have its own
    return name in training.RECIPES and training.recipe(
        name, asked.get("dataset", ""), asked.get("model", "")).augment


def earlier(root: Path) -> dict:
    """The table for records from before their provenance named revisions, {} if there is none."""
    table = root / "made.toml"
    return tomllib.loads(table.read_text(encoding="utf-8")) if table.exists() else {}


def old(paper: str = "", root: Path | None = None) -> tuple[list[Old], int]:
    """The records that are old, of all papers or of those that start so; and of how many."""
    root = root or places.results_dir()
    made = earlier(root)
    paths = [path for path in sorted(root.glob("*/*/*.json"))
             if path.relative_to(root).as_posix().startswith(paper)]
    found = [Old(path, reasons(records.read(path), made)) for path in paths]
    return [one for one in found if one.reasons], len(paths)


def summary(paper: str = "", root: Path | None = None) -> str:
    """One line: how many records are old, by reason; '' if none is."""
    found, count = old(paper, root)
    if not found:
        return ""
    by: dict[str, int] = {}
    for reason in (reason for one in found for reason in one.reasons):
        by[reason] = by.get(reason, 0) + 1
    listed = ", ".join(f"{reason} {number}" for reason, number in by.items())
    return (f"{len(found)} of {count} records should be made again ({listed}); "
            "list them with dnnbook replay --old")
