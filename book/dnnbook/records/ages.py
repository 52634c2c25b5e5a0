"""Records that should be made again, such as those that are older than the code they rest on."""

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


def reasons(record: Record) -> tuple[str, ...]:
    """Why a record is old; none if it is not.

    - 'training', 'campaigns' or another name: it precedes the present revision of these
      (:data:`reproducible.REVISIONS`).
    - 'edited files': the code was not that of any commit.
    - 'JPEG copy': its pictures are a copy of its dataset that was stored as JPEG.

    >>> new = {"commit": "0123456789ab", "revisions": {"training": 1}}
    >>> reasons(Record("toy/x", {}, [], new))
    ('training',)
    """
    found = record.provenance.get("revisions", {})
    if "training" in found and _augments(record):
        found = {"augmentation": 1} | found  # a record from before this had a revision of its own
    if record.experiment == "nss/diversity":
        found = {"kinds": 1} | found
    return (*(name for name, revision in found.items()
              if name in reproducible.REVISIONS and revision < reproducible.revision(name)),
            *(["edited files"] if "+" in record.provenance.get("commit", "") else []),
            *(["JPEG copy"] if known.copy_of(str(record.provenance.get("data"))) == "JPEG copy"
              else []))


def another_protocol(record: Record) -> tuple[str, ...]:
    """What has changed since a record was made, so that its values may differ: a parameter that
    chapters set otherwise now (:data:`records.OLDER`), a revision of the code, the pictures.

    >>> another_protocol(Record("nsatp/motivation", {"one_class": False}, [], {"revisions": {}}))
    ('one_class',)
    """
    older = records.OLDER.get(record.experiment, {})
    return (*(name for name, value in older.items() if record.parameters.get(name) == value),
            *(why for why in reasons(record)
              if why in reproducible.REVISIONS or why == "JPEG copy"))


def _augments(record: Record) -> bool:
    """Whether its networks were trained on images cropped and flipped at random."""
    asked = record.parameters
    name = asked.get("recipe", record.experiment.split("/")[0])  # chapters of NSS have its own
    return name in training.RECIPES and training.recipe(
        name, asked.get("dataset", ""), asked.get("model", "")).augment


def old(paper: str = "", root: Path | None = None) -> tuple[list[Old], int]:
    """The records that are old, of all papers or of those that start so; and of how many."""
    root = root or places.results_dir()
    paths = [path for path in sorted(root.glob("*/*/*.json"))
             if path.relative_to(root).as_posix().startswith(paper)]
    found = [Old(path, reasons(records.read(path))) for path in paths]
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
