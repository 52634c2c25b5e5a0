"""The import graphs of dnnlib and dnnbook, drawn from their code whenever the book is built."""

import ast
import re
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
HOUSES = {"dnnlib": ROOT / "dnnlib", "dnnbook": ROOT / "book" / "dnnbook"}


def imports(root: Path) -> dict[str, set[str]]:
    """The modules and packages of ``root``, and which of the others each imports."""
    rooms = {path.stem if path.suffix else path.name: path for path in root.iterdir()
             if path.name[0] not in "._" and path.suffix in ("", ".py")}
    found = {}
    for name, path in rooms.items():
        sources = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        used = set()
        for node in (n for s in sources for n in ast.walk(ast.parse(s.read_text("utf-8")))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == root.name:
                inside = node.module.split(".")[1:2]
                used |= set(inside or (alias.name for alias in node.names))
            elif isinstance(node, ast.Import):
                used |= {alias.name.split(".")[1] for alias in node.names
                         if alias.name.startswith(f"{root.name}.")}
        found[name] = (used & set(rooms)) - {name}
    return found


def section(house: str, page: Path = ROOT / "book" / "architecture.md") -> str:
    """What the page says of the floors of ``house``, up to the next heading."""
    return page.read_text("utf-8").split(f"## The floors of `{house}`")[1].split("\n## ")[0]


def floors(house: str) -> dict[str, int]:
    """The floor of each module, by the table of the page."""
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", section(house), re.M)
    return {name: int(floor) for floor, name in rows}


def direct(graph: dict[str, set[str]]) -> set[tuple[str, str]]:
    """The imports that no chain of others implies (the transitive reduction)."""
    def below(name: str) -> set[str]:
        return set().union(*({other} | below(other) for other in graph[name]))

    return {(name, other) for name, used in graph.items() for other in used
            if not any(other in below(third) for third in used - {other})}


def draw(graph: dict[str, set[str]], floor: dict[str, int], target: Path) -> None:
    """Boxes on their floors, and a line for every direct import."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams["svg.hashsalt"] = "floors"  # the same file from the same code
    lines, place = sorted(direct(graph)), {}
    for level in sorted(set(floor.values()), reverse=True):
        above = {name: [place[user][0] for user, used in lines if used == name and user in place]
                 for name in graph if floor[name] == level}
        row = sorted(above, key=lambda name: (sum(above[name]) / max(1, len(above[name])), name))
        place |= {name: ((i + 0.5) / len(row), level) for i, name in enumerate(row)}
    figure = Figure(figsize=(11, 1 + 0.75 * max(floor.values())))
    axis = figure.add_axes((0, 0, 1, 1))
    for name, other in lines:
        axis.plot(*zip(place[name], place[other]), color="0.75", lw=0.8, zorder=1)
    for name, (x, level) in place.items():
        axis.text(x, level, name, ha="center", va="center", fontsize=9, zorder=2,
                  bbox={"boxstyle": "round,pad=0.35", "fc": "white", "ec": "0.4", "lw": 0.8})
    axis.set(xlim=(0, 1), ylim=(-0.5, max(floor.values()) + 0.5))
    axis.axis("off")
    figure.savefig(target, metadata={"Date": None})


def setup(app: Sphinx) -> dict:
    def pictures(_: Sphinx) -> None:
        for house, root in HOUSES.items():
            draw(imports(root), floors(house), ROOT / "book" / "assets" / f"{house}_floors.svg")

    app.connect("builder-inited", pictures)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
