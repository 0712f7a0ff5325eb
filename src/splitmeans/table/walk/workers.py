"""Worker processes that take tasks in order and hand results back in order, a few at a time.

A new process each (`spawn`), because a copy of a process with threads, as Arrow has them, can hang.
Results wait in memory until they are asked for, so no more tasks are under way than a few times
the number of workers.
"""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from typing import Any, TypeVar

import pyarrow as pa

from splitmeans.errors import ParameterError, SplitmeansError

Item = TypeVar("Item")
T = TypeVar("T")

_AHEAD = 2


class Workers:
    """A pool of processes; with one worker everything happens in this process."""

    def __init__(self, count: int | None = None) -> None:
        """Choose the number of workers; None takes one for each processor."""
        self.count = available_processors() if count is None else count
        if self.count < 1:
            raise ParameterError(f"workers must be >= 1, got {self.count}")
        self._pool: ProcessPoolExecutor | None = None

    def map(self, task: Callable[[Item], T], items: Iterable[Item]) -> Iterator[T]:
        """Yield `task(item)` in the order of items."""
        if self.count == 1:
            yield from map(task, items)
            return
        waiting: deque[Future[T]] = deque()
        try:
            for item in items:
                waiting.append(self._started().submit(task, item))
                if len(waiting) > _AHEAD * self.count:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool as problem:
            raise SplitmeansError(
                "a worker process ended early. If this is a script, put its work under "
                "`if __name__ == '__main__':`; else there was too little memory: use workers=1"
            ) from problem
        finally:
            for future in waiting:
                future.cancel()

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            context: Any = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self.count, mp_context=context, initializer=_prepare)
        return self._pool


def available_processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _prepare() -> None:
    """Keep a worker to one thread: there is a worker for every processor.

    Ctrl-C reaches all processes of a terminal; the one that leads them ends the others. If that one
    is killed they end by themselves, so that none goes on writing rows to disk.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_leader, daemon=True).start()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)


def _end_with_leader() -> None:
    leader = multiprocessing.parent_process()
    assert leader is not None
    wait([leader.sentinel])
    os._exit(1)
