"""A ranking in its folder: begun, gone on with after it was killed, and finished.

What a block of images depends on is fixed before the first, so that the same call, however often
it is killed, ends with the same bytes.
"""

import logging
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from dnnlib import files
from dnnlib.custom import cluster, run_folder
from dnnlib.custom.identity import Identity, Other, check_left_out
from dnnlib.custom.own_code import own_code
from dnnlib.custom.photos import Photos
from dnnlib.custom.rehearsal import FAULTS, line
from dnnlib.custom.scores import OUTPUTS, Blocks, Job, Lessons, learn
from dnnlib.inference import device_of
from dnnlib.progress import progress

_log = logging.getLogger(__name__)  # to stderr, as it is
Found = dict[str, dict[str, torch.Tensor]]
RESULT = "result.safetensors"


class Run:
    """In ``folder``: ``run.json`` and ``run.safetensors``, its ``identity``; ``lessons/``, what
    each block of training images gave, and then ``learned/``, what it comes to; ``blocks/``, what
    each block of images gave; in the end, instead of the last three, ``result.safetensors``.

    ``skipped``: the reasons for images that could not be read, by place; ``unread``: for training
    images, by name; ``failed``: for methods; ``outputs``: those of :data:`scores.OUTPUTS` of the
    images that could be read, if a method needed a pass. Another run in the folder is put aside if
    it is finished, see :func:`run_folder.aside`, and a ``ValueError`` if it waits to go on.
    """

    def __init__(self, folder: str | Path, identity: Identity | None = None):
        self.folder, self.identity = Path(folder).expanduser(), identity
        self.skipped: dict[int, str] = {}
        self.unread: dict[str, str] = {}
        self.failed: dict[str, str] = {}
        self.outputs: dict[str, torch.Tensor] = {}
        self.again = identity is not None and self._goes_on(identity)

    def _goes_on(self, identity: Identity) -> bool:
        try:
            return identity.check(self.folder)
        except Other as error:
            if not run_folder.whole(self.folder / RESULT):
                raise
            _log.warning("%s. It is finished, and kept as %s", error.found,
                         ", ".join(run_folder.aside(self.folder)))
            return False

    def go(self, job: Job, reference: Photos | None, workers: int | None,
           client) -> tuple[torch.Tensor, Found]:
        """The places of the images that could be read, and of each method the 'order' of these,
        with a 'score' if it has one. ``ValueError`` if every method fails."""
        result = self.folder / RESULT
        if not run_folder.whole(result):
            job = self._learn(job, reference, workers, client)
            self._finish(job, self._make(job, "ranking", workers, client), result)
        tensors, notes = _read(result)
        for name in (Lessons.folder, "learned", Job.folder, run_folder.MEANWHILE):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        self.skipped = {int(i): why for i, why in notes["skipped"].items()}
        if self.again:
            check_left_out(self.folder, job.model, job.photos, [*self.skipped])
        self.unread, self.failed = notes["unread"], notes["failed"]
        found: Found = {name: {} for name in notes["methods"]}
        for key, value in tensors.items():
            name, _, what = key.rpartition(".")
            if not name:
                self.outputs[what] = value
            else:
                found[name][what] = value
        return self.outputs.pop("places"), found

    def _learn(self, job: Job, reference: Photos | None, workers: int | None, client) -> Job:
        """The job with what its methods learned, without those that could not."""
        learners = {name: chosen for name, chosen in job.selectors.items() if chosen.keeps}
        paths = {name: self.folder / "learned" / f"{name}.safetensors" for name in learners}
        known: Found = {}
        if reference is not None and not all([run_folder.whole(path) for path in paths.values()]):
            lessons = Lessons(job.model, reference, learners, job.batch_size, job.block)
            blocks = self._make(lessons, "training images", workers, client)
            meanwhile = self.folder / run_folder.MEANWHILE
            meanwhile.mkdir(exist_ok=True)
            known, self.failed, self.unread = learn(lessons, blocks, meanwhile)
            if set(job.selectors) <= set(self.failed):
                self._leave(meanwhile, self.folder / lessons.folder)
            self._some_left(job)
            for name in learners:
                files.save_tensors(paths[name], known.get(name, {}), notes={
                    "unread": self.unread, "failed": self.failed.get(name)})
            for folder in (meanwhile, self.folder / lessons.folder):
                shutil.rmtree(folder)
        for name, path in paths.items():
            known[name], notes = _read(path)
            self.unread |= notes["unread"]
            if notes["failed"] is not None:
                self.failed[name] = notes["failed"]
        self._some_left(job)
        left = {name: each for name, each in job.selectors.items() if name not in self.failed}
        return replace(job, selectors=left, known=known)

    def _leave(self, *folders: Path) -> None:
        """Remove what was written, for a run that cannot be."""
        for folder in folders:
            shutil.rmtree(folder)
        for name in ("run.json", "run.safetensors"):
            (self.folder / name).unlink(missing_ok=True)
        if not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _make(self, job: Blocks, what: str, workers: int | None, client) -> list[Path]:
        """The files of all blocks; those that are not there yet are made."""
        paths = [self.folder / name for name in job.names]
        left = [i for i, path in enumerate(paths) if not run_folder.whole(path)]
        sizes = [sum(map(len, job.lists(i))) for i in range(len(paths))]
        done = sum(sizes) - sum(sizes[i] for i in left)
        with progress(total=sum(sizes), initial=done, desc=what, unit="image") as bar:
            made = (zip(left, job.run(left, workers, bar.update)) if client is None
                    else cluster.run(client, job, left))
            for number, content in made:
                if self.identity is not None:
                    run_folder.begin(self.folder, self.identity.facts, self.identity.tensors)
                for name, data in content.items():
                    files.write_atomically(self.folder / name, data)
                if client is not None:
                    bar.update(sizes[number])
        return paths

    def _finish(self, job: Job, paths: list[Path], result: Path) -> None:
        meanwhile = self.folder / run_folder.MEANWHILE
        for path in paths:
            notes = _read(path, ())[1]
            self.skipped |= {int(i): why for i, why in notes["skipped"].items()}
            self.failed |= {k: v for k, v in notes["failed"].items() if k not in self.failed}
        places, found = run_folder.joined(paths, "places", meanwhile), {}
        if len(places) < 2:
            raise ValueError(f"images: {len(places)} of {len(job.photos)} could be read; the "
                             f"first reason: {next(iter(self.skipped.values()))}")
        for name in job.selectors:
            if name not in self.failed:
                meanwhile.mkdir(exist_ok=True)
                try:
                    found[name] = finished(job, name, paths, meanwhile)
                except FAULTS as error:
                    self.failed[name] = line(error)
                shutil.rmtree(meanwhile)
        self._some_left(job)
        tensors = {f"{name}.{what}": value for name, parts in found.items()
                   for what, value in parts.items()}
        if any(chosen.shared for chosen in job.selectors.values()):
            tensors |= {name: run_folder.joined(paths, name, meanwhile) for name in OUTPUTS}
        files.save_tensors(result, tensors | {"places": places}, notes={
            "methods": list(found), "skipped": self.skipped, "unread": self.unread,
            "failed": self.failed})

    def _some_left(self, job: Job) -> None:
        if set(job.selectors) <= set(self.failed):
            names: dict[str, list[str]] = {}  # by reason, so that each is given once
            for name, why in self.failed.items():
                names.setdefault(why, []).append(name)
            raise ValueError("; ".join(f"{', '.join(same)}: {why}" for why, same in names.items()))


def _read(path: Path, names: Iterable[str] | None = None) -> tuple[dict[str, torch.Tensor], dict]:
    """Tensors and notes, which are one entry, since a file has its entries in any order."""
    tensors, metadata = files.load_tensors(path, names)
    return tensors, metadata["notes"]


def finished(job: Job, name: str, paths: Sequence[Path],
             meanwhile: Path) -> dict[str, torch.Tensor]:
    """The 'order' of a method's rows in all blocks, and the 'score' if it has one."""
    chosen, rows = job.selectors[name], run_folder.joined(paths, name, meanwhile)
    classes = run_folder.joined(paths, "predicted", meanwhile) if chosen.shared else torch.empty(0)
    with own_code(type(chosen)):
        score, order = chosen.finish(rows, classes, job.known.get(name, {}), folder=meanwhile,
                                     device=device_of(job.model))
    return {"order": order} | ({} if score is None else {"score": score})
