"""A party's parquet file that is never in memory as a whole: time and peak memory of its release.

The file is drawn piece by piece and written before; reading, checking, clustering, labelling and
encoding are timed together, in a process of its own and its workers.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.speed.inputs import hexadecimal_ids
from benchmarks.speed.measure import in_child, peak_bytes
from benchmarks.speed.memory import MemoryWatch, own_workers
from splitmeans.party.release import release_party
from splitmeans.plan.settle import make_plan
from splitmeans.privacy.noise import SecureNoise
from splitmeans.study import Budget, Column, PartySpec, Study
from splitmeans.table.options import SourceOptions
from splitmeans.table.sources.open import open_source
from splitmeans.table.walk.stream import ROWS_IN_MEMORY
from splitmeans.wire.codec import encode

N_COLUMNS = 8
_PIECE = 2**20


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
    """Open a file as a table on disk and make the party's whole message; return its size."""
    study = stream_study(rows)
    plan = make_plan(study)
    with open_source(
        study.parties[0],
        path,
        options=SourceOptions(
            expected_users=max(rows, 2 * ROWS_IN_MEMORY), workers=workers, spool=path.parent
        ),
    ) as table:
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
