"""An audit case: a mechanism run on two neighbouring inputs, what it claims, and what was seen."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from splitmeans._types import FloatArray
from splitmeans.audit.bounds import EpsilonBound, epsilon_of_event, epsilon_of_scores
from splitmeans.privacy.noise import NoiseSource

# Two ways to calculate the same epsilon may differ by this factor.
_ROUNDING = 1 + 1e-9


class Scores(NamedTuple):
    """One number per independent trial: large where an observer would say that the user is there.

    Whatever the score, it is a function of what the observer sees, so an epsilon shown with it is
    one that the mechanism has. A poor score only shows less.
    """

    with_user: FloatArray
    without: FloatArray


Sampler = Callable[[int, NoiseSource], Scores]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One line of an audit.

    Attributes:
        name: Short name, for choosing the case.
        what: What is released, and which users differ.
        claimed: The stated epsilon at `delta`.
        delta: The delta of the statement.
        exact: Epsilon of the exact law at `delta`, where one is known; at most `claimed` if sound.
        sample: Runs the mechanism this many times on each input.
        trials: How often, in the quick form; 0 leaves the case to the long form.
        long_trials: How often, in the long form.
        sound: Whether the claim should hold; False for a twin that is broken on purpose.
        event_at: If given, the event "score >= event_at", with against without the user, is fixed
            beforehand and all trials test it; otherwise half of the trials choose an event.
    """

    name: str
    what: str
    claimed: float
    delta: float
    exact: float | None
    sample: Sampler
    trials: int
    long_trials: int
    sound: bool = True
    event_at: float | None = None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What an audit found."""

    case: Case
    bound: EpsilonBound
    trials: int

    @property
    def exceeds(self) -> bool:
        """Whether the mechanism was caught above its claim."""
        return self.bound.epsilon > self.case.claimed

    @property
    def reach(self) -> float:
        """The largest bound that so many trials could have shown, had noise been missing."""
        first, second = self.bound.trials
        confidence = self.bound.confidence
        return epsilon_of_event(
            (first, 0), (first, second), delta=self.case.delta, confidence=confidence
        ).epsilon

    @property
    def as_expected(self) -> bool:
        """A sound mechanism stays under its claim, also exactly, and a broken twin is caught.

        Staying under a claim that the trials could not have reached says nothing.
        """
        if not self.case.sound:
            return self.exceeds
        if self.reach <= self.case.claimed:
            return False
        exact = self.case.exact
        return not self.exceeds and (exact is None or exact <= self.case.claimed * _ROUNDING)

    @property
    def verdict(self) -> str:
        """One word for the table."""
        if self.case.sound and self.reach <= self.case.claimed:
            return "TOO FEW TRIALS"
        if self.case.sound:
            return "not refuted" if self.as_expected else "EXCEEDED"
        return "caught" if self.as_expected else "ESCAPED"


def run_case(case: Case, *, noise: NoiseSource, confidence: float, long: bool = False) -> Outcome:
    """Run one case; the bound holds with this confidence."""
    trials = case.long_trials if long else case.trials
    scores = case.sample(trials, noise.spawn(case.name))
    return Outcome(case=case, bound=_bound(case, scores, confidence=confidence), trials=trials)


def _bound(case: Case, scores: Scores, *, confidence: float) -> EpsilonBound:
    if case.event_at is None:
        return epsilon_of_scores(
            scores.with_user, scores.without, delta=case.delta, confidence=confidence
        )
    hits = [int((score >= case.event_at).sum()) for score in scores]
    return epsilon_of_event(
        (hits[0], hits[1]),
        (scores.with_user.size, scores.without.size),
        delta=case.delta,
        confidence=confidence,
        event=f"score >= {case.event_at:g}, with against without the user (fixed beforehand)",
    )
