"""The floors of the architecture page are those of the code."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "book" / "architecture.md").read_text(encoding="utf-8")
FLOORS = {name: int(floor) for floor, name in re.findall(r"^\| (\d) \| `(\w+)` \|", PAGE, re.M)}
ROOMS = {path.stem if path.suffix else path.name: path for path in (ROOT / "dnnlib").iterdir()
         if path.name[0] not in "._" and path.suffix in ("", ".py")}


def imported(path: Path) -> set[str]:
    """The rooms of dnnlib that a module or package imports, other than itself."""
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    rooms = set()
    for node in (n for f in files for n in ast.walk(ast.parse(f.read_text(encoding="utf-8")))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dnnlib":
            inside = node.module.split(".")[1:2]
            rooms |= set(inside or (alias.name for alias in node.names))
        elif isinstance(node, ast.Import):
            rooms |= {alias.name.split(".")[1] for alias in node.names
                      if alias.name.startswith("dnnlib.")}
    return {room for room in rooms if room in ROOMS} - {path.stem}


def test_every_room_has_a_floor():
    assert set(FLOORS) == set(ROOMS) - {"__pycache__"}


@pytest.mark.parametrize("room", FLOORS)
def test_imports_only_go_down(room):
    found = imported(ROOMS[room])
    above = {other for other in found if FLOORS[other] >= FLOORS[room]}
    assert not above, f"{room} is on floor {FLOORS[room]} and imports {above}"
    if room != "cli":
        row = re.search(rf"^\| \d \| `{room}` \|.*\| (.*) \|$", PAGE, re.M).group(1)
        assert set(re.findall(r"`(\w+)`", row)) == found
