"""What a journal keeps: runs, and messages to send."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from splitmeans.errors import ParameterError
from splitmeans.wire.slot import check_run, short_name

_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class RunKey:
    """One participant's side of one run."""

    study_hash: str
    run: str
    participant: str

    def __post_init__(self) -> None:
        check_run(self.run)
        if not _HASH.fullmatch(self.study_hash):
            raise ParameterError("study_hash must be 64 hexadecimal digits, lower case")

    @property
    def values(self) -> tuple[str, str, str]:
        """The key as values of a query."""
        return self.study_hash, self.run, self.participant

    @property
    def lock_name(self) -> str:
        """Name of the file by which a process holds the run."""
        return f"{self.study_hash[:32]}-{self.run}-{short_name(self.participant)}"

    def __str__(self) -> str:
        return f"run {self.run!r} of {self.participant!r} in study {self.study_hash[:16]}"


@dataclass(frozen=True, kw_only=True)
class SavedRun:
    """A run as it was last saved; a finished one has an outcome and no state."""

    details: Mapping[str, str]
    stage: str
    state: bytes | None = field(repr=False)
    outcome: str | None
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class Outgoing:
    """A message that is stored for sending; `Journal.read` returns its bytes."""

    slot_path: str
    sha256: str
    size: int
    sent: bool
