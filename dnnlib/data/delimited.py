"""Tables of text as other programs write them: byte order marks, separators, missing headings."""

import codecs
import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the ground floor does without tables until one is read
    import pandas as pd

MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
LOOK = 1000  # rows from which the layout is taken
WHOLE = re.compile(r"\s*[+-]?\d+\s*")
NAMED = re.compile(r"\s*[+-]?0\d+\s*")  # leading zeros: a name that looks like a number
NUMBER = re.compile(r"\s*[+-]?((\d+[.,]?\d*|[.,]\d+)(e[+-]?\d+)?|nan|inf|infinity)\s*",
                    re.IGNORECASE)


def encoding(path: Path) -> str:
    """That of a text file, by its byte order mark; without one UTF-8."""
    with path.open("rb") as file:
        start = file.read(4)
    return next((name for mark, name in MARKS.items() if start.startswith(mark)), "utf-8")


def lines(path: Path) -> list[str]:
    """The lines of a text file; bytes that are no text are lone surrogates."""
    return path.read_bytes().decode(encoding(path), "surrogateescape").splitlines()


def head(path: Path) -> list[list[str]]:
    """The first rows of a table, split at :func:`separator`."""
    return _rows(_start(path), separator(path))


def separator(path: Path) -> str:
    """That of a table: its first rows all have the same number of columns, of more than one.

    Commas, semicolons, tabs or bars. Where rows differ in length, one that is in each of them; a
    comma where there is none, as of one column.
    """
    found = {mark: {len(row) for row in _rows(_start(path), mark)} or {1} for mark in SEPARATORS}
    return max(SEPARATORS, key=lambda mark: (min(found[mark]) > 1 and len(found[mark]) == 1,
                                             min(found[mark])))


def table(path: Path, **options) -> "pd.DataFrame":
    """A table whose cells are text, '' where one is empty; names such as NA stay names.

    ``options`` are pandas'. Raises ``ValueError`` naming the separator if rows differ in length.
    """
    import pandas as pd

    mark = separator(path)
    try:
        return pd.read_csv(path, sep=mark, encoding=encoding(path), skipinitialspace=True, **(
            {"dtype": object, "keep_default_na": False, "encoding_errors": "surrogateescape"}
            | options))
    except pd.errors.ParserError as error:
        raise ValueError(f"{path}: rows of different lengths, separated by "
                         f"{SEPARATORS[mark]}: {error}") from error


def is_number(cell: str) -> bool:
    """Whether a cell is a number, with a point or a comma; leading zeros are those of a name.

    >>> [is_number(cell) for cell in ("0.5", "0,5", "-1e-3", "nan", "0012", "NA", "")]
    [True, True, True, True, False, False, False]
    """
    return bool(NUMBER.fullmatch(cell)) and not NAMED.fullmatch(cell)


def has_headings(first: Sequence[str]) -> bool:
    """Whether a table's first row is one of headings: no fractions; words, or counts from 0 or 1,
    also in their order as text: 0, 1, 10, 2.

    >>> has_headings(["path", "0"]), has_headings(["", "0", "1"]), has_headings(["a.png", "0.5"])
    (True, True, False)
    """
    cells = [cell.strip() for cell in first]
    if any(is_number(cell) and any(mark in cell for mark in ".,") for cell in cells):
        return False
    counts = [[str(i + start) for i in range(len(cells))] for start in (0, 1)]
    return any(not is_number(cell) for cell in cells) or cells in counts + [*map(sorted, counts)]


def _start(path: Path) -> list[str]:
    with path.open(encoding=encoding(path), errors="surrogateescape", newline="") as file:
        return [line for line, _ in zip(file, range(LOOK))]


def _rows(text: list[str], mark: str) -> list[list[str]]:
    found = list(csv.reader(io.StringIO("".join(text)), delimiter=mark, skipinitialspace=True))
    return [row for row in found if row]
