"""Run an audit and report it, as rows for a table and as plain values for JSON."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from audits.bounds import Bound
from audits.case import Case, Outcome, Part, run_case
from audits.column_parts import COLUMN_PARTS
from audits.local_parts import LOCAL_PARTS
from audits.membership_parts import MEMBERSHIP_PARTS
from audits.published_gap import Coincidence, Gap
from audits.series_parts import SERIES_PARTS
from audits.twins import TWINS
from splitmeans import _validate
from splitmeans._version import __version__
from splitmeans.errors import ParameterError
from splitmeans.privacy.noise import NoiseSource

# Every line by name: the parts first, each with its halved noise.
PARTS: dict[str, Callable[[], Part]] = {
    **LOCAL_PARTS,
    **COLUMN_PARTS,
    **MEMBERSHIP_PARTS,
    **SERIES_PARTS,
}
ALL_CASES: dict[str, Callable[[], Case]] = {**PARTS, **TWINS}


@dataclass(frozen=True, kw_only=True)
class AuditReport:
    """All outcomes; the bounds hold together with `confidence`."""

    outcomes: Sequence[Outcome]
    confidence: float
    long: bool
    secure_noise: bool

    @property
    def passed(self) -> bool:
        """Whether every part held and everything broken was caught."""
        return all(outcome.as_expected for outcome in self.outcomes)

    def to_mapping(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {
            "splitmeans": __version__,
            "confidence": self.confidence,
            "long": self.long,
            "secure_noise": self.secure_noise,
            "passed": self.passed,
            "cases": [_outcome_mapping(outcome) for outcome in self.outcomes],
        }


def choose_cases(only: Sequence[str] = (), *, long: bool = False) -> list[Case]:
    """Return the cases of these names, all if there are none, that run in this form."""
    for name in only:
        _validate.one_of(ALL_CASES, only=name)
    cases = [build() for name, build in ALL_CASES.items() if not only or name in only]
    chosen = [case for case in cases if long or case.trials > 0]
    if not chosen:
        raise ParameterError(f"only must name a line of the quick form, got {', '.join(only)}")
    return chosen


def run_audit(
    cases: Iterable[Case],
    *,
    noise: NoiseSource,
    confidence: float = 0.999,
    long: bool = False,
    on_outcome: Callable[[Outcome], None] | None = None,
) -> AuditReport:
    """Run the cases so that all their bounds hold together with this confidence.

    Args:
        cases: What to run.
        noise: Where the mechanisms' noise and keys come from.
        confidence: Of all bounds together; each bound may fail an equal part of the rest.
        long: Whether to run the long form.
        on_outcome: Called after each case, for progress.
    """
    _validate.open_unit(confidence=confidence)
    chosen = list(cases)
    bounds = sum(2 if isinstance(case, Part) else 1 for case in chosen)
    each = 1 - (1 - confidence) / bounds
    outcomes = []
    for case in chosen:
        outcome = run_case(case, noise=noise, confidence=each, long=long)
        outcomes.append(outcome)
        if on_outcome is not None:
            on_outcome(outcome)
    return AuditReport(
        outcomes=outcomes, confidence=confidence, long=long, secure_noise=noise.secure
    )


def gap_mapping(
    gaps: Sequence[tuple[str, Gap]], events: Sequence[tuple[float, Coincidence]]
) -> dict[str, Any]:
    """Return the recomputed gap of the published argument as plain values."""
    return {
        "splitmeans": __version__,
        "bound": "lower",
        "cases": [
            {
                "name": name,
                "phantoms": gap.case.sketch.phantoms,
                "floor": gap.case.sketch.floor,
                "violates": gap.violates,
                **dataclasses.asdict(gap),
            }
            for name, gap in gaps
        ],
        "coincidences": [{"gamma": gamma, **dataclasses.asdict(event)} for gamma, event in events],
    }


def _outcome_mapping(outcome: Outcome) -> dict[str, Any]:
    case = outcome.case
    return {
        "name": case.name,
        "what": case.what,
        "kind": "part" if isinstance(case, Part) else "twin",
        "unit": case.claim.unit,
        "claim": _number(outcome.claimed.allowed),
        "sound": None if outcome.sound is None else _bound_mapping(outcome.sound),
        "broken": _bound_mapping(outcome.broken),
        "trials": outcome.trials,
        "seconds": round(outcome.seconds, 3),
        "verdict": outcome.verdict,
    }


def _bound_mapping(bound: Bound) -> dict[str, Any]:
    return {
        "shown": bound.shown,
        "allowed": _number(bound.allowed),
        "confidence": bound.confidence,
        "event": bound.event,
        "hits": list(bound.hits),
        "tested": list(bound.trials),
    }


def _number(value: float) -> float | None:
    # JSON has no infinity: null says that the claim allows a test anything.
    return value if math.isfinite(value) else None


def rows(outcomes: Iterable[Outcome]) -> Iterator[tuple[str, ...]]:
    """Yield one row of text per outcome.

    Name, claim, bound of the sound part (not for twins), bound of what is broken, verdict, trials,
    seconds.
    """
    for outcome in outcomes:
        case = outcome.case
        sound = () if outcome.sound is None else (f"{outcome.sound.shown:.2f}",)
        yield (
            case.name,
            f"{case.claim.unit} {outcome.claimed.allowed:.3g}",
            *sound,
            f"{outcome.broken.shown:.2f}",
            outcome.verdict,
            f"{outcome.trials:,}",
            f"{outcome.seconds:.1f}",
        )
