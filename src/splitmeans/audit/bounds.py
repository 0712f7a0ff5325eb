"""Lower confidence bounds on epsilon from counts of an event under two neighbouring inputs.

A mechanism that is (epsilon, delta)-private has P(T) <= e^epsilon Q(T) + delta for every event T.
So with a lower bound on P(T) and an upper bound on Q(T), epsilon >= log((p_low - delta) / q_high).
The bounds are those of Clopper and Pearson, exact for binomial counts, each with half of the
allowed failure probability. An event that was chosen by looking at trials is tested on others.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from splitmeans import _validate
from splitmeans._types import FloatArray, IntArray
from splitmeans.errors import ParameterError

# Thresholds that are tried on the choosing half.
_CANDIDATES = 200


@dataclass(frozen=True, kw_only=True)
class EpsilonBound:
    """An epsilon that the true one is not below, with this confidence.

    Attributes:
        epsilon: The bound; zero if the counts show nothing.
        delta: The delta it is about.
        confidence: Probability with which the statement is right, at least.
        event: What was counted.
        hits: How often it happened under the first and the second input, as `event` orders them.
        trials: Out of how many, under each input.
    """

    epsilon: float
    delta: float
    confidence: float
    event: str
    hits: tuple[int, int]
    trials: tuple[int, int]


def at_least(hits: IntArray | int, trials: int, *, failure: float) -> FloatArray:
    """Return Clopper and Pearson's lower bound on a probability, one for each count."""
    counts = np.asarray(hits, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        bound = special.betaincinv(counts, trials - counts + 1, failure)
    return np.asarray(np.where(counts == 0, 0.0, bound))


def at_most(hits: IntArray | int, trials: int, *, failure: float) -> FloatArray:
    """Return Clopper and Pearson's upper bound on a probability, one for each count."""
    return 1 - at_least(trials - np.asarray(hits), trials, failure=failure)


def epsilon_of_event(
    hits: tuple[int, int],
    trials: tuple[int, int],
    *,
    delta: float,
    confidence: float,
    event: str = "event",
) -> EpsilonBound:
    """Bound epsilon from how often an event that was fixed beforehand happened.

    Args:
        hits: Counts under the input that makes the event likely, and under its neighbour.
        trials: Independent trials of each.
        delta: The delta that is granted.
        confidence: Of the statement as a whole; each count's bound may fail half of the rest.
        event: Words for the event.
    """
    _validate.open_unit(confidence=confidence)
    _validate.at_least(1, trials=trials[0], other_trials=trials[1])
    for count, most in zip(hits, trials, strict=True):
        if not 0 <= count <= most:
            raise ParameterError(f"hits must be between 0 and {most}, got {count}")
    epsilon = _bounds(
        np.array([hits[0]]), np.array([hits[1]]), trials, delta=delta, confidence=confidence
    )
    return EpsilonBound(
        epsilon=max(0.0, float(epsilon[0])),
        delta=delta,
        confidence=confidence,
        event=event,
        hits=hits,
        trials=trials,
    )


def epsilon_of_scores(
    with_user: FloatArray, without: FloatArray, *, delta: float, confidence: float
) -> EpsilonBound:
    """Bound epsilon from one score a trial, in both directions.

    The first half of the trials chooses a threshold, a side and a direction; the other half tests
    that one event.

    Args:
        with_user: Scores of independent trials with the user, shape (n,).
        without: Scores without the user, shape (m,).
        delta: The delta that is granted.
        confidence: Of the statement as a whole.
    """
    if min(with_user.size, without.size) < 4:
        raise ParameterError("scores must be at least 4 of each kind")
    half, other_half = with_user.size // 2, without.size // 2
    chosen, swapped, sign = _choose(
        with_user[:half], without[:other_half], delta=delta, confidence=confidence
    )
    tested = [sign * with_user[half:] >= chosen, sign * without[other_half:] >= chosen]
    hits = [int(hit.sum()) for hit in tested]
    trials = [hit.size for hit in tested]
    if swapped:
        hits, trials = hits[::-1], trials[::-1]
    side = ">=" if sign > 0 else "<="
    who = "without against with" if swapped else "with against without"
    return epsilon_of_event(
        (hits[0], hits[1]),
        (trials[0], trials[1]),
        delta=delta,
        confidence=confidence,
        event=f"score {side} {sign * chosen:.4g}, {who} the user",
    )


def _choose(
    with_user: FloatArray, without: FloatArray, *, delta: float, confidence: float
) -> tuple[float, bool, int]:
    """Return threshold, whether the user's absence makes the event likely, and the side."""
    best = (-math.inf, 0.0, False, 1)
    for sign in (1, -1):
        ours, theirs = np.sort(sign * with_user), np.sort(sign * without)
        pooled = np.unique(np.concatenate([ours, theirs]))
        if pooled.size > _CANDIDATES:
            # Even steps in the middle and single values at the upper end, where ratios are large.
            places = np.linspace(0, pooled.size - 1, _CANDIDATES // 2)
            tail = pooled.size - np.geomspace(1, pooled.size, _CANDIDATES // 2)
            pooled = pooled[np.unique(np.concatenate([places, tail]).astype(np.int64))]
        counts = [values.size - np.searchsorted(values, pooled) for values in (ours, theirs)]
        sizes = (ours.size, theirs.size)
        for swapped in (False, True):
            first, second = (1, 0) if swapped else (0, 1)
            found = _bounds(
                counts[first],
                counts[second],
                (sizes[first], sizes[second]),
                delta=delta,
                confidence=confidence,
            )
            place = int(found.argmax())
            if found[place] > best[0]:
                best = (float(found[place]), float(pooled[place]), swapped, sign)
    return best[1], best[2], best[3]


def _bounds(
    hits: IntArray,
    other_hits: IntArray,
    trials: tuple[int, int],
    *,
    delta: float,
    confidence: float,
) -> FloatArray:
    failure = (1 - confidence) / 2
    low = at_least(hits, trials[0], failure=failure)
    high = at_most(other_hits, trials[1], failure=failure)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(low > delta, np.log(low - delta) - np.log(high), -np.inf)
