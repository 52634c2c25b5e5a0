"""Cells of a chapter: the names that they take from each other, and what they say when they run here."""

import ast
import contextlib
import io
import re
import symtable
from pathlib import Path
from typing import NamedTuple

import jupytext
import matplotlib.pyplot as plt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from dnnbook.chapters import statements


def code(path: Path) -> list:
    """The cells of code of a chapter's source."""
    return [cell for cell in jupytext.read(path).cells if cell.cell_type == "code"]


def names(source: str) -> tuple[set[str], set[str]]:
    """Names that a cell reads before it binds them, and those that it binds for other cells.

    >>> read, bound = names("total = 0\\nfor i in few:\\n    total += worth(i)")
    >>> sorted(read & {"few", "worth", "total"}), sorted(bound)
    (['few', 'worth'], ['i', 'total'])
    """
    read: set[str] = set()
    bound: set[str] = set()
    for statement in ast.parse(source).body:
        table = symtable.symtable(ast.unparse(statement), "cell", "exec")
        binds = {name.get_name() for name in table.get_symbols()
                 if name.is_assigned() or name.is_imported()}
        uses = _uses(table)
        if not isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign):
            uses -= binds  # the loop's own names, a function's own
        elif not isinstance(statement, ast.AugAssign):  # `x = x + 1` reads x, and `x = 1` does not
            uses -= binds - {name.id for name in ast.walk(statement.value) if isinstance(name, ast.Name)}
        else:
            uses |= binds
        read |= uses - bound
        bound |= binds
    return read, bound


def _uses(table: symtable.SymbolTable) -> set[str]:
    """What a scope and those inside it take from the module."""
    module = table.get_type() == "module"
    found = {name.get_name() for name in table.get_symbols()
             if name.is_referenced() and (module or name.is_global())}
    return found.union(*map(_uses, table.get_children()))


def needed(sources: list[str], *wanted: int) -> list[int]:
    """Which cells have to run for the ``wanted`` ones, and these: by the names that they take.

    A cell that adds rows to the experiment is needed where one reads them.

    >>> needed(["x = 1", "y = 2", "print(x)"], 2)
    [0, 2]
    """
    taken: list[int] = []
    asked: set[str] = set()
    rows = False
    for i in range(max(wanted), -1, -1):
        read, bound = names(sources[i])
        if i in wanted or bound & asked or (rows and "run.add(" in sources[i]):
            taken.append(i)
            asked |= read
            rows = rows or "run.live" in sources[i] or "run.beside(" in sources[i]
    return taken[::-1]


READS_RECORDS = re.compile(r"\brecords\.(frame|existing|find)\(|\.(beside|recorded|verdicts)\(|\b(published|evidence)\.")


def of_records(sources: list[str]) -> list[bool]:
    """Whether each cell works with the book's records or the paper's numbers, by the names that it takes.

    >>> of_records(["rows, few = records.frame('a'), 5", "rows.mean()", "few = 5\\nfew + 1"])
    [True, True, False]
    """
    theirs: set[str] = set()
    found = []
    for source in sources:
        found.append(False)
        for statement in map(ast.unparse, ast.parse(source).body):
            read, bound = names(statement)
            kept = statement.startswith("if keep:")  # by default a run keeps nothing
            if not kept and (READS_RECORDS.search(statement) or read & theirs):
                theirs |= bound
                found[-1] = True
            else:
                theirs -= bound
    return found


def small(path: Path, parameters: dict) -> list[str]:
    """The cells of a chapter but those of statements, with these ``parameters`` behind its own."""
    given = "".join(f"\n{name} = {value!r}" for name, value in parameters.items())
    tags = [(cell.source, cell.metadata.get("tags", ())) for cell in code(path)]
    return [source + given * ("parameters" in tag) for source, tag in tags if statements.TAG not in tag]


class Said(NamedTuple):
    """What a cell prints and shows: text, tables as HTML, and figures: their pixels, and their words."""

    text: str
    pictures: list[bytes]
    words: str = ""


def run(source: str, names: dict) -> Said:
    """Run a cell among ``names``, without a kernel, and hear what it says."""
    printed, shown, figures = io.StringIO(), [], []

    def display(*values):
        figures.extend(value for value in values if isinstance(value, Figure))
        shown.extend(value._repr_html_() if hasattr(value, "_repr_html_") else repr(value) for value in values
                     if not isinstance(value, Figure))

    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    names["display"] = display
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        value = last and eval(compile(ast.Expression(last.value), "cell", "eval"), names)
        display(*[value] * (value is not None))
    pictures, words = [], []
    for figure in dict.fromkeys([*figures, *map(plt.figure, plt.get_fignums())]):
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        pictures.append(bytes(canvas.buffer_rgba()))
        words += [text.get_text() for text in figure.findobj(Text) if text.get_visible()]
    plt.close("all")
    return Said(printed.getvalue() + "\n".join(shown), pictures, "\n".join(words))
