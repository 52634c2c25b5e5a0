"""The terminal: where commands print, and how they print a table."""

import math
import os
import sys
from numbers import Integral
from typing import NoReturn

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

PIPED = 120  # columns where there is no terminal to ask
LONG = 24  # characters of a text that may be wrapped in a table
out = Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPED)
err = Console(stderr=True)
DEBUG = "--debug" in sys.argv[1:]


def examples(*commands: str) -> str:
    """The end of a command's help: a line for each."""
    return "\n\n".join(["Examples:", *(f"- `{command}`" for command in commands)])


def ended(error: Exception) -> NoReturn:
    """Say a mistake in one line and end, with code 1 for what is missing, else 2."""
    if DEBUG:
        raise error
    fault(error)
    sys.exit(1 if isinstance(error, OSError | ImportError) else 2)


def fault(error: Exception) -> None:
    """An error as one line."""
    err.print(f"error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)


def say(*lines: str) -> None:
    """Print lines as they are: no markup, no colours, no wrapping."""
    from dnnlib.files import printable

    out.print(printable("\n".join(lines)), markup=False, highlight=False, soft_wrap=True)


def table(frame, title: str, styles: dict[str, str] | None = None) -> Table:
    """A pandas frame as a table; ``styles``: markup with {} by the text of a cell."""
    made = Table(title=escape(title), title_justify="left", header_style="bold", pad_edge=False,
                 row_styles=["", "dim"], box=box.SIMPLE_HEAD, collapse_padding=True)
    for column in frame.columns:
        lines = [line for value in frame[column] for line in _text(value).splitlines()]
        width = max(map(len, [*column.split(), *lines]))
        number = frame[column].dtype.kind in "iuf"
        # short columns keep their width, long ones share the rest
        room = {"width": width} if number or width <= LONG else {"ratio": math.isqrt(width)}
        made.add_column(column, justify="right" if number else "left", overflow="fold", **room)
    made.expand = any(column.ratio for column in made.columns)
    for row in frame.itertuples(index=False):
        made.add_row(*((styles or {}).get(str(v), "{}").format(escape(_text(v))) for v in row))
    return made


def print_table(frame, title: str, styles: dict[str, str] | None = None) -> None:
    """Print :func:`table`."""
    out.print(table(frame, title, styles))


def _text(value) -> str:
    import pandas as pd

    from dnnlib.files import printable

    return ("" if pd.isna(value) else f"{value:,}" if isinstance(value, Integral)
            else printable(str(value)))
