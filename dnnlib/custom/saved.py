"""Outputs that any framework saved: softmax vectors from a file, to be ranked without a model."""

from pathlib import Path

import numpy as np
import pandas as pd
import torch

from dnnlib import checks

SUFFIXES = (".npy", ".csv", ".parquet")


def read_outputs(path: str | Path, *,
                 probabilities: bool = True) -> tuple[torch.Tensor, list[str]]:
    """Softmax vectors, float64 (N, classes), and the names of their rows.

    ``path``: an array (N, classes) in .npy, or a table in .csv or .parquet with a column for each
    class, and perhaps one of text, such as the images' paths, which then names the rows; else
    they are named by their numbers from 0. One column is the second of two classes.
    ``probabilities``: what the file holds; else logits. Raises ``FileNotFoundError`` and
    ``ValueError`` saying what does not fit.
    """
    path = Path(path).expanduser()
    if path.suffix not in SUFFIXES:
        raise ValueError(f"outputs: expected a .npy, .csv or .parquet file, got {path.name}")
    if not path.is_file():
        raise FileNotFoundError(f"outputs: there is no file {path}")
    try:
        values, names = _array(path) if path.suffix == ".npy" else _table(path)
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"outputs: {path.name}: {str(error).splitlines()[0]}") from error
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"outputs: expected an array (N, classes) in {path.name}, got shape "
                         f"{values.shape}")
    found = torch.from_numpy(np.ascontiguousarray(values, np.float64))
    if found.shape[1] == 1:
        found = torch.cat([1 - found if probabilities else torch.zeros_like(found), found], 1)
    if not probabilities:
        if not found.isfinite().all():
            raise ValueError("outputs: expected finite logits, got NaN or infinity")
        found = found.softmax(1)
    try:
        return checks.probabilities(found, "outputs"), names
    except ValueError as error:
        raise ValueError(f"{error}; are these logits? Then say --logits") from error


def _array(path: Path) -> tuple[np.ndarray, list[str]]:
    values = np.load(path, allow_pickle=False)
    if values.dtype.kind not in "fiu":
        raise ValueError(f"expected numbers, got {values.dtype}")
    return values, [str(i) for i in range(len(values))]


def _table(path: Path) -> tuple[np.ndarray, list[str]]:
    table = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    text = [name for name in table if not pd.api.types.is_numeric_dtype(table[name])]
    if len(text) > 1:
        raise ValueError(f"expected at most one column that is not a number, got {', '.join(text)}")
    names = table[text[0]].astype(str) if text else table.index.astype(str)
    return table.drop(columns=text).to_numpy(np.float64), list(names)
