"""A whole run between organisations on this machine: five processes, a relay, TLS.

Everything is what organisations would type: keys, an agreed study, `relay serve`, `server run` and
three `party run`, each a process of its own with a folder of its own. The baseline is as many
processes that only load Python, NumPy, numba and pyarrow: what no program of this kind can do
without.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.kept_bytecode import environment
from benchmarks.local_relay import write_certificate
from splitmeans import _validate
from splitmeans.errors import MailboxError

_PARTIES = ("bank", "insurer", "clinic")
_COLUMNS = 3
_CLUSTERS = 4
_BARE = ("-c", "import numpy, numba, pyarrow.parquet")


def run_once(users: int = 20_000) -> dict[str, float]:
    """Agree on a study, then time a run from the first process's start to the last one's end.

    Returns:
        `seconds` of the run, `processor_seconds` of all its processes, the same of the baseline
        (`bare_seconds`, `bare_processor_seconds`), and the `ratio` of the seconds.
    """
    _validate.at_least(100, users=users)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        agree(folder, users)
        run_five(folder, "warm")  # compiles and loads everything once, as on any machine in use
        seconds, processor = run_five(folder, "timed")
        bare_seconds, bare_processor = _timed_bare(folder)
    return {
        "users": users,
        "seconds": seconds,
        "processor_seconds": processor,
        "bare_seconds": bare_seconds,
        "bare_processor_seconds": bare_processor,
        "ratio": seconds / bare_seconds,
    }


def agree(folder: Path, users: int) -> None:
    """Make keys, data and a certificate; everybody approves one study."""
    for name in (*_PARTIES, "server"):
        public = _command(folder, "keys", "new", "--home", name)
        (folder / f"{name}.pub").write_text(public, encoding="utf-8")
    rng = np.random.default_rng()
    segment = rng.integers(_CLUSTERS, size=users)
    options = []
    for party in _PARTIES:
        options += ["--party", f"{party}={party}.pub"]
        centres = rng.uniform(1, 9, (_CLUSTERS, _COLUMNS))
        rows = np.clip(centres[segment] + rng.normal(0, 0.5, (users, _COLUMNS)), 0, 10)
        columns: dict[str, object] = {"id": [f"customer-{number}" for number in range(users)]}
        for j in range(_COLUMNS):
            columns[f"{party}{j}"] = rows[:, j]
            options += ["--column", f"{party}:{party}{j}:0:10"]
        pq.write_table(pa.table(columns), folder / f"{party}.parquet")
    agreed = ("--name", "timing", "--clusters", str(_CLUSTERS), "--users", str(users))
    digits = _command(folder, "study", "new", *agreed, *options, "--server-key", "server.pub")
    for party in _PARTIES:
        _command(folder, "study", "approve", "study.toml", "--home", party, "--digits", digits)
    write_certificate(ca=folder / "ca.pem", cert=folder / "cert.pem", key=folder / "key.pem")


def run_five(folder: Path, run: str) -> tuple[float, float]:
    """Return seconds and processor seconds of one run: relay, server, three parties."""
    began = time.perf_counter()
    with (folder / f"relay-{run}.log").open("w+") as log:
        relay = subprocess.Popen(
            _splitmeans(
                *("relay", "serve", "--study", "study.toml", "--folder", f"messages-{run}"),
                *("--port", "0", "--tls-cert", "cert.pem", "--tls-key", "key.pem"),
            ),
            cwd=folder,
            env=environment(),
            stderr=log,
        )
    try:
        url = _address(folder / f"relay-{run}.log", relay)
        where = ("--mailbox", url, "--ca", "ca.pem", "--run", run)
        commands: list[tuple[str, ...]] = [
            ("server", "run", "study.toml", *where, "--home", "server")
        ]
        for party in _PARTIES:
            own = ("--party", party, "--data", f"{party}.parquet", "--home", party)
            commands.append(("party", "run", "study.toml", *own, *where))
        started: list[subprocess.Popen[bytes]] = []
        for command in commands:
            with (folder / f"{command[0]}-{run}-{len(started)}.log").open("w") as log:
                started.append(
                    subprocess.Popen(
                        _splitmeans(*command),
                        cwd=folder,
                        env=environment(),
                        stdout=log,
                        stderr=subprocess.STDOUT,
                    )
                )
        processor = sum(_end_of(process) for process in started)
        seconds = time.perf_counter() - began
    finally:
        relay.terminate()
        processor_of_relay = _end_of(relay, may_fail=True)
    return seconds, processor + processor_of_relay


def _timed_bare(folder: Path) -> tuple[float, float]:
    began = time.perf_counter()
    started = [
        subprocess.Popen([sys.executable, *_BARE], cwd=folder, env=environment())
        for _ in range(len(_PARTIES) + 2)
    ]
    processor = sum(_end_of(process) for process in started)
    return time.perf_counter() - began, processor


def _end_of(process: subprocess.Popen[bytes], *, may_fail: bool = False) -> float:
    """Wait for a process; return the processor seconds it took."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0 and not may_fail:
        raise MailboxError(f"a process of the run ended with exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def _address(log: Path, relay: subprocess.Popen[bytes]) -> str:
    """Wait until the relay says where it is."""
    for _ in range(600):
        for line in log.read_text(encoding="utf-8").splitlines():
            if "relay at " in line:
                return line.split("relay at ")[1].split()[0]
        if relay.poll() is not None:
            break
        time.sleep(0.05)
    raise MailboxError("the relay did not start")


def _command(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        _splitmeans(*arguments), cwd=folder, env=environment(), capture_output=True, text=True
    )
    if done.returncode:
        raise MailboxError(f"splitmeans {' '.join(arguments[:2])} failed: {done.stderr.strip()}")
    return done.stdout.strip()


def _splitmeans(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "splitmeans", *arguments]
