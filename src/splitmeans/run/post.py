"""Between envelopes and a mailbox: seal and sign what goes out, open and check what comes in."""

import functools
import hashlib
import itertools
import logging
import typing
from collections.abc import Iterable
from dataclasses import dataclass

from splitmeans.errors import (
    MessageRefused,
    OtherRunKey,
    ParameterError,
    ProtocolError,
)
from splitmeans.mailbox.open import Mailbox
from splitmeans.plan.message_sizes import padded_length
from splitmeans.study import Study
from splitmeans.wire.codec import decode, encode
from splitmeans.wire.envelope import Envelope
from splitmeans.wire.identity import Identity, PublicIdentity
from splitmeans.wire.messages import ALL_KINDS, Hello, Message, PartyRelease, kind_of
from splitmeans.wire.sealed import (
    OVERHEAD_BYTES,
    check_signed,
    open_sealed,
    other_version,
    seal,
)
from splitmeans.wire.sealing import OpeningKey, SealingKey
from splitmeans.wire.slot import Slot
from splitmeans.wire.tags import tag_of
from splitmeans.wire.ways import MAX_LARGE_BYTES, MAX_SMALL_BYTES, is_large

_log = logging.getLogger(__name__)

# Of a message that this participant has sent, maybe with other limits than now.
_MAX_OWN_BYTES = OVERHEAD_BYTES + MAX_LARGE_BYTES


@dataclass(frozen=True, kw_only=True)
class Received:
    """A message that came from who it says, for the slot it was in."""

    envelope: Envelope
    slot: Slot
    sha256: str


class Post:
    """One participant's way to and from the others in one run."""

    def __init__(
        self,
        study: Study,
        *,
        run: str,
        participant: str,
        identity: Identity,
        mailbox: Mailbox,
        max_bytes: int = MAX_LARGE_BYTES,
    ) -> None:
        self._keys = pinned_keys(study)
        check_own_key(study, participant, identity)
        self._study, self._run, self._participant = study, run, participant
        self._identity, self._mailbox, self._max_bytes = identity, mailbox, max_bytes
        self._opening: OpeningKey | None = None
        self._sealing: dict[str, SealingKey] = {}
        self._warned: set[str] = set()

    def use_key(self, opening: OpeningKey) -> None:
        """Open messages with this participant's own key of the run, from now on."""
        self._opening = opening
        self._sealing[self._participant] = opening.public

    def learn_key(self, participant: str, sealing: SealingKey) -> None:
        """Seal to a participant's key of the run, from now on."""
        self._sealing[participant] = sealing

    def sealed(self, envelope: Envelope, *, release_length: int = 0) -> tuple[str, bytes]:
        """Return the path and the bytes under which an envelope travels.

        A party's release is padded to `release_length` bytes, by the plan.
        """
        payload = encode(envelope.message)
        if isinstance(envelope.message, PartyRelease):
            payload = payload.ljust(padded_length(len(payload), release_length), b"\0")
        receiver = envelope.receiver
        slot = self._slot(
            sender=self._participant, receiver=receiver, kind=kind_of(envelope.message)
        )
        pinned = self._keys[receiver]
        # The first words tell the keys that all others are sealed to.
        is_first = isinstance(envelope.message, Hello)
        to = pinned.sealing_key if is_first else self._sealing[receiver]
        data = seal(payload, slot=slot, sender=self._identity, receiver=pinned, to=to)
        return slot.path, data

    def is_hello(self, path: str) -> bool:
        """Tell whether a path is one of this participant's first words."""
        return self._own_slots[path].kind == Hello.TAG

    def send(self, path: str, data: bytes) -> None:
        """Leave sealed bytes in the mailbox, once; what others put in their place is removed.

        Raises:
            MessageExists: The place holds another message that this participant signed.
        """
        slot = self._own_slots[path]

        def is_junk(found: bytes | None) -> bool:
            return found is None or not self._is_own(found, slot)

        self._mailbox.put(path, data, is_junk=is_junk, max_bytes=_MAX_OWN_BYTES)

    def fetch(self, sender: str, kind: str) -> Received | None:
        """Return the message in a slot, or None if there is none yet.

        What is not from this sender for this slot is reported once and left alone: somebody put it
        there, and the right one may still come.

        Raises:
            ProtocolError: The sender itself sent something that is no message of this kind.
        """
        slot = self._slot(sender=sender, receiver=self._participant, kind=kind)
        limit = self._limit(kind)
        try:
            data = self._mailbox.get(slot.path, max_bytes=limit)
            if data is None:
                return None
            payload = open_sealed(
                data,
                slot=slot,
                sender=self._keys[sender],
                receiver=self._identity.public,
                opener=self._opener(kind),
                max_bytes=limit,
            )
        except OtherRunKey as problem:
            raise ProtocolError(
                f"{problem}. This participant's identity was used for the run from another home: "
                "go on there, or begin another run with a new name"
            ) from None
        except MessageRefused as problem:
            self._warn(f"ignored what is in the place of {sender}'s {kind}: {problem}")
            return None
        message = decode(payload)
        if not isinstance(message, typing.get_args(Message)) or kind_of(message) != kind:
            raise ProtocolError(
                f"{sender!r} sent a {tag_of(type(message))} in the place of a {kind}"
            )
        envelope = Envelope(sender=sender, receiver=self._participant, message=message)
        return Received(envelope=envelope, slot=slot, sha256=hashlib.sha256(data).hexdigest())

    def other_version(self, sender: str, kind: str) -> int | None:
        """Return the version of what is in a slot, if it has the form of another version."""
        slot = self._slot(sender=sender, receiver=self._participant, kind=kind)
        try:
            data = self._mailbox.get(slot.path, max_bytes=self._limit(kind))
        except MessageRefused:
            return None
        return None if data is None else other_version(data)

    def own_message(self, receiver: str, kind: str) -> bytes | None:
        """Return the message of a kind that this participant has left for a receiver, if any.

        None says that the mailbox has none, or bytes that this participant never signed. Whatever
        keeps the mailbox from telling is an error (rule R11).

        Raises:
            MailboxError: It could not be found out.
        """
        slot = self._slot(sender=self._participant, receiver=receiver, kind=kind)
        try:
            data = self._mailbox.get(slot.path, max_bytes=_MAX_OWN_BYTES)
        except MessageRefused:  # no plain file, or larger than any message
            return None
        return data if data is not None and self._is_own(data, slot) else None

    def left_before(self, receivers: Iterable[str], kinds: Iterable[str]) -> dict[str, str]:
        """Return the hash of each message of these kinds that this participant has left."""
        found = {}
        for receiver, kind in itertools.product(receivers, kinds):
            if (data := self.own_message(receiver, kind)) is not None:
                found[kind] = hashlib.sha256(data).hexdigest()
        return found

    def _opener(self, kind: str) -> OpeningKey:
        if kind == Hello.TAG:
            return self._identity.opening_key
        assert self._opening is not None, "nothing is expected before the first words"
        return self._opening

    def _is_own(self, data: bytes, slot: Slot) -> bool:
        try:
            check_signed(
                data,
                slot=slot,
                sender=self._identity.public,
                receiver=self._keys[slot.receiver],
                max_bytes=_MAX_OWN_BYTES,
            )
        except MessageRefused:
            return False
        return True

    @functools.cached_property
    def _own_slots(self) -> dict[str, Slot]:
        slots = (
            self._slot(sender=self._participant, receiver=receiver, kind=kind)
            for receiver in self._keys
            for kind in ALL_KINDS
        )
        return {slot.path: slot for slot in slots}

    def _limit(self, kind: str) -> int:
        return OVERHEAD_BYTES + (self._max_bytes if is_large(kind.lower()) else MAX_SMALL_BYTES)

    def _slot(self, *, sender: str, receiver: str, kind: str) -> Slot:
        return Slot(
            study_hash=self._study.hash,
            run=self._run,
            sender=sender,
            receiver=receiver,
            kind=kind,
        )

    def _warn(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            _log.warning("%s", text)


def pinned_keys(study: Study) -> dict[str, PublicIdentity]:
    """Return everyone's public identity, as the study pins it (R9)."""
    if not study.public_keys:
        raise ParameterError(
            f"study {study.name!r} has no keys, so it can only be simulated; give every party a "
            "public_key and the study a server_key (`splitmeans keys show` prints them)"
        )
    return {name: PublicIdentity.from_text(text) for name, text in study.public_keys.items()}


def check_own_key(study: Study, participant: str, identity: Identity) -> None:
    """Refuse to act as a participant whose key this is not."""
    pinned = pinned_keys(study)
    if participant not in pinned:
        raise ParameterError(f"study {study.name!r} has no participant {participant!r}")
    if pinned[participant] != identity.public:
        raise ParameterError(
            f"the key file is not the one that study {study.name!r} has for {participant!r}; its "
            f"fingerprint is {identity.public.fingerprint}, the study's "
            f"{pinned[participant].fingerprint}"
        )
