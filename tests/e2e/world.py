"""Organisations on one machine: everyone has a folder, a user's home, keys and data of its own.

Commands run as processes, as a user types them, in the participant's folder and with nothing of the
other participants but what they hand over: public keys, the study file, a mailbox.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq

import splitmeans

PARTIES = ("bank", "shop", "clinic")
SERVER = "server"
EVERYONE = (*PARTIES, SERVER)
DATA = {"bank": "customers.csv", "shop": "customers.parquet", "clinic": "customers.arrow"}

N_USERS = 1500
# Rows: segments; columns: two at each party, in the parties' order, between 0 and 100.
TRUTH = np.array(
    [
        [20.0, 30.0, 75.0, 20.0, 30.0, 70.0],
        [75.0, 75.0, 25.0, 50.0, 75.0, 25.0],
        [30.0, 80.0, 30.0, 80.0, 80.0, 80.0],
    ]
)
_SECONDS = 120.0  # for anything that has to happen; only a failure takes this long


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


class Command:
    """A command that runs in the background; what it says goes to a file."""

    def __init__(
        self,
        arguments: Iterable[str],
        *,
        folder: Path,
        env: Mapping[str, str],
        stdin: int = subprocess.DEVNULL,
    ) -> None:
        number = len(list(folder.glob("*.err")))
        self._err = folder / f"{number}.err"
        with self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "splitmeans", *arguments],
                cwd=folder,
                env=dict(env),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=err,
                text=True,
            )

    @property
    def said(self) -> str:
        return self._err.read_text()

    def until(self, text: str) -> str:
        """Wait until the command says something; return all that it has said."""
        end = time.monotonic() + _SECONDS
        while text not in self.said:
            assert self.process.poll() is None, f"ended without saying {text!r}: {self.said}"
            assert time.monotonic() < end, f"does not say {text!r}: {self.said}"
            time.sleep(0.02)
        return self.said

    def done(self) -> Done:
        """Wait for the end."""
        out, _ = self.process.communicate(timeout=_SECONDS)
        return Done(self.process.returncode, out, self.said)

    def stop(self) -> Done:
        """Ask the process to end, as `kill` does."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.done()


@dataclass(frozen=True, kw_only=True)
class World:
    """All participants' folders below one, and the commands that were started there."""

    folder: Path
    started: list[Command] = field(default_factory=list)

    def start(
        self,
        who: str,
        *arguments: str,
        stdin: int = subprocess.DEVNULL,
        env: Mapping[str, str] | None = None,
    ) -> Command:
        """Start a command of a participant, with more in its environment."""
        more = env or {}
        folder = self.folder / who
        own = {"HOME": str(folder), "PATH": os.environ["PATH"], "XDG_CACHE_HOME": _cache()}
        # The package under test, also where it is not installed.
        own["PYTHONPATH"] = str(Path(splitmeans.__file__).parents[1])
        command = Command(arguments, folder=folder, env=own | dict(more), stdin=stdin)
        self.started.append(command)
        return command

    def run(self, who: str, *arguments: str) -> Done:
        """Run a command of a participant."""
        return self.start(who, *arguments).done()

    def take_part(self, who: str, *options: str, env: Mapping[str, str] | None = None) -> Command:
        """Start `party run` or `server run`."""
        if who == SERVER:
            return self.start(who, "server", "run", "study.toml", *options, env=env)
        given = ("--party", who, "--data", DATA[who])
        return self.start(who, "party", "run", "study.toml", *given, *options, env=env)

    def home(self, who: str) -> Path:
        return self.folder / who / ".splitmeans"

    def ledger(self, who: str) -> dict[str, Any]:
        """Return the ledger as the command shows it; the command checks it first."""
        shown = self.run(who, "ledger", "show", "--json")
        assert shown.code == 0, shown.err
        ledger: dict[str, Any] = json.loads(shown.out)
        return ledger

    def end(self) -> None:
        """End what a failed test has left running."""
        for command in self.started:
            if command.process.poll() is None:
                command.process.kill()
            command.process.communicate()

    def copy(self, folder: Path) -> "World":
        """Return the same participants in other folders."""
        shutil.copytree(self.folder, folder)
        return World(folder=folder)


def agree(world: World, *more: str) -> None:
    """Make data and keys, agree on a study, and approve it: everything up to a run.

    Args:
        world: Folders that are empty.
        more: Further options of `study new`.
    """
    folder = world.folder
    for who in EVERYONE:
        (folder / who).mkdir(mode=0o700)
    write_data(folder)
    made = {who: world.start(who, "keys", "new") for who in EVERYONE}
    for who, command in made.items():
        done = command.done()
        assert done.code == 0, done.err
        # The public key goes to whoever writes the study.
        (folder / "bank" / f"{who}.pub").write_text(done.out)
    options = [f"--party={who}={who}.pub" for who in PARTIES]
    options += [f"--column={who}:{name}:0:100" for who in PARTIES for name in columns_of(who)]
    options += [
        "--id-type=as-is",
        "--clusters=3",
        "--epsilon=2",
        "--delta=1e-5",
        f"--users={N_USERS}",
    ]
    written = world.run(
        "bank", "study", "new", *options, *more, "--id-type=as-is", "--server-key=server.pub"
    )
    assert written.code == 0, written.err
    for who in (*PARTIES[1:], SERVER):
        shutil.copy(folder / "bank" / "study.toml", folder / who)
    digits = written.out.strip()
    for who in PARTIES:
        done = world.run(who, "study", "approve", "study.toml", "--digits", digits)
        assert done.code == 0, done.err
        keep_rehearsal(world.home(PARTIES[0]), *(world.home(other) for other in PARTIES[1:]))


def keep_rehearsal(home: Path, *others: Path) -> None:
    """Spare the other homes a rehearsal of the same study, which takes longer than a run."""
    for other in others:
        shutil.copytree(home / "rehearsed", other / "rehearsed", dirs_exist_ok=True)


def columns_of(who: str) -> tuple[str, str]:
    return f"{who}_a", f"{who}_b"


def write_data(folder: Path) -> None:
    """Write everyone's table: the same users in another order, other columns, another format."""
    rng = np.random.default_rng(5)
    segment = rng.integers(len(TRUTH), size=N_USERS)
    values = np.clip(TRUTH[segment] + rng.normal(scale=4, size=(N_USERS, 6)), 0, 100)
    ids = np.array([f"person-{number}" for number in rng.integers(10**9, 10**10, size=N_USERS)])
    for position, who in enumerate(PARTIES):
        order = rng.permutation(N_USERS)
        own = values[order, 2 * position : 2 * position + 2]
        columns = dict(zip(columns_of(who), own.T, strict=True))
        table = pa.table({"id": ids[order], **columns})
        path = folder / who / DATA[who]
        if path.suffix == ".csv":
            pyarrow.csv.write_csv(table, path)
        elif path.suffix == ".parquet":
            pq.write_table(table, path)
        else:
            pyarrow.feather.write_feather(table, path, compression="uncompressed")


def read_data(folder: Path, who: str) -> pa.Table:
    path = folder / who / DATA[who]
    if path.suffix == ".csv":
        return pyarrow.csv.read_csv(path)
    return pq.read_table(path) if path.suffix == ".parquet" else pyarrow.feather.read_table(path)


def _cache() -> str:
    """Compiled kernels hold nothing of a run; compiling them for everyone would take minutes."""
    return os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
