"""What the Makefile's commands do in folders with any name."""

import os
import subprocess
from pathlib import Path

from dnnbook import places


def steps(folder: Path, *asked: str) -> list[str]:
    """The lines that ``make`` would run in a copy that is installed already."""
    for part in (".venv", "book", "sweeps", "_build/book"):
        (folder / part).mkdir(parents=True)
    for name in ("_config.yml", "_toc.yml", "pyproject.toml", "book/pyproject.toml", ".venv/.installed"):
        (folder / name).touch()
    (folder / "Makefile").write_text((places.checkout() / "Makefile").read_text("utf-8"), "utf-8")
    alone = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}  # under `make units` too
    return subprocess.run(["make", "-n", *asked], cwd=folder, env=alone, capture_output=True, text=True, check=True).stdout.splitlines()


def test_a_fresh_book_is_linked_to_a_folder_with_blanks_and_accents(tmp_path):
    folder = tmp_path / "mon cours é"
    link, = (step for step in steps(folder, "book") if "ln -s" in step)
    for _ in range(2):  # a second time changes nothing
        subprocess.run(link, shell=True, cwd=folder, check=True)
    for name in ("_config.yml", "_toc.yml", "book", "sweeps"):
        assert (folder / "_build/book" / name).resolve(strict=True) == (folder / name).resolve()


def test_lab_opens_a_folder_with_blanks(tmp_path):
    assert steps(tmp_path / "here", "lab", "LAB=~/labo deux")[-1] == 'dnnbook lab "~/labo deux"'
