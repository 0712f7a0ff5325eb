"""Participants with the mistakes that the crash suite is for; they work while nobody is killed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from splitmeans.run import party as party_module
from splitmeans.run.drive import Desk, Sealed
from splitmeans.wire.envelope import Envelope


class Patch(Protocol):
    """What pytest's monkeypatch does."""

    def setattr(self, target: Any, name: str, value: Any, /) -> None: ...


def send_first(patch: Patch) -> None:
    """Send what is sealed, then store it."""
    queue = Desk.queue

    def queue_after_sending(desk: Desk, messages: Sequence[Sealed]) -> None:
        for message in messages:
            desk.post.send(message.path, message.data)
        queue(desk, messages)

    patch.setattr(Desk, "queue", queue_after_sending)


def seal_again(patch: Patch) -> None:
    """Make a message anew when it may have to be sent a second time."""
    seal = Desk.seal
    known: dict[str, tuple[Envelope, int]] = {}
    tried: set[str] = set()

    def remember(desk: Desk, made: Sequence[Envelope], *, release_length: int = 0) -> list[Sealed]:
        messages = seal(desk, made, release_length=release_length)
        known.update({message.path: (message.envelope, release_length) for message in messages})
        return messages

    def send(desk: Desk, *, again: bool = False) -> None:
        for item in desk.journal.pending(desk.key):
            data = desk.journal.read(item)
            if item.slot_path in tried:
                envelope, length = known[item.slot_path]
                _, data = desk.post.sealed(envelope, release_length=length)
            tried.add(item.slot_path)
            desk.post.send(item.slot_path, data)
            desk.journal.mark_sent(desk.key, item.slot_path)

    patch.setattr(Desk, "seal", remember)
    patch.setattr(Desk, "send_pending", send)


def mark_first(patch: Patch) -> None:
    """Note that a message was sent, then send it."""

    def send(desk: Desk, *, again: bool = False) -> None:
        for item in desk.journal.pending(desk.key):
            desk.journal.mark_sent(desk.key, item.slot_path)
            desk.post.send(item.slot_path, desk.journal.read(item))

    patch.setattr(Desk, "send_pending", send)


def charge_late(patch: Patch) -> None:
    """Charge a release once it is sent."""
    driver = party_module._Driver
    charge, send = driver._charge, Desk.send_pending
    owed: list[Callable[[], None]] = []

    def owe(self: Any, releases: Mapping[str, str], *, late: bool = False) -> None:
        owed.append(lambda: charge(self, releases, late=late))

    def send_and_charge(desk: Desk, *, again: bool = False) -> None:
        send(desk, again=again)
        with desk.journal.transaction():
            while owed:
                owed.pop()()

    patch.setattr(driver, "_charge", owe)
    patch.setattr(Desk, "send_pending", send_and_charge)
