"""The folder of a run: whose it is, and what it has done, so that a killed run goes on."""

import glob
import itertools
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from dnnlib import files

MEANWHILE = "meanwhile"


def opened(folder: Path) -> tuple[dict, dict[str, torch.Tensor]] | None:
    """What the run in ``folder`` is of, None if there is none; what a killed run was writing goes.

    Its facts, and tensors of its images and answers. ``MEANWHILE`` is what a run needs only while
    it lasts. Raises ``ValueError`` for a file, and for a folder that holds something else.
    """
    run = folder / "run.json"
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"out: expected a folder, got the file {folder}")
    half = re.compile(r"\..+\.(png|json|csv|html|parquet|safetensors)\.\w{8}")
    if folder.suffix == ".run":  # of a command, whose tables and pictures lie beside it
        for path in folder.parent.glob(f".{glob.escape(folder.stem)}.*"):
            if half.fullmatch(path.name) and path.is_file():
                path.unlink()
    shutil.rmtree(folder / MEANWHILE, ignore_errors=True)
    rest = [p for p in folder.rglob("*") if p.is_file()]
    begun = {folder / "run.safetensors"}  # written just before run.json
    if not run.exists() and not all(p in begun or half.fullmatch(p.name) for p in rest):
        raise ValueError(f"out: {folder} holds files, and none is the run.json of a run to go on "
                         "with; give a folder of its own")
    before = None
    if run.exists():
        try:
            facts = json.loads(run.read_bytes())
            if not isinstance(facts, dict):
                raise ValueError(f"expected an object, got {type(facts).__name__}")
            if not run.with_suffix(".safetensors").exists():
                raise ValueError("run.safetensors is not beside it, as in runs of an earlier "
                                 "version; give another --out, or delete the folder")
            before = facts, files.load_tensors(run.with_suffix(".safetensors"))[0]
        except ValueError as error:
            raise ValueError(f"out: {run} is not of a run to go on with: {error}") from error
    for path in rest:
        if half.fullmatch(path.name):
            path.unlink()
    return before


def begin(folder: Path, facts: dict, tensors: dict[str, torch.Tensor]) -> None:
    """Say whose folder it is, before anything is kept there: see :func:`opened`."""
    if not (folder / "run.json").exists():
        files.save_tensors(folder / "run.safetensors", tensors)
        files.write_atomically(folder / "run.json", json.dumps(facts, indent=1).encode() + b"\n")


def aside(folder: Path) -> list[str]:
    """Rename a run to the first free NAME-1, NAME-2, ...; the new names.

    With the folder of a command, NAME.run, go its tables and pictures beside it.
    """
    beside = [folder]
    if folder.suffix == ".run":
        beside += [path for ending in (".csv", ".parquet", ".html", ".png")
                   if (path := folder.with_suffix(ending)).is_file()]
    free = next(n for n in itertools.count(1) if not any(
        path.with_stem(f"{path.stem}-{n}").exists() for path in beside))
    return [path.rename(path.with_stem(f"{path.stem}-{free}")).name for path in beside]


def whole(path: Path) -> bool:
    """Whether a file of tensors is there; a damaged one is removed, to be made again."""
    if not path.exists():
        return False
    try:
        files.load_tensors(path, ())
    except ValueError:
        path.unlink()
        return False
    return True


def joined(paths: Sequence[Path], name: str, folder: Path) -> torch.Tensor:
    """The tensors called ``name`` of all files, one after the other.

    Those of more than one dimension lie in a mapped file in ``folder``, and take no memory.
    ``ValueError`` if no image could be read.
    """
    parts = (files.load_tensors(path, (name,))[0] for path in paths)
    rows = (part[name] for part in parts if name in part)  # a block may have no image to read
    first = next(rows, None)
    if first is None:
        raise ValueError("none of the images can be read")
    if first.ndim == 1:
        return torch.cat([first, *rows])
    target = folder / f"{name}.rows"
    width, kind = first.shape[1:], first.numpy().dtype
    with open(target, "wb") as file:
        first.numpy().tofile(file)
        for row in rows:
            row.numpy().tofile(file)
    mapped = np.memmap(target, kind, "r+")
    return torch.from_numpy(mapped.reshape(-1, *width))
