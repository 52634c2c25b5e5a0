"""The floors of the architecture page are those of the code."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "architecture.md").read_text(encoding="utf-8")
spec = importlib.util.spec_from_file_location("floors", ROOT / "book/extensions/floors.py")
floors = importlib.util.module_from_spec(spec)
spec.loader.exec_module(floors)
FLOORS = floors.floors()
ROOMS = floors.imports()


def test_every_room_has_a_floor():
    assert set(FLOORS) == set(ROOMS)


@pytest.mark.parametrize("room", FLOORS)
def test_imports_only_go_down(room):
    found = ROOMS[room]
    above = {other for other in found if FLOORS[other] >= FLOORS[room]}
    assert not above, f"{room} is on floor {FLOORS[room]} and imports {above}"
    if room != "cli":
        row = re.search(rf"^\| \d \| `{room}` \|.*\| (.*) \|$", PAGE, re.M).group(1)
        assert set(re.findall(r"`(\w+)`", row)) == found


def test_imports_are_those_of_all_kinds(tmp_path):
    root = tmp_path / "house"
    (root / "upper").mkdir(parents=True)
    (root / "upper" / "__init__.py").write_text("from house import one, __version__\n"
                                                "from house.upper import room\n")
    (root / "upper" / "room.py").write_text("def f():\n    import house.two\n    import numpy\n")
    (root / "one.py").write_text("from house.two import thing\n")
    (root / "two.py").write_text("")
    graph = floors.imports(root)
    assert graph == {"upper": {"one", "two"}, "one": {"two"}, "two": set()}
    assert floors.direct(graph) == {("upper", "one"), ("one", "two")}


def test_the_picture_shows_every_room(tmp_path):
    floors.draw(ROOMS, FLOORS, tmp_path / "floors.svg")
    text = (tmp_path / "floors.svg").read_text(encoding="utf-8")
    assert all(f"<!-- {room} -->" in text for room in ROOMS)
