"""Blocks of work on a Dask cluster: sent with all they need, given back as files."""

import hashlib
import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dnnlib import checks, inference

TIMEOUT = 10  # seconds in which a scheduler must answer
VARIABLES = "distributed.nanny.pre-spawn-environ"  # of a worker's process
TRIMMING = "MALLOC_TRIM_THRESHOLD_"  # above it glibc returns freed memory; Dask says 64 KiB
AHEAD = 3  # blocks for each thread of the workers that are sent at a time
_ONE_AT_A_TIME = threading.Lock()  # a model's hooks are of one pass
_jobs: dict[str, Any] = {}  # of a worker: the last job that it was sent


@contextmanager
def connected(scheduler: str | None = None, *, workers: int | None = None):
    """A Dask client: of the scheduler at that address, else of workers of its own on this machine.

    ``workers``: how many of its own, default one for each core. Raises ``ConnectionError`` if no
    scheduler answers within ten seconds.
    """
    with checks.extra("cluster"):
        import dask
        from distributed import Client, LocalCluster

    if scheduler is None:
        # a worker keeps the memory that it frees: to return it at once takes as long as the passes;
        # and it gets a cell when it has nothing else to do, so that what is assigned runs
        workers = workers or os.cpu_count() or 1
        variables = {k: v for k, v in dask.config.get(VARIABLES).items() if k != TRIMMING}
        with dask.config.set({VARIABLES: variables,
                              "distributed.scheduler.worker-saturation": 1.0}), LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address=":0",
                env={"TQDM_DISABLE": "1",  # one bar, ours
                     inference.SHARE: str(1 / workers)},
                silence_logs=logging.ERROR) as local, Client(local) as client:
            yield client
        return
    try:
        client = Client(scheduler, timeout=TIMEOUT)
    except (OSError, TimeoutError, ValueError) as error:
        raise ConnectionError(f"no Dask scheduler answers at {scheduler} within {TIMEOUT} s: "
                              f"{error}") from error
    with client:
        yield client


def run(client, job, numbers: Sequence[int]) -> Iterator[tuple[int, dict[str, bytes]]]:
    """Those blocks of a job, as they end, by its ``run``.

    A worker that dies costs the blocks that it had, which others make again. The job travels by
    value, so that the model's own code need not be there; its images' files must. Raises
    ``ValueError`` for a model that cannot be sent, ``RuntimeError`` for a block that kills several
    workers.
    """
    with checks.extra("cluster"):
        import cloudpickle
        from distributed import KilledWorker, as_completed

    theirs = [*job.model.modules(), *getattr(job, "selectors", {}).values(),
              getattr(job, "fuzzer", None)]
    for name in {type(each).__module__ for each in theirs}:
        if name in sys.modules and getattr(sys.modules[name].__spec__, "parent", None) == "" and (
                name not in sys.stdlib_module_names):  # a file of its own, in no package
            cloudpickle.register_pickle_by_value(sys.modules[name])
    try:
        content = cloudpickle.dumps(job)
    except Exception as error:  # of every kind, by what the model holds
        raise ValueError(f"model: cannot be sent to other machines: {error}") from error
    key = hashlib.sha256(content).hexdigest()[:16]
    with warnings.catch_warnings():  # that it is large
        warnings.simplefilter("ignore", UserWarning)
        # a task, which the scheduler can do again, while what is scattered dies with its worker
        sent = client.submit(bytes, content, pure=False)
    left = list(reversed(numbers))
    room = AHEAD * max(1, sum(client.nthreads().values()))
    waiting = as_completed()
    futures: dict[Any, int] = {}

    def more() -> None:
        while left and len(futures) < room:
            number = left.pop()
            future = client.submit(work, key, sent, number, pure=False)
            futures[future] = number
            waiting.add(future)

    more()
    for future in waiting:
        number = futures.pop(future)
        try:
            made = future.result()
        except KilledWorker as error:
            raise RuntimeError("workers of the cluster died several times over the same block, "
                               "perhaps for want of memory") from error
        future.release()
        more()
        yield number, made


def work(key: str, content: bytes, number: int) -> dict[str, bytes]:
    """The files of one block, made on a worker."""
    import cloudpickle

    with _ONE_AT_A_TIME:
        if key not in _jobs:
            _jobs.clear()
            _jobs[key] = cloudpickle.loads(content)
        found, = _jobs[key].run([number], 0)  # a worker's processes may have no children
        return found
