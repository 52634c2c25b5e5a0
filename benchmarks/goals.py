"""Figures that have a goal: kept while the benchmarks run, and shown as one table at the end.

    python benchmarks/goals.py         # the table of what was measured
    python benchmarks/goals.py --page  # and into book/scales.md

A figure is a ratio of two things timed in one run, unless its unit says otherwise.
"""

import json
import sys
from pathlib import Path

from dnnlib import files

ROOT = Path(__file__).resolve().parents[1]
KEPT, PAGE = ROOT / "_build" / "bench.json", ROOT / "book" / "scales.md"
BEGIN, END = "<!-- goals -->\n", "<!-- end -->"
BEGIN_GPU = "<!-- goals on a GPU -->\n"


def keep(what: str, figure: float, *, least: float | None = None, most: float | None = None,
         unit: str = "times", gpu: str = "") -> None:
    """A figure, by what was measured; its goal is at ``least`` or at ``most`` that.

    ``gpu``: the name of the GPU that it was measured on; such figures have a table of their own.
    """
    known = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    known[what] = {"figure": figure, "least": least, "most": most, "unit": unit, "gpu": gpu}
    files.write_atomically(KEPT, json.dumps(known, indent=1).encode())


def table(gpu: str = "") -> str:
    """Of all that was kept, on a CPU or on that GPU, in Markdown."""
    lines = ["| what | measured | goal | reached |", "|---|---|---|---|"]
    for what, row in json.loads(KEPT.read_text()).items():
        if row.get("gpu", "") != gpu:
            continue
        least, most, figure = row["least"], row["most"], row["figure"]
        goal = f"at least {least:g}" if most is None else f"at most {most:g}"
        met = figure >= least if most is None else figure <= most
        lines.append(f"| {what} | {figure:.2f} {row['unit']} | {goal} | {'yes' if met else 'no'} |")
    return "\n".join(lines)


def main() -> None:
    if not KEPT.exists():
        raise SystemExit("nothing was measured yet; run: make bench")
    known = json.loads(KEPT.read_text())
    for gpu in sorted({row.get("gpu", "") for row in known.values()}):
        print(gpu, table(gpu), sep="\n")
        if "--page" in sys.argv:
            begin = BEGIN_GPU if gpu else BEGIN
            before, rest = PAGE.read_text().split(begin)
            told = f"On one {gpu}:\n\n{table(gpu)}" if gpu else table()
            after = rest[rest.index(END):]
            files.write_atomically(PAGE, f"{before}{begin}{told}\n{after}".encode())


if __name__ == "__main__":
    main()
