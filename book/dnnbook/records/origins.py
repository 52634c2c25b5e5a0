"""Where records come from: commits, data and machines that cannot be, or that differ in a cell."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from dnnbook import places
from dnnbook.data import known
from dnnbook.records import history, records
from dnnbook.records.records import Record
from dnnlib import files

SHALLOW = "not checked: whether the commits of records exist, as this checkout has no full history"


def wrong(paper: str = "", root: Path | None = None) -> list[str]:
    """A line for each record that names a commit, code or data that it cannot come from."""
    root = root or places.results_dir()
    return [f"{name}: {why}" for name, record in _every(paper, root)
            for why in reasons(record, root)]


def _every(paper: str, root: Path) -> Iterator[tuple[str, Record]]:
    for path in sorted(root.glob("*/*/*.json")):
        name = path.relative_to(root).with_suffix("").as_posix()
        if name.startswith(paper):
            yield name, records.read(path)


def reasons(record: Record, root: Path) -> Iterator[str]:
    """What is wrong with the provenance of a record; ``root``: of the results, in a checkout.

    Without the history only what the record itself says is looked at.
    """
    about = record.provenance
    commit, _, edited = str(about.get("commit", "unknown")).partition("+")
    if edited:
        yield f"commit: {about['commit']}, expected one without changes"
    if history.whole(root):
        there = history.files(root, commit)
        if there is None:
            yield f"commit: {commit}, expected one of this repository"
        elif not history.mentions(root, commit, record.experiment):
            yield f"commit: {commit}, which has no chapter of {record.experiment}"
    dataset, data = record.parameters.get("dataset"), str(about.get("data"))
    expected = [digits for digits, (name, *_) in known.KNOWN.items() if name == dataset]
    if (expected or known.known(data)) and known.digits(data) not in expected:
        yield (f"data: {data}, expected the fingerprint of {dataset}: "
               f"{' or '.join(expected) or 'not that of another dataset'}")
    seconds, threads = about.get("seconds"), about.get("threads")
    if not isinstance(seconds, int | float) or seconds <= 0:
        yield f"seconds: {seconds}, expected a number above 0"
    if not isinstance(threads, int) or threads < 1:
        yield f"threads: {threads}, expected a number of at least 1"
    if not isinstance(about.get("revisions"), dict):
        yield f"revisions: {about.get('revisions')}, expected those of what it rests on"
    if about.get("device") not in ("cpu", "cuda", "mps"):
        yield f"device: {about.get('device')}, expected cpu, cuda or mps"


def summary(paper: str = "", root: Path | None = None) -> str:
    """What was not checked, and how many cells differ between their seeds; '' if nothing."""
    root = root or places.results_dir()
    found = mixed(paper, root)
    lines = [] if history.whole(root) else [SHALLOW]
    if len(found):
        lines.append(f"cells made on several kinds of machine or versions: {found['cell'].max()}; "
                     "the evidence page lists them")
    return "\n".join(lines)


def mixed(paper: str = "", root: Path | None = None) -> pd.DataFrame:
    """Cells whose seeds differ in what they ran on: the seeds of each torch, processor and device.

    A line for each cell and kind; empty if there is none.
    """
    root = root or places.results_dir()
    cells: dict[str, dict[tuple, list[int]]] = {}
    for _, record in _every(paper, root):
        of = {k: v for k, v in record.parameters.items() if k != "seed"}
        about = record.provenance
        kind = (about.get("libraries", {}).get("torch", "unknown"),
                about.get("capability", "unknown").split()[0], about.get("device", "unknown"))
        kinds = cells.setdefault(files.digest([record.experiment, of]), {})
        kinds.setdefault((record.experiment, of.get("dataset"), of.get("model"), *kind),
                         []).append(record.parameters.get("seed", 0))
    several = [kinds for kinds in cells.values() if len(kinds) > 1]
    lines = [(number, *kind, ", ".join(map(str, sorted(seeds))))
             for number, kinds in enumerate(several, 1) for kind, seeds in kinds.items()]
    return pd.DataFrame(lines, columns=["cell", "experiment", "dataset", "model", "torch",
                                        "processor", "device", "seeds"])
