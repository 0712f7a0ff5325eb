"""A line of an audit: a part run on two neighbouring inputs, what it claims, and what was seen."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from audits.bounds import Bound, bound_of_event, bound_of_scores
from audits.claims import Claim
from splitmeans._types import FloatArray
from splitmeans.privacy.noise import NoiseSource


class Scores(NamedTuple):
    """One number per independent trial: large where an observer would say that the user is there.

    Whatever the score, it is a function of what the observer sees, so what it shows is true of the
    part. A poor score only shows less; the halved twin tells whether it shows enough.
    """

    with_user: FloatArray
    without: FloatArray


Sampler: TypeAlias = Callable[[int, NoiseSource], Scores]


def scores_of_calls(one_call: Callable[[bool], FloatArray], *, trials: int) -> Scores:
    """Return the scores of as many calls as make so many trials.

    `one_call` is told whether the user is there and returns the scores of one or more trials.
    """

    def scores(present: bool) -> FloatArray:
        found = [one_call(present)]
        calls = -(-trials // len(found[0]))
        found += [one_call(present) for _ in range(calls - 1)]
        return np.concatenate(found)[:trials]

    return Scores(with_user=scores(True), without=scores(False))


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of the system that claims something, and the same with half its noise.

    Attributes:
        name: Short name, for choosing the line.
        what: What is released, and which users differ.
        claim: What is stated.
        sample: Runs the part this many times on each input.
        halved: The same with half the noise (decoys, phantoms); it must be caught.
        trials: How often, in the quick form; 0 leaves the line to the long form.
        long_trials: How often, in the long form.
    """

    name: str
    what: str
    claim: Claim
    sample: Sampler
    halved: Sampler
    trials: int
    long_trials: int


@dataclass(frozen=True, kw_only=True)
class Twin:
    """A mechanism that is broken on purpose in another way, with the claim of the sound one.

    Attributes:
        name: As for a part, and so on.
        event_at: If given, the event "score >= event_at" is fixed beforehand and all trials test
            it; otherwise half of the trials choose an event.
    """

    name: str
    what: str
    claim: Claim
    sample: Sampler
    trials: int
    long_trials: int
    event_at: float | None = None


Case: TypeAlias = Part | Twin


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What an audit found.

    Attributes:
        case: The line.
        sound: The bound on the part as it is; None for a twin.
        broken: The bound on the part with half its noise, or on the twin.
        trials: How many on each input.
        seconds: Of processor time, for all of them.
    """

    case: Case
    sound: Bound | None
    broken: Bound
    trials: int
    seconds: float

    @property
    def claimed(self) -> Bound:
        """The bound whose `allowed` is the claim that a table shows."""
        return self.broken if self.sound is None else self.sound

    @property
    def as_expected(self) -> bool:
        """The part stays under its claim, and what is broken is caught.

        Staying under a claim means something only because the same number of trials catches half
        the noise.
        """
        return self.broken.exceeds and (self.sound is None or not self.sound.exceeds)

    @property
    def verdict(self) -> str:
        """One word for the table."""
        if self.sound is not None and self.sound.exceeds:
            return "EXCEEDED"
        return "caught" if self.broken.exceeds else "ESCAPED"


def run_case(case: Case, *, noise: NoiseSource, confidence: float, long: bool = False) -> Outcome:
    """Run one line; each of its bounds holds with this confidence."""
    trials = case.long_trials if long else case.trials
    own = noise.spawn(case.name)
    # Not the time on the clock: other programs have no part in it.
    start = time.process_time()
    sound = None
    if isinstance(case, Part):
        scores = case.sample(trials, own.spawn("sound"))
        sound = bound_of_scores(case.claim, *scores, confidence=confidence)
        broken = case.halved(trials, own.spawn("halved"))
        bound = bound_of_scores(case.claim, *broken, confidence=confidence)
    else:
        bound = _twin_bound(case, case.sample(trials, own), confidence=confidence)
    return Outcome(
        case=case,
        sound=sound,
        broken=bound,
        trials=trials,
        seconds=time.process_time() - start,
    )


def _twin_bound(twin: Twin, scores: Scores, *, confidence: float) -> Bound:
    if twin.event_at is None:
        return bound_of_scores(twin.claim, *scores, confidence=confidence)
    hits = [int((score >= twin.event_at).sum()) for score in scores]
    return bound_of_event(
        twin.claim,
        (hits[0], hits[1]),
        (scores.with_user.size, scores.without.size),
        confidence=confidence,
        event=f"score >= {twin.event_at:g} (fixed beforehand)",
    )
