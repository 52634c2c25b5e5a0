"""Where things are kept, and the two ways of writing them: whole, or not at all."""

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from filelock import FileLock
from safetensors import SafetensorError, safe_open
from safetensors.torch import save


def data_dir() -> Path:
    """Folder of the datasets: ``$DNNLIB_DATA``, else ``data`` in the user's cache."""
    return Path(os.environ.get("DNNLIB_DATA") or cache_dir() / "data").expanduser()


def cache_dir() -> Path:
    """Folder of checkpoints, decoded images and success matrices: ``$DNNLIB_CACHE``."""
    return Path(os.environ.get("DNNLIB_CACHE") or "~/.cache/dnnlib").expanduser()


def writable(path: Path, name: str) -> Path:
    """``path``, if a file can be written there, also in folders that are yet to be made.

    Raises ``ValueError`` naming the option ``name``, before anything is computed.

    >>> writable(Path(__file__).parent, "--out")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: --out: expected a file to write, got the folder ...
    """
    if path.is_dir():
        raise ValueError(f"{name}: expected a file to write, got the folder {path}")
    place = path.absolute().parent
    while not place.exists():
        place = place.parent
    if not place.is_dir():
        raise ValueError(f"{name}: cannot write {path}, since {place} is not a folder")
    try:
        with tempfile.TemporaryDirectory(dir=place, prefix=".dnnlib."):
            pass
    except OSError as error:
        raise ValueError(f"{name}: cannot write {path}: {error.strerror}") from error
    return path


def write_atomically(path: Path, content: bytes) -> None:
    """Write ``content`` beside ``path``, then rename: a killed run leaves no half file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(beside, 0o644)
        os.replace(beside, path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


def printable(text: str) -> str:
    r"""Text as it can be shown: a question mark for each byte of a file's name that is not text.

    >>> printable("caf\udce9.jpg")
    'caf?.jpg'
    """
    return text.encode(errors="replace").decode()


def digest(value) -> str:
    """16 hexadecimal digits that name ``value``, anything JSON can hold.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def packed(tensors: dict[str, torch.Tensor], **metadata) -> bytes:
    """Tensors and their JSON metadata, as a safetensors file has them."""
    tensors = {k: v.detach().cpu().contiguous() for k, v in tensors.items()}
    return save(tensors, {k: json.dumps(v) for k, v in metadata.items()})


def save_tensors(path: Path, tensors: dict[str, torch.Tensor], **metadata) -> None:
    """:func:`packed` in a file."""
    write_atomically(path, packed(tensors, **metadata))


def load_tensors(path: Path,
                 names: Iterable[str] | None = None) -> tuple[dict[str, torch.Tensor], dict]:
    """Tensors and metadata of a safetensors file; ``ValueError`` names a damaged one.

    ``names``: of the tensors that are wanted, default all; those that are missing are left out.
    Metadata that is not JSON, as other programs write it, stays a string.
    """
    if path.is_file():
        path.open("rb").close()  # a file that may not be read is told by its own error
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {key: file.get_tensor(key) for key in file.keys()
                       if names is None or key in names}
            metadata = {k: _json(v) for k, v in (file.metadata() or {}).items() if k != "format"}
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{path} is not a whole safetensors file ({error}); "
                         "delete it, or fetch it again") from error
    return tensors, metadata


def _json(text: str):
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


@contextmanager
def making(path: Path) -> Iterator[bool]:
    """Whether ``path`` is yet to be made; if so, other processes that ask wait until it is.

    If this one is killed, the next goes on in its place: the system gives its lock back.
    """
    if path.exists():
        yield False
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        yield not path.exists()


def cached(kind: str, key: dict, make: Callable[[], dict[str, torch.Tensor]]) -> dict:
    """The tensors that ``make`` gives, computed once for each ``key`` and kept in the cache.

    Once by all processes together: see :func:`making`.
    """
    path = cache_dir() / kind / f"{digest(key)}.safetensors"
    with making(path) as missing:
        if not missing:
            return load_tensors(path)[0]
        tensors = make()
        save_tensors(path, tensors, key=key)
        return tensors
