"""Jobs over processes of one thread each; with one process they run in this one."""

import contextlib
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any, TypeVar

R = TypeVar("R")
J = TypeVar("J", bound=tuple[Any, ...])

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def run_jobs(
    function: Callable[..., R], jobs: Sequence[J], *, workers: int
) -> Iterator[tuple[J, R]]:
    """Yield each job, which are the function's arguments, with its result, as they finish."""
    if workers == 1 or len(jobs) <= 1:
        for job in jobs:
            yield job, function(*job)
        return
    context = multiprocessing.get_context("spawn")
    with _one_thread():
        pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_end_with_parent)
        try:
            futures = {pool.submit(function, *job): job for job in jobs}
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Let processes that start meanwhile use one thread each: there is one for every processor."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _end_with_parent() -> None:
    """End this worker when the process that hands out work is gone, even if it was killed."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
