"""The folder of a run: whose it is, and what it has done, so that a killed run goes on."""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from dnnlib import files

MEANWHILE = "meanwhile"


def check(folder: Path, facts: dict) -> None:
    """``ValueError`` for another run's folder; what a killed run was writing is removed.

    ``facts``: all that decides what a run makes, as JSON can hold it. ``MEANWHILE`` is what
    a run needs only while it lasts.
    """
    run = folder / "run.json"
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"out: expected a folder, got the file {folder}")
    half = re.compile(r"\..+\.(png|json|csv|safetensors)\.\w{8}")
    shutil.rmtree(folder / MEANWHILE, ignore_errors=True)
    rest = [p for p in folder.rglob("*") if p.is_file()]
    if rest and not run.exists() and not all(half.fullmatch(p.name) for p in rest):
        raise ValueError(f"out: {folder} holds files, and none is the run.json of a run to go on "
                         "with; give a folder of its own")
    if run.exists():
        try:
            before, now = json.loads(run.read_bytes()), json.loads(json.dumps(facts))
        except ValueError as error:
            raise ValueError(f"out: {run} is not of a run to go on with: {error}") from error
        if not isinstance(before, dict):
            raise ValueError(f"out: {run} is not of a run to go on with")
        changed = [f"{name} was {before.get(name)!r} and is {now.get(name)!r}"
                   for name in {**now, **before} if before.get(name) != now.get(name)]
        if changed:
            raise ValueError(f"out: {folder} holds another run: {'; '.join(changed)}. Give "
                             "another --out, or delete this one")
    for path in rest:
        if half.fullmatch(path.name):
            path.unlink()


def begin(folder: Path, facts: dict) -> None:
    """Say whose folder it is, before anything is kept there."""
    if not (folder / "run.json").exists():
        files.write_atomically(folder / "run.json", json.dumps(facts, indent=1).encode() + b"\n")


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
