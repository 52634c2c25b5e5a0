"""What :func:`stress` measured, in a folder: tables, a figure, a sheet of an example, a page."""

import base64
import io
import json
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from dnnlib import checks, files
from dnnlib.custom import tables
from dnnlib.custom.changes import LADDERS
from dnnlib.custom.contact_sheet import sheet
from dnnlib.custom.stressing import Stressed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUN, COMMAND = "run.json", "stress"  # whose folder it is; a folder with run.json is no photos
FILES = ("strengths.csv", "changes.csv", "classes.csv", "images.csv", "stress.png", "sheet.png",
         "stress.html")
COLUMNS = 3  # of the figure's panels
COLOUR = "#0173b2"
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>
:root {{ color-scheme: light dark; }}
body {{ font: 15px/1.45 system-ui, sans-serif; margin: 1rem auto; padding: 0 1rem;
  max-width: 80rem; }}
p {{ max-width: 50rem; }}
h1 {{ font-size: 1.3rem; overflow-wrap: anywhere; }} h2 {{ font-size: 1.05rem; }}
img {{ max-width: 100%; background: #fff; }} .wide {{ overflow-x: auto; }}
.wide img {{ max-width: none; }}
table {{ border-collapse: collapse; font-size: 0.9rem; font-variant-numeric: tabular-nums; }}
td, th {{ padding: 2px 12px 2px 0; text-align: left; }}
tr {{ border-bottom: 1px solid #8884; }}
</style></head>
<body><h1>{title}</h1>
{body}
</body></html>
"""


def check_folder(folder: Path) -> None:
    """``ValueError`` for a folder that holds anything but what :func:`write` left there."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"out: expected a folder, got the file {folder}")
    if not folder.exists() or not any(folder.iterdir()):
        return
    try:
        found = json.loads((folder / RUN).read_bytes())
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict) or found.get("command") != COMMAND:
        raise ValueError(f"out: {folder} holds files that `dnnlib stress` did not write; give a "
                         "folder of its own")


def write(found: Stressed, folder: Path, facts: Mapping[str, object], *,
          title: str = "Stress") -> list[str]:
    """All :data:`FILES` in the folder, in place of those of an earlier run; what there is to say.

    ``facts``: what the result depends on, as JSON can hold it, for run.json. Without matplotlib
    there is no figure, which is said.
    """
    check_folder(folder)
    for name in FILES:  # a run that is killed here leaves nothing of two runs side by side
        (folder / name).unlink(missing_ok=True)
    files.write_atomically(folder / RUN, json.dumps(
        {"command": COMMAND, **facts}, indent=1).encode() + b"\n")
    for name in ("strengths", "changes", "classes", "images"):
        tables.write(getattr(found, name), folder / f"{name}.csv")
    said = [f"wrote stress.html, {', '.join(name for name in FILES[:-1])} in {folder}"]
    drawn = None
    try:
        drawn = as_png(figure(found))
        files.write_atomically(folder / "stress.png", drawn)
    except ModuleNotFoundError as error:
        said = [said[0].replace(", stress.png", ""), f"no figure: {error}"]
    shown = None
    if found.shown:
        sheet(dict(found.shown), columns=_columns(found)).save(content := io.BytesIO(), "PNG")
        shown = content.getvalue()
        files.write_atomically(folder / "sheet.png", shown)
    else:
        said[0] = said[0].replace(", sheet.png", "")
    files.write_atomically(folder / "stress.html", page(found, drawn, shown, title=title))
    return said


def _columns(found: Stressed) -> int:
    return max(len(titles) for _, titles in found.shown.values())


def as_png(drawn: "Figure") -> bytes:
    """A figure as PNG, 130 dots an inch."""
    drawn.savefig(content := io.BytesIO(), format="png", dpi=130, metadata={"Software": "dnnlib"})
    return content.getvalue()


def figure(found: Stressed) -> "Figure":
    """A panel for each change: the share of images still right over the strength, with intervals.

    Strong is to the right; but both directions of a change share a panel, with the unchanged image
    between them and strong at both ends. ``ModuleNotFoundError`` without matplotlib, naming the
    extra.
    """
    with checks.extra("plots"):
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator

    names = list(dict.fromkeys(found.strengths["change"]))
    rows = -(-len(names) // COLUMNS)
    drawn = Figure((7, 0.4 + 2.1 * rows), layout="constrained")
    axes = drawn.subplots(rows, COLUMNS, sharey=True, squeeze=False)
    for axis in axes.flat[len(names):]:
        axis.set_visible(False)
    for number, (axis, name) in enumerate(zip(axes.flat, names)):
        ladders = [ladder for ladder in LADDERS if ladder.change == name]
        for ladder in ladders:
            part = found.strengths[(found.strengths["change"] == name)
                                   & (found.strengths["direction"] == ladder.direction)]
            x = (ladder.sign * part["strength"]).tolist()
            curves = [part[column].tolist() for column in ("share", "low", "high")]
            if ladder.unchanged is not None:
                x, curves = [ladder.unchanged, *x], [[100.0, *curve] for curve in curves]
            axis.fill_between(x, *curves[1:], color=COLOUR, alpha=0.2, linewidth=0)
            axis.plot(x, curves[0], "o-", color=COLOUR, markersize=3.5, linewidth=1.4)
        if len(ladders) == 1 and ladders[0].strengths[0] > ladders[0].strengths[-1]:
            axis.invert_xaxis()
        axis.axhline(50, color="#5b636b", linestyle=":", linewidth=1)
        axis.set(ylim=(-3, 103), yticks=(0, 25, 50, 75, 100))
        axis.set_title({"jpeg": "JPEG"}.get(name, name), fontsize=10)
        unit = ladders[0].unit
        if len(ladders) > 1 and ladders[0].sign != ladders[1].sign:
            unit += f", {ladders[0].direction} and {ladders[1].direction}"
            axis.xaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
        axis.set_xlabel(unit, fontsize=9)
        axis.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        axis.tick_params(labelsize=9)
        axis.grid(alpha=0.3)
        if number % COLUMNS == 0:
            axis.set_ylabel("still right, %", fontsize=9)
    return drawn


def page(found: Stressed, drawn: bytes | None, shown: bytes | None, *,
         title: str = "Stress") -> bytes:
    """One HTML file with the pictures in it, which opens without a server and without a script.

    ``drawn``, ``shown``: the figure and the sheet as PNG, None for one that is not there.
    """
    parts = [f"<p>{escape(sentence)}</p>" for sentence in found.sentences]
    if drawn is not None:
        parts.append(_picture(drawn, "Curves, one panel for each change: the share of images still "
                              "right over the strength, with intervals of 95 %. The table of "
                              "strengths has the same numbers."))
    parts += ["<h2>Where it fails first</h2>", _table(changes_table(found.changes))]
    if shown is not None:
        answers = f"{files.printable(found.example)} under all changes, with the model's answers"
        parts += [f"<h2>{escape(answers)}</h2>",
                  "<p>✗ marks a wrong answer. At least half of the images have as many of them as "
                  "this one, or fewer.</p>",
                  f'<div class="wide">{_picture(shown, answers)}</div>']
    parts += ["<h2>Images still right, by strength</h2>", _table(found.strengths.assign(
        share=found.strengths["share"].map("{:.1f}".format), interval=_between(found.strengths)
        )[["change", "direction", "strength", "unit", "right", "n", "share", "interval"]].rename(
            columns={"share": "still right, %", "interval": "interval of 95 %"}))]
    return PAGE.format(title=escape(title), body="\n".join(parts)).encode("utf-8", "replace")


def changes_table(changes: pd.DataFrame) -> pd.DataFrame:
    """The rows of ``Stressed.changes``, as people read them."""
    def lost(row) -> str:
        if not row["class"]:
            return ""
        if pd.isna(row["class_n"]):
            return f"{row['class_lost']:.0f} % each"
        return (f"{row['class_lost']:.0f} [{row['class_low']:.0f}, {row['class_high']:.0f}] of "
                f"{row['class_n']:.0f}; others {row['others_lost']:.0f}")

    return pd.DataFrame({
        "change": [f"{a} {b}".strip() for a, b in zip(changes["change"], changes["direction"])],
        "unit": changes["unit"], "first wrong": [_number(v) for v in changes["first"]],
        "10 % wrong": [_number(v) for v in changes["lost_10"]],
        "half wrong": [_number(v) for v in changes["lost_50"]],
        "falls first": changes["class"],
        "at": [_number(v) for v in changes["class_50"]],
        "% of it lost": [lost(row) for _, row in changes.iterrows()]})


def _number(value) -> str:
    return "" if pd.isna(value) else f"{value:g}"


def _between(table: pd.DataFrame) -> list[str]:
    return [f"{low:.1f} to {high:.1f}" for low, high in zip(table["low"], table["high"])]


def _picture(content: bytes, words: str) -> str:
    return (f'<img alt="{escape(words)}" src="data:image/png;base64,'
            f'{base64.b64encode(content).decode()}">')


def _table(table: pd.DataFrame) -> str:
    head = "".join(f"<th>{escape(str(name))}</th>" for name in table)
    rows = "".join("<tr>" + "".join(f"<td>{escape(_text(value))}</td>" for value in row) + "</tr>\n"
                   for row in table.itertuples(index=False))
    return f'<div class="wide"><table><tr>{head}</tr>\n{rows}</table></div>'


def _text(value) -> str:
    return f"{value:g}" if isinstance(value, float) else files.printable(str(value))
