"""Outputs that any framework saved: softmax vectors from a file, to be ranked without a model."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from dnnlib import checks
from dnnlib.data import delimited
from dnnlib.data.parquet import LABELS

SUFFIXES = (".npy", ".csv", ".tsv", ".parquet")
IDS = ("", "index", "id", "unnamed: 0")  # headings of whole numbers that name rows
TRUTH = {"true", "false"}
Columns = tuple[np.ndarray, list[str], tuple[str, ...], tuple[str, ...]]  # headings last
DIGITS = 6  # decimals up to which numbers count as rounded


@dataclass(frozen=True)
class Outputs:
    """``probabilities``: float64 (N, classes). ``names``: of the rows. ``said``: what the file's
    columns were taken for, and whether its numbers were scaled, a line each. ``unread``: the
    reasons for rows that are left out, by name. ``headings``: of the columns of classes."""

    probabilities: torch.Tensor
    names: list[str]
    said: tuple[str, ...]
    unread: dict[str, str] = field(default_factory=dict)
    headings: tuple[str, ...] = ()

    def check_names(self, names: Sequence[str]) -> None:
        """``ValueError`` if the headings are these names of classes in another order."""
        for i, (one, other) in enumerate(zip(self.headings, names)):
            if one != other and {*self.headings} == {*names}:
                raise ValueError(f"class_names: expected them in the order of the file's columns, "
                                 f"where class {i} is {one}, got {other}")


def read_outputs(path: str | Path, *, probabilities: bool = True) -> Outputs:
    """Softmax vectors that any framework saved.

    ``path``: an array (N, classes) in .npy, or a table in .csv, .tsv or .parquet with a column for
    each class, and perhaps one that names the rows: of text, such as the images' paths, or of
    whole numbers under one of :data:`IDS`; else rows are named by their numbers from 0. The text's
    separator is found, headings may be missing. One column is the second of two classes.
    ``probabilities``: what the file holds, to the digits it is written with, perhaps in per cent;
    else logits. Raises ``FileNotFoundError`` and ``ValueError`` saying what does not fit.
    """
    path = Path(path).expanduser()
    if path.suffix not in SUFFIXES:
        raise ValueError(f"outputs: expected a .npy, .csv, .tsv or .parquet file, got {path.name}")
    if not path.is_file():
        raise FileNotFoundError(f"outputs: there is no file {path}")
    read = {".npy": _array, ".parquet": _parquet}.get(path.suffix, _text)
    try:
        values, names, said, headings = read(path)
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"outputs: {path.name}: {str(error).splitlines()[0]}") from error
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"outputs: expected an array (N, classes) in {path.name}, got shape "
                         f"{values.shape}")
    found = torch.from_numpy(np.ascontiguousarray(values, np.float64))
    whole, reason = found.isfinite().all(1), "expected finite numbers, got NaN or infinity"
    if not whole.any():
        raise ValueError(f"outputs: {reason} in each row")
    unread = {name: reason for name, good in zip(names, whole.tolist()) if not good}
    names = [name for name, good in zip(names, whole.tolist()) if good]
    found = found[whole]
    if found.shape[1] == 1:
        found = torch.cat([1 - found if probabilities else torch.zeros_like(found), found], 1)
    elif not probabilities and (found >= 0).all() and ((found.sum(1) - 1).abs() < 1e-3).all():
        raise ValueError("outputs: every row is non-negative and sums to 1, so that these are "
                         "probabilities; leave --logits out")
    if probabilities:
        found, scaled = _scaled(found)
        said = (*said, *scaled)
    else:
        found = found.softmax(1)
    return Outputs(checks.probabilities(found, "outputs"), names, said, unread, headings)


def _scaled(found: torch.Tensor) -> tuple[torch.Tensor, tuple[str, ...]]:
    """Rows that sum to 1, or to 100, up to the digits that they are written with, made to sum to 1.

    Raises ``ValueError`` for others, which may be logits only where some are negative or above 1.
    """
    total = found.sum(1)
    rounding = next((0.5 * 10.0 ** -digits * found.shape[1] for digits in range(DIGITS + 1)
                     if (found - found.round(decimals=digits)).abs().max() < 1e-9), 0.0)
    for whole, said in ((1, "rounded"), (100, "per cent")):
        off = (total - whole).abs().max()
        if (found >= 0).all() and off <= max(1e-3 * whole, min(rounding, 0.1 * whole)):
            if whole == 1 and off <= 1e-3:
                return found, ()
            return found / total[:, None], (f"rows sum to {whole} up to {off:.2g}: taken as "
                                            f"probabilities, {said}, and scaled to sum to 1",)
    try:
        checks.probabilities(found, "outputs")
    except ValueError as error:
        outside = (found < 0).any() or (found > 1).any()
        raise ValueError(f"{error}; " + (
            "are these logits? Then say --logits" if outside else
            "all are in [0, 1], as if each class had its own: only rows that sum to 1 are ranked"
        )) from error
    return found, ()


def _array(path: Path) -> Columns:
    values = np.load(path, allow_pickle=False)
    if values.dtype.kind not in "fiu":
        raise ValueError(f"expected numbers, got {values.dtype}")
    return values, [str(i) for i in range(len(values))], (), ()


def _parquet(path: Path) -> Columns:
    table = pd.read_parquet(path)
    kinds = {name: "truth" if pd.api.types.is_bool_dtype(column) else
             "text" if not pd.api.types.is_numeric_dtype(column) else
             "whole" if pd.api.types.is_integer_dtype(column) else "number"
             for name, column in table.items()}
    named, classes = _taken(kinds, [*table], table.head(delimited.LOOK).astype(str))
    classes, said = _by_number(classes, classes)
    names = table.index if named is None else table[named]
    return (table[classes].to_numpy(np.float64), names.astype(str).tolist(),
            (_told(named, classes), *said), tuple(map(str, classes)))


def _text(path: Path) -> Columns:
    first = delimited.head(path)
    if not first:
        raise ValueError("holds no rows")
    headed = delimited.has_headings(first[0])
    look = delimited.table(path, header=None, skiprows=int(headed), nrows=delimited.LOOK)
    titles = first[0] if headed else [str(i) for i in range(len(first[0]))]
    if look.shape[1] != len(titles):
        raise ValueError(f"expected {look.shape[1]} headings, one for each column, got "
                         f"{len(titles)}")
    kinds = {place: _kind(column) for place, column in look.items()}
    named, classes = _taken(kinds, titles, look)
    classes, said = _by_number(classes, [titles[place] for place in classes])
    comma = any("," in cell for place in classes for cell in look[place])
    try:
        values = delimited.table(path, header=None, skiprows=int(headed), usecols=classes,
                                 dtype=np.float64, keep_default_na=True,
                                 decimal="," if comma else ".")[classes].to_numpy(np.float64)
    except ValueError as error:
        raise ValueError(f"expected numbers in the columns of classes: {error}") from error
    names = [str(i) for i in range(len(values))] if named is None else delimited.table(
        path, header=None, skiprows=int(headed), usecols=[named])[named].tolist()
    called = [titles[place] for place in classes]
    return (values, names, (_told(None if named is None else titles[named], called, headed), *said),
            tuple(called))


def _by_number(columns: list, titles: Sequence) -> tuple[list, tuple[str, ...]]:
    """The columns in the order of the numbers in their titles, where these count all classes: as
    text, class_10 stands before class_2. And a line, if that is another order.

    >>> _by_number([4, 5, 6], ["p1", "p0", "p2"])[0], _by_number([4, 5], ["p7", "p3"])[0]
    ([5, 4, 6], [4, 5])
    """
    parts = [re.fullmatch(r"(.*?)(\d+)", str(title).strip()) for title in titles]
    if not all(parts) or len({part[1] for part in parts if part}) > 1:
        return columns, ()
    numbers = [int(part[2]) for part in parts if part]
    if sorted(numbers) not in ([*range(len(columns))], [*range(1, len(columns) + 1)]):
        return columns, ()
    ordered = [column for _, column in sorted(zip(numbers, columns))]
    return ordered, () if ordered == columns else (
        "the columns of classes are put in the order of the numbers in their headings",)


def _kind(column: pd.Series) -> str:
    """What the cells of a column of text are: 'number', 'whole', 'truth' or 'text'."""
    cells = [cell for cell in column.astype(str) if cell.strip()]
    if cells and all(map(delimited.is_number, cells)):
        return "whole" if all(map(delimited.WHOLE.fullmatch, cells)) else "number"
    if {cell.strip().lower() for cell in cells} <= TRUTH:
        return "truth"
    fractions = [cell for cell in cells if delimited.is_number(cell) and any(
        mark in cell for mark in ".,")]
    if 2 * len(fractions) > len(cells):
        odd = next(cell for cell in cells if not delimited.is_number(cell))
        raise ValueError(f"expected numbers in column {column.name}, got {odd!r}")
    return "text"


def _taken(kinds: dict, titles: list, look: pd.DataFrame) -> tuple:
    """The column that names the rows, or None, and those of the classes.

    Raises ``ValueError`` naming columns that are neither.
    """
    title = dict(zip(kinds, titles))
    of = {kind: [place for place in kinds if kinds[place] == kind]
          for kind in ("number", "whole", "truth", "text")}
    ids = [place for place in of["whole"] if str(title[place]).strip().lower() in IDS
           and look[place].is_unique]
    classes = of["number"] or [place for place in of["whole"] if place not in ids]
    if of["number"]:  # a class that is never predicted may be written as 0 throughout
        zeros = [place for place in of["whole"] if set(look[place].str.strip()) == {"0"}]
        classes = [place for place in kinds if place in {*of["number"], *zeros}]
    labels = [place for place in classes if str(title[place]).strip().lower() in LABELS]
    if labels and len(labels) < len(classes):
        raise ValueError(f"expected outputs, got the column {title[labels[0]]}, which is called as "
                         "labels are; leave out of the file what is neither a class nor a name")
    other = [place for place in kinds if place not in {*classes, *of["text"], *ids}]
    if other:
        kind = "whole numbers" if other[0] in of["whole"] else "truth values"
        raise ValueError(f"expected outputs, got {kind} in the column "
                         f"{', '.join(str(title[place]) for place in other)}; leave out of the "
                         "file what is neither a class nor a name")
    if len(of["text"]) > 1:
        raise ValueError("expected at most one column that is not a number, got "
                         f"{', '.join(str(title[place]) for place in of['text'])}")
    if not classes:
        raise ValueError("expected a column of numbers for each class, got none")
    return next(iter(of["text"] or ids), None), classes


def _told(named, classes: list, headed: bool = True) -> str:
    shown = ", ".join(map(str, classes[:5])) + (", ..." if len(classes) > 5 else "")
    return (f"{len(classes)} columns taken as classes"
            + (f" ({shown})" if headed else ", without headings")
            + ("; rows by number" if named is None else
               f"; rows named by {f'column {named!r}' if str(named).strip() else 'their index'}"))
