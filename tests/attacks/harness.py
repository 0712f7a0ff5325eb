"""An attacker's world: honest parties, a mailbox and a server's key that the attacker owns.

Parties are the real `run_party` on homes of their own, the honest server is the real `run_server`.
A `visit` lets one of them act until it has to wait, as if it were started, had a time-out of nought
and stopped; so there are no threads, no pauses and no chance in the order of things, and every
visit is a restart.

`Box.log` has all that ever left or reached an honest participant. `World.check_view` says whether
the attacker got more than the protocol allows; the fixture calls it after every attack.
"""

import contextlib
import dataclasses
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from splitmeans.errors import MessageExists, MessageRefused, SplitmeansError, WaitingError
from splitmeans.mailbox.open import (
    MAX_STORED_BYTES,
    IsJunk,
    Mailbox,
    MailboxLimits,
    MessagePath,
    never,
)
from splitmeans.plan.settle import make_plan
from splitmeans.plan.stages import ReleasedValues, StageValues, flat_values
from splitmeans.privacy.ledger import Entry, Ledger
from splitmeans.result.signed import privacy_to_compare
from splitmeans.run.journal import Journal, RunKey, SavedRun
from splitmeans.run.party import run_party
from splitmeans.run.party_run import PartyRun
from splitmeans.run.server import ServerRun, run_server
from splitmeans.study import Study
from splitmeans.table.walk.interface import Table
from splitmeans.wire.codec import decode, encode
from splitmeans.wire.envelope import PROTOCOL
from splitmeans.wire.identity import Identity
from splitmeans.wire.messages import Hello, KeyContribution, RunPlan, StageRelease, kind_of, staged
from splitmeans.wire.sealed import OVERHEAD_BYTES, open_sealed, seal
from splitmeans.wire.sealing import OpeningKey, SealingKey
from splitmeans.wire.slot import SERVER, Slot, short_name
from tests.scene import KEYS, make_table

from .view import KINDS, RELEASES, check_view, kind_in_slot

Stored = bytes | None

# Every key of a run that anyone ever made, by its digest: what a test looks at, no attacker has.
OPENINGS: dict[bytes, OpeningKey] = {}
_DIGEST = slice(125, 157)  # where a sealed message says what it is sealed to


def recorded_key(make: Callable[[], OpeningKey] = OpeningKey.new) -> OpeningKey:
    """Make a key of a run and remember it."""
    key = make()
    OPENINGS[key.public.digest] = key
    return key


@dataclass
class Box:
    """A mailbox that the attacker owns: honest until a test sets a hook or touches `files`.

    Attributes:
        files: What is in it now.
        log: All that honest participants ever put into it and got from it, in order.
        on_put: Decides what is stored; None drops it.
        on_get: Decides what a reader gets.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    log: list[tuple[str, str, bytes]] = field(default_factory=list)
    on_put: Callable[[str, bytes], Stored] = lambda path, data: data
    on_get: Callable[[str, Stored], Stored] = lambda path, data: data

    @property
    def sent(self) -> list[tuple[str, bytes]]:
        """All that honest participants ever sent, in order."""
        return [(path, data) for action, path, data in self.log if action == "put"]

    def put(
        self,
        path: str,
        data: bytes,
        *,
        is_junk: IsJunk = never,
        max_bytes: int = MAX_STORED_BYTES,
    ) -> None:
        MessagePath.parse(path)
        self.log.append(("put", path, data))
        found = self.files.get(path)
        if found not in (None, data) and not is_junk(found):
            raise MessageExists(f"{path} holds another message")
        stored = self.on_put(path, data)
        if stored is not None:
            self.files[path] = stored

    def get(self, path: str, *, max_bytes: int) -> Stored:
        data = self.on_get(path, self.files.get(path))
        if data is not None and len(data) > max_bytes:
            raise MessageRefused(f"{path} holds more than {max_bytes} bytes")
        if data is not None:
            self.log.append(("got", path, data))
        return data

    def limits(self, study_hash: str) -> MailboxLimits:
        return MailboxLimits(max_message_bytes=None, free_bytes=None, clock_offset=None)

    def reserve(self, study_hash: str, run: str, n_bytes: int) -> None:
        pass

    def close(self) -> None:
        pass

    def copy(self) -> "Box":
        return Box(files=dict(self.files), log=list(self.log))


class World:
    """All honest participants of one study, each with a home of its own."""

    def __init__(self, study: Study, root: Path, *, box: Box | None = None) -> None:
        self.study, self.root = study, root
        self.box = box or Box()
        self.mailbox: Mailbox = self.box
        self.tables = {name: make_table(study, name) for name in study.party_names}
        self.said: dict[str, list[str]] = {}
        self.waiting: dict[str, str] = {}
        self.opened: list[str] = []
        self.is_twin = False  # broken on purpose: not checked at the end
        self.unchecked: dict[str, str] = {}  # checks that cannot hold at the end, and why

    def clone(self, root: Path) -> "World":
        """The same world at the same instant in another place."""
        shutil.copytree(self.root, root, dirs_exist_ok=True)
        return World(self.study, root, box=self.box.copy())

    # ---- what honest people do ----

    def home(self, name: str) -> Path:
        return self.root / name

    def approve(self, *studies: Study, by: Iterable[str] | None = None) -> "World":
        for name in by or self.study.party_names:
            with Journal.open(self.home(name)) as journal:
                for study in studies or (self.study,):
                    journal.approve(study.hash, study.to_toml())
        return self

    def visit(
        self, name: str, *, study: Study | None = None, run: str = "1", **changes: Any
    ) -> bool:
        """Let a participant act until it waits or has the result; return whether it has it.

        Args:
            name: A party, or the server.
            study: The study file that it was given.
            run: Name of the run.
            changes: Other fields of `PartyRun` or `ServerRun`, and `timeout` and `home`.
        """
        study = study or self.study
        home = changes.pop("home", self.home(name))
        timeout = changes.pop("timeout", 0.0)
        facts: dict[str, Any] = {
            "study": study,
            "run": run,
            "identity": KEYS[name],
            "mailbox": self.mailbox,
            "result_folder": home / "results" / run,
            "say": self.said.setdefault(name, []).append,
        }
        try:
            if name == SERVER:
                run_server(ServerRun(**facts | changes), home, timeout=timeout)
            else:
                facts |= {"party": name, "source": "customers", "open_table": self._open(name)}
                run_party(PartyRun(**facts | changes), home, timeout=timeout)
        except WaitingError as problem:
            self.waiting[name] = str(problem)
            return False
        return True

    def _open(self, name: str) -> Callable[[], contextlib.AbstractContextManager[Table]]:
        def open_table() -> contextlib.AbstractContextManager[Table]:
            self.opened.append(name)
            return contextlib.nullcontext(self.tables[name])

        return open_table

    def join_all(self, **changes: Any) -> "World":
        """Let all parties say their first words and send their contributions; none takes any."""
        hidden = f"/{KeyContribution.TAG.lower()}."
        self.box.on_get = lambda path, data: None if hidden in path else data
        for name in (*self.study.party_names, *self.study.party_names):
            self.visit(name, **changes)
        self.box.on_get = lambda path, data: data
        return self

    def play(
        self, *names: str, rounds: int = 8, idle: int = 1, **changes: Any
    ) -> dict[str, SplitmeansError]:
        """Visit participants in turn; return who refused, and why.

        Args:
            names: Who is visited; all by default.
            rounds: Most rounds.
            idle: Rounds in which nobody sends anything new after which to stop.
            changes: See `visit`.
        """
        errors: dict[str, SplitmeansError] = {}
        done: set[str] = set()
        quiet = 0
        for _ in range(rounds):
            before = len(set(self.box.sent))
            for name in names or (*self.study.party_names, SERVER):
                if name in errors or name in done:
                    continue
                try:
                    if self.visit(name, **changes):
                        done.add(name)
                except SplitmeansError as problem:
                    errors[name] = problem
            quiet = quiet + 1 if len(set(self.box.sent)) == before else 0
            if quiet == idle:
                break
        return errors

    # ---- what the attacker does ----

    def slot(
        self,
        sender: str,
        receiver: str,
        kind: type | str,
        *,
        run: str = "1",
        study: Study | None = None,
    ) -> Slot:
        return Slot(
            study_hash=(study or self.study).hash,
            run=run,
            sender=sender,
            receiver=receiver,
            kind=kind_in_slot(kind),
        )

    def path(self, sender: str, receiver: str, kind: type | str, **place: Any) -> str:
        return self.slot(sender, receiver, kind, **place).path

    def sealed(
        self,
        receiver: str,
        payload: Any,
        *,
        kind: type | str | None = None,
        key: Identity | None = None,
        sender: str = SERVER,
        **place: Any,
    ) -> tuple[str, bytes]:
        """Seal anything with the server's key (or another that the attacker has)."""
        slot = self.slot(sender, receiver, kind or kind_of(payload), **place)
        data = payload if isinstance(payload, bytes) else encode(payload)
        pinned = KEYS[receiver].public
        to = pinned.sealing_key
        if slot.kind != Hello.TAG:
            if self.sealing_of(receiver, told_to=sender, **place) is None:
                self.visit(receiver, **place)  # the attacker waits until its victim has begun
            to = self.sealing_of(receiver, told_to=sender, **place) or to
            self.greet(sender, **place)
        return slot.path, seal(data, slot=slot, sender=key or KEYS[sender], receiver=pinned, to=to)

    def sealing_of(self, name: str, *, told_to: str, **place: Any) -> SealingKey | None:
        """The key of a run that a participant told another, if it did."""
        if name == told_to:
            told_to = next(other for other in self.study.party_names if other != name)
        path = self.path(name, told_to, Hello, **place)
        if path not in self.box.files:
            return None
        data = self.box.files[path]
        return SealingKey(self.read(name, told_to, Hello, data, **place).sealing)

    def greet(self, name: str, **place: Any) -> None:
        """Say the first words for a participant whose key the attacker has, if it has said none."""
        names = [other for other in (*self.study.party_names, SERVER) if other != name]
        if any(self.path(name, other, Hello, **place) in self.box.files for other in names):
            return
        word = Hello(protocol=bytes([PROTOCOL]), sealing=recorded_key().public.data)
        for other in names:
            path, data = self.sealed(other, word, sender=name, **place)
            self.box.files[path] = data

    def forge(self, receiver: str, payload: Any, **how: Any) -> None:
        """Put a sealed message into its slot."""
        path, data = self.sealed(receiver, payload, **how)
        self.box.files[path] = data

    def plan_message(self, **changes: Any) -> RunPlan:
        """The plan that an honest server would send, or another."""
        plan = make_plan(self.study, released=self.released)
        honest = RunPlan(
            n_local_clusters=np.array(plan.n_local_clusters),
            released=np.array(flat_values(plan.released), dtype=np.int64),
            fingerprint=plan.fingerprint,
            statement=privacy_to_compare(plan, secure_noise=True),
        )
        return dataclasses.replace(honest, **changes)

    @property
    def released(self) -> ReleasedValues:
        """What the stages of run 1 have released to the server so far."""
        found: list[StageValues] = []
        while (stage := make_plan(self.study, released=tuple(found)).next_stage) is not None:
            kind = staged(StageRelease, len(found) + 1)
            paths = [self.path(name, SERVER, kind) for name in stage.parties]
            if not all(path in self.box.files for path in paths):
                break
            messages = [self.message(name, SERVER, kind) for name in stage.parties]
            found.append(tuple(tuple(message.values.tolist()) for message in messages))
        return tuple(found)

    def ask_for_releases(self, *parties: str, **place: Any) -> None:
        """Send the honest plan."""
        for name in parties or self.study.party_names:
            self.forge(name, self.plan_message(), **place)

    def read(
        self,
        sender: str,
        receiver: str,
        kind: type | str,
        data: bytes,
        *,
        run: str = "1",
        study: Study | None = None,
    ) -> Any:
        """Open a message with its receiver's key of the run."""
        payload = open_sealed(
            data,
            slot=self.slot(sender, receiver, kind, run=run, study=study),
            sender=KEYS[sender].public,
            receiver=KEYS[receiver].public,
            opener=OPENINGS.get(data[_DIGEST], KEYS[receiver].opening_key),
            max_bytes=2**24 + OVERHEAD_BYTES,
        )
        return decode(payload)

    def message(self, sender: str, receiver: str, kind: type | str, *, run: str = "1") -> Any:
        """Open what is in the mailbox."""
        data = self.box.files[self.path(sender, receiver, kind, run=run)]
        return self.read(sender, receiver, kind, data, run=run)

    # ---- what can be checked ----

    def releases(self, party: str, *, kind: type | None = None) -> dict[str, set[bytes]]:
        """All different releases that a party ever sent, by slot."""
        found: dict[str, set[bytes]] = {}
        for path, data in self.box.sent:
            place = MessagePath.parse(path)
            if place.sender == short_name(party) and KINDS[place.kind] in (
                RELEASES if kind is None else (kind,)
            ):
                found.setdefault(path, set()).add(data)
        return found

    def sent_by(self, party: str, *, receiver: str | None = None) -> list[str]:
        """Kinds of all messages that a party sent after its first words, each once."""
        return [
            KINDS[place.kind].TAG
            for place in (MessagePath.parse(path) for path, _ in dict.fromkeys(self.box.sent))
            if place.sender == short_name(party)
            and KINDS[place.kind] is not Hello
            and (receiver is None or place.receiver == short_name(receiver))
        ]

    def entries(self, party: str) -> tuple[Entry, ...]:
        """The party's ledger, after checking it."""
        with Journal.open(self.home(party)) as journal:
            ledger = Ledger(journal.connection)
            ledger.verify()
            return ledger.entries()

    def charged(self, party: str) -> float:
        """What the party's ledger says was spent, as epsilon."""
        with Journal.open(self.home(party)) as journal:
            ledger = Ledger(journal.connection)
            return ledger.spent("customers").epsilon if "customers" in ledger.sources() else 0.0

    def saved(self, party: str, *, run: str = "1", study: Study | None = None) -> SavedRun | None:
        """What the party's journal has of a run."""
        key = RunKey(study_hash=(study or self.study).hash, run=run, participant=party)
        with Journal.open(self.home(party)) as journal:
            return journal.load(key)

    def stage_of(self, party: str, **place: Any) -> str:
        saved = self.saved(party, **place)
        assert saved is not None
        return saved.outcome or saved.stage

    def check_view(self) -> None:
        """Raise `ViewError` if honest parties sent more than the protocol lets the attacker see."""
        check_view(self)


def copy_home(world: World, name: str, *, to: Path) -> Path:
    """A backup of a participant's home."""
    shutil.copytree(world.home(name), to, symlinks=True)
    return to


def restore_home(world: World, name: str, *, backup: Path) -> None:
    """Put a backup back."""
    shutil.rmtree(world.home(name))
    shutil.copytree(backup, world.home(name), symlinks=True)
