"""Twelve small cells on the CPU and on another device: do their records agree within the seeds?

    python benchmarks/bench_devices.py               # on the best device there is
    python benchmarks/bench_devices.py --device cpu  # the CPU with itself: every row is identical

Each cell of ``sweeps/devices.toml`` runs on both, in an empty cache each, so that networks are
trained there too. A row agrees if it is identical, or within the interval of prediction of the
CPU's seeds: :func:`dnnbook.chapters.replay.compared`. Ends with 1 if fewer than 95 % agree.
"""

import argparse
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import torch
from goals import keep

from dnnbook.chapters import replay
from dnnbook.records import records
from dnnlib import inference

ROOT = Path(__file__).resolve().parents[1]
FILE, OUT = ROOT / "sweeps" / "devices.toml", ROOT / "_build" / "devices"
AGREE = 0.95  # of the rows, as the interval is that of 95 of 100 further values


def swept(device: str, folder: Path) -> float:
    """The seconds of the sweep on a device; its records are in ``folder`` / results."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "dnnlib.cli", "sweep", FILE, "--device", device,
                    "--results", folder / "results"], check=True, cwd=ROOT,
                   env=os.environ | {"DNNLIB_CACHE": str(folder / "cache")})
    return time.perf_counter() - start


def agreement(ours: Path, theirs: Path) -> Counter:
    """Rows by state, over all records of ``ours`` beside those of ``theirs``."""
    found: Counter = Counter()
    for path in sorted(ours.glob("*/*/*.json")):
        record, other = records.read(path), theirs / path.relative_to(ours)
        table = replay.compared(record, records.read(other), replay.seeds(record, path))
        states = Counter(table["state"])
        print(f"{record.experiment} seed {record.parameters['seed']}: "
              + ", ".join(f"{count} {state}" for state, count in sorted(states.items())))
        found += states
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="auto", help="cpu, cuda, mps or auto")
    device = str(inference.device(parser.parse_args().device))
    seconds = {name: swept(name.removesuffix("-again"), OUT / name) for name in dict.fromkeys(
        ["cpu", device if device != "cpu" else "cpu-again"])}
    last = [*seconds][-1]
    found = agreement(OUT / "cpu" / "results", OUT / last / "results")
    told = sum(found[state] for state in ("identical", "within", "different", "gone"))
    agree = (found["identical"] + found["within"]) / told
    print(f"{last}: {agree:.1%} of {told:,} rows agree; "
          f"{seconds['cpu']:.0f} s on the CPU, {seconds[last]:.0f} s there")
    if device != "cpu":
        gpu = torch.cuda.get_device_name() if device.startswith("cuda") else device
        keep("rows of twelve small cells that agree with the CPU's within its seeds", 100 * agree,
             least=100 * AGREE, unit="%", gpu=gpu)
    return int(agree < AGREE)


if __name__ == "__main__":
    sys.exit(main())
