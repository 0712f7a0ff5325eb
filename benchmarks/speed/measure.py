"""Time and memory of one task: best of several runs, peak of the process, growth with n.

Every task is measured in a fresh process of its own, so no task sees memory that another one left
behind, and all of them may use the same few processor cores. Kernels are compiled and libraries
loaded by a run on a small table before; that run does not count.
"""

import contextlib
import ctypes
import gc
import itertools
import math
import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from splitmeans.errors import SplitmeansError

T = TypeVar("T")

# What is timed. A whole number that it returns is how many bytes leave the participant.
Task = Callable[[], object]

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What one task took.

    Attributes:
        seconds: The shortest run.
        runs: All runs, in order.
        cores: Processor time of the shortest run over its wall time.
        processor_seconds: The least processor time of a run, processes that it started included.
        bytes_sent: What left the participant.
        peak_bytes: Largest resident memory of the process during the first run, inputs included.
        working_bytes: By how much that is above what the process held before; None if the system
            cannot tell the two apart.
    """

    seconds: float
    runs: tuple[float, ...]
    cores: float
    processor_seconds: float
    bytes_sent: int | None
    peak_bytes: int
    working_bytes: int | None


class ChildError(SplitmeansError):
    """A measuring process ended without a result."""


def measure(task: Task, *, repeat: int, most_seconds: float = 60.0) -> Measured:
    """Run a task `repeat` times and keep the shortest run; the first one also tells the memory.

    Args:
        task: What to run; what it needs is loaded and compiled.
        repeat: Number of runs.
        most_seconds: No further run is started after this much time.
    """
    release_unused()
    fresh = reset_peak()
    before = resident_bytes()
    runs: list[tuple[float, float]] = []
    returned: object = None
    peak = 0
    for number in range(repeat):
        started, cpu = time.perf_counter(), _processor_time()
        returned = task()
        seconds = time.perf_counter() - started
        runs.append((seconds, _processor_time() - cpu))
        if number == 0:
            peak = peak_bytes()
        if sum(wall for wall, _ in runs) > most_seconds:
            break
    best, cpu = min(runs)
    return Measured(
        seconds=best,
        runs=tuple(wall for wall, _ in runs),
        cores=cpu / max(best, 1e-9),
        processor_seconds=min(used for _, used in runs),
        bytes_sent=returned if isinstance(returned, int) else None,
        peak_bytes=peak,
        working_bytes=max(0, peak - before) if fresh and before is not None else None,
    )


def _processor_time() -> float:
    """Return the processor time of this process and of those that it started and that ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def in_child(function: Callable[..., T], /, *arguments: Any, cores: int) -> T:
    """Return `function(*arguments)` of a fresh process that may use that many processor cores.

    Raises:
        ChildError: If the process was killed, which for a large table means out of memory.
    """
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(1, mp_context=context, initializer=limit_cores, initargs=(cores,))
    with pool:
        try:
            return pool.submit(function, *arguments).result()
        except BrokenProcessPool:
            raise ChildError("the process was killed; probably out of memory") from None


def limit_cores(cores: int) -> None:
    """Keep this process and its threads to that many cores, where the system can do that."""
    if hasattr(os, "sched_setaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, allowed[:cores])
    # Libraries that do not look at the affinity look at this one.
    os.environ["OMP_NUM_THREADS"] = str(cores)


def growth_exponent(small: tuple[int, float], large: tuple[int, float]) -> float:
    """Return the power of n with which time grows between two (n, seconds).

    From n to 10 n it is log10 of the ratio of the times: 1 means linear.
    """
    (n, seconds), (more, longer) = small, large
    return math.log(longer / seconds) / math.log(more / n)


def growth_by_size(times: Sequence[tuple[int, float]]) -> dict[int, float]:
    """Return for each n but the smallest the exponent since the next smaller one."""
    ordered = sorted(times)
    return {large[0]: growth_exponent(small, large) for small, large in itertools.pairwise(ordered)}


def release_unused() -> None:
    """Give memory that was freed but kept back to the system, or a stage would use it unseen."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError):  # only the GNU library has this function
        ctypes.CDLL(None).malloc_trim(0)


def reset_peak() -> bool:
    """Let the peak start again from what is resident now; False where Linux is not underneath."""
    with contextlib.suppress(OSError):
        _CLEAR.write_text("5")
        return True
    return False


def resident_bytes() -> int | None:
    """Return the resident memory of this process, None if the system does not say."""
    return _status("VmRSS")


def peak_bytes() -> int:
    """Return the peak of the resident memory of this process."""
    return _status("VmHWM") or largest(resource.RUSAGE_SELF)


def largest(who: int) -> int:
    """Return the largest resident memory that the system recorded, for `RUSAGE_SELF` or the like.

    For children it is that of the largest one, not their sum.
    """
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(who).ru_maxrss * unit


def _status(name: str) -> int | None:
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return None
    found = [line.split() for line in lines if line.startswith(f"{name}:")]
    return int(found[0][1]) * 1024 if found else None
