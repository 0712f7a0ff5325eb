"""A party's parquet file that is never in memory as a whole: time and peak memory of its release.

The file is drawn piece by piece and written before; reading, checking, clustering, labelling and
encoding are timed together, in a process of its own and its workers.
"""

import contextlib
import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.speed.inputs import hexadecimal_ids
from benchmarks.speed.measure import in_child, peak_bytes
from splitmeans.party.release import release_party
from splitmeans.plan.settle import make_plan
from splitmeans.privacy.noise import SecureNoise
from splitmeans.study import Budget, Column, PartySpec, Study
from splitmeans.table.walk.rowgroups import open_parquet
from splitmeans.wire.codec import encode

N_COLUMNS = 8
_PIECE = 2**20
_SAMPLES_A_SECOND = 20


@dataclass(frozen=True, kw_only=True)
class Streamed:
    """What the release of one file took.

    Attributes:
        rows: Rows of the file.
        workers: Worker processes.
        seconds: From opening the file to the message.
        bytes_sent: Size of the message.
        peak_bytes: Largest sum of the resident memory of the process and its workers, looked at
            20 times a second. Memory that they share counts for each, so it is an upper bound.
        own_peak_bytes: Peak of the process without its workers.
    """

    rows: int
    workers: int
    seconds: float
    bytes_sent: int
    peak_bytes: int
    own_peak_bytes: int


def measure_stream(rows: int, folder: Path, *, cores: int) -> Streamed:
    """Write a file of that many rows into a folder, release it, and remove it.

    Args:
        rows: Rows of the file; it takes about 90 bytes for each.
        folder: Where the file and its blocks go.
        cores: Processor cores, and as many worker processes.
    """
    path = folder / f"stream-{rows}.parquet"
    try:
        write_rows(path, rows)
        return in_child(measure_release, path, rows, cores, cores=cores)
    finally:
        path.unlink(missing_ok=True)


def measure_release(path: Path, rows: int, workers: int) -> Streamed:
    """Release a file that exists, in this process and its workers; see `measure_stream`."""
    with MemoryWatch(own_workers) as watch:
        started = time.perf_counter()
        sent = release_file(path, rows, workers)
        seconds = time.perf_counter() - started
    own = peak_bytes()
    return Streamed(
        rows=rows,
        workers=workers,
        seconds=seconds,
        bytes_sent=sent,
        peak_bytes=max(watch.peak, own),
        own_peak_bytes=own,
    )


def release_file(path: Path, rows: int, workers: int) -> int:
    """Open a file by row groups and make the party's whole message; return its size."""
    study = stream_study(rows)
    plan = make_plan(study)
    with open_parquet(study.parties[0], path, workers=workers, spool=path.parent) as table:
        message = release_party(
            plan,
            table,
            run_key=os.urandom(32),
            noise=SecureNoise(),
            rng=np.random.default_rng(),
        )
    return len(encode(message))


def stream_study(rows: int) -> Study:
    """Return a decoy study of two parties with eight columns each."""
    parties = tuple(
        PartySpec(
            name=name,
            columns=tuple(Column(name=f"column{j}", low=-1.0, high=1.0) for j in range(N_COLUMNS)),
        )
        for name in ("first", "second")
    )
    return Study(
        name="stream",
        parties=parties,
        n_clusters=5,
        budget=Budget(epsilon=1.0, delta=1 / (rows + 1)),
        expected_users=rows,
    )


def write_rows(path: Path, rows: int, *, seed: int = 0) -> None:
    """Write clustered rows with ids, a piece at a time."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-1, 1, size=(5, N_COLUMNS))
    names = [f"column{j}" for j in range(N_COLUMNS)]
    schema = pa.schema([("id", pa.large_string()), *((name, pa.float64()) for name in names)])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, _PIECE):
            users = np.arange(start, min(start + _PIECE, rows))
            values = np.clip(rng.normal(centres[rng.integers(5, size=len(users))], 0.1), -1, 1)
            columns = [np.ascontiguousarray(column) for column in values.T]
            writer.write_table(pa.table([hexadecimal_ids(users), *columns], names=schema.names))


class MemoryWatch:
    """Looks at the memory of some processes while a block of code runs."""

    def __init__(self, processes: Callable[[], list[int]]) -> None:
        """Choose the processes; they are asked for at every look."""
        self.peak = 0
        self._processes = processes
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> "MemoryWatch":
        self._thread.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.wait(1 / _SAMPLES_A_SECOND):
            self.peak = max(self.peak, sum(_resident(pid) for pid in self._processes()))


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


def _resident(pid: int) -> int:
    try:
        pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    except (OSError, IndexError):
        return 0  # the process has just ended, or the system has no such file
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
