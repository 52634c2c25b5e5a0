"""The floors of the architecture page are those of the code."""

import importlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = "".join((ROOT / "book" / name).read_text("utf-8") for name in ("architecture.md", "papers.md"))
sys.path.insert(0, str(ROOT / "book" / "extensions"))
import floors  # noqa: E402
import rooms  # noqa: E402

HOUSES = {house: (floors.imports(root), floors.floors(house))
          for house, root in floors.HOUSES.items()}
OF_RUNS = {"classifier"}  # readers' unfinished runs know it by this name
LIMITS = {"dnnlib": (15, 45), "dnnbook": (13, 30)}  # rooms, and arrows between them


@pytest.mark.parametrize("house", HOUSES)
def test_every_room_has_a_floor(house):
    rooms, found = HOUSES[house]
    assert set(found) == set(rooms)


@pytest.mark.parametrize("house, room", [(house, room) for house in HOUSES
                                         for room in HOUSES[house][0]])
def test_imports_only_go_down(house, room):
    rooms, floor = HOUSES[house]
    above = {other for other in rooms[room] if floor[other] >= floor[room]}
    assert not above, f"{room} is on floor {floor[room]} and imports {above}"
    row = re.search(rf"^\| \d+ \| `{room}` \| [^|]* \| ([^|]*) \|", floors.section(house), re.M)
    assert set(re.findall(r"`(\w+)`", row.group(1))) == rooms[room]


@pytest.mark.parametrize("house", HOUSES)
def test_the_house_is_small(house):
    """Few rooms and arrows, six floors, and the table of the page in the order of the floors."""
    rooms, floor = HOUSES[house]
    found = len(rooms), sum(map(len, rooms.values()))
    assert all(count <= limit for count, limit in zip(found, LIMITS[house])), found
    assert max(floor.values()) <= 5
    assert list(floor.values()) == sorted(floor.values(), reverse=True)


@pytest.mark.parametrize("house", HOUSES)
def test_no_module_is_called_as_a_function_of_its_room(house):
    """An import of one would give the other."""
    root = floors.HOUSES[house]
    for room in (path.parent for path in root.rglob("__init__.py")):
        package = importlib.import_module(".".join(room.relative_to(root.parent).parts))
        inside = {path.stem for path in room.iterdir() if path.suffix in ("", ".py")}
        called = {name for name in inside if callable(getattr(package, name, None))}
        assert called <= {"__init__", *OF_RUNS}, room


def test_the_engine_knows_no_book():
    used = {path: re.findall(r"^\s*(?:from|import) dnnbook", path.read_text("utf-8"), re.M)
            for path in (ROOT / "dnnlib").rglob("*.py")}
    assert len(used) > 80 and not any(used.values())


@pytest.mark.parametrize("room", HOUSES["dnnbook"][0])
def test_what_the_book_takes_of_the_engine_is_said(room):
    sources = [floors.HOUSES["dnnbook"] / f"{room}.py",
               *(floors.HOUSES["dnnbook"] / room).rglob("*.py")]
    text = "\n".join(path.read_text("utf-8") for path in sources if path.exists())
    used = {part for name, names in re.findall(
        r"^ *from dnnlib(?:\.(\w+)[\w.]*)? import ([\w, ]+)", text, re.M)
        for part in ([name] if name else names.split(", "))} - {"__version__"}
    row = re.search(rf"^\| \d+ \| `{room}` \| [^|]* \| [^|]* \| ([^|]*) \|$",
                    floors.section("dnnbook"), re.M)
    assert set(re.findall(r"`(\w+)`", row.group(1))) == used


@pytest.mark.parametrize("name", re.findall(r"\{source\}`([\w.]+)`", PAGE))
def test_every_equation_has_its_line(name):
    module, _, thing = name.rpartition(".")
    found = getattr(importlib.import_module(module), thing)
    assert found.__module__ == module and found.__doc__


@pytest.mark.parametrize("house", HOUSES)
def test_the_pages_have_every_module(house):
    root = floors.HOUSES[house]
    modules = {path.relative_to(root.parent).with_suffix("").as_posix().replace("/", ".")
               for path in root.rglob("*.py")
               if path.stem not in ("__init__", "__main__") and path.parent.name != "cli"}
    listed = {name for page in (ROOT / "book" / "api").glob("*.md")
              for name in re.findall(r"automodule:: ([\w.]+)", rooms.completed(page.read_text(encoding="utf-8")))}
    assert modules <= listed


def test_a_heading_of_the_pages_names_the_module_below_it():
    for page in (ROOT / "book" / "api").glob("*.md"):
        for heading, module in re.findall(r"^## `(\w+/\w+)`\s+```\{eval-rst\}\s+\.\. automodule:: ([\w.]+)",
                                          page.read_text("utf-8"), re.M):
            assert module.endswith("." + heading.replace("/", ".")), page


def test_the_tests_mirror_the_house():
    """The test of a module is found without searching: in the folder named as its room."""
    def folders(within):
        return {path.parent.relative_to(within).parts[0] for path in within.glob("*/test_*.py")}

    for root, within in ((ROOT / "dnnlib", ROOT / "tests"),
                         (ROOT / "book" / "dnnbook", ROOT / "tests" / "book")):
        assert folders(within) - {"book", "browser", "style"} == {
            path.name for path in root.iterdir() if path.is_dir() and path.name[0] != "_"}


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


@pytest.mark.parametrize("house", HOUSES)
def test_the_picture_shows_every_room(tmp_path, house):
    floors.draw(*HOUSES[house], tmp_path / "floors.svg")
    text = (tmp_path / "floors.svg").read_text(encoding="utf-8")
    assert all(f"<!-- {room} -->" in text for room in HOUSES[house][0])
