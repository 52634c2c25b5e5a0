"""The images to label first, handed on: copied to a folder, or as tasks of Label Studio."""

import io
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree

import numpy as np
import pandas as pd
from PIL import Image

from dnnlib.custom.photos import Photos
from dnnlib.data.parquet import Rows

NAMES = "{rank:0{digits}d}_{name}"


def methods_of(table: pd.DataFrame) -> list[str]:
    """The methods of a ranking, in the order of its columns."""
    return [name.removesuffix("_rank") for name in table if name.endswith("_rank")]


def leading(table: pd.DataFrame) -> pd.DataFrame:
    """The images that the first method of a ranking selects, in its order."""
    first = methods_of(table)[0]
    return table[table[f"{first}_selected"]].sort_values(f"{first}_rank")


def merged(table: pd.DataFrame, chosen: int) -> pd.DataFrame:
    """A ranking with one more method, 'merged', before the others: by the mean of their ranks.

    Its score is 1 for an image that every method ranks first, 0 for one that all rank last; among
    equals the first method decides. ``chosen``: how many are selected.

    >>> table = pd.DataFrame({"path": list("abc"), "p_rank": [1, 2, 3], "q_rank": [3, 1, 2]})
    >>> merged(table, 1)[["path", "merged_score", "merged_rank"]].values.tolist()
    [['b', 0.75, 1], ['a', 0.5, 2], ['c', 0.25, 3]]
    """
    names = methods_of(table)
    ranks = table[[f"{name}_rank" for name in names]].astype("Float64")
    mean, last = ranks.mean(axis=1, skipna=False), ranks.max(axis=None)
    order = pd.DataFrame({"mean": mean, "first": ranks.iloc[:, 0]}).dropna().sort_values(
        ["mean", "first"]).index
    place = table.columns.get_loc(next(c for c in table if c.startswith(f"{names[0]}_")))
    rank = pd.Series(range(1, len(order) + 1), order).reindex(table.index).astype("Int64")
    for name, values in (("selected", (rank <= chosen).fillna(False).astype(bool)),
                         ("rank", rank), ("score", 1 - (mean - 1) / max(last - 1, 1))):
        kind = {"score": "float64"}.get(name)
        table.insert(place, f"merged_{name}", values.astype(kind) if kind else values)
    return table.sort_values("merged_rank", kind="stable", na_position="last")


def check_copies(folder: Path, *sources: Path) -> None:
    """``ValueError`` for a folder that holds something, or lies in one of the ``sources``.

    The next run over such a source would take the copies for images.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"--copy-to: expected a folder that is empty or not there, got {folder}")
    for source in sources:
        if source.is_dir() and folder.resolve().is_relative_to(source.resolve()):
            raise ValueError(f"--copy-to: expected a folder outside of {source}, whose images the "
                             f"copies would be the next time, got {folder}")


def copy_first(table: pd.DataFrame, folder: str | Path, photos: Photos | None = None) -> int:
    """Copies of the :func:`leading` images, 0001_name.jpg and so on; how many.

    Of ``photos`` from a Parquet file they are the rows' pictures as it has them, called
    0001_photos-17.png. The folder appears once all are there. ``OSError`` for one that cannot be
    copied.
    """
    folder, rows = Path(folder).expanduser(), leading(table)
    check_copies(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    digits = max(4, len(str(len(rows))))
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as beside:
        inside = Path(beside) / "copies"
        inside.mkdir()
        if photos is not None and isinstance(photos.source, Rows):
            for rank, (place, path) in enumerate(zip(photos.numbers(rows["path"]), rows["path"]),
                                                 start=1):
                content = photos.source.content(place)
                kind = (Image.open(io.BytesIO(content)).format or "png").lower()
                name = f"{path.replace('.parquet:', '-')}.{kind}"
                (inside / NAMES.format(rank=rank, digits=digits, name=name)).write_bytes(content)
        else:
            for rank, path in enumerate(rows["absolute_path"], start=1):
                name = os.path.basename(path)
                shutil.copy2(path, inside / NAMES.format(rank=rank, digits=digits, name=name))
        if folder.exists():
            folder.rmdir()
        os.replace(inside, folder)
    return len(rows)


@dataclass(frozen=True)
class Tasks:
    """Tasks of Label Studio.

    ``tasks``: to import, JSON. ``interface``: the labelling interface that they fit, XML.
    ``folder``: the local storage that serves the images. ``root``: a folder above it, which Label
    Studio is to have as ``LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT``.
    """

    tasks: bytes
    interface: bytes
    folder: str
    root: str


def label_studio(table: pd.DataFrame, *, model: str = "model") -> Tasks:
    """Tasks for the :func:`leading` images, in the format for import that Label Studio documents.

    A task's image is '/data/local-files/?d=' and the path below the root. Its prediction is the
    class that ``model`` gives, a choice called 'choice' for an image called 'image', by its name
    if the table has names; where no method needed a pass there is none. 'rank', and 'scores' by
    method, are in the task's data. The interface offers all classes.
    """
    rows, methods = leading(table), methods_of(table)
    folder = os.path.commonpath([os.path.dirname(path) for path in rows["absolute_path"]])
    root, tasks = os.path.dirname(folder), []
    names = table.attrs["class_names"] or [str(i) for i in range(table.attrs["classes"])]
    for rank, row in enumerate(rows.to_dict("records"), start=1):
        inside = os.path.relpath(row["absolute_path"], root).replace(os.sep, "/")
        scores = {name: row[f"{name}_score"] for name in methods
                  if np.isfinite(row[f"{name}_score"])}  # JSON knows no infinity
        task: dict = {"data": {"image": f"/data/local-files/?d={quote(os.fsencode(inside))}",
                               "path": row["path"], "rank": rank, "scores": scores}}
        if not pd.isna(row["predicted"]):
            task["predictions"] = [{
                "model_version": model, "score": round(float(row["confidence"]), 6), "result": [
                    {"id": f"rank{rank}", "from_name": "choice", "to_name": "image",
                     "type": "choices", "value": {"choices": [names[int(row["predicted"])]]}}]}]
        tasks.append(task)
    view = ElementTree.Element("View")
    ElementTree.SubElement(view, "Image", name="image", value="$image")
    choices = ElementTree.SubElement(view, "Choices", name="choice", toName="image",
                                     choice="single")
    for name in names:
        ElementTree.SubElement(choices, "Choice", value=name)
    ElementTree.indent(view)
    return Tasks(json.dumps(tasks, indent=1, allow_nan=False).encode() + b"\n",
                 ElementTree.tostring(view, "utf-8") + b"\n", folder, root)
