"""Coverage criteria and coverage-additional order against dnn-tip, as ratios in one run.

Without dnn-tip (``pip install dnn-tip``), KMNC and the order are compared with the same way
written out below: a table of inputs x neurons x sections.
"""

import importlib
import importlib.util
import resource
import time
import tracemalloc

import numpy as np
import torch
from goals import keep

from dnnlib import coverage as cov

INPUTS, NEURONS, SECTIONS = 2_000, 1_000, 100
PEER = "dnn-tip" if importlib.util.find_spec("dnn_tip") else "the table written out"


def seconds(action, repeats: int = 3) -> tuple[float, object]:
    """The best of a few runs, and what the last one gave."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = action()
        times.append(time.perf_counter() - start)
    return min(times), result


def written_out(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """KMNC as a table of inputs x neurons x sections."""
    table = np.zeros((*values.shape, SECTIONS), bool)
    step = (high - low) / SECTIONS
    for i in range(SECTIONS):
        table[..., i] = (values >= low + i * step) & (values < low + (i + 1) * step)
    return table


def written_out_order(table: np.ndarray) -> list[int]:
    """The greedy order, counting in the whole table for every pick; not beyond saturation."""
    left, picked = table.reshape(len(table), -1).copy(), []
    gain = left.sum(1)
    while gain.max() > 0:
        picked.append(int(gain.argmax()))
        new = left[picked[-1]].nonzero()[0]
        gain -= left[:, new].sum(1)
        left[:, new] = False
    return picked


def compare(name: str, ours, theirs, repeats: int = 3) -> tuple:
    fast, mine = seconds(ours, max(3, repeats))
    slow, other = seconds(theirs, repeats)
    print(f"{name:5}{1e3 * fast:9.1f} ms {1e3 * slow:9.1f} ms {slow / fast:8.1f} times faster")
    keep(f"{name}, {PEER}'s time beside ours", slow / fast, least=2)
    return mine, other


def against_dnn_tip(values: torch.Tensor, seen: cov.Boundaries) -> None:
    peer = importlib.import_module("dnn_tip.neuron_coverage")
    cam = importlib.import_module("dnn_tip.prioritizers").cam
    layers = [values.numpy()]
    low, high = ([side.float().numpy()] for side in seen)
    std = [np.zeros(NEURONS)]

    def both(criterion):
        """dnn-tip gives the counts as well."""
        covered = criterion()
        return covered.counts, covered

    pairs = {
        "NAC": (lambda: cov.nac(values, 0.5), peer.NAC(0.5)),
        "NBC": (lambda: cov.nbc(values, seen, strict=False), peer.NBC(low, high, std, 0)),
        "SNAC": (lambda: cov.snac(values, seen, strict=False), peer.SNAC(high, std, 0)),
        "TKNC": (lambda: cov.tknc(values, 3), peer.TKNC(3)),
        "KMNC": (lambda: cov.kmnc(values, seen, SECTIONS, edges="low"),
                 peer.KMNC(low, high, SECTIONS)),
    }
    for name, (ours, theirs) in pairs.items():
        mine, other = compare(name, lambda: both(ours), lambda: theirs(layers),
                              3 if name == "KMNC" else 20)
        print(f"      {(mine[0].numpy() == other[0]).mean():.2%} of the inputs with equal counts")
    # the same sections for both: in single precision dnn-tip rounds a few to the next one
    covered = mine[1]
    table = (covered.bins[..., None] == torch.arange(SECTIONS)).numpy()
    fast, order = seconds(lambda: cov.cam(covered, fill="ctm"))
    scores, spare = covered.counts.numpy(), table.copy()  # it overwrites what it is given
    slow, other = seconds(lambda: list(cam(scores, spare)), 1)
    picks = len(cov.cam(covered, fill=None))
    same = order[:picks].tolist() == [int(i) for i in other[:picks]]
    print(f"CAM  {1e3 * fast:9.1f} ms {1e3 * slow:9.1f} ms {slow / fast:8.1f} times faster")
    print(f"      {picks} picks until nothing is gained, same order: {same}")


def against_written_out(values: torch.Tensor, seen: cov.Boundaries) -> None:
    values, low, high = values.double(), seen.low.numpy(), seen.high.numpy()
    covered, table = compare("KMNC", lambda: cov.kmnc(values, seen, SECTIONS, edges="low"),
                             lambda: written_out(values.numpy(), low, high))
    order, other = compare("CAM", lambda: cov.cam(covered, fill="ctm"),
                           lambda: written_out_order(table), 1)
    print(f"      same order: {order[:len(other)].tolist() == other}")


def memory() -> None:
    """10,000 inputs x 1,000 neurons x 1,000 sections, whose table would take 10 GB."""
    train = torch.randn(2_000, NEURONS, generator=torch.Generator().manual_seed(2))
    values = torch.randn(10_000, NEURONS, generator=torch.Generator().manual_seed(3))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    tracemalloc.start()  # sees NumPy's memory; the process's peak holds PyTorch's too
    start = time.perf_counter()
    order = cov.cam(cov.kmnc(values, cov.boundaries(train), 1_000), fill="ctm")
    took, traced = time.perf_counter() - start, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    whole = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"KMNC and CAM of {len(order)} x {NEURONS} x 1000: {took:.1f} s, "
          f"{traced / 1e9:.2f} GB traced, {whole / 1e9:.2f} GB of the process at most, "
          f"of which {before / 1e9:.2f} GB before")
    if max(traced, whole - before) > 1e9:
        raise SystemExit("more than 1 GB")


def main() -> None:
    memory()  # first: the peak of the process never falls
    train = torch.randn(INPUTS, NEURONS, generator=torch.Generator().manual_seed(0))
    values = torch.randn(INPUTS, NEURONS, generator=torch.Generator().manual_seed(1))
    seen = cov.boundaries(train)
    print(f"{INPUTS} x {NEURONS}, {SECTIONS} sections: ours, then {PEER}")
    (against_dnn_tip if PEER == "dnn-tip" else against_written_out)(values, seen)


if __name__ == "__main__":
    main()
