import errno
import os
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from dnnbook import places
from dnnlib import files


class HalfWritten:
    """A file whose writing is interrupted half-way."""

    def __init__(self, file):
        self.file = file

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.close()

    def write(self, content):
        self.file.write(content[:len(content) // 2])
        raise KeyboardInterrupt


def interrupt(*args, **kwargs):
    raise KeyboardInterrupt


@pytest.mark.parametrize("during", ["writing", "renaming"])
def test_interrupted_write_leaves_old_content(folders, monkeypatch, during):
    path = folders / "kept.bin"
    files.write_atomically(path, b"old")
    if during == "writing":
        fdopen = os.fdopen
        monkeypatch.setattr(os, "fdopen", lambda handle, mode: HalfWritten(fdopen(handle, mode)))
    else:
        monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        files.write_atomically(path, b"new content")
    assert path.read_bytes() == b"old"
    assert [p.name for p in folders.iterdir()] == ["kept.bin"]  # nothing half-written beside it


def test_write_makes_folders_and_a_readable_file(folders):
    path = folders / "a" / "b" / "file"
    files.write_atomically(path, b"x")
    assert path.read_bytes() == b"x"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_folders_follow_the_environment(folders, monkeypatch):
    assert files.data_dir() == folders / "data"
    assert files.cache_dir() == folders / "cache"
    assert places.results_dir() == folders / "results"
    assert places.own_results_dir() == folders / "results"
    monkeypatch.delenv("DNNLIB_DATA")
    assert files.data_dir() == folders / "cache" / "data"


def test_runs_of_ones_own_leave_the_books_results_alone(monkeypatch):
    monkeypatch.delenv("DNNLIB_RESULTS")
    monkeypatch.delenv("DNNLIB_BOOK")
    book = places.results_dir()
    assert places.own_results_dir() == book.parent / "runs" / "results"
    monkeypatch.setenv("DNNLIB_RESULTS", "mine")  # and what tables show is still the book's
    assert places.own_results_dir() == Path("mine") and places.results_dir() == book
    monkeypatch.setenv("DNNLIB_RESULTS", str(book / ".." / "results"))
    with pytest.raises(ValueError, match="DNNLIB_RESULTS: expected a folder of your own"):
        places.own_results_dir()


def test_digest_tells_values_apart():
    assert files.digest({"a": [1, 2]}) == files.digest({"a": (1, 2)})
    assert files.digest({"a": [1, 2]}) != files.digest({"a": [2, 1]})
    assert len(files.digest(0)) == 16


def test_tensors_and_metadata_come_back(folders):
    tensors = {"w": torch.rand(2, 3).t(), "n": torch.tensor(7), "b": torch.tensor([True, False])}
    files.save_tensors(folders / "t.safetensors", tensors, key={"epoch": 3})
    back, metadata = files.load_tensors(folders / "t.safetensors")
    assert metadata == {"key": {"epoch": 3}}
    assert back.keys() == tensors.keys()
    assert all(torch.equal(back[k], v) and back[k].dtype == v.dtype for k, v in tensors.items())


@pytest.mark.parametrize("damage", [lambda b: b[:-5], lambda b: b[:4], lambda b: b"",
                                    lambda b: b"<html>" + b])
def test_damaged_cached_tensors_name_the_file(folders, damage):
    files.cached("kind", {"k": 1}, lambda: {"w": torch.zeros(100)})
    path, = (folders / "cache" / "kind").glob("*.safetensors")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=path.name):
        files.cached("kind", {"k": 1}, lambda: {"w": torch.zeros(100)})


def test_cached_makes_once_for_each_key():
    made = []

    def make():
        made.append(1)
        return {"w": torch.tensor(len(made))}

    assert [int(files.cached("kind", {"k": k}, make)["w"]) for k in (1, 1, 2, 1)] == [1, 1, 2, 1]


def test_of_two_at_once_one_makes_and_the_other_waits():
    made, both = [], threading.Barrier(2)

    def make():
        time.sleep(0.2)  # long enough for the other to ask
        made.append(1)
        return {"w": torch.tensor(len(made))}

    def ask(_):
        both.wait()
        return int(files.cached("kind", {}, make)["w"])

    with ThreadPoolExecutor(2) as pool:
        assert [*pool.map(ask, range(2))] == [1, 1]
    assert made == [1]


def test_what_failed_is_made_by_the_next():
    def fail():
        raise ValueError("not this time")

    with pytest.raises(ValueError, match="not this time"):
        files.cached("kind", {}, fail)
    assert int(files.cached("kind", {}, lambda: {"w": torch.tensor(3)})["w"]) == 3


def test_metadata_of_others_stay_strings(tmp_path):
    """Files that other programs wrote hold plain strings, not JSON."""
    save_file({"a": torch.zeros(2)}, tmp_path / "a.safetensors", {"format": "pt", "by": "Keras: 2"})
    assert files.load_tensors(tmp_path / "a.safetensors")[1] == {"by": "Keras: 2"}


def test_what_can_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    for good in (tmp_path / "new", tmp_path / "file", tmp_path / "a" / "b" / "new"):
        assert files.writable(good, "--out") == good
    for wrong, words in ((tmp_path, "expected a file to write, got the folder"),
                         (tmp_path / "file" / "x", "file is not a folder")):
        with pytest.raises(ValueError, match=f"--out: .*{words}"):
            files.writable(wrong, "--out")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_full_disk_is_told_before_anything_is_computed(tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.tempfile, "TemporaryDirectory", full)
    with pytest.raises(ValueError, match="--out: cannot write .*x: No space left on device"):
        files.writable(tmp_path / "x", "--out")


def test_a_file_without_permission_is_not_called_damaged(tmp_path, monkeypatch):
    def shut(self, *args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    files.save_tensors(tmp_path / "w.safetensors", {})
    monkeypatch.setattr(Path, "open", shut)
    with pytest.raises(PermissionError, match="Permission denied"):
        files.load_tensors(tmp_path / "w.safetensors")
