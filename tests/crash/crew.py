"""A small study with all its participants in one folder, started turn by turn in one process.

A turn is a start from disk: the participant goes on until it would have to wait for another, and
stops. Everything that it remembers between two turns is on disk, so what is on disk at any instant
of a turn is what a kill at that instant leaves.
"""

import contextlib
import functools
import hashlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from splitmeans.errors import WaitingError
from splitmeans.mailbox.files import FileMailbox
from splitmeans.run import party as party_module
from splitmeans.run import server as server_module
from splitmeans.run.drive import Patience
from splitmeans.run.journal import Journal, RunKey
from splitmeans.run.party import run_party
from splitmeans.run.party_run import PartyRun
from splitmeans.run.server import ServerRun, run_server
from splitmeans.study import Study
from splitmeans.table.prepare import PartyTable
from splitmeans.wire.identity import Identity
from tests.crash.rules import EVERYONE, MAILBOX, PARTIES, RESULTS, SERVER, Record
from tests.scene import KEYS, keyed_study, make_table

# Path below the folder, and the bytes; None stands for a folder.
Disk = dict[str, bytes | None]


# Participants start some hundred times, from the same study and the same rows.
crew_study = functools.partial(keyed_study, *PARTIES, n_local_clusters=3)
_table_of = functools.cache(make_table)


@dataclass(frozen=True, kw_only=True)
class Crew:
    """Everyone's folders below one folder, and every message that anyone ever sent.

    Attributes:
        folder: Homes, results and mailbox are in it.
        study: What they run.
        run: Name of the run.
        previous: The result that a run of a series follows, where the home has lost it.
        sent: For each slot, hashes of all bytes that were ever given to the mailbox.
        identities: Everyone's keys.
        table_of: Returns a party's table.
    """

    folder: Path
    study: Study
    run: str = "1"
    previous: Path | None = None
    sent: Record = field(default_factory=dict)
    identities: Mapping[str, Identity] = field(default_factory=lambda: KEYS)
    table_of: Callable[[Study, str], PartyTable] = _table_of

    def approve(self) -> None:
        """Make the mailbox and the homes, and approve the study in each."""
        (self.folder / MAILBOX).mkdir(parents=True)
        for name in PARTIES:
            with Journal.open(self.folder / name) as journal:
                journal.approve(self.study.hash, self.study.to_toml())

    def turn(self, who: str, *, going_on: Callable[[], object] = lambda: None) -> bool:
        """Start a participant; True if it finished, False if it waits for another."""
        mailbox = _Recorder(str(self.folder / MAILBOX), sent=self.sent)
        folder, home = self.result_of(who), self.folder / who
        identity = self.identities[who]
        try:
            if who == SERVER:
                server = ServerRun(
                    study=self.study,
                    run=self.run,
                    identity=identity,
                    mailbox=mailbox,
                    result_folder=folder,
                    say=_quiet,
                    going_on=going_on,
                    previous=self.previous,
                )
                run_server(server, home, timeout=1e-9)
            else:
                table = functools.partial(self.table_of, self.study, who)
                party = PartyRun(
                    study=self.study,
                    party=who,
                    run=self.run,
                    source="customers",
                    open_table=lambda: contextlib.nullcontext(table()),
                    identity=identity,
                    mailbox=mailbox,
                    result_folder=folder,
                    say=_quiet,
                    going_on=going_on,
                    previous=self.previous,
                )
                run_party(party, home, timeout=1e-9)
        except WaitingError:
            return False
        return True

    def go_on(self, order: Sequence[str] = EVERYONE, *, rounds: int = 20) -> None:
        """Give everyone turns until all have finished."""
        for _ in range(rounds):
            if all([self.turn(who) for who in order]):
                return
        raise AssertionError("the run does not end")

    @property
    def keys(self) -> dict[str, RunKey]:
        return {
            who: RunKey(study_hash=self.study.hash, run=self.run, participant=who)
            for who in EVERYONE
        }

    def result_of(self, who: str) -> Path:
        return self.folder / RESULTS / who

    def disk(self, below: Sequence[str] = (*EVERYONE, MAILBOX, RESULTS)) -> Disk:
        """Return everything that is on disk below some of the folders."""
        paths = [
            path
            for name in below
            for path in (self.folder / name, *self.folder.glob(f"{name}/**/*"))
        ]
        return {
            str(path.relative_to(self.folder)): None if path.is_dir() else path.read_bytes()
            for path in sorted(paths)
            if path.exists()
        }

    def put_back(self, disk: Disk, sent: Record) -> None:
        """Make everything what it was."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        for name, data in disk.items():
            path = self.folder / name
            if data is None:
                path.mkdir(mode=0o700)
            else:
                path.touch(mode=0o600)
                path.write_bytes(data)
        self.sent.clear()
        self.sent.update({slot: set(hashes) for slot, hashes in sent.items()})


class _Recorder(FileMailbox):
    """A folder that remembers all that was ever put into it."""

    def __init__(self, url: str, *, sent: Record) -> None:
        super().__init__(url)
        self._sent = sent

    def put(self, path: str, data: bytes, **how: Any) -> None:
        self._sent.setdefault(path, set()).add(hashlib.sha256(data).hexdigest())
        super().put(path, data, **how)


def drop_pauses(monkeypatch: object) -> None:
    """Let whoever has to wait ask once more at once and then stop."""
    for module in (party_module, server_module):
        monkeypatch.setattr(  # type: ignore[attr-defined]
            module, "Patience", functools.partial(Patience, sleep=lambda _: None)
        )


def _quiet(_: str) -> None:
    pass
