"""The privacy facts of a plan: one table that statement, certificate, archive and report show.

Every figure and every sentence is here once. All of it follows from public quantities, so it is the
same before a run and after it, and anyone with the study can compute it. The server signs it.
"""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from splitmeans.plan import costs
from splitmeans.plan.conditions import assumptions_of, caveats_of
from splitmeans.plan.learned import learned_lines
from splitmeans.plan.noise_parameters import parts_of, server_noise_of
from splitmeans.plan.observers import MEANING, Bound, Observer, observers_of
from splitmeans.plan.plan import Plan
from splitmeans.plan.releases import releases_of
from splitmeans.plan.settle import make_plan
from splitmeans.plan.what_leaves import ColumnFacts, columns_of
from splitmeans.privacy.accountant import Cost, cost_text
from splitmeans.privacy.events import Relation
from splitmeans.privacy.lower_bound import epsilon_at_least
from splitmeans.privacy.pld import flatten, gap_of
from splitmeans.study import Budget, Study
from splitmeans.study.options import TOWARDS_SERVER
from splitmeans.study.plain_values import build, to_plain

FORMAT = 2


@dataclass(frozen=True, kw_only=True)
class ReleaseFacts:
    """One release: who sends what, in which message, the cost alone, the noise."""

    party: str
    what: str
    means: str
    message: str
    cost: Cost
    parts: tuple[Mapping[str, Any], ...]

    @property
    def cost_words(self) -> str:
        """What the release would cost alone, in words."""
        return cost_text(self.cost)


@dataclass(frozen=True, kw_only=True)
class ExtraCost:
    """Parts of the total that are charged for differences between the stated and the drawn noise.

    Attributes:
        loss: Of epsilon, for drawing whole numbers.
        delta: Of delta, for rare outcomes and for tables of the noise.
    """

    loss: float
    delta: float


@dataclass(frozen=True, kw_only=True)
class SeriesFacts:
    """A series, and which run of it this is; `previous` is the hash of the result it follows."""

    runs: int
    every: str | None = None
    number: int | None = None
    previous: str | None = None
    attended: tuple[costs.AttendedRuns, ...]


@dataclass(frozen=True, kw_only=True)
class PrivacyFacts:
    """What a run releases, what it costs, who can learn what, and what that rests on.

    Example:
        >>> facts = PrivacyFacts.for_study(study)
        >>> print(facts.statement())

    Attributes:
        format: Of the facts as JSON.
        study: Name of the study.
        study_hash: Its hash.
        plan: Fingerprint of the plan.
        unit: Which tables are neighbours.
        budget: What the study allows.
        total: What all runs cost, towards the server and readers of the result.
        extra: What the total has for differences between the stated and the drawn noise.
        observers: Who sees what, and which bounds hold.
        releases: What is sent, in order, of one run.
        columns: What is agreed and sent about each column.
        assumptions: What must be true for the bounds to hold.
        secure_noise: Whether the noise comes from a secure source.
        caveats: What a reader must know beside the figures.
        learned: What is learned of columns, with noise, before they are clustered.
        server_noise: The server's own noise, which alone protects counts from parties.
        series: Which run of which series; None for a study of one run.
        machine_checked: Which part of the proof a machine has checked.
    """

    format: int = FORMAT
    study: str
    study_hash: str
    plan: str
    unit: str
    budget: Budget
    series: SeriesFacts | None = None
    total: Cost
    extra: ExtraCost | None = None
    observers: tuple[Observer, ...]
    releases: tuple[ReleaseFacts, ...]
    server_noise: Mapping[str, Any] | None = None
    columns: tuple[ColumnFacts, ...]
    learned: tuple[str, ...] = ()
    machine_checked: str | None = None
    assumptions: tuple[str, ...]
    caveats: tuple[str, ...] = ()
    secure_noise: bool

    @classmethod
    def for_study(cls, study: Study) -> "PrivacyFacts":
        """Return the facts of a study before any data is touched."""
        return cls.of(make_plan(study))

    @classmethod
    @functools.lru_cache(maxsize=64)
    def of(cls, plan: Plan, *, secure_noise: bool = True) -> "PrivacyFacts":
        """Return the facts of a plan; `secure_noise` says where its noise came from."""
        study, total = plan.study, costs.total_of(plan)
        gap = gap_of(flatten(plan.lifetime_events))
        return cls(
            study=study.name,
            study_hash=study.hash,
            plan=plan.fingerprint,
            unit=Relation.ADD_OR_REMOVE.value
            + ("" if study.renewal is None else ", in all runs of the series or any of them"),
            budget=study.budget,
            series=_series(plan),
            total=total,
            extra=ExtraCost(loss=gap.loss, delta=gap.delta(total.epsilon)),
            observers=tuple(observers_of(plan)),
            releases=tuple(_releases(plan)),
            server_noise=server_noise_of(plan),
            columns=tuple(columns_of(plan)),
            learned=learned_lines(plan),
            machine_checked=study.membership_facts.machine_checked,
            assumptions=tuple(assumptions_of(plan)),
            caveats=tuple(caveats_of(plan, secure_noise=secure_noise)),
            secure_noise=secure_noise,
        )

    @classmethod
    def from_mapping(cls, mapping: Any, *, where: str) -> Self:
        """Return facts from the values that `to_mapping` gives."""
        tables = {"budget": Budget, "series": SeriesFacts, "extra": ExtraCost}
        tables |= dict.fromkeys(("total", "cost", "towards_server", "towards_party"), Cost)
        lists = {"observers": Observer, "bounds": Bound, "releases": ReleaseFacts}
        lists |= {"columns": ColumnFacts, "attended": costs.AttendedRuns}
        return build(cls, mapping, where=where, tables=tables, lists=lists)

    def to_mapping(self) -> dict[str, Any]:
        """Return the facts as plain values for machines; what there is nothing of is left out."""
        mapping: dict[str, Any] = to_plain(self)
        return mapping

    @property
    def epsilon(self) -> float:
        """Total epsilon, towards the server and readers of the result."""
        return self.total.epsilon

    @property
    def delta(self) -> float:
        """Delta of all figures."""
        return self.budget.delta

    @property
    def total_words(self) -> str:
        """What all runs cost, and towards whom."""
        return f"{cost_text(self.total)} {TOWARDS_SERVER}"

    @property
    def towards_party(self) -> tuple[str, Cost] | None:
        """The largest cost towards another party, and of what; None where nothing bounds it."""
        bounds = [bound for one in self.observers if one.name == "party" for bound in one.bounds]
        known = [(one.case, one.cost) for one in bounds if one.cost is not None]
        return max(known, key=lambda pair: pair[1].epsilon, default=None)

    @property
    def meaning(self) -> str:
        """What the bounds of observers mean."""
        return MEANING

    def observer(self, name: str) -> Observer:
        """Return the observer "server", "reader", "party", "coalition" or "carrier"."""
        return next(one for one in self.observers if one.name == name)

    def statement(self) -> str:
        """Return the privacy statement: the facts in plain words."""
        from splitmeans.plan.statement import statement_text

        return statement_text(self)

    def __repr__(self) -> str:
        return f"<PrivacyFacts {cost_text(self.total)}>"

    def _repr_html_(self) -> str:
        from splitmeans.plan.statement_html import privacy_html

        return privacy_html(self)


def certificate_of(plan: Plan, *, secure_noise: bool = True) -> dict[str, Any]:
    """Return the facts with a lower bound on epsilon, found by another computation.

    The bound is not signed: its last digits may differ between machines.
    """
    facts = PrivacyFacts.of(plan, secure_noise=secure_noise)
    step = costs.step_of(plan)
    lower = epsilon_at_least(plan.lifetime_events, plan.study.budget.delta, interval=step)
    return {**facts.to_mapping(), "lower": lower}


def _series(plan: Plan) -> SeriesFacts | None:
    renewal, this = plan.study.renewal, plan.series_run
    if renewal is None:
        return None
    return SeriesFacts(
        runs=renewal.runs,
        every=renewal.every,
        number=None if this is None else this.number,
        previous=None if this is None else this.previous,
        attended=costs.attended_runs(plan),
    )


def _releases(plan: Plan) -> Iterator[ReleaseFacts]:
    for one in releases_of(plan):
        yield ReleaseFacts(
            party=one.party,
            what=one.what,
            means=one.means,
            message=one.message,
            cost=costs.cost_of(plan, (one.event,)),
            parts=parts_of(plan, one.event),
        )
