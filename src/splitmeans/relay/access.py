"""Who may ask the relay for what, and how often. No input or output here."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from splitmeans.errors import ParameterError, SplitmeansError
from splitmeans.mailbox.open import MessagePath
from splitmeans.mailbox.request_signature import SignedRequest, Verifier
from splitmeans.relay.limits import RelayLimits
from splitmeans.wire.slot import SERVER, short_name
from splitmeans.wire.ways import may_send

_SERVER = short_name(SERVER)


class Refused(SplitmeansError):
    """The relay refuses a request.

    Attributes:
        status: HTTP status.
        code: Word by which a client knows the reason.
        retry_after: Seconds after which to try again, if that makes sense.
        is_stranger: Whether it is unknown who asks.
        caller: Study and short name of who asks, where that is known.
    """

    def __init__(
        self,
        text: str,
        *,
        status: int,
        code: str,
        retry_after: int | None = None,
        is_stranger: bool = False,
        caller: tuple[str, str] | None = None,
    ) -> None:
        super().__init__(text)
        self.status = status
        self.code = code
        self.retry_after = retry_after
        self.is_stranger = is_stranger
        self.caller = caller


@dataclass(frozen=True, kw_only=True)
class Caller:
    """An admitted request: who asks (short name), for which slot, with which body."""

    participant: str
    path: MessagePath
    body_hash: str

    @property
    def key(self) -> tuple[str, str]:
        """A participant of one study; the same one in another study is counted apart."""
        return self.path.study, self.participant


@dataclass(kw_only=True)
class _Record:
    """What the relay remembers of one participant."""

    tokens: float
    refilled: float
    nonces: dict[str, float] = field(default_factory=dict)  # time of arrival, oldest first


class Access:
    """Checks requests against rosters and limits.

    What was asked before is kept in memory. After a restart an old request could be repeated within
    the clock's tolerance: it would write the same bytes once more, or fetch sealed bytes.

    `rosters` has for each study hash (64 digits) its participants' names and public keys.
    """

    def __init__(
        self,
        rosters: Mapping[str, Mapping[str, Verifier]],
        limits: RelayLimits,
        *,
        clock: Callable[[], float],
    ) -> None:
        self.set_rosters(rosters)
        self._limits = limits
        self._clock = clock
        self._records: dict[tuple[str, str], _Record] = {}
        self._transfers: Counter[tuple[str, str]] = Counter()

    def set_rosters(self, rosters: Mapping[str, Mapping[str, Verifier]]) -> None:
        """Serve these studies from now on; what is remembered of participants stays."""
        short = {
            study[:32]: {short_name(name): key for name, key in roster.items()}
            for study, roster in rosters.items()
        }
        if len(short) != len(rosters):
            raise ParameterError("rosters: two studies have hashes with the same first 32 digits")
        self._rosters = short
        self._names = {
            (study[:32], short_name(name)): name
            for study, roster in rosters.items()
            for name in roster
        }

    def name_of(self, study: str, participant: str) -> str:
        """Return the name of a participant; its short name if the study is served no more."""
        return self._names.get((study, participant), participant)

    @property
    def participants(self) -> dict[str, int]:
        """Number of participants of each study, by its folder."""
        return {study: len(roster) for study, roster in self._rosters.items()}

    @property
    def n_studies(self) -> int:
        """Number of studies that the relay serves."""
        return len(self._rosters)

    def admit(self, method: str, path: str, headers: Mapping[str, str]) -> Caller:
        """Decide from path and headers alone whether a request may go on.

        Raises:
            Refused: It may not. All strangers get one text, which tells nothing about the relay.
        """
        try:
            place = MessagePath.parse(path)
        except ParameterError:
            raise _stranger() from None
        request = self._identify(method, place.study, path, headers)
        caller = Caller(participant=request.participant, path=place, body_hash=request.body_hash)
        with naming(caller.key):
            self._admit(method, caller, nonce=request.nonce)
        return caller

    def _admit(self, method: str, caller: Caller, *, nonce: str) -> None:
        place = caller.path
        # A sender may see its own: a home that was put back must find what it has released.
        owners = {place.sender} if method == "PUT" else {place.sender, place.receiver}
        if caller.participant not in owners:
            verb, end = ("sends", "from") if method == "PUT" else ("fetches", "to or from")
            raise Refused(
                f"a participant {verb} only messages {end} itself", status=403, code="not-yours"
            )
        if method == "PUT":  # what was never taken is not there
            self._check_route(place)
        self._count(caller.key, nonce)

    def admit_to_study(
        self, method: str, study: str, path: str, headers: Mapping[str, str]
    ) -> SignedRequest:
        """Decide whether a participant of a study may ask for what is no message.

        Raises:
            Refused: As for `admit`.
        """
        request = self._identify(method, study, path, headers)
        with naming((study, request.participant)):
            self._count((study, request.participant), request.nonce)
        return request

    def _check_route(self, place: MessagePath) -> None:
        """Refuse what no run has: another kind, to somebody else, or on another way."""
        is_known = place.receiver in self._rosters[place.study] and may_send(
            place.kind,
            from_server=place.sender == _SERVER,
            to_server=place.receiver == _SERVER,
            to_itself=place.sender == place.receiver,
        )
        if not is_known:
            raise Refused(
                "no run has such a message between these two", status=403, code="no-such-message"
            )

    def _identify(
        self, method: str, study: str, path: str, headers: Mapping[str, str]
    ) -> SignedRequest:
        """Return who signed a request and when, if that is a participant and now."""
        request = SignedRequest.read(headers)
        if request is None:
            raise _stranger()
        key = self._rosters.get(study, {}).get(request.participant)
        if key is None or not request.is_signed_by(key, method=method, path=path):
            raise _stranger()
        now = self._clock()
        if abs(now - request.time) > self._limits.clock_seconds:
            raise Refused(
                f"the request's time is {_shown(request.time)}, the relay's {_shown(now)}; they "
                f"may differ by {self._limits.clock_seconds} seconds",
                status=400,
                code="clock",
                caller=(study, request.participant),
            )
        return request

    def _count(self, participant: tuple[str, str], nonce: str) -> None:
        now = self._clock()
        per_minute = self._limits.requests_per_minute
        record = self._records.setdefault(participant, _Record(tokens=per_minute, refilled=now))
        # A request may come `clock_seconds` before its time and is good until as long after it.
        oldest = now - 2 * self._limits.clock_seconds
        while record.nonces and next(iter(record.nonces.values())) < oldest:
            del record.nonces[next(iter(record.nonces))]
        if nonce in record.nonces:
            raise Refused("this request was made before", status=403, code="repeated")
        gained = max(0.0, now - record.refilled) * per_minute / 60
        record.tokens = min(per_minute, record.tokens + gained)
        record.refilled = now
        # The rate bounds the memory for nonces; the second test holds if the clock is set back.
        most_nonces = per_minute * (2 + math.ceil(2 * self._limits.clock_seconds / 60))
        if record.tokens < 1 or len(record.nonces) >= most_nonces:
            wait = max(1, math.ceil((1 - record.tokens) * 60 / per_minute))
            raise Refused(
                f"more than {per_minute} requests a minute",
                status=429,
                code="too-many-requests",
                retry_after=wait,
            )
        record.tokens -= 1
        record.nonces[nonce] = now

    @contextmanager
    def transfer(self, caller: Caller) -> Iterator[None]:
        """Hold one of the places for uploads and downloads.

        Raises:
            Refused: All places are taken.
        """
        if (
            self._transfers.total() >= self._limits.transfers
            or self._transfers[caller.key] >= self._limits.transfers_per_participant
        ):
            raise Refused("too many transfers at once", status=503, code="busy", retry_after=1)
        self._transfers[caller.key] += 1
        try:
            yield
        finally:
            self._transfers[caller.key] -= 1


@contextmanager
def naming(caller: tuple[str, str]) -> Iterator[None]:
    """Say with a refusal whose request it is: study and short name."""
    try:
        yield
    except Refused as refused:
        refused.caller = caller
        raise


def _stranger() -> Refused:
    return Refused(
        "the request is not signed by a participant of a study that this relay serves",
        status=403,
        code="stranger",
        is_stranger=True,
    )


def _shown(time: float) -> str:
    try:
        return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return "beyond the calendar"
