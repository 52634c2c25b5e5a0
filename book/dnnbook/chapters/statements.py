"""Statements: sentences whose numbers come from records, and that records can falsify.

A chapter says what it found in cells with the tag 'statements', which show their sentences: numbers
are put in by f-strings, and a conclusion stands beside the condition that it rests on. Such a cell
uses the records and the chapter's imports and parameters alone, nothing of the live run, so that
:func:`check` can run it again in a moment and name each sentence that is no longer true. What
several such cells need stands in cells with the tag 'records', which keep to the same.
"""

import ast
import contextlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dnnbook import places
from dnnbook.display.whose import RECORDS

TAG = "statements"
SHARED = "records"  # the tag of cells whose names statements use
MIME = "text/markdown"
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]*\)")  # to another page of the book


class Untrue(AssertionError):
    """A sentence that the records contradict."""


class Said:
    """Sentences as one paragraph of a page, rendered as Markdown."""

    def __init__(self, text: str):
        self.text = text

    def _repr_markdown_(self) -> str:
        """In a reader's folder it says whose numbers these are, as parameters may be others there.

        Pages have other names there: links to them are their text.
        """
        if not Path(places.MADE).exists():
            return self.text
        return LINK.sub(r"\1", self.text) + f" <small>({RECORDS})</small>"

    def __repr__(self) -> str:
        return self.text


def says(*sentences: str | tuple[str, bool]) -> None:
    """Show a paragraph. A conclusion comes with its condition, as a pair; a number needs none.

    Raises :class:`Untrue` with the sentence whose condition does not hold, or has no value, such as
    one about records that do not exist.

    >>> lead = -3.2
    >>> says((f"NSS is {-lead:.0f} points behind random order.", lead < -1), "It needs one pass.")
    NSS is 3 points behind random order. It needs one pass.
    """
    shown = paragraph(*sentences)
    from IPython.core.getipython import get_ipython
    from IPython.display import display

    if get_ipython() is None:
        print(shown)
    else:
        display(Said(shown))


def paragraph(*sentences: str | tuple[str, bool]) -> str:
    """What :func:`says` shows of the same sentences."""
    texts = []
    for sentence in sentences:
        text, holds = sentence if isinstance(sentence, tuple) else (sentence, True)
        if not isinstance(text, str) or not text.strip():
            raise TypeError(f"says: expected sentences, or pairs of one and its condition, got "
                            f"{sentence!r}")
        if not bool(holds):
            raise Untrue(f"no longer true: {text!r}")
        if re.search(r"\bnan\b", text):
            raise Untrue(f"a number is missing: {text!r}")
        texts.append(text)
    return " ".join(texts)


@dataclass(frozen=True)
class Broken:
    """A sentence of a ``chapter`` that the records no longer give; ``why`` names it."""

    chapter: str
    why: str


def check(path: Path) -> list[Broken]:
    """Run the statements of a made notebook on the records as they are now.

    What is found: a sentence whose condition no longer holds, a paragraph that reads otherwise than
    the notebook shows it, a cell that fails.
    """
    import nbformat

    chapter = f"{path.parent.name}/{path.stem}"
    cells = nbformat.read(path, as_version=4).cells
    ours = [cell for cell in cells if {TAG, SHARED} & set(cell.metadata.get("tags", ()))]
    if not any(TAG in cell.metadata.tags for cell in ours):
        return []
    names: dict = {"__name__": "statements", "display": lambda *shown: None}
    broken = []
    exec(compile("\n".join(_ground(cells)), str(path), "exec"), names)
    said: list[str] = []
    names["says"] = lambda *sentences: said.append(paragraph(*sentences))  # kept, not shown
    for cell in ours:
        said.clear()
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(cell.source, f"{chapter}, a cell of statements", "exec"), names)
            broken += [Broken(chapter, f"shows {old!r}, the records now give {new!r}")
                       for old, new in _pairs(_paragraphs(cell), said) if old != new]
        except Untrue as error:
            broken.append(Broken(chapter, str(error)))
        except (KeyError, IndexError, ValueError, TypeError, NameError, AttributeError,
                ZeroDivisionError) as error:
            broken.append(Broken(chapter, f"a cell of statements ends in {type(error).__name__}: "
                                          f"{error}; it begins {cell.source[:60]!r}"))
    return broken


def _ground(cells) -> Iterator[str]:
    """The imports of all cells, and the parameters."""
    for cell in cells:
        if cell.cell_type != "code":
            continue
        if "parameters" in cell.metadata.get("tags", ()):
            yield cell.source
        for node in ast.parse(cell.source).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield ast.unparse(node)


def _paragraphs(cell) -> list[str]:
    """What a cell of statements shows in the notebook."""
    return ["".join(output.data[MIME]) for output in cell.get("outputs", ())
            if output.output_type == "display_data" and MIME in output.data]


def _pairs(shown: list[str], said: list[str]) -> Iterator[tuple[str, str]]:
    for i in range(max(len(shown), len(said))):
        yield (shown[i] if i < len(shown) else ""), (said[i] if i < len(said) else "")
