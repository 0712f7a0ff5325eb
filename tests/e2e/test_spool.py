"""Ids and rows of a large table never outlive the run that reads them, however it ends."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.e2e.world import Command, World

# More than a table in memory may have, by its own rows and by the rows that the study expects.
N_USERS = 2_050_000
FIRST_ID = 7_310_000_000


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A bank with a large table that has agreed on a study with a shop."""
    world = World(folder=tmp_path_factory.mktemp("large"))
    everyone = ("bank", "shop", "server")
    for who in everyone:
        (world.folder / who).mkdir(mode=0o700)
        made = world.run(who, "keys", "new")
        assert made.code == 0, made.err
        (world.folder / "bank" / f"{who}.pub").write_text(made.out)
    bank = world.folder / "bank"
    values = np.random.default_rng(1).uniform(0, 100, N_USERS).astype(np.float32)
    ids = pa.array(np.arange(FIRST_ID, FIRST_ID + N_USERS))
    pq.write_table(pa.table({"id": ids, "x": values}), bank / "big.parquet")
    options = [
        "--party=bank=bank.pub",
        "--party=shop=shop.pub",
        "--server-key=server.pub",
        "--id-type=as-is",
    ]
    options += ["--column=bank:x:0:100", "--column=shop:y:0:100", "--clusters=2"]
    options += ["--epsilon=2", "--delta=1e-7", f"--users={N_USERS}"]
    written = world.run("bank", "study", "new", *options)
    assert written.code == 0, written.err
    approved = world.run("bank", "study", "approve", "study.toml", "--digits", written.out.strip())
    assert approved.code == 0, approved.err
    (world.folder / "shared").mkdir()
    yield world
    world.end()


def waiting(world: World, *options: str, data: str = "big.parquet") -> Command:
    given = ("--party", "bank", "--data", data, "--mailbox", str(world.folder / "shared"))
    command = world.start("bank", "party", "run", "study.toml", *given, *options)
    command.until("waiting for")
    return command


def files_with_ids(world: World) -> list[Path]:
    """Every file of the home that holds an id."""
    some = str(FIRST_ID + N_USERS // 3).encode()
    everything = world.home("bank").rglob("*")
    return [path for path in everything if path.is_file() and some in path.read_bytes()]


def spooled(world: World) -> list[Path]:
    return list((world.home("bank") / "spool").rglob("*"))


@pytest.mark.slow
def test_a_large_table(large: World) -> None:
    for number, code in ((signal.SIGTERM, 143), (signal.SIGHUP, 129)):
        command = waiting(large, "--workers", "1")
        assert files_with_ids(large)
        # Whoever else is on this machine can open none of it.
        for path in spooled(large):
            assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600)
        assert (large.home("bank") / "spool").stat().st_mode & 0o777 == 0o700
        command.process.send_signal(number)
        ended = command.done()
        assert ended.code == code
        assert ended.err.splitlines()[-1].startswith("stopped; nothing is lost")
        assert spooled(large) == []
        assert files_with_ids(large) == []

    killed = waiting(large, "--workers", "2")
    os.kill(killed.process.pid, signal.SIGKILL)
    killed.process.wait()
    left = files_with_ids(large)
    assert left  # nobody could clean up
    # Another run from the same home, with the table spoiled: what was left goes all the same.
    refused = large.run(
        *("bank", "party", "run", "study.toml", "--party", "bank", "--run", "2"),
        *("--data", "missing.parquet", "--mailbox", str(large.folder / "shared")),
    )
    assert refused.code == 2, refused.err
    assert spooled(large) == []
    assert files_with_ids(large) == []
    assert not any(path.exists() for path in left)
