"""What git knows of the records: old versions of a file, and whether a commit exists."""

import json
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

from dnnbook.records import records
from dnnbook.records.records import Record


def git(folder: Path, *arguments: str) -> str | None:
    """What a git command prints, run in ``folder``; None where it fails or there is no git."""
    try:
        return subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True,
                              text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None


@cache
def whole(folder: Path) -> bool:
    """Whether ``folder`` lies in a checkout with all of its history."""
    return (git(folder, "rev-parse", "--is-shallow-repository") or "").strip() == "false"


@cache
def files(folder: Path, commit: str) -> frozenset[str] | None:
    """The paths of a commit, from the top of its tree; None if there is no such commit."""
    if not commit.isalnum():  # of a damaged record; nothing that git would read as an option
        return None
    found = git(folder, "ls-tree", "-r", "--full-tree", "--name-only", commit)
    return None if found is None else frozenset(found.split("\n"))


def content(folder: Path, commit: str, path: str) -> str | None:
    """A file below ``folder`` as of a commit; None if it was not there."""
    return git(folder, "show", f"{commit}:./{path}")


def version(root: Path, path: str, wanted: Callable[[Record], bool]) -> Record | None:
    """The newest version of the record in ``path``, below ``root``, that is ``wanted``."""
    for commit in (git(root, "log", "--format=%H", "--", path) or "").split():
        try:
            record = records.parsed(content(root, commit, path) or "")
        except (json.JSONDecodeError, TypeError):  # deleted there, or damaged
            continue
        if wanted(record):
            return record
    return None


@cache
def mentions(folder: Path, commit: str, text: str) -> bool:
    """Whether a chapter's source of a commit has a text, such as the name of an experiment."""
    chapters = ":(top,glob)notebooks/**/*.py"
    return bool(git(folder, "grep", "-lF", "-e", text, commit, "--", chapters))
