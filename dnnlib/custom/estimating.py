"""What a ranking will take, by a look at a few batches: passes, time, memory and disk."""

import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from safetensors.torch import load

from dnnlib.custom.photos import Photos, batches
from dnnlib.custom.scores import Job, Lessons, learn_at_once
from dnnlib.inference import device_of

BATCHES = 4  # looked at; the first warms up, and does not count
NAME, ROW = 400, 16  # bytes in memory for an image's path, and for its place and score by a method


@dataclass(frozen=True)
class Estimate:
    """``images``, ``reference``: how many there are, the latter 0 if no method needs any.

    ``passes``: over an image, by all methods together; ``passes_reference``: over a training image.
    A backward pass counts as two. ``reading``, ``passing``: seconds for an image, on one core and
    on the device of the model, and ``gpu`` on one that is seen, NaN if none is. ``threads``: of the
    processor in a pass, 0 if it runs elsewhere. ``memory``: bytes that grow with the images;
    ``disk``: bytes of scores while the run lasts. ``peak``: bytes that the process has held at
    most, passes of these methods among it; 0 where the system does not tell.
    """

    images: int
    reference: int
    passes: int
    passes_reference: int
    reading: float
    passing: float
    gpu: float
    threads: int
    memory: int
    disk: int
    peak: int = 0

    def seconds(self, workers: int | None = None, *, gpu: bool = False) -> float:
        """Of the whole run: here, or on ``workers`` of a cluster with one core each.

        Training images count as the others. Here, some processes read ahead while the model passes
        on PyTorch's threads; what they have together is the machine's cores. The orders at the end
        are not in it, nor the cluster's own share.

        >>> Estimate(1000, 0, 1, 0, 0.01, 0.03, 0.0, 1, 0, 0).seconds(4)
        10.0
        """
        n = self.images + self.reference
        if workers is not None:
            return n * (self.reading + self.passing) / workers
        cores = os.cpu_count() or 1
        passing = self.gpu if gpu else self.passing
        busy = self.reading + (0 if gpu else passing * min(self.threads, cores))
        return n * max(passing, busy / cores)


def estimate(job: Job, reference: Photos | None = None) -> Estimate:
    """What ``job.run`` would take for all images, and learning from the training images.

    ``reference``: training images; one batch of them is looked at.

    >>> from dnnlib import models, selection
    >>> x, model = torch.rand(8, 1, 28, 28), models.build("lenet1")
    >>> photos = Photos(x, tuple(map(str, range(8))))
    >>> found = estimate(Job(model, photos, {"gini": selection.selector("gini")}, 2, 4))
    >>> found.images, found.passes
    (8, 1)
    """
    size = job.batch_size
    count = min(len(job.photos), BATCHES * size)
    places = torch.linspace(0, len(job.photos) - 1, count).long().unique()
    lists = [part.tolist() for part in places.split(size)]
    start = time.perf_counter()
    reads = list(batches(job.photos, lists, workers=0))
    reading = (time.perf_counter() - start) / count
    learners = {name: chosen for name, chosen in job.selectors.items() if chosen.keeps}
    if learners and reference is not None:
        some = reference.some(size)
        few = Photos(some, tuple(map(str, range(len(some)))))
        known, failed, _ = learn_at_once(Lessons(job.model, few, learners, size, size), workers=0)
        selectors = {name: chosen for name, chosen in job.selectors.items() if name not in failed}
        job = replace(job, known=known, selectors=selectors)
    passing, content = _passing(job, reads)
    gpu = float("nan")
    if torch.cuda.is_available() and device_of(job.model).type == "cpu":
        job.model.cuda()
        try:
            there = [read._replace(x=read.x.cuda()) for read in reads]
            gpu, _ = _passing(job, there)
        finally:
            job.model.cpu()
    n, kept = len(job.photos), load(content)
    rows = max(1, len(kept["places"]))
    disk = sum(value.nbytes for value in kept.values()) / rows
    bins = [value[0].numel() for value in kept.values()
            if value.ndim == 2 and not value.is_floating_point()]
    threads = torch.get_num_threads() if device_of(job.model).type == "cpu" else 0
    return Estimate(n, len(reference or ()) if learners else 0, _total(job.selectors),
                    _total(learners), reading, passing, gpu, threads,
                    n * (NAME + ROW * len(job.selectors)),
                    int(n * (disk + 4 * max(bins, default=0))), peak())


def peak() -> int:
    """Bytes of memory that this process has held at most; 0 where the system does not tell."""
    status = Path("/proc/self/status")
    if status.exists():  # on Linux, where getrusage counts what the starting program held, too
        return 1024 * int(re.search(r"^VmHWM:\s*(\d+)", status.read_text(), re.M)[1])
    if sys.platform == "darwin":
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return 0


def _passing(job: Job, reads: Sequence) -> tuple[float, bytes]:
    """Seconds for an image after the first batch, and what would be kept of all."""
    times = []

    def told(n: int) -> None:
        times.append((time.perf_counter(), n))

    content = job.file_of(reads, told)
    times.append((time.perf_counter(), 0))
    first = 1 if len(times) > 2 else 0
    return (times[-1][0] - times[first][0]) / max(1, sum(n for _, n in times[first:])), content


def _total(selectors: Mapping) -> int:
    """Passes over an image: one that is shared, and each selector's own."""
    found = list(selectors.values())
    return any(chosen.shared for chosen in found) + sum(chosen.passes for chosen in found)
