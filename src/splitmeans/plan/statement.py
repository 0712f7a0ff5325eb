"""The privacy statement: what is released, what it costs, and what each onlooker can learn.

The same statement is made of a study before a run and of a fit after it, because every parameter is
fixed by public quantities.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from splitmeans.plan.attended_runs import (
    AttendedRuns,
    attended_runs,
    series_lines,
    series_mapping,
    unit_of,
)
from splitmeans.plan.learned import learned_lines
from splitmeans.plan.plan import Plan
from splitmeans.plan.releases import Release, releases_of
from splitmeans.plan.settle import make_plan
from splitmeans.plan.statement_words import (
    ASSUMPTIONS,
    DRAWN_NOISE,
    KEYED_NOISE,
    LEARNED_BOUNDS,
    SEALED_CHANNEL,
    SIMULATED_CHANNEL,
    in_words,
)
from splitmeans.plan.views import (
    coalition_cost,
    fellow_party_cost,
    spelled_apart_events,
)
from splitmeans.privacy.accountant import Cost, cost_mapping, cost_text, total_cost
from splitmeans.privacy.events import Relation
from splitmeans.privacy.ledger_rules import VALUES, VALUES_AND_PRESENCE, Towards
from splitmeans.privacy.pld import FINE, flatten, gap_of
from splitmeans.study import Study
from splitmeans.study.counting import COUNTS_CAVEAT, USER_ELSEWHERE
from splitmeans.study.plain_values import to_plain
from splitmeans.wire.tags import tagged_text

# What can change of a user at the parties that an onlooking party is not.
_ELSEWHERE = {
    Relation.REPLACE: "a user's values elsewhere replaced",
    Relation.ADD_OR_REMOVE: "a user's columns elsewhere added or removed",
}

# Below this share of the budget a plan says that it leaves some of it unused.
ENOUGH_USED = 0.95


@dataclass(frozen=True, kw_only=True)
class View:
    """What one kind of onlooker sees, and the bound that holds for it (None: no bound)."""

    who: str
    sees: str
    bounds: tuple[tuple[str, Cost | None], ...]


@dataclass(frozen=True, kw_only=True)
class PrivacyReport:
    """The privacy side of a run; `statement()` says it in plain words."""

    plan: Plan
    secure_noise: bool

    @classmethod
    @functools.lru_cache(maxsize=64)
    def for_study(cls, study: Study) -> "PrivacyReport":
        """Return the report of a study before any data is touched."""
        return cls(plan=make_plan(study), secure_noise=True)

    @property
    def releases(self) -> Sequence[Release]:
        """What each party released."""
        return releases_of(self.plan)

    @functools.cached_property
    def total(self) -> Cost:
        """The cost of all releases of all runs together."""
        return self._cost(self.plan.lifetime_events)

    @property
    def epsilon(self) -> float:
        """Total epsilon."""
        return self.total.epsilon

    @property
    def delta(self) -> float:
        """Total delta."""
        return self.total.delta

    def cost(self, release: Release) -> Cost:
        """What one release costs on its own; costs do not add up to the total."""
        return self._cost((release.event,))

    def _cost(self, events: Any) -> Cost:
        return total_cost(events, delta=self.plan.study.budget.delta, interval=self.interval)

    @property
    def interval(self) -> float:
        """The step of privacy loss that the plan was calibrated with."""
        return FINE * max(1.0, self.plan.study.budget.epsilon)

    @property
    def unused_budget(self) -> str | None:
        """What is to be said where the run costs clearly less than its budget; else None."""
        study = self.plan.study
        budget = study.budget
        used = self.epsilon / budget.epsilon
        if used >= ENOUGH_USED:
            return None
        if budget.party_epsilon is not None or budget.coalition_epsilon is not None:
            reason = (
                "the bounds towards parties are what limits the noise, so a smaller epsilon would "
                "cost no accuracy"
            )
        elif gap_of(flatten(self.plan.lifetime_events)).delta(self.epsilon) > 0.05 * budget.delta:
            reason = (
                "the rounding of the method's tables takes the rest at this delta: raise delta, "
                "lower epsilon, or take membership = 'decoy'"
            )
        else:
            reason = "its whole-numbered parameters do not come closer"
        return (
            f"The run uses {100 * used:.0f} % of its budget (epsilon {self.epsilon:.4g} of "
            f"{budget.epsilon:g}): {reason}. The ledger is charged all of it."
        )

    @functools.cached_property
    def _party_bounds(self) -> tuple[tuple[str, Cost | None], ...]:
        interval = self.step(self.plan.study.budget.party_epsilon)
        if self.plan.study.counts_only:
            cost = fellow_party_cost(self.plan, Relation.ADD_OR_REMOVE, interval=interval)
            return ((USER_ELSEWHERE, cost),)
        return tuple(
            (what, fellow_party_cost(self.plan, relation, interval=interval))
            for relation, what in _ELSEWHERE.items()
            if relation is Relation.REPLACE or self.plan.study.user_sets == "partial"
        )

    @property
    def towards_party(self) -> tuple[str, Cost] | None:
        """The largest cost towards another party, and of what; None where nothing bounds it."""
        known = [(what, cost) for what, cost in self._party_bounds if cost is not None]
        return max(known, key=lambda pair: pair[1].epsilon, default=None)

    @functools.cached_property
    def _coalition_cost(self) -> Cost | None:
        bound = self.plan.study.budget.coalition_epsilon
        return coalition_cost(self.plan, interval=self.step(bound))

    @property
    def towards(self) -> Towards:
        """What the ledger records beside the budget: the costs towards participants."""
        party = [math.inf if cost is None else cost.epsilon for _, cost in self._party_bounds]
        partial = self.plan.study.user_sets == "partial"
        coalition = self._coalition_cost
        return Towards(
            party_epsilon=max(party),
            party_relation=VALUES_AND_PRESENCE if partial else VALUES,
            coalition_epsilon=math.inf if coalition is None else coalition.epsilon,
        )

    def step(self, bound: float | None) -> float:
        """The step of privacy loss that a bound of the budget was calibrated with."""
        return self.interval if bound is None else FINE * max(1.0, bound)

    @functools.cached_property
    def attended(self) -> tuple[AttendedRuns, ...]:
        """What a user has who is there in some runs of a series; empty for a study of one run."""
        return attended_runs(self.plan, interval=self.interval)

    @functools.cached_property
    def views(self) -> tuple[View, ...]:
        """Who can learn what."""
        towards_server = (("a user added or removed", self.total),)
        values = f"{_ELSEWHERE[Relation.REPLACE]}; not presence"
        about = USER_ELSEWHERE if self.plan.study.counts_only else values
        return (
            View(
                who="server, also one that breaks the rules",
                sees="all releases, the number and size of messages; no run key, id or row",
                bounds=towards_server,
            ),
            View(
                who="outsider",
                sees="the published result, which is computed from the releases alone",
                bounds=towards_server,
            ),
            View(
                who="another party, if the server follows the rules",
                sees=f"{self._seen_by_party}; the figure is the largest for one party, or for "
                "several that share what they know, about a user's columns at the rest",
                bounds=self._party_bounds,
            ),
            View(
                who="server and a party together",
                sees="the releases and the run key; the same holds with several parties, and for a "
                "party if the server breaks the rules",
                bounds=(
                    (
                        USER_ELSEWHERE if self.plan.study.counts_only else about,
                        self._coalition_cost,
                    ),
                ),
            ),
        )

    @property
    def _seen_by_party(self) -> str:
        partial = self.plan.study.user_sets == "partial"
        key = "and the run key" if partial else "the run key, and whether all have the same users"
        return f"the published result{self._staged}, {key}"

    @property
    def _staged(self) -> str:
        """What parties release to each other before the main releases."""
        return "".join(f", each released {stage.what}" for stage in self.plan.stages)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must be true for the guarantee to hold."""
        with_keys = bool(self.plan.study.public_keys)
        # The server draws noise of its own where a bound towards parties rests on it.
        is_keyed = with_keys and self.towards_party is not None
        return (
            ASSUMPTIONS[0],
            SEALED_CHANNEL if with_keys else SIMULATED_CHANNEL,
            self._one_person_one_id,
            *ASSUMPTIONS[1:-1],
            ASSUMPTIONS[-1] if self.plan.study.all_public else LEARNED_BOUNDS,
            KEYED_NOISE if is_keyed else DRAWN_NOISE,
        )

    @functools.cached_property
    def spelled_apart(self) -> Cost | None:
        """What the run costs a person whose id is written in another way at every party.

        None where user sets are equal: then parties whose ids differ refuse each other.
        """
        if self.plan.study.user_sets == "equal":
            return None
        return self._cost(spelled_apart_events(self.plan))

    @property
    def _one_person_one_id(self) -> str:
        text = "one person is one id, spelled alike at every party"
        if self.spelled_apart is None:
            return text
        key = self.plan.study.matching_key
        by = "ids" if key is None else f"{key.name}, the first key that all parties have,"
        return (
            f"{text} ({by} as {self.plan.study.id_rules.type!r}); a person with a spelling of its "
            f"own at each of the {len(self.plan.study.parties)} parties has "
            f"{cost_text(self.spelled_apart)} instead of {cost_text(self.total)}"
        )

    @property
    def caveats(self) -> tuple[str, ...]:
        """What a reader must know beside the numbers."""
        study = self.plan.study
        caveats: tuple[str, ...] = study.membership_facts.caveats
        if study.counts_only:
            caveats += (COUNTS_CAVEAT,)
        if study.budget.delta >= 1 / self.plan.assumed_users:
            caveats += (
                f"delta {study.budget.delta:g} is one over the users that were counted, or more: "
                "it alone would allow to publish one user's row whole. Take a smaller one to "
                "protect people.",
            )
        if self.unused_budget is not None:
            caveats += (self.unused_budget,)
        if not self.secure_noise:
            caveats += (
                "INSECURE TEST NOISE: the noise came from a seed, so nothing here is private.",
            )
        return caveats

    def statement(self) -> str:
        """Return the statement as text."""
        study = self.plan.study
        lines = [
            f"Privacy of study {study.name!r} (hash {study.hash[:16]})",
            f"  unit       {unit_of(study)}",
            *series_lines(self.plan),
            *self._party_first,
            f"  total      {cost_text(self.total)} (budget {study.budget.words})",
            *(f"    {line}" for line in map(str, self.attended)),
            *in_words(self),
            f"  releases{'' if study.renewal is None else ' of each run'}, with what each would "
            "cost alone",
        ]
        width = max(len(release.party) for release in self.releases)
        for release in self.releases:
            cost = cost_text(self.cost(release))
            lines.append(f"    {release.party:<{width}}  {release.what:<16} {cost}")
        if study.membership_facts.machine_checked is not None:
            lines.append(f"    checked by a machine: {study.membership_facts.machine_checked}")
        if learned := learned_lines(self.plan):
            lines += ["  learned from the tables, with noise", *(f"    {line}" for line in learned)]
        lines.append("  who sees what")
        for view in self.views:
            lines.append(f"    {view.who}: {view.sees}")
            lines += [f"      {what}: {cost_text(cost)}" for what, cost in view.bounds]
        lines += ["  holds if", *(f"    {assumption}" for assumption in self.assumptions)]
        lines += [f"  NOTE: {caveat}" for caveat in self.caveats]
        return "\n".join(lines)

    @property
    def _party_first(self) -> tuple[str, ...]:
        """The figure towards parties, where it is the larger one: people worry about it most."""
        if self.towards_party is None or self.towards_party[1].epsilon <= self.epsilon:
            return ()
        what, cost = self.towards_party
        return (f"  to a party {cost_text(cost)}: {what}, the larger figure",)

    def to_mapping(self) -> dict[str, Any]:
        """Return the statement as plain values for machines."""
        study = self.plan.study
        return {
            "study": study.name,
            "study_hash": study.hash,
            "relation": Relation.ADD_OR_REMOVE.name,
            **series_mapping(self.plan, self.attended),
            "budget": to_plain(study.budget),
            "total": cost_mapping(self.total),
            "secure_noise": self.secure_noise,
            "releases": [
                {
                    "party": release.party,
                    "what": release.what,
                    "message": release.message,
                    "event": tagged_text(release.event),
                    "alone": cost_mapping(self.cost(release)),
                }
                for release in self.releases
            ],
            "views": [
                {
                    "who": view.who,
                    "sees": view.sees,
                    "bounds": {what: cost_mapping(cost) for what, cost in view.bounds},
                }
                for view in self.views
            ],
            **({"learned": list(learned)} if (learned := learned_lines(self.plan)) else {}),
            "assumptions": list(self.assumptions),
            "caveats": list(self.caveats),
        }

    def __repr__(self) -> str:
        return f"<PrivacyReport {cost_text(self.total)}>"

    def _repr_html_(self) -> str:
        from splitmeans.plan.statement_html import privacy_html

        return privacy_html(self)
