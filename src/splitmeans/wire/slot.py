"""A slot: the one place in a run that a message can have.

A run has at most one message of each kind from one participant to another (of those that belong to
a stage, one in each stage), so study, run, sender, receiver and kind name it completely. A receiver
asks for the slots that it expects and looks at nothing else; every sealed message is bound to its
slot, so none fits another place or run.
"""

import hashlib
import re
from dataclasses import dataclass

from splitmeans.errors import ParameterError

# What messages and paths call the server; no party may have this name.
SERVER = "server"

_RUN = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


@dataclass(frozen=True, kw_only=True)
class Slot:
    """Where a message belongs.

    Attributes:
        study_hash: Hash of the study, 64 hexadecimal digits.
        run: Name of the run: lower-case letters, digits and "-".
        sender: Name of the participant who sends.
        receiver: Name of the participant who receives.
        kind: Tag of the message, such as "KeyContribution"; with the number of its stage where a
            run has one for each, such as "StageRelease_1".
    """

    study_hash: str
    run: str
    sender: str
    receiver: str
    kind: str

    def __post_init__(self) -> None:
        check_run(self.run)

    @property
    def path(self) -> str:
        """The name of the message in a mailbox, safe in any file system or URL."""
        route = f"{short_name(self.sender)}.{short_name(self.receiver)}"
        return f"{self.study_hash[:32]}/{self.run}/{self.kind.lower()}.{route}"

    @property
    def text(self) -> bytes:
        """The slot as bytes that no other slot has, for seals and signatures."""
        parts = (self.study_hash, self.run, self.sender, self.receiver, self.kind)
        return b"".join(len(part.encode()).to_bytes(4, "little") + part.encode() for part in parts)


def check_run(run: str) -> None:
    """Check the name of a run."""
    if not _RUN.fullmatch(run):
        raise ParameterError(
            "run must be 1 to 40 lower-case letters, digits or '-' and start with a letter or "
            f"digit, got {run!r}"
        )


def short_name(participant: str) -> str:
    """Return 16 hexadecimal digits that stand for a participant's name in paths."""
    return hashlib.sha256(participant.encode()).hexdigest()[:16]
