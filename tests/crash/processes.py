"""Participants and a relay as processes that run their command lines, forked from a warm one."""

import hashlib
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from benchmarks.local_relay import write_certificate
from splitmeans import cli
from splitmeans.cli import party, relay, server  # noqa: F401  (loaded once, before forking)
from splitmeans.mailbox.files import FileMailbox
from splitmeans.mailbox.http import HttpMailbox
from splitmeans.rehearsal import passed
from splitmeans.relay import app as relay_app  # noqa: F401
from splitmeans.relay import serve as relay_serve  # noqa: F401
from splitmeans.run.journal import Journal, RunKey
from splitmeans.study import Study
from tests.crash.rules import EVERYONE, MAILBOX, PARTIES, RESULTS, SERVER, Record
from tests.scene import KEYS, N_USERS

RELAY, RENEWAL = "relay", "renewal"
RENEWED = PARTIES[0]  # whose key is renewed while a run goes on
RUN_SECONDS = 180.0  # a run that takes longer hangs
_SENT = "sent.log"


class Setter:
    """Stands in for pytest's monkeypatch in a process that ends anyway."""

    @staticmethod
    def setattr(target: Any, name: str, value: Any) -> None:
        setattr(target, name, value)


@dataclass(kw_only=True)
class Stage:
    """One run with all its processes.

    Attributes:
        folder: Holds the homes, results, mailbox and a log for each process.
        study: The study.
        over_relay: Whether messages go over a relay or a folder.
        port: Where the relay listens.
        broken: Changes the participants into a broken twin.
        run: Name of the run.
        alive: Process ids by name.
    """

    folder: Path
    study: Study
    over_relay: bool
    port: int
    broken: Callable[[Any], None] | None
    run: str = "1"
    alive: dict[str, int] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return (RELAY, *EVERYONE) if self.over_relay else EVERYONE

    @property
    def keys(self) -> dict[str, RunKey]:
        return {
            who: RunKey(study_hash=self.study.hash, run=self.run, participant=who)
            for who in EVERYONE
        }

    @property
    def mailbox(self) -> Path:
        return self.folder / RELAY / "messages" if self.over_relay else self.folder / MAILBOX

    def sent(self) -> Record:
        """Return what participants said they were about to send, before they did."""
        record: Record = {}
        for line in (self.folder / _SENT).read_text().splitlines():
            slot, digest = line.split()
            record.setdefault(slot, set()).add(digest)
        return record

    def start(self, who: str) -> None:
        """Start a participant or the relay as a process of its own."""
        pid = os.fork()
        if pid == 0:
            self._be(who)
        self.alive[who] = pid

    def kill(self, who: str) -> bool:
        """End a process as a power cut would; False if it had ended by itself."""
        pid = self.alive.pop(who)
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        return os.WIFSIGNALED(status)

    def ended(self) -> dict[str, int]:
        """Return exit codes of processes that have ended by themselves since the last call."""
        codes = {}
        for who, pid in list(self.alive.items()):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                del self.alive[who]
                codes[who] = os.waitstatus_to_exitcode(status)
        return codes

    def is_writing(self, who: str) -> bool:
        """Tell whether a participant is in the middle of a transaction, or of writing a file."""
        if who == RELAY:
            return any((self.folder / RELAY / "incoming").glob("*"))
        if who == RENEWAL:
            keys = self.folder / RENEWED / "keys"
            return keys.is_dir() and any(name.startswith(".") for name in os.listdir(keys))
        home = self.folder / who
        return (home / "splitmeans.sqlite-journal").exists() or any(
            name.startswith(".") for name in os.listdir(home / "outbox")
        )

    def _command(self, who: str) -> list[str]:
        ca, cert, key = (str(self.folder / name) for name in ("ca.pem", "cert.pem", "key.pem"))
        study = str(self.folder / f"{self.study.hash}.toml")
        if who == RENEWAL:
            return ["keys", "renew", "--home", str(self.folder / RENEWED)]
        if who == RELAY:
            place = ["--folder", str(self.folder / RELAY), "--port", str(self.port)]
            return [RELAY, "serve", "--study", study, *place, "--tls-cert", cert, "--tls-key", key]
        url = [str(self.mailbox)]
        if self.over_relay:
            url = [f"https://127.0.0.1:{self.port}", "--ca", ca]
        common = ["--home", str(self.folder / who), "--result", str(self.folder / RESULTS / who)]
        common += ["--mailbox", *url, "--timeout", str(RUN_SECONDS), "--run", self.run]
        if who == SERVER:
            return [SERVER, "run", study, *common]
        data = str(self.folder / f"{who}.csv")
        return ["party", "run", study, "--party", who, "--data", data, *common]

    def _be(self, who: str) -> NoReturn:
        """Become the process: run the command line and end."""
        code = 70
        try:
            log = os.open(self.folder / f"{who}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(log, 1)
            os.dup2(log, 2)
            self._record_sends()
            if self.broken is not None:
                self.broken(Setter)
            sys.argv = ["splitmeans", *self._command(who)]
            cli.main()
            code = 0
        except SystemExit as ending:
            code = ending.code if isinstance(ending.code, int) else 1
        finally:
            os._exit(code)

    def _record_sends(self) -> None:
        log = os.open(self.folder / _SENT, os.O_WRONLY | os.O_APPEND)
        for mailbox in (FileMailbox, HttpMailbox):
            put = mailbox.put

            def recorded(box: Any, path: str, data: bytes, put: Any = put, **how: Any) -> None:
                os.write(log, f"{path} {hashlib.sha256(data).hexdigest()}\n".encode())
                put(box, path, data, **how)

            mailbox.put = recorded  # type: ignore[method-assign]


def agree(folder: Path, study: Study) -> None:
    """Approve a study in all homes, as after `study approve`.

    What is killed here is the run, not its rehearsal.
    """
    (folder / f"{study.hash}.toml").write_text(study.to_toml())
    for who in EVERYONE:
        passed._write(folder / who / "rehearsed" / study.hash)
        if who != SERVER:
            with Journal.open(folder / who) as journal:
                journal.approve(study.hash, study.to_toml())


def prepare(folder: Path, study: Study) -> None:
    """Make homes with keys, data files, the study file and a certificate."""
    folder.mkdir()
    (folder / MAILBOX).mkdir()
    for who in EVERYONE:
        (folder / who).mkdir(mode=0o700)
        KEYS[who].save(folder / who / "key.json", passphrase=None)
    agree(folder, study)
    for who in PARTIES:
        rows = np.random.default_rng(PARTIES.index(who)).uniform(0, 100, (N_USERS, 2))
        lines = ["id,x,y", *(f"user-{n},{x:.3f},{y:.3f}" for n, (x, y) in enumerate(rows))]
        (folder / f"{who}.csv").write_text("\n".join(lines) + "\n")
    (folder / _SENT).touch()
    ca, cert, key = (folder / name for name in ("ca.pem", "cert.pem", "key.pem"))
    write_certificate(ca=ca, cert=cert, key=key)
