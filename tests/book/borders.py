"""Which values the check of a chapter's parameters lets through: inside, at and beyond each border.

Run it for the counts: ``python tests/book/borders.py``. With names of chapters, as ``--run nss/05``,
what the check lets through is run to its end too, all counts at their least; test_declared.py
asserts a part of it.
"""

import argparse
import ast
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dnnbook.chapters import declared, notebooks

SOURCES = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*/*.py"))
CELL = re.compile(r'^# %% tags=\["parameters".*\n((?:\w+ = .*\n)+)', re.MULTILINE)
SMALL = {"iterations": 3, "references": 50, "inputs": 2, "population": 5, "epochs": 1, "held_out": 0,
         "trials": 3, "permutations": 2, "judged": 2, "sections": 10}
PLACES = {"seed_class", "other_class", "held_out", "random_starts", "seed", "alpha", "share"}


@dataclass(frozen=True)
class Tried:
    """A value of a parameter, as text; whether it should pass, and what was said if it did not."""

    chapter: str
    name: str
    text: str
    good: bool
    said: str | None


def cell(source: Path) -> dict[str, tuple[object, str]]:
    """Default and comment of each parameter of a chapter's source."""
    found = CELL.search(source.read_text(encoding="utf-8"))
    lines = [] if found is None else found.group(1).splitlines()
    parts = (re.fullmatch(r"(\w+) = (.*?)  # (.*)", line) for line in lines)
    return {part[1]: (ast.literal_eval(part[2]), part[3]) for part in parts}


def where(source: Path) -> str:
    """The experiment that a source declares, else 'nss/00' or so."""
    text = source.read_text(encoding="utf-8")
    found = re.search(r'\bExperiment\(\s*"([^"]+)"', text)
    return found[1] if found else f"{source.parent.name}/{source.stem[:2]}"


def values(found: dict, default: object) -> Iterator[tuple[str, bool]]:
    """Texts for one parameter, and whether the check should let them through."""
    kind, step = found["kind"], 1 if found["kind"] == "whole" or found.get("whole") else 0.001
    yield str(default), True
    if kind in ("whole", "number", "numbers"):
        many = found.get("count", 1)

        def text(number: float) -> str:
            return " ".join([f"{number:.12g}"] * many)

        even = 2 if found.get("even") else 1
        for border, sign in (("least", -1), ("most", 1)):
            if border in found:
                yield text(found[border]), True
                yield text(found[border] + sign * step), False
                yield text(found[border] - sign * step * even), True
        if "above" in found:
            yield text(found["above"]), False
            yield text(found["above"] + step), True
        if even == 2:
            yield "3", False
        if "count" in found:
            yield " ".join(["0.5"] * (many + 1)), False
        yield from ((wrong, False) for wrong in ("", "ten", "nan", "inf", "True"))
        if kind == "whole":
            yield "1.5", False
    elif kind == "flag":
        yield from (("true", True), ("False", True), ("1", False), ("yes", False))
    else:
        known = [*(declared.choices(found) or ())]
        yield from ((f"{name}x", False) for name in known[:1] or [str(default)])
        if kind == "name":
            yield "", bool(found.get("none"))


def tried(source: Path) -> Iterator[Tried]:
    """Every parameter of a chapter with its :func:`values`, the others at their defaults."""
    chapter, place = f"{source.parent.name}/{source.stem[:2]}", where(source)
    defaults = {name: default for name, (default, _) in cell(source).items()}
    for name, default in defaults.items():
        found = declared.entry(name, place)
        for text, good in values(found, default):
            value = declared.from_text(text, found["kind"])
            try:
                declared.alone(place, {name: value})
                if found["kind"] in ("device", "text"):  # which only a rule knows
                    declared.check(place, **defaults | {name: value})
                said = None
            except ValueError as error:
                said = str(error)
            yield Tried(chapter, name, text, good, said)


def smallest(place: str, defaults: dict) -> dict[str, str]:
    """All counts of a chapter at their least, so that a run takes seconds."""
    found = {}
    for name in defaults:
        entry = declared.entry(name, place)
        if entry.get("kind") == "whole" and name not in PLACES:
            found[name] = str(max(SMALL.get(name, 1), entry["least"]))
    return found


def run(source: Path) -> Iterator[tuple[str, str]]:
    """A chapter with each value that the check lets through, at the smallest counts: what failed."""
    path, place = source.with_suffix(".ipynb"), where(source)
    defaults = {name: default for name, (default, _) in cell(source).items()}
    for each in dict.fromkeys(t for t in tried(source) if t.said is None and t.name != "profile"):
        given = smallest(place, defaults) | {each.name: each.text}
        try:
            typed = notebooks.typed(path, given)
            with tempfile.TemporaryDirectory() as folder:
                notebooks.run(path, typed, Path(folder) / "run.ipynb", bar=False)
        except ValueError as error:
            yield f"{each.name} {each.text}", f"refused at once: {error}"
        except notebooks.CellFailed as error:
            yield f"{each.name} {each.text}", f"FAILED: {error}"
        else:
            yield f"{each.name} {each.text}", "ran"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", nargs="*", default=[], metavar="CHAPTER")
    names = parser.parse_args().run
    every = [one for source in SOURCES for one in tried(source)]
    wrong = [one for one in every if one.good != (one.said is None)]
    print(f"{len(every)} values of {len({(t.chapter, t.name) for t in every})} parameters in "
          f"{len({t.chapter for t in every})} chapters: {sum(t.said is None for t in every)} pass, "
          f"{sum(t.said is not None for t in every)} are refused; not as declared: {len(wrong)}")
    for one in wrong:
        print(f"  {one.chapter} {one.name} {one.text!r}: {one.said or 'passes'}")
    for source in SOURCES:
        if any(f"{source.parent.name}/{source.stem}".startswith(name) for name in names):
            outcomes = Counter()
            for what, became in run(source):
                outcomes[became.split(":")[0]] += 1
                if became != "ran":
                    print(f"  {source.stem} {what}: {became}")
            print(f"{source.parent.name}/{source.stem}: {dict(outcomes)}", flush=True)


if __name__ == "__main__":
    main()
