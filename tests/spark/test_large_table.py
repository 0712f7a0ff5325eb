"""A table that is larger than the memory of all executors together."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.speed.memory import MemoryWatch, process_tree
from benchmarks.speed.stream import stream_study, write_rows
from splitmeans.party.own_users import users_digest
from splitmeans.party.release import release_party
from splitmeans.plan.settle import make_plan
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.table.sources.open import open_source
from splitmeans.table.spark import open_spark
from splitmeans.wire.codec import encode
from tests.disk import on_disk

from .conftest import EXECUTOR_MIB, WORKERS

pytestmark = pytest.mark.slow

ROWS = 14_000_000
# Both executors' heaps.
GIVEN = WORKERS * EXECUTOR_MIB * 2**20


def python_workers() -> list[int]:
    """The Python processes of Spark's workers."""
    found = []
    for pid in process_tree():
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if b"pyspark.daemon" in command:
            found.append(pid)
    return found


def test_the_message_is_that_of_row_groups_and_workers_stay_small(spark, tmp_path):
    path = tmp_path / "rows.parquet"
    write_rows(path, ROWS)
    assert path.stat().st_size > GIVEN
    study = stream_study(ROWS)
    plan, run_key = make_plan(study), bytes(range(32))

    def message(table) -> tuple[bytes, bytes]:
        digest = users_digest(table, key=bytes(16))
        noise, rng = InsecureSeededNoise(3), np.random.default_rng(5)
        return digest, encode(release_party(plan, table, run_key=run_key, noise=noise, rng=rng))

    with (
        MemoryWatch(python_workers) as watch,
        open_spark(study.parties[0], spark.read.parquet(str(path)), spool=str(tmp_path)) as table,
    ):
        assert len(table) == ROWS
        found = message(table)
    with open_source(
        study.parties[0],
        path,
        options=on_disk(workers=2, spool=tmp_path),
    ) as table:
        assert found == message(table)
    # Beside the heaps: far less than the table, though each worker has walked half of it.
    assert 0 < watch.peak < GIVEN
