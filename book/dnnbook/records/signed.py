"""Signatures: a digest of what each record said when it was made, in ``results/signed.csv``.

A sweep signs what it saves. So a record that a hand has changed differs from its signature; the
rows that it had are in git, and are named with both values.
"""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from dnnbook import places
from dnnbook.records import history, records, rules
from dnnbook.records import rows as tables
from dnnbook.records.records import Record
from dnnlib import files

FILE = "signed.csv"
COLUMNS = ("record", "parameters", "rows", "provenance", "commit")
SHOWN = 10  # rows of a record that are named; the others are counted


@dataclass(frozen=True)
class Change:
    """A record that is not as it was signed, and the lines that name what moved. ``kind``:

    - 'edited': something moved, but not the provenance, as it would if it had been made again.
    - 'provenance edited': nothing else moved, though another run has other seconds at least.
    - 'made again': rows and provenance moved.
    - 'renamed': values and provenance are those of a record that is gone, under other names.
    - 'not signed': there is no signature.
    - 'gone': there is only the signature.
    """

    record: str
    kind: str
    lines: tuple[str, ...] = ()

    def __str__(self) -> str:
        more = len(self.lines) - SHOWN
        return "\n".join([f"{self.record}: {self.kind}", *(f"  {x}" for x in self.lines[:SHOWN]),
                          *([f"  and {more} more"] if more > 0 else [])])


def signature(name: str, record: Record) -> dict[str, str]:
    """The line of a record: digests of its parts, and the commit that made it.

    A parameter that came later, with the value of before, changes nothing.
    """
    told = records.without(records.ADDED.get(record.experiment, {}), record.parameters)
    return {"record": name, "parameters": files.digest(told),
            "rows": files.digest(record.rows), "provenance": files.digest(record.provenance),
            "commit": str(record.provenance.get("commit", "unknown"))}


def read(root: Path | None = None) -> dict[str, dict[str, str]]:
    """The signatures by the names of their records; none without a file."""
    path = (root or places.results_dir()) / FILE
    return _parsed(path.read_text("utf-8")) if path.exists() else {}


def _parsed(text: str) -> dict[str, dict[str, str]]:
    return {line["record"]: line for line in csv.DictReader(io.StringIO(text))}


def _write(signatures: dict[str, dict[str, str]], root: Path) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(signatures[name] for name in sorted(signatures))
    files.write_atomically(root / FILE, text.getvalue().encode())


def _every(root: Path, paper: str = "") -> dict[str, Record]:
    names = {path.relative_to(root).with_suffix("").as_posix(): path
             for path in sorted(root.glob("*/*/*.json"))}
    return {name: records.read(path) for name, path in names.items() if name.startswith(paper)}


def add(name: str, root: Path | None = None) -> None:
    """Sign the record of a name, '<paper>/<experiment>/<stem>': called where a sweep saves it.

    ``ValueError`` names the first rule that it breaks: it stays, unsigned.
    """
    root = root or places.results_dir()
    lock = files.cache_dir() / f"{files.digest(str(root.resolve()))}.signed.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(lock):
        record = records.read(root / f"{name}.json")
        if lines := rules.violated(record):
            raise ValueError(f"{name} is kept, not signed: it breaks {len(lines)} rules; "
                             f"{lines[0]}")
        new = signature(name, record)
        _write(read(root) | {name: new}, root)


def changed(paper: str = "", root: Path | None = None) -> list[Change]:
    """Every record that is not as it was signed. Without git's history no old values are named."""
    root = root or places.results_dir()
    signatures, every = read(root), _every(root, paper)
    gone = {name: line for name, line in signatures.items()
            if name.startswith(paper) and name not in every}
    found = []
    for name, record in every.items():
        line = signatures.get(name)
        if line is None:
            change, old = _unsigned(name, record, gone, root)
            gone.pop(old, None)
        else:
            change = _compared(name, record, line, root)
        found += [change] if change else []
    found += [Change(name, "gone") for name in gone]
    return sorted(found, key=lambda one: one.record)


def _compared(name: str, record: Record, line: dict, root: Path) -> Change | None:
    now = signature(name, record)
    differ = [part for part in COLUMNS[1:] if now[part] != line[part]]
    if not differ:
        return None
    again = "provenance" in differ and "rows" in differ
    kind = ("made again" if again else "provenance edited" if "provenance" in differ else "edited")
    if (old := _as_signed(name, line, root)) is None:
        return Change(name, kind, (f"{', '.join(differ)} changed; git has no version as it was "
                                   "signed, so no old values can be named",))
    return Change(name, kind, tuple(_moved(old, record)))


def _moved(old: Record, new: Record) -> Iterator[str]:
    yield from tables.changes(old.parameters, new.parameters)
    yield from tables.moved(old.rows, new.rows)
    if old.provenance != new.provenance:
        yield from tables.changes(old.provenance, new.provenance)


def _as_signed(name: str, line: dict, root: Path) -> Record | None:
    return history.version(root, f"{name}.json",
                           lambda record: signature(name, record) | {"record": name} == line)


def _unsigned(name: str, record: Record, gone: dict, root: Path) -> tuple[Change, str]:
    """A new record, or one that is gone under another name: its change, and the old name."""
    now = signature(name, record)
    values = [row.get("value") for row in record.rows]
    for old, line in gone.items():
        if line["provenance"] != now["provenance"]:
            continue
        if line["rows"] == now["rows"]:
            return Change(name, "renamed", (f"from {old}",)), old
        was = _as_signed(old, line, root)
        if was is not None and [row.get("value") for row in was.rows] == values:
            return Change(name, "renamed", (f"from {old}, and columns of its rows",)), old
    return Change(name, "not signed"), ""


def _same_values(change: Change, root: Path) -> bool:
    """Whether only names of columns or of parameters moved in an edited record."""
    old = _as_signed(change.record, read(root)[change.record], root)
    new = records.read(root / f"{change.record}.json")
    return old is not None and [r.get("value") for r in old.rows] == [
        r.get("value") for r in new.rows]


def sign(root: Path | None = None) -> tuple[list[Change], list[Change]]:
    """Sign all records that were made, made again, renamed or removed; what was signed, and what
    was refused: a record whose values or provenance a hand has changed, or that breaks a rule.
    """
    root = root or places.results_dir()
    every = changed(root=root)
    refused = [one for one in every if one.kind == "provenance edited"
               or one.kind == "edited" and not _same_values(one, root)]
    paths = {one: root / f"{one.record}.json" for one in every if one not in refused}
    refused += [Change(one.record, "breaks a rule", tuple(lines)) for one, path in paths.items()
                if path.exists() and (lines := rules.violated(records.read(path)))]
    kept = read(root)
    refused_names = {one.record for one in refused}
    fresh = {name: signature(name, record) for name, record in _every(root).items()
             if name not in refused_names}
    _write(fresh | {name: kept[name] for name in refused_names & set(kept)}, root)
    return [one for one in every if one.record not in refused_names], refused


def since_commit(root: Path | None = None) -> list[Change]:
    """Records that were made again, and signed, since the last commit: what moved in each."""
    root = root or places.results_dir()
    if (text := history.content(root, "HEAD", FILE)) is None:
        return []
    before, now = _parsed(text), read(root)
    found = []
    for name, line in now.items():
        was = before.get(name)
        if was is None or was["rows"] == line["rows"]:
            continue
        old, path = _as_signed(name, was, root), root / f"{name}.json"
        if old is not None and path.exists():
            found.append(Change(name, "made again", tuple(_moved(old, records.read(path)))))
    return found
