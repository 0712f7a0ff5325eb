"""The instants of a run at which a kill can make a difference: around everything done to the disk.

Two ways to stop there: take a picture of the disk, which is what a kill leaves, and go on from the
picture later; or raise `Stopped` from the operation, as Ctrl-C does, so that all clean-up code runs
as well.
"""

import contextlib
import functools
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from splitmeans.mailbox.files import FileMailbox
from tests.crash.crew import Crew, Disk
from tests.crash.rules import EVERYONE, MAILBOX, RESULTS, Record

# These leave the disk as it is.
_READS = ("sqlite SELECT", "sqlite PRAGMA", "mailbox get")
_OS_CALLS = ("fsync", "link", "replace", "rename", "unlink", "mkdir", "rmdir", "open")


class Stopped(BaseException):
    """The participant was stopped here."""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """What was on disk at an instant.

    Attributes:
        who: Whose turn it was.
        turn: Number of the turn, over all participants.
        instant: The operation before or after which it was taken, such as "after sqlite COMMIT".
        disk: The picture.
        sent: What anyone had tried to send until then.
    """

    who: str
    turn: int
    instant: str
    disk: Disk
    sent: Record


@contextlib.contextmanager
def watched(at: Callable[[str], None]) -> Iterator[None]:
    """Call `at` before and after every operation on disk, database and mailbox."""
    busy = False

    def tell(instant: str) -> None:
        nonlocal busy
        if not busy:  # the watcher's own operations are none of the participant's
            busy = True
            try:
                at(instant)
            finally:
                busy = False

    def around(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def told(*args: Any, **options: Any) -> Any:
            tell(f"before {name}")
            answer = call(*args, **options)
            tell(f"after {name}")
            return answer

        return told

    class Connection(sqlite3.Connection):
        def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
            name = " ".join(statement.split()[:3])
            tell(f"before sqlite {name}")
            answer = super().execute(statement, *values)
            tell(f"after sqlite {name}")
            return answer

    with pytest.MonkeyPatch.context() as patch:
        for name in _OS_CALLS:
            patch.setattr(os, name, around(f"os.{name}", getattr(os, name)))
        for name in ("put", "get"):
            patch.setattr(FileMailbox, name, around(f"mailbox {name}", getattr(FileMailbox, name)))
        patch.setattr(sqlite3, "connect", functools.partial(sqlite3.connect, factory=Connection))
        yield


def all_pictures(crew: Crew, order: Sequence[str] = EVERYONE) -> list[Picture]:
    """Run to the end; return every different state of the disk on the way, first to last."""
    pictures: list[Picture] = []
    known: dict[bytes, bytes] = {}
    finished: set[str] = set()
    turn = 0

    def take(instant: str) -> None:
        if any(word in instant for word in _READS):
            return
        who = order[turn % len(order)]
        disk = crew.disk((who, MAILBOX, RESULTS)) if pictures else crew.disk()
        # Most files are the same in most pictures; they are kept once.
        disk = {name: data and known.setdefault(data, data) for name, data in disk.items()}
        if pictures:
            others = {name for name in EVERYONE if name != who}
            last = pictures[-1].disk.items()
            disk |= {name: data for name, data in last if name.split("/")[0] in others}
        sent = {slot: set(hashes) for slot, hashes in crew.sent.items()}
        if not pictures or (pictures[-1].disk, pictures[-1].sent) != (disk, sent):
            disk = dict(sorted(disk.items()))
            pictures.append(Picture(who=who, turn=turn, instant=instant, disk=disk, sent=sent))

    take("the beginning")
    while len(finished) < len(order):
        assert turn < 100, "the run does not end"
        with watched(take):
            if crew.turn(order[turn % len(order)]):
                finished.add(order[turn % len(order)])
        turn += 1
    return pictures


def stop_at(crew: Crew, who: str, number: int) -> str | None:
    """Give a participant a turn and stop it at an instant; return which, None if it came not."""
    count, stopped_at = -1, None

    def stop(instant: str) -> None:
        nonlocal count, stopped_at
        count += 1
        if count == number:
            stopped_at = instant
            raise Stopped

    with contextlib.suppress(Stopped), watched(stop):
        crew.turn(who)
    return stopped_at
