"""What is derived for clusters from what was measured on one machine."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from benchmarks.commands.speed_tables import print_spark
from benchmarks.speed.memory import MemoryWatch, process_tree
from benchmarks.speed.spark import TASK_ROWS, Derived, Sparked, derive, to_mapping


def sparked(rows: int, **stages: float) -> Sparked:
    return Sparked(
        rows=rows,
        cores=2,
        start_seconds=9.0,
        seconds=sum(stages.values()),
        confirm_seconds=0.0,
        stages=stages,
        bytes_sent=rows,
        peak_bytes=10**9,
    )


# Workers: 2 s fixed and 4 s a million rows. Driver: nothing fixed and 1 s a million rows.
FOUND = [sparked(1_000_000, sort=6.0, fetch=1.0), sparked(10_000_000, sort=42.0, fetch=10.0)]


def test_one_worker_is_the_machine_itself():
    one = derive(FOUND, rows=10_000_000, workers=1)
    assert one.seconds == pytest.approx(52.0)
    assert one.driver_seconds == pytest.approx(10.0)


def test_workers_share_their_part_and_not_the_drivers():
    ten = derive(FOUND, rows=100_000_000, workers=10)
    # 2 s, 4 s for each of 10 million rows a worker, and 100 s at the driver.
    assert ten.seconds == pytest.approx(2 + 40 + 100)
    assert ten.driver_seconds == pytest.approx(100.0)


def test_a_task_is_not_shared():
    many = derive(FOUND, rows=10_000_000, workers=1000)
    # A worker's two cores hold one task each, whose rows take as long as twice as many shared.
    assert many.seconds == pytest.approx(2 + 4 * 2 * TASK_ROWS / 1e6 + 10)
    assert derive(FOUND, rows=10, workers=1000).seconds == pytest.approx(2.0, abs=1e-3)


def test_noise_in_the_measurement_gives_no_negative_times():
    odd = [sparked(1000, sort=2.0), sparked(2000, sort=1.0)]
    assert derive(odd, rows=10**9, workers=10).seconds == pytest.approx(2.0)


def test_one_size_is_not_enough():
    with pytest.raises(ValueError, match="two numbers of rows are needed"):
        derive(FOUND[:1], rows=10, workers=1)


def test_everything_is_printed_and_written(capsys):
    derived = [derive(FOUND, rows=10**8, workers=workers) for workers in (10, 100)]
    print_spark(FOUND, derived)
    print_spark([], [])
    shown = capsys.readouterr().out
    assert "derived from the above, not measured" in shown
    assert "142 (100)" in shown
    record = json.loads(json.dumps(to_mapping(FOUND, derived)))
    assert record["measured"][1]["stages"] == {"sort": 42.0, "fetch": 10.0}
    assert [Derived(**one) for one in record["derived"]] == derived


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_the_memory_of_children_of_children_counts():
    # A shell that waits for a process that holds 64 MiB.
    code = "import time; held = b'1' * 2**26; print(len(held), flush=True); time.sleep(60)"
    shell = subprocess.Popen(
        ["sh", "-c", f'{sys.executable} -c "{code}"; true'],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert shell.stdout is not None
        shell.stdout.readline()
        tree = process_tree()
        assert shell.pid in tree
        with MemoryWatch(lambda: [pid for pid in process_tree() if pid in tree[1:]]) as watch:
            time.sleep(0.5)
        assert watch.peak > 2**26
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.communicate()
