"""Spark's folder with a party's rows goes with Spark, also if the program was killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys, time
from pathlib import Path
from splitmeans.table.spark import start_session
from splitmeans.table.spark.spool import make_spool
from splitmeans.errors import EngineError

try:
    session = start_session("local[1]", settings={"spark.ui.enabled": "false"})
except EngineError as problem:
    sys.exit(f"cannot start: {problem}")
spool = make_spool(session, sys.argv[1])
spool.write(session.range(5), "blocks")
print("made", flush=True)
sys.stdin.readline()
"""


def test_a_killed_program_leaves_no_rows(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        if program.stdout.readline() != "made\n":
            pytest.skip(f"Spark does not run here: {program.communicate()[1][-300:]}")
        (spool,) = tmp_path.glob("splitmeans-*")
        assert list(spool.rglob("*.parquet"))
        assert spool.stat().st_mode & 0o777 == 0o700
        program.send_signal(signal.SIGKILL)
        program.wait()
        end = time.monotonic() + 60
        while spool.exists():  # until Spark's own process has noticed
            assert time.monotonic() < end, "the rows are still there"
            time.sleep(0.1)
