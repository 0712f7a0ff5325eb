"""Run an audit and report it, as rows for a table and as plain values for JSON."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from splitmeans import _validate
from splitmeans._version import __version__
from splitmeans.audit.case import Case, Outcome, run_case
from splitmeans.audit.mechanisms import MECHANISMS
from splitmeans.audit.published_gap import Coincidence, Gap
from splitmeans.audit.twins import TWINS
from splitmeans.errors import ParameterError
from splitmeans.privacy.noise import NoiseSource

# Every case by name: the sound ones first.
ALL_CASES: dict[str, Callable[[], Case]] = {**MECHANISMS, **TWINS}


@dataclass(frozen=True, kw_only=True)
class AuditReport:
    """All outcomes; the bounds hold together with `confidence`."""

    outcomes: Sequence[Outcome]
    confidence: float
    long: bool
    secure_noise: bool

    @property
    def passed(self) -> bool:
        """Whether every mechanism held and every twin was caught."""
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
        raise ParameterError(f"only must name a case of the quick form, got {', '.join(only)}")
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
        confidence: Of all bounds together; each case may fail an equal part of the rest.
        long: Whether to run the long form.
        on_outcome: Called after each case, for progress.
    """
    _validate.open_unit(confidence=confidence)
    chosen = list(cases)
    each = 1 - (1 - confidence) / len(chosen)
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
        "sound": case.sound,
        "claimed": case.claimed,
        "delta": case.delta,
        # JSON has no infinity; null says that no epsilon bounds the twin.
        "exact": None if case.exact is None or math.isinf(case.exact) else case.exact,
        "audited": outcome.bound.epsilon,
        "reach": outcome.reach,
        "case_confidence": outcome.bound.confidence,
        "event": outcome.bound.event,
        "hits": list(outcome.bound.hits),
        "tested": list(outcome.bound.trials),
        "trials": outcome.trials,
        "verdict": outcome.verdict,
    }


def rows(outcomes: Iterable[Outcome]) -> Iterator[tuple[str, ...]]:
    """Yield one row of text per outcome: name, claim, exact, audited, trials, verdict."""
    for outcome in outcomes:
        case = outcome.case
        claim = f"{case.claimed:.4g}" + (f" at {case.delta:g}" if case.delta else "")
        exact = "-" if case.exact is None else f"{case.exact:.4g}"
        yield (
            case.name,
            claim,
            exact,
            f">= {outcome.bound.epsilon:.3f}",
            f"{outcome.trials:,}",
            outcome.verdict,
        )
