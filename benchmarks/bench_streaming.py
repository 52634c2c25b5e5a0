"""Ranking images from disk: growth of memory, and speed against a bare loader and forward loop.

    python benchmarks/bench_streaming.py [--side 64] [--few 2000] [--many 20000]

The photos are JPEGs of noise, made once in a temporary folder; the network is torchvision's
resnet18 with random weights. Speed is in seconds of the processor, with those of the workers, so
that other work on the machine does not count. Memory is what a process has to itself, so not the
files that the system maps for it and may drop; each size runs in a process of its own.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
import torch
from goals import keep
from PIL import Image
from torch.utils.data import DataLoader
from torchvision.models import resnet18

from dnnlib import custom, files
from dnnlib.custom.photos import unit
from dnnlib.custom.scores import Lessons, learn_at_once
from dnnlib.inference import fast_layout

TOGETHER = "gini,pd,nac,kmnc"
ONE_PASS = ("gini", "pd", "pv", "pe", "margin", "least_confidence", "ats", "nac", "kmnc", "dsa",
            TOGETHER)
REFERENCES, BATCH, WORKERS = 256, 64, 2


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return resnet18(num_classes=10).eval().to(memory_format=torch.channels_last)


def photos(folder: Path, n: int, side: int) -> Path:
    """So many JPEGs, of which each hundred is hard links to the same file."""
    target = folder / f"photos{n}"
    target.mkdir()
    rng = np.random.default_rng(0)
    for i in range(min(n, 200)):
        coarse = rng.integers(0, 256, (8, 8, 3), np.uint8)
        Image.fromarray(coarse).resize((side, side), Image.Resampling.BICUBIC).save(
            target / f"{i:06d}.jpg", quality=90)
    for i in range(200, n):
        os.link(target / f"{i % 200:06d}.jpg", target / f"{i:06d}.jpg")
    return target


def own_memory() -> int:
    """Bytes that this process has to itself."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines["RssAnon"].split()[0]) * 1024


def rank(folder: Path, side: int, by: str, out: Path, reference: Path | None):
    model = network()
    seen = None if reference is None else custom.read_photos(reference, model, size=side)
    return custom.rank(model, custom.read_photos(folder, model, size=side), by, folder=out,
                       reference=seen, workers=WORKERS, batch_size=BATCH)


def measured(folder: Path, side: int, by: str, out: Path, reference: Path) -> None:
    """Print, as JSON, the greatest memory during a ranking, and what there was before."""
    model = network()
    with torch.inference_mode():
        model(torch.rand(BATCH, 3, side, side))
    del model
    before, most, done = own_memory(), [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            most[0] = max(most[0], own_memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    rank(folder, side, by, out, reference)
    done.set()
    watcher.join()
    print(json.dumps({"before": before, "most": max(most[0], own_memory())}))


def memory(work: Path, side: int, sizes: tuple[int, int]) -> None:
    reference = photos(work, REFERENCES, side)
    folders = {n: photos(work, n, side) for n in sizes}
    for by in ("gini", TOGETHER):
        grew = []
        for n, folder in folders.items():
            done = subprocess.run([sys.executable, __file__, "--measure", str(folder), str(side),
                                   by, str(work / f"{by}{n}"), str(reference)],
                                  stdout=subprocess.PIPE, check=True)
            found = json.loads(done.stdout.splitlines()[-1])
            grew.append(found["most"] - found["before"])
            print(f"memory, {by}, {n:,} photos at {side}: {grew[-1] / 1e6:.0f} MB above the "
                  "model and one pass", flush=True)
        each = (grew[1] - grew[0]) / (sizes[1] - sizes[0])
        keep(f"rank --by {by}: memory that each further photo takes", each / 1e3, unit="kB")
        keep(f"rank --by {by}: memory for 100,000 photos, calculated",
             (grew[1] + each * (100_000 - sizes[1])) / 1e9, most=2, unit="GB")


def processor() -> float:
    """Seconds of the processor so far, of this process and of the workers that have ended."""
    return sum(os.times()[:4])


@torch.inference_mode()
def bare(source: custom.Photos, model: torch.nn.Module) -> float:
    """Seconds of a loader and a forward loop."""
    start = processor()
    for x in DataLoader(source, batch_size=BATCH, num_workers=WORKERS):
        model(fast_layout(unit(x), torch.device("cpu"))).softmax(1)
    return processor() - start


def streamed(source: custom.Photos, model: torch.nn.Module, by: str, seen: custom.Photos,
             work: Path) -> float:
    """Seconds of scoring all blocks, once the methods have been tried and have learned."""
    needs = any(custom.needs_reference(name) for name in by.split(","))
    job = custom.prepared_job(model, source, by.split(","), reference=seen if needs else None,
                              seed=None, layers=None, probabilities=None, batch_size=BATCH,
                              block=1024)
    learners = {name: chosen for name, chosen in job.selectors.items() if chosen.keeps}
    known, failed, _ = learn_at_once(Lessons(job.model, seen, learners, BATCH, 1024))
    if failed:
        raise SystemExit(str(failed))
    start = processor()
    for made in replace(job, known=known).run(range(len(job.names)), WORKERS):
        for name, content in made.items():
            files.write_atomically(work / name, content)
    return processor() - start


def throughput(work: Path, side: int, n: int) -> None:
    model = network()
    source, seen = (custom.read_photos(photos(work, count, side), model, size=side)
                    for count in (n, 2 * BATCH))
    with torch.no_grad():  # so that not all photos get the same class, for DSA
        model.fc.bias -= model(seen.some(BATCH)).mean(0)
    found: dict[str, float] = {}
    bare(source, model)
    loops = [bare(source, model)]
    for name in ONE_PASS:
        found[name] = streamed(source, model, name, seen, work)
        loops.append(bare(source, model))
    each = median(loops)
    print(f"throughput at {side}, {n} photos: a loader and forward loop takes "
          f"{1000 * each / n:.1f} ms of the processor a photo; its share of (goal 0.9)")
    for name, took in found.items():
        print(f"  {name:18}{each / took:5.2f}", flush=True)
        keep(f"rank --by {name}, {side} pixels: speed beside a bare loop", each / took, least=0.9)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--side", type=int, default=64)
    parser.add_argument("--few", type=int, default=2_000)
    parser.add_argument("--many", type=int, default=20_000)
    parser.add_argument("--speed", type=int, default=1_024)
    parser.add_argument("--measure", nargs=5)
    given = parser.parse_args()
    if given.measure:
        folder, side, by, out, reference = given.measure
        measured(Path(folder), int(side), by, Path(out), Path(reference))
        return
    with tempfile.TemporaryDirectory() as work:
        throughput(Path(work), given.side, given.speed)
    with tempfile.TemporaryDirectory() as work:
        memory(Path(work), given.side, (given.few, given.many))


if __name__ == "__main__":
    main()
