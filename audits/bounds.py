"""Lower confidence bounds on a privacy parameter, from counts under two neighbouring inputs.

Clopper and Pearson's bounds are exact for binomial counts. A lower one on how often a test finds
the user and an upper one on how often it is wrong give, by the claim's formula, a value that the
true parameter is not below. Each of the two has half of the allowed failure probability. A test
that was chosen by looking at trials is tried on others.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from audits.claims import Claim
from splitmeans import _validate
from splitmeans._types import FloatArray, IntArray
from splitmeans.errors import ParameterError

# Thresholds that are tried on the choosing half.
_CANDIDATES = 300


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A value that the true parameter is not below, with this confidence.

    Attributes:
        shown: The bound, in the claim's unit; zero if the counts show nothing.
        allowed: What the claim allows the same test to show.
        confidence: Probability with which the statement is right, at least.
        event: What was counted.
        hits: How often it happened with the user, and without.
        trials: Out of how many.
    """

    shown: float
    allowed: float
    confidence: float
    event: str
    hits: tuple[int, int]
    trials: tuple[int, int]

    @property
    def exceeds(self) -> bool:
        """Whether the claim is refuted."""
        return self.shown > self.allowed


def at_least(hits: IntArray | int, trials: int, *, failure: float) -> FloatArray:
    """Return Clopper and Pearson's lower bound on a probability, one for each count."""
    counts = np.asarray(hits, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        bound = special.betaincinv(counts, trials - counts + 1, failure)
    return np.asarray(np.where(counts == 0, 0.0, bound))


def at_most(hits: IntArray | int, trials: int, *, failure: float) -> FloatArray:
    """Return Clopper and Pearson's upper bound on a probability, one for each count."""
    return 1 - at_least(trials - np.asarray(hits), trials, failure=failure)


def bound_of_event(
    claim: Claim,
    hits: tuple[int, int],
    trials: tuple[int, int],
    *,
    confidence: float,
    event: str = "event",
) -> Bound:
    """Bound a claim's parameter by an event that was fixed beforehand.

    Args:
        claim: What is claimed, hence the formula.
        hits: Counts with the user, who makes the event likely, and without.
        trials: Independent trials of each.
        confidence: Of the statement as a whole.
        event: Words for the event.
    """
    _validate.open_unit(confidence=confidence)
    _validate.at_least(1, trials=trials[0], other_trials=trials[1])
    for count, most in zip(hits, trials, strict=True):
        if not 0 <= count <= most:
            raise ParameterError(f"hits must be between 0 and {most}, got {count}")
    shown, allowed = _values(
        claim, np.array([hits[0]]), np.array([hits[1]]), trials, confidence=confidence
    )
    return Bound(
        shown=max(0.0, float(shown[0])),
        allowed=float(allowed[0]),
        confidence=confidence,
        event=event,
        hits=hits,
        trials=trials,
    )


def bound_of_scores(
    claim: Claim, with_user: FloatArray, without: FloatArray, *, confidence: float
) -> Bound:
    """Bound a claim's parameter by one score a trial, large where the user seems to be there.

    The first half of the trials chooses a threshold; the other half tries that one test.

    Args:
        claim: What is claimed.
        with_user: Scores of independent trials with the user, shape (n,).
        without: Scores without the user, shape (m,).
        confidence: Of the statement as a whole.
    """
    if min(with_user.size, without.size) < 4:
        raise ParameterError("scores must be at least 4 of each kind")
    half, other_half = with_user.size // 2, without.size // 2
    threshold = _choose(claim, with_user[:half], without[:other_half], confidence=confidence)
    tested = with_user[half:] >= threshold, without[other_half:] >= threshold
    return bound_of_event(
        claim,
        (int(tested[0].sum()), int(tested[1].sum())),
        (tested[0].size, tested[1].size),
        confidence=confidence,
        event=f"score >= {threshold:.4g}",
    )


def _choose(
    claim: Claim, with_user: FloatArray, without: FloatArray, *, confidence: float
) -> float:
    """Return the threshold at which these scores exceed the claim most, or stay below it least."""
    ours, theirs = np.sort(with_user), np.sort(without)
    pooled = np.unique(np.concatenate([ours, theirs]))
    if pooled.size > _CANDIDATES:
        # Even steps in the middle and single values at both ends, where ratios are large.
        places = np.linspace(0, pooled.size - 1, _CANDIDATES // 3)
        tail = np.geomspace(1, pooled.size, _CANDIDATES // 3) - 1
        chosen = np.concatenate([places, tail, pooled.size - 1 - tail])
        pooled = pooled[np.unique(chosen.astype(np.int64))]
    hits, others = (values.size - np.searchsorted(values, pooled) for values in (ours, theirs))
    shown, allowed = _values(claim, hits, others, (ours.size, theirs.size), confidence=confidence)
    with np.errstate(invalid="ignore"):
        margin = np.nan_to_num(shown - allowed, nan=-np.inf)
    return float(pooled[int(margin.argmax())])


def _values(
    claim: Claim,
    hits: IntArray,
    other_hits: IntArray,
    trials: tuple[int, int],
    *,
    confidence: float,
) -> tuple[FloatArray, FloatArray]:
    failure = (1 - confidence) / 2
    found = at_least(hits, trials[0], failure=failure)
    false = at_most(other_hits, trials[1], failure=failure)
    return claim.shown(found, false), claim.allowed(false)
