"""Sorting records that memory cannot hold: sorted runs on disk, merged bucket by bucket.

Each block of records is sorted by tag and written as one run. Tags are pseudorandom, so cutting
their range into equal buckets cuts every run into nearly equal parts; a bucket of all runs fits
memory, and the sorted buckets in a row are the sorted list.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from splitmeans._types import IntArray, WordArray
from splitmeans.kernels.counts import sort_records
from splitmeans.table.walk.interface import Records
from splitmeans.table.walk.spool_folder import new_private_file

# Records of a bucket, about: 24 bytes each, and sorting needs them twice.
BUCKET_RECORDS = 2**20
_TAG_BYTES = 16


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """A sorted list of records on disk.

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


def bucket_starts(tags: WordArray, *, bits: int) -> IntArray:
    """Return the first of sorted tags in each bucket, and their number; shape (buckets + 1,)."""
    edges = np.arange(1, 2**bits, dtype=np.uint64) << np.uint64(64 - bits if bits else 0)
    inner = np.searchsorted(tags[:, 0], edges, side="left")
    return np.concatenate([[0], inner, [len(tags)]]).astype(np.int64)


def write_run(path: Path, records: Records, *, bits: int) -> Run:
    """Sort records by their tags and store them."""
    tags, values = sort_records([records])
    starts = bucket_starts(tags, bits=bits)
    with new_private_file(path) as file:
        tags.tofile(file)
        values.tofile(file)
    return Run(path=path, starts=starts, kind=values.dtype)


def read_bucket(runs: Sequence[Run], bucket: int, *, bits: int) -> Records:
    """Return the records of one bucket of all runs, sorted; equal tags in the order of runs."""
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
