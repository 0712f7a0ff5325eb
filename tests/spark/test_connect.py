"""A table of Spark Connect: a real server in a process of its own, and a client in another."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from splitmeans.errors import EngineError
from splitmeans.table.spark.session import check_java, check_pyspark, own_session
from tests.spark.conftest import ROOT, pyspark_place
from tests.spark.test_spark_table import rows_of

pytest.importorskip("grpc")

_STARTS_WITHIN = 120


@pytest.fixture
def address(tmp_path) -> Iterator[str]:
    """Where a server listens."""
    try:
        check_pyspark()
        check_java()
    except EngineError as problem:
        pytest.skip(f"{problem}; `make spark` installs what is missing")
    port = _free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
    }
    place = pyspark_place()
    command = [str(place / "bin" / "spark-submit"), "--master", "local[2]"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    command += ["spark-internal"]
    environment = os.environ | {
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    # A session of this process leaves the address of its own Java there.
    for name in [name for name in environment if name.startswith("PYSPARK_GATEWAY")]:
        del environment[name]
    log = tmp_path / "server.log"
    with log.open("w") as out:
        server = subprocess.Popen(command, env=environment, stdout=out, stderr=out, cwd=tmp_path)
    try:
        _wait_for(port, server, log)
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=60)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_party_of_spark_connect(address, tmp_path) -> None:
    (tmp_path / "spool").mkdir()
    pq.write_table(rows_of(1), tmp_path / "bank.parquet", row_group_size=500)
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.connect_client", address, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == [
        "refused: spool_is_private must be True with Spark Connect, which cannot set who may read "
        f"the spool folder: make sure that nobody else can read {tmp_path / 'spool'}, then say so",
        f"refused: spool folder {tmp_path / 'nowhere'}: must be a folder that exists and that "
        "Spark can read",
        "refused: party 'bank': ids must be different (text is compared in Uni",
        "left after refusals: 0",
        *(
            line
            for name in ("tags", "collusion")
            for line in ("rows frozen: True", f"{name}: 3000 the same bits", "left: 0")
        ),
    ]


class _Session:
    """A session that cannot make another one, for this reason."""

    def __init__(self, problem: Exception) -> None:
        self.problem = problem

    def newSession(self) -> None:
        raise self.problem


def test_an_old_session_and_a_lost_one_are_told_apart() -> None:
    errors = pytest.importorskip("pyspark.errors")
    old = errors.PySparkNotImplementedError("newSession() is not implemented")
    with pytest.raises(EngineError, match=r"needs pyspark 4\.3 or newer"):
        own_session(_Session(old))
    with pytest.raises(EngineError, match="stopped while opening a session of its own"):
        own_session(_Session(errors.PySparkException("the server is gone")))


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _wait_for(port: int, server: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + _STARTS_WITHIN
    while time.monotonic() < end and server.poll() is None:
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    pytest.fail(f"the server of Spark Connect did not start: {log.read_text()[-2000:]}")
