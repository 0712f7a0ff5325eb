"""Sorting records that memory cannot hold: cut by tag, then sorted bucket by bucket.

Each block of records is cut into equal ranges of tags and written as one run. Tags are
pseudorandom, so the parts of a run are nearly equal; a bucket, the same part of all runs, fits
memory, and the sorted buckets in a row are the sorted list.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from splitmeans._types import IntArray
from splitmeans.kernels.counts import in_buckets, sort_records
from splitmeans.table.walk.interface import Records
from splitmeans.table.walk.spool_folder import new_private_file

# Records of a bucket, about: 24 bytes each, and sorting needs them twice.
BUCKET_RECORDS = 2**20
_TAG_BYTES = 16


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """A list of records on disk, in buckets.

    Attributes:
        path: The file: all tags, then all values.
        starts: First record of each bucket, and the number of records; shape (buckets + 1,).
        kind: Type of the values.
    """

    path: Path
    starts: IntArray
    kind: npt.DTypeLike


def bucket_bits(n_records: int) -> int:
    """Return how many leading bits of a tag choose its bucket."""
    return max(0, (n_records // BUCKET_RECORDS).bit_length())


def write_run(path: Path, records: Records, *, bits: int) -> Run:
    """Store records bucket by bucket."""
    (tags, values), starts = in_buckets(records, bits=bits)
    with new_private_file(path) as file:
        tags.tofile(file)
        values.tofile(file)
    return Run(path=path, starts=starts, kind=values.dtype)


def read_bucket(runs: Sequence[Run], bucket: int, *, bits: int) -> Records:
    """Return the records of one bucket of all runs, sorted."""
    return sort_records([_read(run, bucket) for run in runs], skip_bits=bits)


def _read(run: Run, bucket: int) -> Records:
    first, last = run.starts[bucket : bucket + 2].tolist()
    kind: np.dtype[Any] = np.dtype(run.kind)
    values_at = int(run.starts[-1]) * _TAG_BYTES
    with run.path.open("rb") as file:
        file.seek(first * _TAG_BYTES)
        tags = np.fromfile(file, dtype=np.uint64, count=2 * (last - first)).reshape(-1, 2)
        file.seek(values_at + first * kind.itemsize)
        return tags, np.fromfile(file, dtype=kind, count=last - first)
