"""How long a chapter takes: to read, for its exercises, to run, and at paper scale."""

import re
from collections.abc import Sequence
from typing import NamedTuple

WORDS = 130  # a minute, of text and of code
EXERCISE = 10  # minutes
SOLUTION = "<summary>Solution</summary>"  # as readers' notebooks have one


class Part(NamedTuple):
    """A part of a chapter; ``seconds``: what its cells took, 0 where nobody measured."""

    title: str
    words: int
    exercises: int
    seconds: float


def at_paper_scale(chapter: str, grids: Sequence[dict]) -> str:
    """What the grids of a sweep file say of a chapter at paper scale: '4 to 12', or ''.

    >>> at_paper_scale("nss/02_fault_detection", [{"notebook": "nss/02", "minutes": 4}])
    '4'
    """
    def names(grid: dict) -> tuple[str, ...]:
        one_or_more = grid["notebook"]
        return (one_or_more,) if isinstance(one_or_more, str) else tuple(one_or_more)

    found = sorted({grid["minutes"] for grid in grids if chapter.startswith(names(grid))})
    return " to ".join(f"{m:g}" for m in dict.fromkeys([found[0], found[-1]])) if found else ""


def worded(words: int, exercises: int, scale: str) -> str:
    """The times of a chapter with so many words and exercises.

    >>> worded(1300, 2, "4 to 12")
    'about 10 min to read, 20 for exercises; at paper scale 4 to 12 min on one core'
    """
    text = f"about {max(5, 5 * round(words / WORDS / 5))} min to read"
    if exercises:
        text += f", {EXERCISE * exercises} for exercises"
    return text + (f"; at paper scale {scale} min on one core" if scale else "")


def parts(cells: Sequence) -> list[Part]:
    """The parts of a readable notebook: what stands below its title, then each heading.

    Cells of a run have the seconds that they took in papermill's metadata; in a made notebook
    nothing depends on how fast it ran.
    """
    found = [Part("the beginning", 0, 0, 0.0)]

    def add(text: str, seconds: float = 0.0) -> None:
        *_, last = found
        found[-1] = last._replace(words=last.words + len(text.split()),
                                  exercises=last.exercises + text.count(SOLUTION),
                                  seconds=last.seconds + seconds)

    for cell in cells:
        if cell.cell_type != "markdown":
            add(cell.source, cell.metadata.get("papermill", {}).get("duration") or 0.0)
            continue
        before, *headed = re.split(r"(?m)^## (.+)$", cell.source)
        add(before)
        for title, text in zip(headed[::2], headed[1::2]):
            found.append(Part(title, 0, 0, 0.0))
            add(text)
    return found


def table(found: Sequence[Part]) -> str:
    """The minutes of each part as a table of Markdown, and the seconds if a run measured them.

    >>> print(table([Part("A start", 390, 0, 0.0), Part("Exercises", 20, 2, 0.0)]))
    | part | minutes to read | for exercises |
    |---|---|---|
    | A start | 3 |  |
    | Exercises | 1 | 20 |
    """
    columns = ["part", "minutes to read", "for exercises", "seconds of its cells"]
    rows = [[part.title, max(1, round(part.words / WORDS)), EXERCISE * part.exercises or "",
             f"{part.seconds:.0f}"] for part in found]
    shown = 4 if any(part.seconds for part in found) else 3
    head, *lines = (f"| {' | '.join(map(str, row[:shown]))} |" for row in [columns, *rows])
    return "\n".join([head, "|" + "---|" * shown, *lines])
