"""Tables as files: CSV in which no cell is a formula, or Parquet; names of any bytes go through.

A file's name need not be text. Python shows its other bytes as lone surrogates, which this module
writes as the bytes that they stand for.
"""

import io
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from dnnlib import checks, files

SUFFIXES = (".csv", ".parquet")
PATHS = ("path", "absolute_path", "duplicate_of", "input", "file")
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet reads as one begins so


def check_target(path: Path, name: str) -> None:
    """``ValueError`` or ``ModuleNotFoundError`` if :func:`write` could not write such a file.

    >>> check_target(Path("a.txt"), "--out")
    Traceback (most recent call last):
    ValueError: --out: expected a name that ends in .csv or .parquet, got a.txt
    """
    if path.suffix not in SUFFIXES:
        raise ValueError(f"{name}: expected a name that ends in .csv or .parquet, got {path}")
    if path.suffix == ".parquet":
        with checks.extra("parquet"):
            import pyarrow as _  # noqa: F401


def write(table: pd.DataFrame, path: Path) -> None:
    """The table at ``path``, whole or not at all, in the format of its suffix."""
    check_target(path, "table")
    if path.suffix == ".csv":
        return files.write_atomically(path, as_csv(table))
    plain(table).to_parquet(content := io.BytesIO(), index=False)
    files.write_atomically(path, content.getvalue())


def as_csv(table: pd.DataFrame) -> bytes:
    """CSV of which a spreadsheet calculates nothing.

    A path such as '=a.png' is written './=a.png', which is the same file; before other text that
    begins like a formula stands an apostrophe.

    >>> as_csv(pd.DataFrame({"path": ["=1+1.png"], "note": ["@x"]}))
    b"path,note\\n./=1+1.png,'@x\\n"
    """
    shown = table.copy()
    for name in _texts(table):
        before = "./" if name in PATHS else "'"
        shown[name] = _changed(table[name], lambda text: before + text
                               if text.startswith(FORMULA) else text)
    return shown.to_csv(index=False, lineterminator="\n").encode("utf-8", "surrogateescape")


def plain(table: pd.DataFrame) -> pd.DataFrame:
    """The table as Parquet can hold it: names that are not text give a column of bytes.

    >>> plain(pd.DataFrame({"path": pd.Series(["a", "\\udcff"], dtype=object)}))["path"].tolist()
    [b'a', b'\\xff']
    """
    table = table.copy()
    table.attrs = {}  # would be written too, if JSON can hold them
    for name in _texts(table):
        try:
            "".join(map(str, table[name])).encode()
        except UnicodeEncodeError:
            table[name] = _changed(table[name],
                                   lambda text: text.encode("utf-8", "surrogateescape"))
    return table


def _changed(column: pd.Series, change: Callable[[str], str | bytes]) -> pd.Series:
    """With every text changed. Of objects: pyarrow's texts hold no lone surrogates."""
    return pd.Series([change(value) if isinstance(value, str) else value for value in column],
                     column.index, dtype=object)


def _texts(table: pd.DataFrame) -> list[str]:
    return [name for name in table if not pd.api.types.is_numeric_dtype(table[name])]
