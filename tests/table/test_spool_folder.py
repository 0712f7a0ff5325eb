"""Rows on disk are the owner's alone, go with their process, and are swept if it was killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import splitmeans
from splitmeans.table.walk.spool_folder import make_spool_folder, new_private_file, sweep_spools

SCRIPT = """
import sys
from pathlib import Path
from splitmeans.table.walk.spool_folder import make_spool_folder

spool = make_spool_folder(sys.argv[1])
(spool.path / "deeper").mkdir()
(spool.path / "deeper" / "ids").write_text("4711")
print(spool.path, flush=True)
sys.stdin.readline()
"""


@contextmanager
def another_process(place: Path) -> Iterator[tuple["subprocess.Popen[str]", Path]]:
    source = str(Path(splitmeans.__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(place)],
        env={**os.environ, "PYTHONPATH": source},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().strip())


def test_modes_under_an_open_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        spool = make_spool_folder(tmp_path)
        with new_private_file(spool.path / "rows") as file:
            file.write(b"1")
    finally:
        os.umask(before)
    assert spool.path.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in spool.path.iterdir()} == {0o600}
    assert Path(f"{spool.path}.lock").stat().st_mode & 0o777 == 0o600
    spool.close()
    assert list(tmp_path.iterdir()) == []
    spool.close()


def test_a_name_that_is_taken_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        new_private_file(tmp_path / "link")
    assert not (tmp_path / "elsewhere").exists()


def test_what_a_killed_process_left_is_swept_and_what_a_living_one_has_is_not(
    tmp_path: Path,
) -> None:
    with another_process(tmp_path) as (living, kept), another_process(tmp_path) as (killed, left):
        sweep_spools(tmp_path)
        assert (kept / "deeper" / "ids").exists()
        assert (left / "deeper" / "ids").exists()
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert (left / "deeper" / "ids").read_text() == "4711"  # it could not clean up
        own = make_spool_folder(tmp_path)  # sweeps first
        lock = f"{kept.name}.lock"
        names = {kept.name, lock, own.path.name, f"{own.path.name}.lock"}
        assert {path.name for path in tmp_path.iterdir()} == names
        assert (kept / "deeper" / "ids").exists()
        own.close()
        living.communicate("end\n")
    assert living.returncode == 0
    assert list(tmp_path.iterdir()) == []  # its end removed its own


def test_a_half_swept_folder_is_swept(tmp_path: Path) -> None:
    """Whoever swept was killed in the middle: the folder has no lock, or the lock no folder."""
    for name in ("splitmeans-spool-0123456789abcdef", "splitmeans-spool-0123456789abcdee.lock"):
        path = tmp_path / name
        path.touch() if path.suffix else path.mkdir()
    sweep_spools(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_nothing_else_is_swept(tmp_path: Path) -> None:
    names = ("splitmeans-spool-short", "splitmeans-rehearsal-0123456789abcdef", "ids", "a.lock")
    for name in names:
        (tmp_path / name).mkdir()
    sweep_spools(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(names)
    sweep_spools(tmp_path / "nowhere")


def test_a_copy_of_the_process_owns_nothing(tmp_path: Path) -> None:
    spool = make_spool_folder(tmp_path)
    child = os.fork()
    if child == 0:
        spool.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert spool.path.is_dir()
    spool.close()
    assert list(tmp_path.iterdir()) == []


WORKERS = """
import os, sys, time
from splitmeans.table.walk.workers import Workers

def task(number):
    print(os.getpid(), flush=True)
    time.sleep(600)

if __name__ == "__main__":
    for _ in Workers(2).map(task, [1, 2]):
        pass
"""


def test_workers_end_with_a_killed_leader(tmp_path: Path) -> None:
    """An orphan would go on writing rows into a spool that nobody removes any more."""
    script = tmp_path / "script.py"
    script.write_text(WORKERS)
    with subprocess.Popen(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(Path(splitmeans.__file__).parents[1])},
        stdout=subprocess.PIPE,
        text=True,
    ) as leader:
        assert leader.stdout is not None
        workers = [int(leader.stdout.readline()) for _ in range(2)]
        assert len(set(workers)) == 2
        leader.kill()
        leader.wait()
        # The pipe ends when the last process that has it ends; a test with orphans would hang here.
        assert leader.stdout.read() == ""
