"""Sorting records that memory cannot hold: cut by tag, then sorted bucket by bucket.

Each block of records is cut into equal ranges of tags and written as one run, an Arrow file with a
batch for each range. Tags are pseudorandom, so the parts of a run are nearly equal; a bucket, the
same part of all runs, fits memory, and the sorted buckets in a row are the sorted list.
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from splitmeans.kernels.counts import in_buckets, sort_records
from splitmeans.table.walk.interface import Records
from splitmeans.table.walk.spool import read_batch, write_batches

# Records of a bucket, about: 16 bytes each, and sorting needs them twice.
BUCKET_RECORDS = 2**20


def bucket_bits(n_records: int) -> int:
    """Return how many leading bits of a tag choose its bucket."""
    return max(0, (n_records // BUCKET_RECORDS).bit_length())


def write_run(path: Path, records: Records, *, bits: int) -> Path:
    """Store records bucket by bucket, and return where."""
    (tags, values), starts = in_buckets(records, bits=bits)
    whole = pa.record_batch({"tag": pa.array(tags), "value": pa.array(values)})
    edges = pairwise(starts.tolist())
    write_batches(path, [whole.slice(start, end - start) for start, end in edges])
    return path


def read_bucket(runs: Sequence[Path], bucket: int, *, bits: int) -> Records:
    """Return the records of one bucket of all runs, sorted."""
    batches = [read_batch(run, bucket) for run in runs]
    parts = [(batch["tag"].to_numpy(), batch["value"].to_numpy()) for batch in batches]
    return sort_records(parts, skip_bits=bits)
