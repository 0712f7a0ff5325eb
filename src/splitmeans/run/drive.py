"""What driving a party and driving the server have in common: one step is one transaction.

A message is taken, the node makes its step, and everything that follows from it (the charge, the
sealed messages to send, the new state) is on disk before anything is sent. After a crash at any
instant the journal has either all of a step or nothing of it. Who waits for others asks often at
first, then less, and gives up after a chosen time.
"""

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from splitmeans.errors import JournalError, MessageExists, ProtocolError, WaitingError
from splitmeans.result.of_run import TranscriptLine
from splitmeans.run.journal import Journal
from splitmeans.run.notes import Note
from splitmeans.run.post import Post, Received
from splitmeans.run.records import RunKey, SavedRun
from splitmeans.run.run_keys import erase_key
from splitmeans.wire.envelope import Envelope
from splitmeans.wire.messages import kind_of

DONE, FAILED = "done", "failed"


_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 2.0


@dataclass(kw_only=True)
class Patience:
    """How long a participant waits.

    Attributes:
        timeout: Seconds without any news after which waiting ends; None waits for ever.
        say: Told who is missing, when that changes.
        going_on: Called before every pause; raises to stop there.
        clock: Seconds that only go forward; a changed system time has no influence.
        sleep: Waits for some seconds.
    """

    timeout: float | None
    say: Callable[[str], None]
    going_on: Callable[[], object] = lambda: None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _since: float | None = field(default=None, init=False)
    _pause: float = field(default=_FIRST_PAUSE, init=False)
    _said: str = field(default="", init=False)

    def news(self) -> None:
        """Something arrived: begin to wait anew."""
        self._since, self._pause = None, _FIRST_PAUSE

    def wait(self, missing: Iterable[str]) -> None:
        """Pause before asking again.

        Raises:
            WaitingError: Nothing arrived for `timeout` seconds.
        """
        self.going_on()
        missing = sorted(missing)
        names = ", ".join(missing)
        now = self.clock()
        self._since = now if self._since is None else self._since
        if self.timeout is not None and now - self._since >= self.timeout:
            raise WaitingError(
                f"nothing came from {names} for {self.timeout:g} seconds; nothing is lost: the "
                "same command takes the run up again"
            )
        if names != self._said:
            self._said = names
            self.say(Note(f"waiting for {names}", event="waiting", missing=missing))
        self.sleep(self._pause)
        # Never much longer than a tenth of what was waited already.
        self._pause = min(2 * self._pause, max(_FIRST_PAUSE, (now - self._since) / 10))
        self._pause = min(self._pause, _LONGEST_PAUSE)


@dataclass(frozen=True, kw_only=True)
class Sealed:
    """An envelope and the bytes under which it travels."""

    envelope: Envelope
    path: str
    data: bytes

    @property
    def sha256(self) -> str:
        """Hash of the sealed bytes, which the ledger and the transcript name."""
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Desk:
    """A participant's journal, post and patience, for one run.

    With `has_equals` another copy of this participant makes the same messages, so that one of its
    own in a slot is as good.
    """

    key: RunKey
    journal: Journal
    post: Post
    patience: Patience
    has_equals: bool = False

    def seal(self, envelopes: Sequence[Envelope], *, release_length: int = 0) -> list[Sealed]:
        """Seal messages; done once, because sealing is random and a message is stored as it is.

        A party's release is padded to the plan's `release_length`.
        """
        sealed = []
        for envelope in envelopes:
            path, data = self.post.sealed(envelope, release_length=release_length)
            sealed.append(Sealed(envelope=envelope, path=path, data=data))
        return sealed

    def queue(self, messages: Sequence[Sealed]) -> None:
        """Store sealed messages for sending; inside the transaction of a step."""
        for message in messages:
            self.journal.queue(self.key, message.path, data=message.data)

    def send_pending(self, *, again: bool = False) -> None:
        """Send what is stored and was not sent; again if a crash came in between.

        `again` sends what was sent as well, for a mailbox that has lost it or holds other bytes.
        """
        stored = self.journal.outgoing if again else self.journal.pending
        for item in stored(self.key):
            try:
                self.post.send(item.slot_path, self.journal.read(item))
            except MessageExists as problem:
                # Another copy has the same key of the run, or it is no equal.
                if not self.has_equals or self.post.is_hello(item.slot_path):
                    raise self._second_copy() from problem
            self.journal.mark_sent(self.key, item.slot_path)

    def _second_copy(self) -> JournalError:
        """End the run: the mailbox has another message of this participant, so a copy runs, too."""
        reason = "a second copy of this home takes part in the run"
        self.fail(reason)
        return JournalError(
            f"{self.key}: {reason}: the mailbox has a message signed with this participant's key "
            "that this home never made. The home was copied, or put back from a backup, while the "
            "run went on. The other copy's message stays and this one's was not stored; the run "
            "ends here, and what was charged stays charged. Keep one home; if it is this one, add "
            "what the other released with `splitmeans ledger recover`, and begin another run with "
            "a new name"
        )

    def next_message(self, expected: frozenset[tuple[str, str]]) -> Received:
        """Wait until one of the expected messages is there, and return it."""
        while True:
            for sender, kind in sorted(expected):
                received = self.post.fetch(sender, kind)
                if received is not None:
                    self.patience.news()
                    return received
            self.patience.wait({sender for sender, _ in expected})

    def transcript(self) -> list[TranscriptLine]:
        """Return all messages that were sent and taken."""
        sent = [("sent", item.slot_path, item.sha256) for item in self.journal.outgoing(self.key)]
        taken = [("taken", *pair) for pair in self.journal.accepted(self.key)]
        return sent + taken

    @contextlib.contextmanager
    def ending_on_protocol_errors(self) -> Iterator[None]:
        """End the run for good if another participant broke the protocol."""
        try:
            yield
        except ProtocolError as problem:
            self.fail(str(problem))
            raise

    def fail(self, reason: str) -> None:
        """End the run for good and erase what is secret in it."""
        self.journal.finish(self.key, outcome=FAILED, reason=reason)
        erase_key(self.journal.folder, self.key)


def taken_note(envelope: Envelope, *, stage: str) -> Note:
    """Return what is said when a message was taken, and the stage that it led to."""
    kind, sender = kind_of(envelope.message), envelope.sender
    text = f"took {kind} from {sender}"
    return Note(text, event="message_taken", kind=kind, sender=sender, stage=stage)


def refuse_failed(saved: SavedRun | None, key: RunKey) -> None:
    """Refuse to go on with a run that has failed."""
    if saved is not None and saved.outcome == FAILED:
        raise JournalError(
            f"{key} has failed ({saved.reason}); begin another run: all participants give the same "
            "new name with --run"
        )
