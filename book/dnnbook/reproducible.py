"""The same bits again: what is fixed in every run, and names for what cannot be.

Sums of floating-point numbers depend on their order, and the order on the number of threads and on
the instructions of the processor. Training, with its thousands of steps, turns a last digit into
another network, the more so in bfloat16. So the number of threads is fixed; the processor is named.
On a GPU products and convolutions are in float32 throughout, not in TF32, and its libraries are
asked for the same order of sums in every run.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from threadpoolctl import threadpool_limits

THREADS = "DNNLIB_THREADS"  # the environment variable; one thread without it
WORKSPACE = ("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what cuBLAS needs to repeat its sums
REVISIONS = {  # a line more, at the end, when the code changes what it computes
    "training": ("gradient descent by recipe",
                 "Nesterov's momentum, rates in steps and augmentation: another loop of training"),
    "augmentation": ("image by image, by torchvision",
                     "a gather a batch, by offsets that an epoch draws at once"),
    "success": ("the success matrix of small patches",),
    "campaigns": ("fuzzers on one protocol",
                  "noise ends at the distance of its bound; settings of the rivals",
                  "swarms and populations: numbers from a counter, the same on every device"),
    "orders": ("selectors on one protocol; NPC by layer-wise relevance",
               "DSA by coverage: the largest surprise is in the last bucket, rounded or not"),
    "kinds": ("random order shows the kinds of fault of one drawn order",
              "random order shows what random orders do on average"),
    "clever": ("points drawn for the images in turn",
               "an image's points do not depend on the others, or on the batches"),
    "near": ("errors within a distance, as float32 rounds it",
             "errors at the distance are within it, rounded or not"),
}
os.environ.setdefault(*WORKSPACE)  # read when CUDA is first used, so before anything is
_noted: dict[str, set[str]] = {"revisions": set(), "precision": set()}


def threads() -> int:
    """The number of threads that a run shall use: ``$DNNLIB_THREADS``, else one.

    Raises ``ValueError`` unless it is a whole number above zero.
    """
    text = os.environ.get(THREADS) or "1"
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{THREADS}: expected a whole number above 0, got {text!r}")
    return int(text)


def fix() -> None:
    """Fix, for the rest of this process, what changes the last digits; a chapter starts so.

    The number of threads, of PyTorch's and of numpy's and scipy's linear algebra, becomes
    :func:`threads`, algorithms are deterministic where there is a choice (a warning tells
    where there is none), and no product or convolution is in TF32. What was noted for
    :func:`settings` is forgotten.
    """
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(threads())  # read by libraries that are loaded later
    _set(threads(), True)
    for names in _noted.values():
        names.clear()


@contextmanager
def fixed() -> Iterator[None]:
    """As :func:`fix`, but only within: for a function that is called from other programs.

    >>> before = torch.get_num_threads()
    >>> with fixed():
    ...     torch.get_num_threads() == threads()
    True
    >>> torch.get_num_threads() == before
    True
    """
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    warns = torch.is_deterministic_algorithms_warn_only_enabled()
    tf32 = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    with threadpool_limits(threads()):
        _set(threads(), True)
        try:
            yield
        finally:
            _set(*before, warns, tf32)


def _set(count: int, deterministic: bool, warns: bool = True,
         tf32: tuple[bool, bool] = (False, False)) -> None:
    threadpool_limits(count)
    torch.set_num_threads(count)
    torch.use_deterministic_algorithms(deterministic, warn_only=warns)
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = tf32
    memory: Any = torch.utils.deterministic
    memory.fill_uninitialized_memory = False  # nothing reads what is not written yet


def revision(what: str) -> int:
    """The present revision of a name in :data:`REVISIONS`."""
    return len(REVISIONS[what])


def capability(device: torch.device | str = "cpu") -> str:
    """The instructions that change last digits, as 'AVX2', or the name of the GPU."""
    if torch.device(device).type == "cuda":
        return torch.cuda.get_device_name(device)
    more = getattr(torch.cpu, "get_capabilities", dict)()
    return " ".join([torch.backends.cpu.get_cpu_capability(),
                     *(name for name in ("avx512_bf16", "amx_bf16") if more.get(name))])


def arithmetic(device: torch.device | str = "cpu") -> dict:
    """What changes the bits on a GPU alone: {} for a CPU.

    ``tf32``: which of products and convolutions round to it, '' for none; ``deterministic``:
    whether algorithms are; ``workspace``: of cuBLAS.
    """
    if torch.device(device).type == "cpu":
        return {}
    rounded = {"products": torch.backends.cuda.matmul.allow_tf32,
               "convolutions": torch.backends.cudnn.allow_tf32}
    return {"tf32": " ".join(name for name, used in rounded.items() if used),
            "deterministic": torch.are_deterministic_algorithms_enabled(),
            "workspace": os.environ.get(WORKSPACE[0], "")}


def note(what: str, *, precision: str | None = None) -> None:
    """Remember that this run rests on ``what`` of the revisions, for :func:`settings`."""
    _noted["revisions"].add(what)
    if precision is not None:
        _noted["precision"].add(precision)


def key(what: str, device: torch.device | str = "cpu") -> dict:
    """What, beside its arguments, decides the bits of ``what``: a part of its key in the cache.

    The device, PyTorch's version, the revision, :func:`capability`, and the number of threads; on
    a GPU also :func:`arithmetic`.
    """
    note(what)
    return {"device": torch.device(device).type, "torch": torch.__version__,
            "revision": revision(what), "capability": capability(device),
            "threads": torch.get_num_threads(), **arithmetic(device)}


def settings(device: torch.device | str = "cpu") -> dict:
    """What a record's provenance says of this run.

    ``threads``; ``capability``; ``precision``: of the trainings, 'float32', 'bfloat16', both, or
    '' for none; ``revisions``: of all that the run rests on. On a GPU also :func:`arithmetic`.
    """
    return {"threads": torch.get_num_threads(), "capability": capability(device),
            "precision": " ".join(sorted(_noted["precision"])),
            "revisions": {what: revision(what) for what in sorted(_noted["revisions"])},
            **arithmetic(device)}
