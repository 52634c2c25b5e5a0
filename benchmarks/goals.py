"""Figures of the benchmarks, most with a goal: kept in measured.json, shown as tables.

    python benchmarks/goals.py         # the tables of what was measured
    python benchmarks/goals.py --page  # and into book/scales.md

A figure is a ratio of two things timed in one run, unless its unit says otherwise.
"""

import json
import sys
from pathlib import Path

from dnnlib import files

ROOT = Path(__file__).resolve().parents[1]
KEPT, PAGE = ROOT / "benchmarks" / "measured.json", ROOT / "book" / "scales.md"
BEGIN, END = "<!-- goals -->\n", "<!-- end -->"
BEGIN_GPU = "<!-- goals on a GPU -->\n"


def keep(what: str, figure: float, *, least: float | None = None, most: float | None = None,
         unit: str = "times", gpu: str = "") -> None:
    """A figure, by what was measured; its goal, if it has one, is at ``least`` or at ``most`` that.

    ``gpu``: the name of the GPU that it was measured on; such figures have a table of their own.
    """
    known = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    known[what] = {"figure": float(f"{figure:.4g}"), "least": least, "most": most, "unit": unit,
                   "gpu": gpu}
    files.write_atomically(KEPT, (json.dumps(known, indent=1) + "\n").encode())


def table(gpu: str = "") -> str:
    """Of all that was kept, on a CPU or on that GPU, in Markdown."""
    lines = ["| what | measured | goal | reached |", "|---|---|---|---|"]
    for what, row in json.loads(KEPT.read_text()).items():
        if row.get("gpu", "") != gpu:
            continue
        least, most, figure = row["least"], row["most"], row["figure"]
        goal, met = "none", ""
        if least is not None:
            goal, met = f"at least {least:g}", "yes" if figure >= least else "no"
        elif most is not None:
            goal, met = f"at most {most:g}", "yes" if figure <= most else "no"
        lines.append(f"| {what} | {figure:.2f} {row['unit']} | {goal} | {met} |")
    return "\n".join(lines)


def blocks() -> dict[str, str]:
    """By its mark on the page, each table with what it was measured on."""
    known = json.loads(KEPT.read_text())
    found = {BEGIN_GPU if gpu else BEGIN: f"On one {gpu}:\n\n{table(gpu)}" if gpu else table()
             for gpu in sorted({row.get("gpu", "") for row in known.values()})}
    return {mark: f"{mark}{told}\n{END}" for mark, told in found.items()}


def main() -> None:
    if not KEPT.exists():
        raise SystemExit("nothing was measured yet; run: make bench")
    for mark, block in blocks().items():
        print(block)
        if "--page" in sys.argv:
            before, rest = PAGE.read_text("utf-8").split(mark)
            files.write_atomically(
                PAGE, f"{before}{block}{rest[rest.index(END) + len(END):]}".encode())


if __name__ == "__main__":
    main()
