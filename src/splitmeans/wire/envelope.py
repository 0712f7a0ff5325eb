"""An envelope is one message from one to another."""

from dataclasses import dataclass

from splitmeans.wire.messages import Message

# Raised whenever participants of the version before could not take part, or would do so otherwise.
PROTOCOL = 7


@dataclass(frozen=True, kw_only=True)
class Envelope:
    """Who sends what to whom."""

    sender: str
    receiver: str
    message: Message
