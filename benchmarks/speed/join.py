"""The server's join of two parties' tags that lie on disk: time, and memory of its own.

Tags are made up range by range, so that they may be more than memory holds; half of each party's
are the other's too. They are read as a run reads large releases: from files, mapped.
"""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.speed.measure import in_child
from benchmarks.speed.memory import MemoryWatch, own_bytes, own_process
from splitmeans._types import IntArray, WordArray
from splitmeans.errors import SplitmeansError
from splitmeans.kernels.counts import sort_records
from splitmeans.membership.decoy.join import join_counts
from splitmeans.membership.decoy.layout import pack
from splitmeans.membership.decoy.tag_lists import code_tags, short_tags
from splitmeans.wire.messages import DecoyMessage

LOCAL_CLUSTERS = 64
# Tags of a party in a range; eight labels fill whole bytes.
_RANGE = 2**18
_HIGH_BITS_OF_RANGE = 18
# Records that are lost or found by tags that are equal by chance, at most.
_BY_CHANCE = 1e-3


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
        tags: Of each party, about; files take about three bytes for each.
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
    # A power of two, so that each range of tags is whole bytes of the bitmap.
    n_ranges = 2 ** max(0, round(tags / per_range) - 1).bit_length()
    for path in (folder / f"party-{party}" for party in range(2)):
        for part in ("lows", "bitmap", "labels"):
            Path(f"{path}.{part}").touch()
    for _ in range(n_ranges):
        both = _random_tags(rng, per_range // 2)
        for party in range(2):
            own = _random_tags(rng, per_range // 2)
            _write_range(rng, np.concatenate([both, own]), folder / f"party-{party}")
    return n_ranges * per_range, n_ranges * (per_range // 2)


def join_files(folder: Path, length: int, shared: int) -> Joined:
    """Join both parties' files in this process."""
    messages = [_mapped(folder / f"party-{party}", length) for party in range(2)]
    # Loads and compiles what it needs.
    _count([_small_message()] * 2, high_bits=_HIGH_BITS_OF_RANGE)
    with MemoryWatch(own_process, size=own_bytes) as watch:
        started, used = time.perf_counter(), time.process_time()
        counts = _count(messages, high_bits=_high_bits(length))
        seconds, used = time.perf_counter() - started, time.process_time() - used
    found = int(counts[:LOCAL_CLUSTERS, :LOCAL_CLUSTERS].sum())
    if abs(found - shared) > _BY_CHANCE * shared:
        raise SplitmeansError(f"the join found {found} records at both parties, expected {shared}")
    return Joined(
        tags=length,
        seconds=seconds,
        processor_seconds=used,
        own_bytes=watch.peak,
        disk_bytes=sum(path.stat().st_size for path in folder.glob("party-*")),
    )


def _count(messages: list[DecoyMessage], *, high_bits: int) -> IntArray:
    widths = (LOCAL_CLUSTERS,) * len(messages)
    found = join_counts(messages, groups=((0, 1),), n_local_clusters=widths, high_bits=high_bits)
    return found[0, 1]


def _high_bits(length: int) -> int:
    """Return the high bits of all tags, of which each range has its part."""
    n_ranges = length // min(_RANGE, length)
    return _HIGH_BITS_OF_RANGE + n_ranges.bit_length() - 1


def _small_message() -> DecoyMessage:
    lows, bitmap = code_tags(np.arange(8, dtype=np.uint64), high_bits=_HIGH_BITS_OF_RANGE)
    labels = pack(np.zeros(8, dtype=np.uint8), n_clusters=LOCAL_CLUSTERS)
    length = np.array([8], dtype=np.int64)
    return DecoyMessage(lengths=length, lows=lows, bitmaps=bitmap, labels=labels)


def _random_tags(rng: np.random.Generator, size: int) -> WordArray:
    """Return tags within one range."""
    words = rng.integers(0, 2**64, size, dtype=np.uint64)
    return short_tags(words, high_bits=_HIGH_BITS_OF_RANGE)


def _write_range(rng: np.random.Generator, tags: WordArray, place: Path) -> None:
    labels = rng.integers(0, LOCAL_CLUSTERS, len(tags), dtype=np.uint8)
    tags, labels = sort_records([(tags, labels)])
    lows, bitmap = code_tags(tags, high_bits=_HIGH_BITS_OF_RANGE)
    packed = pack(labels, n_clusters=LOCAL_CLUSTERS)
    for part, array in (("lows", lows.astype("<u2")), ("bitmap", bitmap), ("labels", packed)):
        with Path(f"{place}.{part}").open("ab") as file:
            file.write(array.data)


def _mapped(path: Path, length: int) -> DecoyMessage:
    return DecoyMessage(
        lengths=np.array([length], dtype=np.int64),
        lows=np.memmap(f"{path}.lows", dtype="<u2", mode="r"),
        bitmaps=np.memmap(f"{path}.bitmap", dtype=np.uint8, mode="r"),
        labels=np.memmap(f"{path}.labels", dtype=np.uint8, mode="r"),
    )
