"""The first words of a run: everyone tells everyone its key of this run, and its protocol.

Each participant makes a fresh pair of keys for the run and sends the public half to every other
one, signed with the identity that the study pins, for this study, run and receiver (`Hello`).
Everything after it is sealed to these keys. Nobody sends anything else before it has heard from all
others, the server among them: another version of splitmeans is found before any user is compared
and anything is charged.
"""

import itertools
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

from splitmeans.errors import JournalError, ParameterError, ProtocolError
from splitmeans.run.drive import Desk, Sealed, taken_note
from splitmeans.run.journal import THIS_RUN
from splitmeans.run.post import Received
from splitmeans.run.records import RunKey
from splitmeans.run.run_keys import keep_key, load_key
from splitmeans.wire import envelope as wire
from splitmeans.wire.envelope import Envelope
from splitmeans.wire.identity import Identity
from splitmeans.wire.messages import Hello, KeyContribution, Ready, RunPlan
from splitmeans.wire.sealing import OpeningKey, SealingKey
from splitmeans.wire.slot import SERVER


@dataclass(frozen=True, kw_only=True)
class Greeting:
    """A participant's part in the first words of a run.

    `going_on` is called before every step; it raises to stop there.
    """

    desk: Desk
    identity: Identity
    others: tuple[str, ...]
    say: Callable[[str], None]
    going_on: Callable[[], object] = lambda: None

    def make(self) -> "Words":
        """Make the key of a new run and the words that tell it; nothing is stored or sent."""
        opening = OpeningKey.new()
        word = Hello(protocol=bytes([wire.PROTOCOL]), sealing=opening.public.data)
        own = self.desk.key.participant
        to_all = [Envelope(sender=own, receiver=other, message=word) for other in self.others]
        self.desk.post.use_key(opening)
        return Words(greeting=self, opening=opening, messages=self.desk.seal(to_all))

    def take_up(self) -> None:
        """Use the key of a run that was begun before."""
        journal = self.desk.journal
        opening = load_key(journal.folder, self.desk.key, identity=self.identity)
        self.desk.post.use_key(opening)

    def complete(self) -> None:
        """Wait until everyone's key of the run is known.

        Raises:
            ProtocolError: Somebody speaks another protocol; the run has ended.
        """
        known = _known_keys(self.desk.journal.connection, self.desk.key)
        for name, data in known.items():
            self.desk.post.learn_key(name, SealingKey(data))
        missing = [name for name in self.others if name not in known]
        while missing:
            with self.desk.ending_on_protocol_errors():
                received = self._next(missing)
                self._take(received)
            missing.remove(received.envelope.sender)

    def _next(self, missing: list[str]) -> Received:
        told: set[str] = set()
        for number in itertools.count(1):
            for name in missing:
                if (received := self.desk.post.fetch(name, Hello.TAG)) is not None:
                    self.desk.patience.news()
                    return received
            if number & (number - 1) == 0:  # less and less often: a relay counts requests
                self._tell_other_versions(missing, told)
            self.desk.patience.wait(missing)
        raise AssertionError("waiting ends with an error")

    def _take(self, received: Received) -> None:
        sender, word = received.envelope.sender, received.envelope.message
        assert isinstance(word, Hello)
        sealing = check_hello(sender, word)
        self.going_on()
        journal, key = self.desk.journal, self.desk.key
        with journal.transaction():
            journal.accept(key, received.slot.path, sha256=received.sha256)
            journal.connection.execute(
                f"INSERT INTO greetings VALUES ({THIS_RUN}, ?, ?)",
                (*key.values, sender, sealing.data),
            )
        self.desk.post.learn_key(sender, sealing)
        stage = "Gathering" if key.participant == SERVER else "Joined"
        self.say(taken_note(received.envelope, stage=stage))

    def _tell_other_versions(self, missing: list[str], told: set[str]) -> None:
        """Say who seems to speak a version that has other first words.

        Nothing there is checked, since its form is not known here: so it is told, and ends nothing.
        """
        own = self.desk.key.participant
        for name in missing:
            for kind in _first_kinds(name, own):
                version = self.desk.post.other_version(name, kind)
                if version is not None and name not in told:
                    told.add(name)
                    text = (
                        f"a message of {name} has the form of another version of splitmeans "
                        f"(sealed messages of version {version}): install the same version at all "
                        "participants, then begin another run; nothing was charged here"
                    )
                    self.say(text)


@dataclass(frozen=True, kw_only=True)
class Words:
    """What `Greeting.make` made."""

    greeting: Greeting
    opening: OpeningKey
    messages: list[Sealed]

    def store(self) -> None:
        """Put key and words on disk, inside the transaction that begins the run."""
        desk = self.greeting.desk
        identity = self.greeting.identity
        keep_key(desk.journal.folder, desk.key, self.opening, identity=identity)
        desk.queue(self.messages)


def check_hello(sender: str, word: Hello) -> SealingKey:
    """Return the sender's key of the run, if it speaks this protocol.

    Raises:
        ProtocolError: It speaks another one, or says no key.
    """
    if word.protocol != bytes([wire.PROTOCOL]):
        theirs = int.from_bytes(word.protocol[:2])
        raise ProtocolError(
            f"{sender!r} speaks protocol {theirs} and this is protocol {wire.PROTOCOL}: install "
            "the same version of splitmeans at all participants, then begin another run (nothing "
            "was charged)"
        )
    try:
        return SealingKey(word.sealing)
    except ParameterError as problem:
        raise ProtocolError(f"{sender!r} sent no usable key for the run: {problem}") from None


def _first_kinds(sender: str, receiver: str) -> tuple[str, str]:
    """Return what the receiver may find first, from a newer version and from older ones."""
    if receiver == SERVER:
        return Hello.TAG, Ready.TAG
    return Hello.TAG, RunPlan.TAG if sender == SERVER else KeyContribution.TAG


def refuse_second_home(desk: Desk, others: tuple[str, ...]) -> None:
    """Refuse to begin a run that was begun with the same identity from another home.

    That home alone has the key that the others seal to.

    Raises:
        JournalError: The mailbox has first words of this participant that this home never sent.
    """
    if desk.post.left_before(others, (Hello.TAG,)):
        raise JournalError(
            f"{desk.key}: the mailbox has first words of this participant for the run that the "
            f"home {desk.journal.folder} does not know. The run was begun from another home, "
            "which alone has the key that the others seal their messages to: go on there. If that "
            "home is lost, the run cannot be finished: begin another one with a new name"
        )


def _known_keys(connection: sqlite3.Connection, key: RunKey) -> dict[str, bytes]:
    rows = connection.execute(
        f"SELECT participant, sealing FROM greetings WHERE run_id = {THIS_RUN}", key.values
    )
    return {name: bytes(data) for name, data in rows}
