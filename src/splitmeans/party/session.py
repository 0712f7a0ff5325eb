"""A session: one party's part in a run."""

import hashlib
from dataclasses import dataclass
from typing import Protocol

from splitmeans.plan.series import SeriesRun, run_number
from splitmeans.result.previous import Previous, series_run
from splitmeans.study import Study
from splitmeans.wire.envelope import PROTOCOL
from splitmeans.wire.slot import check_run


class _Plan(Protocol):
    @property
    def fingerprint(self) -> str: ...


@dataclass(frozen=True, kw_only=True)
class Session:
    """What a party takes part in: the study, the name of the run, and which party it is.

    `simulated` says that all participants are in this process, and nobody has keys to sign with.
    `previous` is the result that a run of a series follows.
    """

    study: Study
    run: str
    party: str
    simulated: bool = False
    previous: Previous | None = None

    def __post_init__(self) -> None:
        check_run(self.run)
        run_number(self.study, self.run)

    @property
    def others(self) -> tuple[str, ...]:
        """The other parties."""
        return tuple(name for name in self.study.party_names if name != self.party)

    @property
    def series_run(self) -> SeriesRun | None:
        """The place of the run in its series; None for a study of one run."""
        return series_run(self.study, self.run, self.previous)

    def transcript(self, plan: _Plan, *, derivation: bytes) -> bytes:
        """Return the hash of protocol, study, run and plan, to which the run key is bound (R8).

        The plan is what is settled before the first release, `derivation` the digest of how this
        version derives what parties share from a key.
        """
        lines = (
            f"splitmeans transcript {PROTOCOL}",
            derivation.hex(),
            self.study.hash,
            self.run,
            plan.fingerprint,
            "",
        )
        return hashlib.sha256("\n".join(lines).encode()).digest()
