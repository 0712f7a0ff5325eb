"""How much memory processes have while a block of code runs."""

import contextlib
import multiprocessing
import os
import threading
from collections.abc import Callable
from pathlib import Path

_SAMPLES_A_SECOND = 20


class MemoryWatch:
    """Looks at the memory of some processes while a block of code runs."""

    def __init__(
        self, processes: Callable[[], list[int]], *, size: Callable[[int], int] | None = None
    ) -> None:
        """Choose the processes, which are asked for at every look, and what counts as memory."""
        self.peak = 0
        self._processes, self._size = processes, size or resident_bytes
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> "MemoryWatch":
        self._thread.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        ended = False
        while not ended:
            ended = self._stop.wait(1 / _SAMPLES_A_SECOND)
            self.peak = max(self.peak, sum(self._size(pid) for pid in self._processes()))


def own_process() -> list[int]:
    """Return this process alone."""
    return [os.getpid()]


def own_workers() -> list[int]:
    """Return this process and its worker processes."""
    workers = [worker.pid for worker in multiprocessing.active_children()]
    return [os.getpid(), *(pid for pid in workers if pid is not None)]


def process_tree() -> list[int]:
    """Return this process and all that it started, directly or not."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError):  # the process has just ended
            # The name, in parentheses, may hold anything.
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
    found = [os.getpid()]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def resident_bytes(pid: int) -> int:
    """Return the memory of a process, pages of files that it has mapped included."""
    try:
        pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    except (OSError, IndexError):
        return 0  # the process has just ended, or the system has no such file
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def own_bytes(pid: int) -> int:
    """Return the memory of a process without pages of files, which the system can drop."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))
