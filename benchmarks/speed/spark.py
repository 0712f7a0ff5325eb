"""A party's release from Spark on this machine, stage by stage, and what follows for a cluster.

The same file as in `stream.py` is read by Spark with as many cores. Times are measured; what a
cluster would take is derived from them (`derive`) and is no measurement.
"""

import dataclasses
import itertools
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.speed.measure import in_child
from benchmarks.speed.memory import MemoryWatch, process_tree
from benchmarks.speed.stream import stream_study, write_rows
from splitmeans.party.own_users import users_digest
from splitmeans.party.release import release_party
from splitmeans.plan.settle import make_plan
from splitmeans.privacy.noise import SecureNoise
from splitmeans.table.options import SourceOptions
from splitmeans.table.spark import open_spark, start_session
from splitmeans.wire.codec import encode

# What the driver does alone, however many workers there are: reading parts, making the message.
DRIVER_STAGES = ("fetch", "message")
# Rows that one task of Spark gets with eight columns (32 MiB of blocks); no more workers than
# tasks can be busy.
TASK_ROWS = 560_000

_DERIVED_ROWS = (10_000_000, 100_000_000, 1_000_000_000)
_DERIVED_WORKERS = (1, 10, 100)
_WARM_ROWS = 200_000
_HEAP = "2g"


@dataclass(frozen=True, kw_only=True)
class Sparked:
    """What a party's part of a run took in Spark.

    Attributes:
        rows: Rows of the file.
        cores: Processor cores for the driver and all workers together.
        start_seconds: From nothing to a session whose workers have loaded everything.
        seconds: From opening the DataFrame to the message, without comparing users.
        confirm_seconds: Comparing users, for parties with equal user sets.
        stages: Seconds by stage, the comparison's among them.
        bytes_sent: Size of the message.
        peak_bytes: Largest sum of the resident memory of all processes: driver, Java, workers.
    """

    rows: int
    cores: int
    start_seconds: float
    seconds: float
    confirm_seconds: float
    stages: Mapping[str, float]
    bytes_sent: int
    peak_bytes: int


@dataclass(frozen=True, kw_only=True)
class Derived:
    """What a party's part of a run would take on a cluster; derived, not measured.

    Attributes:
        rows: Rows of the table.
        workers: Workers, each like the machine of the measurement.
        seconds: From opening the DataFrame to the message, with comparing users.
        driver_seconds: How much of it the driver works alone.
    """

    rows: int
    workers: int
    seconds: float
    driver_seconds: float


def measure_spark(rows: int, folder: Path, *, cores: int) -> Sparked:
    """Write a file of that many rows into a folder, release it from Spark, and remove it.

    Args:
        rows: Rows of the file; it takes about 90 bytes for each, and Spark as much again.
        folder: Where the file, the frozen rows and Spark's own files go.
        cores: Processor cores for everything.
    """
    warm, path = folder / "spark-warm.parquet", folder / f"spark-{rows}.parquet"
    try:
        write_rows(warm, _WARM_ROWS)
        write_rows(path, rows)
        return in_child(release_from_spark, path, warm, rows, cores, cores=cores)
    finally:
        warm.unlink(missing_ok=True)
        path.unlink(missing_ok=True)


def release_from_spark(path: Path, warm: Path, rows: int, cores: int) -> Sparked:
    """Release a file that exists, from a session of its own; see `measure_spark`."""
    folder = str(path.parent)
    started = time.perf_counter()
    session = start_session(
        f"local[{cores}]",
        settings={
            "spark.driver.memory": _HEAP,
            "spark.local.dir": folder,
            "spark.log.level": "ERROR",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        },
    )
    try:
        _release(session, warm, _WARM_ROWS, clock=_Clock())
        start_seconds = time.perf_counter() - started
        clock = _Clock()
        with MemoryWatch(process_tree) as watch:
            begun = time.perf_counter()
            sent, confirm_seconds = _release(session, path, rows, clock=clock)
            seconds = time.perf_counter() - begun - confirm_seconds
    finally:
        session.stop()
    return Sparked(
        rows=rows,
        cores=cores,
        start_seconds=start_seconds,
        seconds=seconds,
        confirm_seconds=confirm_seconds,
        stages=clock.seconds,
        bytes_sent=sent,
        peak_bytes=watch.peak,
    )


def derive(found: Sequence[Sparked], *, rows: int, workers: int) -> Derived:
    """Work out what a cluster would take, from measurements at two numbers of rows or more.

    Each stage takes a fixed time and a time for each row, a line through the smallest and the
    largest measurement. What workers do is shared by all of them, but a task is never cut; what the
    driver does is not shared. Storage and network are taken to be as fast for each worker as the
    disk of the measurement was.

    Args:
        found: The measurements.
        rows: Rows of the table.
        workers: Number of workers, each with the cores and the speed of the measured machine.
    """
    small = min(found, key=lambda one: one.rows)
    large = max(found, key=lambda one: one.rows)
    if small.rows == large.rows:
        raise ValueError("two numbers of rows are needed to tell fixed times from those of rows")
    shared = max(rows / workers, min(rows, large.cores * TASK_ROWS))
    at_workers = at_driver = 0.0
    for stage, longer in large.stages.items():
        shorter = small.stages.get(stage, 0.0)
        by_row = max(0.0, (longer - shorter) / (large.rows - small.rows))
        fixed = max(0.0, shorter - by_row * small.rows)
        if stage in DRIVER_STAGES:
            at_driver += fixed + by_row * rows
        else:
            at_workers += fixed + by_row * shared
    return Derived(
        rows=rows, workers=workers, seconds=at_workers + at_driver, driver_seconds=at_driver
    )


def derive_all(found: Sequence[Sparked]) -> list[Derived]:
    """Return what clusters would take, if there are measurements to derive it from."""
    if len(found) < 2:
        return []
    places = itertools.product(_DERIVED_ROWS, _DERIVED_WORKERS)
    return [derive(found, rows=rows, workers=workers) for rows, workers in places]


def to_mapping(found: Sequence[Sparked], derived: Sequence[Derived]) -> dict[str, object]:
    """Return everything as plain values for JSON."""
    return {
        "measured": [dataclasses.asdict(one) for one in found],
        "derived": [dataclasses.asdict(one) for one in derived],
    }


def _release(session: object, path: Path, rows: int, *, clock: "_Clock") -> tuple[int, float]:
    """Make a party's message; return its size, and the seconds that comparing users took."""
    study = stream_study(rows)
    plan = make_plan(study)
    run_key = os.urandom(32)
    frame = session.read.parquet(str(path))  # type: ignore[attr-defined]
    options = SourceOptions(progress=clock)
    with open_spark(study.parties[0], frame, spool=str(path.parent), options=options) as table:
        begun = time.perf_counter()
        users_digest(table, key=bytes(16))
        confirm_seconds = time.perf_counter() - begun
        message = release_party(
            plan, table, run_key=run_key, noise=SecureNoise(), rng=np.random.default_rng()
        )
        sent = len(encode(message))
    clock("message", rows=rows, of=rows)
    return sent, confirm_seconds


class _Clock:
    """Adds up the time between calls under the name of the stage that has ended."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def __call__(self, stage: str, *, rows: int, of: int | None) -> None:
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._last
        self._last = now
