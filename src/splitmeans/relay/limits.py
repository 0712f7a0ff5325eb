"""What a relay allows its users, so that none of them can use up what belongs to all."""

from dataclasses import dataclass

from splitmeans import _validate


@dataclass(frozen=True, kw_only=True)
class RelayLimits:
    """Limits of a relay. The defaults suit studies of up to fifty parties.

    Attributes:
        message_bytes: Bytes of one message.
        study_bytes: Bytes of all messages of one study, less if the disk has less. Each participant
            has an equal share for itself: what others send changes nothing of it, and they cannot
            find out what it sent.
        sender_runs: Runs of one study that one participant may send messages of.
        requests_per_minute: Requests of one participant in one study; a minute's worth at once.
        transfers: Uploads and downloads at the same time.
        transfers_per_participant: Those of one participant in one study.
        clock_seconds: How far a participant's clock may be from the relay's.
        idle_seconds: How long an upload may stand still.
        upload_rate: Bytes a second that an upload has at least, once it has taken `idle_seconds`.
        transfer_seconds: How long one upload or download may take.
    """

    message_bytes: int = 256 << 20
    study_bytes: int = 16 << 30
    sender_runs: int = 200
    requests_per_minute: int = 1200
    transfers: int = 128
    transfers_per_participant: int = 8
    clock_seconds: int = 300
    idle_seconds: float = 30.0
    upload_rate: int = 1000
    transfer_seconds: float = 900.0

    def __post_init__(self) -> None:
        _validate.at_least(
            1,
            message_bytes=self.message_bytes,
            study_bytes=self.study_bytes,
            sender_runs=self.sender_runs,
            requests_per_minute=self.requests_per_minute,
            transfers=self.transfers,
            transfers_per_participant=self.transfers_per_participant,
            clock_seconds=self.clock_seconds,
            upload_rate=self.upload_rate,
        )
        _validate.positive(idle_seconds=self.idle_seconds, transfer_seconds=self.transfer_seconds)


@dataclass(frozen=True, kw_only=True)
class ConnectionLimits:
    """How many connections may be open at the same time.

    Attributes:
        total: Those of participants, which have carried a signed request. For one more the oldest
            idle one is closed of who has most. Only where requests are in progress on all of them
            are there more; beyond `total` and `unsigned` together the status is 503.
        signed_per_participant: Those of one participant in one study. For one more its oldest idle
            one is closed; one with a signed request in progress stays.
        unsigned: Those without a signed request so far, beside them. For one more the oldest of
            them is closed.
        unsigned_per_address: Those of one address (IPv6: one network of 64 bits).
        unsigned_seconds: How long one may be open before a signed request: TLS and the request's
            head have to be there by then.
    """

    total: int = 500
    signed_per_participant: int = 32
    unsigned: int = 200
    unsigned_per_address: int = 64
    unsigned_seconds: float = 15.0

    def __post_init__(self) -> None:
        _validate.at_least(
            1,
            max_connections=self.total,
            signed_per_participant=self.signed_per_participant,
            max_unsigned=self.unsigned,
            max_unsigned_per_address=self.unsigned_per_address,
        )
        _validate.positive(unsigned_seconds=self.unsigned_seconds)
