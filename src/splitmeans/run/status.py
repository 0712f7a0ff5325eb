"""Who is missing in a run, and since when: from a home, from a mailbox, or from both.

A home knows what it has taken. A mailbox of files shows everybody's messages, so it tells whose
turn it is even if that participant waits for nobody one can see; a relay shows a participant its
own messages only. What lies in a mailbox is not opened here: that something is there does not say
that it is right.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from splitmeans.errors import MailboxError, MailboxUnavailable, MessageRefused
from splitmeans.mailbox.open import RELAYS, Mailbox, scheme_of
from splitmeans.run.drive import DONE, FAILED
from splitmeans.run.order import Due, MessageOrder
from splitmeans.run.records import KnownRun
from splitmeans.study import Study
from splitmeans.wire.messages import PublishedResult
from splitmeans.wire.slot import SERVER

WAITING, FINISHED, NOT_BEGUN = "waiting", "finished", "not begun"


@dataclass(frozen=True, kw_only=True)
class RunStatus:
    """What is known of one run.

    Attributes:
        study: Name of the study.
        study_hash: Its hash.
        run: Name of the run.
        participant: Whose home it was seen from; None from a mailbox alone.
        state: "waiting", "finished", "failed" or "not begun".
        stage: The participant's state in the protocol; "" where no home tells.
        missing: What has to be sent before the run goes on, by those whose turn it is.
        since: When something last happened, UTC; None if it is not known.
        note: What people should know besides.
    """

    study: str
    study_hash: str
    run: str
    participant: str | None
    state: str
    stage: str
    missing: tuple[Due, ...]
    since: str | None
    note: str = ""

    @property
    def who(self) -> tuple[str, ...]:
        """Whose turn it is."""
        return tuple(sorted({message.sender for message in self.missing}))


@dataclass(frozen=True, kw_only=True)
class Watcher:
    """A mailbox as it is looked at."""

    url: str
    mailbox: Mailbox

    @property
    def shows_all(self) -> bool:
        """Whether messages between others can be seen."""
        return scheme_of(self.url) not in RELAYS

    def is_there(self, path: str) -> bool:
        """Tell whether a message is there, without reading it."""
        try:
            return self.mailbox.get(path, max_bytes=0) is not None
        except MessageRefused:  # larger than nothing: it is there
            return True

    def last_time(self, paths: list[str]) -> str | None:
        """Return when the last of some messages came; None where a place does not tell."""
        if scheme_of(self.url) != "file":
            return None
        folder = Path(self.url.removeprefix("file://"))
        times = [(folder / path).stat().st_mtime for path in paths if (folder / path).is_file()]
        if not times:
            return None
        return datetime.fromtimestamp(max(times), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def status_of_known(known: KnownRun, study: Study | None, watcher: Watcher | None) -> RunStatus:
    """Return the status of a run that a home has; without its study only what the home says."""
    facts: dict[str, Any] = {
        "study": known.details.get("study", "?") if study is None else study.name,
        "study_hash": known.key.study_hash,
        "run": known.key.run,
        "participant": known.key.participant,
        "stage": known.stage,
        "since": known.since,
    }
    if known.outcome == DONE:
        return RunStatus(**facts, state=FINISHED, missing=())
    if known.outcome == FAILED:
        return RunStatus(**facts, state=FAILED, missing=(), note=known.reason or "")
    if study is None:
        note = "give its study file to see who is missing"
        return RunStatus(**facts, state=WAITING, missing=(), note=note)
    order, own, run = MessageOrder(study), known.key.participant, known.key.run

    def was_taken(message: Due) -> bool:
        return message.path(study, run) in known.taken

    wanted = order.next_of(own, was_taken)
    if watcher is None:
        return RunStatus(**facts, state=WAITING, missing=tuple(sorted(wanted)))
    is_there = _remembering(lambda message: watcher.is_there(message.path(study, run)))
    # What lies there and was not taken: this participant's own command has to go on.
    absent = frozenset(message for message in wanted if not is_there(message))
    if not absent:
        note = "everything that it waits for is there: start its command again"
        return RunStatus(**facts, state=WAITING, missing=(), note=note)
    if watcher.shows_all:
        absent = order.whose_turn(absent, lambda one: was_taken(one) or is_there(one))
    return RunStatus(**facts, state=WAITING, missing=tuple(sorted(absent)))


def status_by_mailbox(study: Study, run: str, watcher: Watcher) -> RunStatus:
    """Return the status of a run as a mailbox of files shows it, without anybody's home."""
    facts: dict[str, Any] = {
        "study": study.name,
        "study_hash": study.hash,
        "run": run,
        "participant": None,
        "stage": "",
    }
    if not watcher.shows_all:
        raise MailboxError(
            "a relay shows participants their own messages only; give --home of a participant who "
            "has begun the run"
        )
    order = MessageOrder(study)
    is_there = _remembering(lambda message: watcher.is_there(message.path(study, run)))
    results = [Due(SERVER, party, PublishedResult.TAG) for party in study.party_names]
    absent = [message for message in results if not is_there(message)]
    everyone = (*study.party_names, SERVER)
    seen = frozenset[Due]().union(*(step for who in everyone for step in order.steps(who)))
    since = watcher.last_time([message.path(study, run) for message in seen])
    if not absent:
        return RunStatus(**facts, state=FINISHED, missing=(), since=since)
    missing = tuple(sorted(order.whose_turn(absent, is_there)))
    has_begun = any(is_there(message) for message in seen)
    state = WAITING if has_begun else NOT_BEGUN
    return RunStatus(**facts, state=state, missing=missing, since=since)


def _remembering(is_there: Callable[[Due], bool]) -> Callable[[Due], bool]:
    """Ask a mailbox once for each message."""
    known: dict[Due, bool] = {}

    def look(message: Due) -> bool:
        if message not in known:
            try:
                known[message] = is_there(message)
            except MailboxUnavailable:
                raise
            except MailboxError:  # a message between others, at a relay
                known[message] = False
        return known[message]

    return look
