"""The server's join of two parties' tags that lie on disk: time, and memory of its own.

Tags are made up range by range, so that they may be more than memory holds; half of each party's
are the other's too. They are read as a run reads large releases: from files, mapped.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from benchmarks.speed.measure import in_child
from benchmarks.speed.memory import MemoryWatch, own_bytes, own_process
from splitmeans._types import IntArray, WordArray
from splitmeans.errors import SplitmeansError
from splitmeans.kernels.counts import sort_records
from splitmeans.membership.decoy.join import join_counts
from splitmeans.membership.decoy.layout import pack, packed_size
from splitmeans.wire.messages import DecoyMessage

LOCAL_CLUSTERS = 64
# Tags of a party in a range; eight labels fill whole bytes.
_RANGE = 2**18


@dataclass(frozen=True, kw_only=True)
class Joined:
    """What the join of two parties took.

    Attributes:
        tags: Of each party, about what was asked for.
        seconds: Wall time.
        processor_seconds: Processor time.
        own_bytes: Most memory of the process itself, before the join included: what it holds beside
            pages of the mapped files, which the system drops when it needs them.
        disk_bytes: Size of all files.
    """

    tags: int
    seconds: float
    processor_seconds: float
    own_bytes: int
    disk_bytes: int


def measure_join(tags: int, folder: Path, *, cores: int) -> Joined:
    """Make up two parties' records in a folder, join them in a fresh process, and remove them.

    Args:
        tags: Of each party, about; files take 17 bytes for each.
        folder: Where files go.
        cores: Processor cores that the process may use.
    """
    try:
        sizes, shared = in_child(write_records, folder, tags, cores=cores)
        return in_child(join_files, folder, sizes, shared, cores=cores)
    finally:
        for path in folder.glob("party-*"):
            path.unlink()


def write_records(folder: Path, tags: int, *, seed: int = 0) -> tuple[int, int]:
    """Write both parties' records; return how many each has, and how many both have."""
    rng = np.random.default_rng(seed)
    per_range = min(_RANGE, max(8, tags // 8 * 8))
    n_ranges = max(1, round(tags / per_range))
    width = (2**64 - 1) // n_ranges
    with (
        (folder / "party-0.tags").open("wb") as first_tags,
        (folder / "party-0.labels").open("wb") as first_labels,
        (folder / "party-1.tags").open("wb") as second_tags,
        (folder / "party-1.labels").open("wb") as second_labels,
    ):
        for number in range(n_ranges):
            both = _random_tags(rng, per_range // 2, low=number * width, width=width)
            for files in ((first_tags, first_labels), (second_tags, second_labels)):
                own = _random_tags(rng, per_range // 2, low=number * width, width=width)
                _write_range(rng, np.concatenate([both, own]), *files)
    return n_ranges * per_range, n_ranges * (per_range // 2)


def join_files(folder: Path, length: int, shared: int) -> Joined:
    """Join both parties' files in this process."""
    messages = [_mapped(folder / f"party-{party}", length) for party in range(2)]
    _count([_first_eight(message) for message in messages])  # loads and compiles what it needs
    with MemoryWatch(own_process, size=own_bytes) as watch:
        started, used = time.perf_counter(), time.process_time()
        counts = _count(messages)
        seconds, used = time.perf_counter() - started, time.process_time() - used
    found = int(counts[:LOCAL_CLUSTERS, :LOCAL_CLUSTERS].sum())
    if found != shared:
        raise SplitmeansError(f"the join found {found} records at both parties, expected {shared}")
    return Joined(
        tags=length,
        seconds=seconds,
        processor_seconds=used,
        own_bytes=watch.peak,
        disk_bytes=sum(path.stat().st_size for path in folder.glob("party-*")),
    )


def _count(messages: list[DecoyMessage]) -> IntArray:
    widths = (LOCAL_CLUSTERS,) * len(messages)
    found = join_counts(messages, groups=((0, 1),), n_local_clusters=widths, equal_sets=False)
    return found[0, 1]


def _first_eight(message: DecoyMessage) -> DecoyMessage:
    return DecoyMessage(
        lengths=np.array([8], dtype=np.int64),
        tags=message.tags[:8],
        labels=message.labels[: packed_size(8, n_clusters=LOCAL_CLUSTERS)],
    )


def _random_tags(rng: np.random.Generator, size: int, *, low: int, width: int) -> WordArray:
    tags = rng.integers(0, 2**64, (size, 2), dtype=np.uint64)
    tags[:, 0] = np.uint64(low) + tags[:, 0] % np.uint64(width)
    return tags


def _write_range(
    rng: np.random.Generator, tags: WordArray, tag_file: BinaryIO, label_file: BinaryIO
) -> None:
    labels = rng.integers(0, LOCAL_CLUSTERS, len(tags), dtype=np.uint8)
    tags, labels = sort_records([(tags, labels)])
    tag_file.write(tags.astype("<u8", copy=False).data)
    label_file.write(pack(labels, n_clusters=LOCAL_CLUSTERS).data)


def _mapped(path: Path, length: int) -> DecoyMessage:
    return DecoyMessage(
        lengths=np.array([length], dtype=np.int64),
        tags=np.memmap(f"{path}.tags", dtype="<u8", mode="r", shape=(length, 2)),
        labels=np.memmap(f"{path}.labels", dtype=np.uint8, mode="r"),
    )
