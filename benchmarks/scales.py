"""What each method costs as images, classes and neurons grow: makes the page book/scales.md.

    python benchmarks/scales.py [--many 8000] [--by lsa,mdsa]

A small network with random weights on images of noise, 28 x 28, in memory: so the seconds are those
of the methods and of the network, not of reading. They are seconds of the processor, on one thread,
which other work on the machine changes little. ``--by`` makes the rows of these methods only.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load
from torch import nn

from dnnlib import custom, files, selection
from dnnlib.custom.estimating import estimate
from dnnlib.custom.photos import Photos
from dnnlib.custom.ranking_run import finished
from dnnlib.custom.scores import Lessons, learn_at_once

PAGE = Path(__file__).parents[1] / "book" / "scales.md"
FEW, CLASSES, WIDTH, REFERENCES = 1_000, 10, 16, 500
TASKS = 2_000


def network(width: int = WIDTH, classes: int = CLASSES) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, width, 5, stride=2), nn.ReLU(), nn.Conv2d(width, 2 * width, 5, stride=2),
        nn.ReLU(), nn.Flatten(), nn.Linear(2 * width * 16, 8 * width), nn.ReLU(),
        nn.Linear(8 * width, classes)).eval()


def noise(n: int, seed: int = 0) -> Photos:
    x = torch.randint(256, (n, 1, 28, 28), dtype=torch.uint8,
                      generator=torch.Generator().manual_seed(seed))
    return Photos(x, tuple(map(str, range(n))))


def cost(name: str, model: nn.Module, photos: Photos) -> dict[str, float]:
    """Passes, bytes kept of an image, and seconds of the passes and of the order."""
    seen = noise(REFERENCES, 1) if custom.needs_reference(name) else None
    job = custom.prepared_job(model, photos, [name], reference=seen, seed=None, layers=None,
                              probabilities=None, batch_size=64, block=1024)
    passes = estimate(job, seen).passes
    if seen is not None:
        known, failed, _ = learn_at_once(Lessons(job.model, seen, job.selectors, 64, 1024))
        if failed:
            raise SystemExit(f"{name}: {failed[name]}")
        job.__dict__["known"] = known
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in job.names]
        start = time.process_time()
        for path, made in zip(paths, job.run(range(len(paths)))):
            files.write_atomically(path, *made.values())
        passed = time.process_time()
        kept = load(paths[0].read_bytes())[name][0].nbytes
        finished(job, name, paths, Path(folder))
        return {"passes": passes, "bytes": kept, "passing": passed - start,
                "ordering": time.process_time() - passed}


def scheduler() -> float:
    """Seconds of the scheduler for a task that does nothing."""
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as local, Client(
            local) as client:
        client.gather(client.map(abs, range(20), pure=False))
        start = time.perf_counter()
        client.gather(client.map(abs, range(TASKS), pure=False))
        return (time.perf_counter() - start) / TASKS


def table(heads: list[str], rows: list[list], before: str) -> str:
    """Rows as Markdown; those of other methods stay as they stood ``before``."""
    lines = ["| " + " | ".join(map(str, line)) + " |"
             for line in (heads, ["---"] * len(heads), *rows)]
    made = {line.split("|")[1]: line for line in lines}
    kept = {line.split("|")[1]: line for line in before.strip().splitlines()}
    order = {f" `{name}` ": None for name in selection.SELECTORS}
    both = kept | made
    return "\n".join([*lines[:2], *(both[name] for name in order if name in both)])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--many", type=int, default=8_000)
    parser.add_argument("--by", default=",".join(selection.SELECTORS))
    given = parser.parse_args()
    many, names = given.many, given.by.split(",")
    torch.set_num_threads(1)  # as many seconds of the processor as of the clock
    few, lot = noise(FEW), noise(many)
    images, sizes = [], []
    for name in names:
        a, b = cost(name, network(), few), cost(name, network(), lot)
        images.append([f"`{name}`", a["passes"], f"{a['bytes']:,}",
                       f"{a['passing']:.2f}", f"{b['passing'] * FEW / many:.2f}",
                       f"{a['ordering']:.2f}", f"{b['ordering']:.2f}"])
        print(*images[-1], flush=True)
        row = [f"`{name}`"]
        for options in ({}, {"classes": 100}, {"classes": 1_000}, {"width": 4 * WIDTH}):
            try:
                found = cost(name, network(**options), few)
                row.append(f"{found['bytes']:,} B, {found['passing'] + found['ordering']:.2f} s")
            except ValueError as error:
                row.append(f"({error})")
        sizes.append(row)
        print(*row, flush=True)
    replace("images", lambda before: table(
        ["method", "passes", "bytes kept of an image", f"passes, s for each 1,000 of {FEW:,}",
         f"of {many:,}", f"order, s for {FEW:,}", f"for {many:,}"], images, before))
    replace("sizes", lambda before: table(
        ["method", "10 classes, 362 neurons", "100 classes", "1,000 classes",
         "10 classes, 4 times as wide"], sizes, before))
    if len(names) == len(selection.SELECTORS):
        each = scheduler()
        replace("scheduler", lambda before: (
            f"{1000 * each:.1f} ms for a task that does nothing ({TASKS:,} tasks, two workers). In "
            f"blocks of 1,024, that is {1e6 / 1024 * each:.0f} s with 10⁶ images, "
            f"{1e7 / 1024 * each / 60:.1f} min with 10⁷ and "
            f"{1e8 / 1024 * each / 60:.0f} min with 10⁸."))


def replace(mark: str, make: Callable[[str], str]) -> None:
    """On the page, what stands between the mark and the next end, by what is made of it."""
    before, _, rest = PAGE.read_text().partition(f"<!-- {mark} -->\n")
    found, end, after = rest.partition("\n<!-- end -->")
    PAGE.write_text(f"{before}<!-- {mark} -->\n{make(found)}{end}{after}")


if __name__ == "__main__":
    main()
