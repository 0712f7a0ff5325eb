"""`forecast`: everything that can be said about a run before any data is touched."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from splitmeans import _validate
from splitmeans.errors import ParameterError
from splitmeans.forecasting.bounds import Price, prices
from splitmeans.forecasting.cell_error import cell_error, segment_error
from splitmeans.forecasting.loss_model import (
    STRUCTURES,
    LossForecast,
    loss_forecast,
    model,
    noise_share,
    outside,
    refusal,
    strain_of,
)
from splitmeans.forecasting.noise import NoiseLevel, noise_levels
from splitmeans.forecasting.rough_plan import allowed, rough_plan, stage_users, study_at
from splitmeans.forecasting.warnings import plan_warnings
from splitmeans.plan.costs import unused_budget
from splitmeans.plan.message_sizes import MessageSizes, message_sizes
from splitmeans.plan.plan import Plan
from splitmeans.plan.settle import plan_for
from splitmeans.plan.size_stage import sizing_parties
from splitmeans.privacy.calibrate import MAX_EPSILON, MIN_EPSILON
from splitmeans.study import Study
from splitmeans.study.plain_values import to_plain

SWEEP = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)

# Values of epsilon that the inverse looks at, evenly spaced in their logarithm, and how often the
# last gap is halved.
_SEARCHED = 48
_HALVINGS = 8


@dataclass(frozen=True, kw_only=True)
class Point:
    """What one epsilon would give."""

    epsilon: float
    n_local_clusters: int
    cell_error: float
    loss: LossForecast | None


@dataclass(frozen=True, kw_only=True)
class EpsilonNeeded:
    """The smallest epsilon from which on the ratio of losses stays at or below `ratio`.

    Attributes:
        ratio: What is asked for.
        typical: The epsilon for the typical ratio; None where no epsilon that exact accounting
            takes is enough.
        pessimistic: The same for the upper end of the range: to be on the safe side.
        best: The ratios with the largest epsilon.
    """

    ratio: float
    typical: float | None
    pessimistic: float | None
    best: LossForecast

    @property
    def refusal(self) -> str | None:
        """Why the ratio cannot be promised, and what to do; None if it can."""
        if self.pessimistic is not None:
            return None
        typically = "" if self.typical is None else " on the safe side"
        best = self.best.typical if self.typical is None else self.best.high
        return (
            f"a ratio of losses of {self.ratio:g} is not reached{typically} by any epsilon up to "
            f"{MAX_EPSILON:g}; {best:.4g} is expected there: accept more, or raise "
            "n_local_clusters, which makes the grid finer"
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class Forecast:
    """What a study will give with this many users; from public quantities alone.

    Attributes:
        plan: The plan of the run: the same noise that a run has.
        users: How many users each party is taken to have.
        structure: "clear", "smooth" or None, see `splitmeans.forecasting.loss_model`.
    """

    plan: Plan
    users: int
    structure: str | None = None

    @property
    def study(self) -> Study:
        """The study."""
        return self.plan.study

    @property
    def noise(self) -> tuple[NoiseLevel, ...]:
        """The noise of every release."""
        return noise_levels(self.plan, users=self.users)

    @property
    def cell_error(self) -> float:
        """Standard deviation of the count of a cell, in users."""
        return cell_error(self.plan, users=self.users)

    @property
    def segment_error(self) -> float | None:
        """Standard deviation of a segment's size, in users; None where it is not known."""
        return segment_error(self.plan, users=self.users)

    @property
    def loss(self) -> LossForecast | None:
        """The expected ratio of losses; None where `loss_refusal` says why."""
        return _loss(self.plan, users=self.users, structure=self.structure)

    @property
    def noise_share(self) -> float | None:
        """How much of the expected loss is noise; the rest is that cells are coarse (k')."""
        if self.loss is None:
            return None
        return noise_share(strain_of(self.plan, users=self.users), structure=self.structure)

    @property
    def loss_refusal(self) -> str | None:
        """Why there is no forecast of the loss, if there is none."""
        return refusal(self.plan)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the result will not show because of noise, before anything is spent."""
        return plan_warnings(self.plan, users=self.users)

    @property
    def sizes(self) -> MessageSizes:
        """Sizes of messages."""
        return message_sizes(self.plan, users=self.users)

    @property
    def held_out(self) -> dict[str, Any] | None:
        """How far the model was off on tables that it had not seen.

        None where that says nothing about this study: outside what the model was fitted to.
        """
        if self.loss is None or outside(self.plan, users=self.users):
            return None
        held_out: dict[str, Any] = model()["held_out"]
        return held_out

    @property
    def loss_notes(self) -> tuple[str, ...]:
        """What a reader must know to judge the loss ratio."""
        if self.loss is None:
            return ()
        notes = []
        if self.study.user_sets == "partial":
            notes.append(
                f"assumes that all {self.users:,} users are at every party; for a guess of M "
                "shared users run again with --users M"
            )
        unusual = outside(self.plan, users=self.users)
        if unusual:
            notes.append(f"outside what the loss model was fitted to: {', '.join(unusual)}")
        k, width = self.study.n_clusters, max(self.plan.n_local_clusters)
        if not self.plan.bundles.is_trivial:
            notes.append(
                "the loss model was not fitted to labels that stand for several local clusters"
            )
        elif width < k:
            notes.append(
                f"a party makes k' = {width} local clusters, fewer than the {k} segments: "
                f"clear segments would be merged; n_local_clusters = {k} or more avoids it"
            )
        return tuple(notes)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know beside the figures, `loss_notes` first."""
        expected = self.study.assumed_users
        # With partial overlap fewer users are a guess of those that all share: the study's number,
        # which is that of a party, may be right all the same.
        shared = self.study.user_sets == "partial" and self.users < expected
        unused = unused_budget(self.plan)
        spent = () if unused is None else (unused,)
        if shared or 0.5 <= self.users / expected <= 2:
            return (*self.loss_notes, *spent)
        if sizing_parties(self.study) and self.study.expected_users is None:
            return (*self.loss_notes, *spent)  # what follows from it, follows from what is released
        what = "the length of messages follows" if sizing_parties(self.study) else "defaults follow"
        says = (
            "does not say expected_users, and takes"
            if self.study.expected_users is None
            else ("says expected_users =")
        )
        agree = (
            f"the study {says} {expected}, from which {what}; if "
            f"{self.users} is the better guess, agree on that"
        )
        return (*self.loss_notes, *spent, agree)

    @property
    def prices(self) -> tuple[Price, ...]:
        """What the bounds towards parties cost, those of the study or one that it could set."""
        return prices(self.plan, users=self.users, structure=self.structure)

    def sweep(self, epsilons: Sequence[float] = SWEEP) -> tuple[Point, ...]:
        """Return what other values of epsilon would give, those that accounting refuses left out.

        Plans are found in closed form here, within about 2 % of the exact ones.
        """
        return tuple(self._point(epsilon) for epsilon in epsilons if allowed(epsilon))

    def epsilon_for(self, ratio: float) -> EpsilonNeeded:
        """Return the epsilon that keeps the loss within `ratio` of that without privacy.

        Where no epsilon is enough, the answer's `refusal` says so.

        Raises:
            ParameterError: If the ratio is not above 1, or there is no forecast of the loss.
        """
        _validate.finite(ratio=ratio)
        if ratio <= 1:
            raise ParameterError(f"the acceptable ratio of losses must be > 1, got {ratio!r}")
        if self.loss is None:
            raise ParameterError(f"no epsilon can be found: {self.loss_refusal}")
        typical, pessimistic = (self._needed(ratio, which) for which in ("typical", "high"))
        best = self._loss_at(MAX_EPSILON)
        return EpsilonNeeded(ratio=ratio, typical=typical, pessimistic=pessimistic, best=best)

    def to_mapping(self, epsilons: Sequence[float] = SWEEP) -> dict[str, Any]:
        """Return the forecast as plain values, the sweep over `epsilons` included."""
        study = self.study
        return {
            "study": study.name,
            "study_hash": study.hash,
            "users": self.users,
            "budget": to_plain(study.budget),
            "membership": study.membership,
            "n_local_clusters": list(self.plan.n_local_clusters),
            "n_labels": list(self.plan.n_labels),
            "grid": self.plan.grid_method,
            "noise": [asdict(level) for level in self.noise],
            "cell_error": self.cell_error,
            "segment_error": self.segment_error,
            "loss_ratio": _loss_mapping(self.loss),
            "noise_share_of_loss": self.noise_share,
            "no_loss_ratio_because": self.loss_refusal,
            "held_out": self.held_out,
            "bytes": asdict(self.sizes),
            "sweep": [
                {
                    "epsilon": point.epsilon,
                    "n_local_clusters": point.n_local_clusters,
                    "cell_error": point.cell_error,
                    "loss_ratio": _loss_mapping(point.loss),
                }
                for point in self.sweep(epsilons)
            ],
            "bounds": [
                {
                    "bound": price.bound,
                    "value": price.value,
                    "chosen": price.chosen,
                    "more_local_noise": price.more_noise,
                    "cell_error": [price.without.cell_error, price.given.cell_error],
                    "loss_ratio": [
                        _loss_mapping(price.without.loss),
                        _loss_mapping(price.given.loss),
                    ],
                }
                for price in self.prices
            ],
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }

    def __repr__(self) -> str:
        loss = "no loss ratio"
        if self.loss is not None:
            loss = f"loss ratio {self.loss.typical:.3f} ({self.loss.low:.3f}-{self.loss.high:.3f})"
        cells = f"cell error {self.cell_error:.3g} users"
        return f"<Forecast of {self.study.name!r}: {loss}, {cells}>"

    def _point(self, epsilon: float) -> Point:
        plan = self._rough_plan(epsilon)
        return Point(
            epsilon=epsilon,
            n_local_clusters=max(plan.n_local_clusters),
            cell_error=cell_error(plan, users=self.users),
            loss=_loss(plan, users=self.users, structure=self.structure),
        )

    def _loss_at(self, epsilon: float) -> LossForecast:
        # A little more noise than a run has, so that the exact plan keeps what is promised here.
        plan = self._rough_plan(epsilon, cautious=True)
        loss = _loss(plan, users=self.users, structure=self.structure)
        assert loss is not None
        return loss

    def _rough_plan(self, epsilon: float, *, cautious: bool = False) -> Plan:
        study = study_at(self.study, epsilon)
        return rough_plan(study, users=stage_users(study, self.users), cautious=cautious)

    def _needed(self, ratio: float, which: str) -> float | None:
        """Return the epsilon from which on the ratio is kept.

        From above: k' grows in steps with epsilon, and where it does the loss may rise a little.
        """
        span = math.log(MAX_EPSILON / MIN_EPSILON)
        tried = [MIN_EPSILON * math.exp(span * i / (_SEARCHED - 1)) for i in range(_SEARCHED)]
        tried[-1] = MAX_EPSILON
        too_small, enough = 0.0, None
        for epsilon in reversed(tried):
            if getattr(self._loss_at(epsilon), which) > ratio:
                too_small = epsilon
                break
            enough = epsilon
        if enough is None or too_small == 0:
            return enough
        for _ in range(_HALVINGS):
            middle = math.sqrt(too_small * enough)
            if getattr(self._loss_at(middle), which) > ratio:
                too_small = middle
            else:
                enough = middle
        return enough


def forecast(study: Study, *, users: int | None = None, structure: str | None = None) -> Forecast:
    """Say what a study will give, before any data is touched.

    Args:
        study: The study.
        users: How many users each party has, roughly; None takes the study's
            `expected_users`, or 10,000.
        structure: "clear" if the segments have gaps between them, "smooth" if they have none; None
            gives a range.
    """
    users = study.assumed_users if users is None else users
    _validate.at_least(1, users=users)
    if structure is not None:
        _validate.one_of(STRUCTURES, structure=structure)
    plan = plan_for(study, users=stage_users(study, int(users)))
    return Forecast(plan=plan, users=int(users), structure=structure)


def _loss(plan: Plan, *, users: int, structure: str | None) -> LossForecast | None:
    if refusal(plan) is not None:
        return None
    return loss_forecast(strain_of(plan, users=users), structure=structure)


def _loss_mapping(loss: LossForecast | None) -> dict[str, float] | None:
    if loss is None:
        return None
    return {
        "typical": loss.typical,
        "low": loss.low,
        "high": loss.high,
        "clear": loss.clear,
        "smooth": loss.smooth,
    }
