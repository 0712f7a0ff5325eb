"""Stream a query's rows in a process of its own, and print how much memory that took.

python -m tests.servers.stream_rows URL QUERY COLUMNS
"""

import json
import re
import sys
import time
from pathlib import Path

import pyarrow as pa

from splitmeans.study import Column, PartySpec
from splitmeans.table.options import SourceOptions
from splitmeans.table.sources.open import open_source, read_batches


def memory(name: str) -> int:
    """VmRSS (now) or VmHWM (the most since it was reset), in bytes."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) * 1024


def main(url: str, query: str, columns: int) -> None:
    spec = PartySpec(
        name="bank",
        columns=tuple(Column(name=f"x{at}", low=0, high=1) for at in range(columns)),
    )
    # What is loaded and compiled once is no matter of rows: one row brings it all in.
    with open_source(spec, url, query=f"{query} limit 1"):
        pass
    pa.default_memory_pool().release_unused()
    Path("/proc/self/clear_refs").write_text("5")  # forgets the most so far
    before = memory("VmRSS")
    started = time.perf_counter()
    with open_source(spec, url, query=query, options=SourceOptions(workers=1)) as table:
        opened = time.perf_counter() - started
        sums = table.rows.total(column_sums)
        peak = memory("VmHWM")
        kind = type(table).__name__
        rows = len(table)
    size = 0
    with read_batches(spec, url, query=query) as batches:
        for batch in batches.stream:
            size += batch.nbytes
    print(  # noqa: T201
        json.dumps(
            {
                "rows": rows,
                "kind": kind,
                "growth": peak - before,
                "arrow_bytes": size,
                "grid_bytes": rows * columns * 8,
                "seconds": opened,
                "sums": [int(value) for value in sums],
            }
        )
    )


def column_sums(rows):
    return rows.sum(axis=0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
