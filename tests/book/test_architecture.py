"""The floors of the architecture page are those of the code."""

import importlib
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
    row = re.search(rf"^\| \d+ \| `{room}` \|.*\| (.*) \|$", PAGE, re.M).group(1)
    assert set(re.findall(r"`(\w+)`", row)) == found


def test_the_house_is_small():
    """At most 19 rooms on six floors, and the table of the page in the order of the floors."""
    assert len(ROOMS) <= 19 and max(FLOORS.values()) <= 5
    assert list(FLOORS.values()) == sorted(FLOORS.values(), reverse=True)


@pytest.mark.parametrize("name", re.findall(r"\{source\}`([\w.]+)`", PAGE))
def test_every_equation_has_its_line(name):
    module, _, thing = name.rpartition(".")
    found = getattr(importlib.import_module(module), thing)
    assert found.__module__ == module and found.__doc__


def test_the_pages_of_the_engine_have_every_module():
    modules = {path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
               for path in (ROOT / "dnnlib").rglob("*.py")
               if path.stem not in ("__init__", "__main__") and path.parent.name != "cli"}
    listed = {name for page in (ROOT / "book" / "api").glob("*.md")
              for name in re.findall(r"automodule:: ([\w.]+)", page.read_text(encoding="utf-8"))}
    assert modules <= listed


def test_the_tests_mirror_the_house():
    """The test of a module is found without searching: in the folder named as its room."""
    folders = {path.parent.relative_to(ROOT / "tests").as_posix()
               for path in (ROOT / "tests").rglob("test_*.py")} - {".", "browser"}
    assert folders == {path.name for path in (ROOT / "dnnlib").iterdir()
                       if path.is_dir() and not path.name.startswith("_")}


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
