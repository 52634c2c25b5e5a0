"""How long a chapter takes: to read, for its exercises, and at paper scale."""

from collections.abc import Sequence

WORDS = 130  # a minute, of text and of code
EXERCISE = 10  # minutes


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
    'about 10 min to read, 20 for exercises; at paper scale 4 to 12 on one core'
    """
    text = f"about {max(5, 5 * round(words / WORDS / 5))} min to read"
    if exercises:
        text += f", {EXERCISE * exercises} for exercises"
    return text + (f"; at paper scale {scale} on one core" if scale else "")
