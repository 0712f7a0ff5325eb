"""Ctrl-C reaches every process of a terminal; one of them leads, the others say nothing."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import splitmeans

# Both workers have a task; then one of them has none, and waits for the next.
SCRIPT = """
import sys, time
from pathlib import Path
from splitmeans.table.walk.workers import Workers

def task(number):
    here = Path(__file__).parent
    (here / f"begun-{number}").touch()
    while len(list(here.glob("begun-*"))) < 2:
        time.sleep(0.01)
    if number == 0:
        time.sleep(3)

if __name__ == "__main__":
    workers = Workers(2)
    try:
        for _ in workers.map(task, [1, 0]):
            time.sleep(0.2)
            print("one is idle", flush=True)
    except KeyboardInterrupt:
        workers.close()
        sys.exit(130)
"""


def test_workers_leave_ctrl_c_to_their_leader(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    source = str(Path(splitmeans.__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": source},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "one is idle\n"
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "")
