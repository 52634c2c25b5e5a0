"""How many wrong records are named: values, rows, parameters and origins changed one at a time.

Run it for the figure: ``python tests/book/wrong_records.py``; test_signed.py asserts it.
"""

import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dnnbook.records import rows, signed

RESULTS = Path(__file__).resolve().parents[2] / "results"
SEED, COUNT = 20261126, 24


@dataclass(frozen=True)
class Found:
    """A change of ``record``, and whether the check names the record, and the row it was in."""

    record: str
    change: str
    named: bool
    row: bool


def copied(into: Path) -> Path:
    """The committed results and their signatures, in a repository of their own."""
    root = into / "results"
    shutil.copytree(RESULTS, root)
    for command in (["init", "-q"], ["add", "."],
                    ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "gc.auto=0",
                     "commit", "-qm", "as signed"]):
        subprocess.run(["git", "-C", str(root), *command], check=True)
    return root


def another(value: float, draw: random.Random) -> float:
    """A half more; where that is nothing, or out of a correlation's range, something near."""
    return -value if -1 < value < 0 else value * 1.5 if value else 1.0 + draw.random()


def value(content: dict, draw: random.Random) -> str:
    place = draw.choice([i for i, row in enumerate(content["rows"]) if row["value"] is not None])
    row = content["rows"][place]
    row["value"] = another(row["value"], draw)
    return [*rows.named(content["rows"])][place]


def added(content: dict, draw: random.Random) -> str:
    row = draw.choice(content["rows"]) | {"quantity": "made_up"}
    content["rows"].append(row)
    return [*rows.named(content["rows"])][-1]


def removed(content: dict, draw: random.Random) -> str:
    place = draw.randrange(len(content["rows"]))
    name = [*rows.named(content["rows"])][place]
    del content["rows"][place]
    return name.rpartition(" #")[0] or name  # of equal names, the last is the one that lacks


def parameter(content: dict, draw: random.Random) -> str:
    content["parameters"]["trials"] = content["parameters"].get("trials", 0) + 1
    return "trials"


def origin(content: dict, draw: random.Random) -> str:
    content["provenance"]["libraries"]["torch"] = "1.0"
    return "libraries"


def scrambled(content: dict, draw: random.Random) -> str:
    values = [row["value"] for row in content["rows"]]
    mixed = values[1:] + values[:1]
    for row, new in zip(content["rows"], mixed):
        row["value"] = new
    place = next(i for i, (a, b) in enumerate(zip(values, mixed)) if a != b)
    return [*rows.named(content["rows"])][place]


def changed(root: Path, change: Callable[[dict, random.Random], str], count: int,
            seed: int = SEED) -> Iterator[Found]:
    """Change records one at a time, look at what the check names, and put them back."""
    draw = random.Random(seed)
    for path in draw.sample(sorted(root.glob("*/*/*.json")), count):
        name, before = path.relative_to(root).with_suffix("").as_posix(), path.read_bytes()
        content = json.loads(before)
        where = change(content, draw)
        path.write_text(json.dumps(content, indent=1))
        paper = name.rpartition("/")[0]
        told = [one for one in signed.changed(paper, root) if one.record == name]
        path.write_bytes(before)
        lines = [line for one in told for line in one.lines]
        yield Found(name, change.__name__, bool(told),
                    any(line.startswith(where) and " -> " in line for line in lines))


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        root, good = copied(Path(folder)), True
        for change, count in ((value, COUNT), (added, 5), (removed, 5), (parameter, 5),
                              (origin, 5), (scrambled, 5)):
            found = [*changed(root, change, count)]
            for one in found:
                if not one.row:
                    print(f"  missed: {one}")
            print(f"{change.__name__}: {sum(one.named for one in found)} of {count} named by "
                  f"record, {sum(one.row for one in found)} by row")
            good &= all(one.named and one.row for one in found)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
