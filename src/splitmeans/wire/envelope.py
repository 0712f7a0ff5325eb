"""An envelope: one message from one participant to another."""

from dataclasses import dataclass

from splitmeans.study import SERVER_NAME
from splitmeans.wire.messages import Message

SERVER = SERVER_NAME


@dataclass(frozen=True, kw_only=True)
class Envelope:
    """Who sends what to whom."""

    sender: str
    receiver: str
    message: Message
