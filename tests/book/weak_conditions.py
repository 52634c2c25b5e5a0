"""Conditions that can hardly fail: those that hold whatever the records say.

Each draw scrambles the values of every record, and all statements run on them. It names sentences
to read again; one about parameters or the paper alone holds in every draw with right.
``python tests/book/weak_conditions.py [CHAPTER...]`` takes a minute a chapter.
"""

import json
import os
import random
import re
import statistics
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dnnbook.chapters import notebooks, statements
from dnnbook.records import records

RESULTS = Path(__file__).resolve().parents[2] / "results"
SEED, DRAWS = 20261127, 2  # draws of each way


def shuffled(values: list[float], draw: random.Random) -> list[float]:
    """The same values, in another order."""
    return draw.sample(values, len(values))


def noise(values: list[float], draw: random.Random) -> list[float]:
    """Noise around their mean, as wide as they are spread, within their range."""
    mean, spread, low, high = (statistics.fmean(values), statistics.pstdev(values), min(values),
                               max(values))
    return [min(max(draw.gauss(mean, spread), low), high) for _ in values]


def stretched(values: list[float], draw: random.Random) -> list[float]:
    """Each value by a factor of its own between a fifth and five: what was alike is so no more."""
    return [value * 5 ** draw.uniform(-1, 1) for value in values]


WAYS: tuple[Callable, ...] = (shuffled, noise, stretched)


def scramble(content: dict, way: Callable, draw: random.Random) -> dict:
    """A record's content with the values of each quantity scrambled among its rows."""
    places = defaultdict(list)
    for place, row in enumerate(content["rows"]):
        if isinstance(row.get("value"), int | float):
            places[row.get("quantity")].append(place)
    rows = [*content["rows"]]
    for of in places.values():
        for place, value in zip(of, way([rows[place]["value"] for place in of], draw)):
            rows[place] = rows[place] | {"value": value}
    return content | {"rows": rows}


@contextmanager
def results(way: Callable, seed: int, source: Path = RESULTS) -> Iterator[Path]:
    """Scrambled results, which statements read while the context is open."""
    draw, before = random.Random(seed), os.environ.get("DNNLIB_BOOK")
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(source.glob("*/*/*.json")):
            new = Path(folder) / path.relative_to(source)
            new.parent.mkdir(parents=True, exist_ok=True)
            new.write_text(json.dumps(scramble(json.loads(path.read_bytes()), way, draw)))
        os.environ["DNNLIB_BOOK"] = folder
        try:
            yield Path(folder)
        finally:
            os.environ.pop("DNNLIB_BOOK")
            os.environ.update({} if before is None else {"DNNLIB_BOOK": before})
            records._frame.cache_clear()


def beginning(text: str) -> str:
    """The start of a sentence up to its first number, which says which one it is."""
    text = re.sub(r"^\*\*.*?\*\* ", "", text)  # such as "The answer."
    return re.split(r"[\d*]", text, maxsplit=1)[0][:60].strip()


def conditions(path: Path) -> dict[str, bool]:
    """Of each sentence with a condition that a chapter reaches now: its beginning, and whether it
    holds. The source is read, not the notebook."""
    import jupytext

    cells = jupytext.read(path).cells
    found: dict[str, bool] = {}

    def says(*sentences) -> None:
        for sentence in sentences:
            if isinstance(sentence, tuple):
                text, holds = sentence
                found[beginning(text)] = bool(holds)

    names: dict = {"__name__": "weak", "display": lambda *shown: None}
    exec(compile("\n".join(statements._ground(cells)), str(path), "exec"), names)
    for cell in cells:
        tags = set(cell.metadata.get("tags", ()))
        if not tags & {statements.TAG, statements.SHARED}:
            continue
        names["says"] = says
        try:
            source = re.sub(r"from dnnbook\.chapters\.statements import .*", "", cell.source)
            exec(compile(source, str(path), "exec"), names)
        except Exception as error:  # scrambled records may end a cell in any error: that is noticed
            found[f"a cell ends in {type(error).__name__}"] = False
    return found


def always(paths: Iterable[Path], draws: int = DRAWS,
           source: Path = RESULTS) -> dict[str, list[str]]:
    """By chapter the conditions that hold in every draw in which they were reached, of at least
    half of all draws."""
    kept: dict[tuple[str, str], list[bool]] = defaultdict(list)
    paths, count = [*paths], 0
    for way in WAYS:
        for seed in range(SEED, SEED + draws):
            count += 1
            with results(way, seed, source), warnings.catch_warnings(action="ignore"):
                for path in paths:
                    for text, holds in conditions(path).items():
                        kept[f"{path.parent.name}/{path.stem}", text].append(holds)
    found = defaultdict(list)
    for (chapter, text), held in kept.items():
        if all(held) and 2 * len(held) >= count:
            found[chapter].append(text)
    return dict(found)


def main(names: list[str]) -> int:
    weak = always(notebooks.starting(names, ".py"))
    for chapter, texts in weak.items():
        print(chapter, *(f"  {text} ..." for text in texts), sep="\n")
    print(f"{sum(map(len, weak.values()))} conditions held in every draw")
    return 1 if weak else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
