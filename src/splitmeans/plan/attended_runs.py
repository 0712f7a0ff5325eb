"""A series in the privacy statement: its unit, and what a user has who is there in some runs.

A run that a user is not in costs the user nothing: its releases have the same law with and without.
So the cost of r runs is that of the events of one run composed r times, whichever runs they are.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from splitmeans.plan.plan import Plan
from splitmeans.plan.views import fellow_party_cost
from splitmeans.privacy.accountant import Cost, cost_mapping, cost_text, total_cost
from splitmeans.privacy.events import Relation
from splitmeans.study import Study
from splitmeans.study.plain_values import to_plain

# Every number of runs up to this is listed; of more, the powers of two.
_ALL_LISTED = 8


@dataclass(frozen=True, kw_only=True)
class AttendedRuns:
    """The cost of being there in so many runs of a series.

    Attributes:
        runs: In how many.
        of: How many the series has.
        server: Towards the server and outsiders.
        party: Towards another party, the largest figure; None where nothing bounds it.
    """

    runs: int
    of: int
    server: Cost
    party: Cost | None

    def __str__(self) -> str:
        party = "" if self.party is None else f", {self.party.epsilon:.4g} towards a party"
        return f"in {self.runs} of {self.of} runs: {cost_text(self.server)}{party}"


def attended_runs(plan: Plan, *, interval: float) -> tuple[AttendedRuns, ...]:
    """Return the costs of being there in 1, 2, ... runs; nothing for a study of one run."""
    if plan.study.renewal is None:
        return ()
    listed = _listed(plan.study.n_runs)
    return tuple(cost_of_runs(plan, runs, interval=interval) for runs in listed)


def cost_of_runs(plan: Plan, runs: int, *, interval: float) -> AttendedRuns:
    """Return the cost of being there in so many runs of a series."""
    study = plan.study
    plan = dataclasses.replace(plan, series_run=None)
    server = total_cost(plan.events * runs, delta=study.budget.delta, interval=interval)
    towards = (
        fellow_party_cost(plan, relation, interval=interval, runs=runs) for relation in Relation
    )
    party = max((one for one in towards if one), key=lambda one: one.epsilon, default=None)
    return AttendedRuns(runs=runs, of=study.n_runs, server=server, party=party)


def unit_of(study: Study) -> str:
    """Return which tables are neighbours."""
    unit = Relation.ADD_OR_REMOVE.value
    return unit if study.renewal is None else f"{unit}, in all runs of the series or any of them"


def series_lines(plan: Plan) -> tuple[str, ...]:
    """Return which run of which series a statement is about; nothing for a study of one run."""
    renewal, this = plan.study.renewal, plan.series_run
    if renewal is None:
        return ()
    often = "" if renewal.every is None else f", one about every {renewal.every}"
    lines = [
        f"  series     {renewal.runs} runs{often}; all figures but those of single releases are of "
        "all runs together"
    ]
    if this is not None:
        after = f", after result {this.previous[:16]}" if this.previous else ""
        lines.append(f"  run        {this.number} of {renewal.runs}{after}")
    return tuple(lines)


def series_mapping(plan: Plan, attended: Sequence[AttendedRuns]) -> dict[str, Any]:
    """Return the same as plain values; empty for a study of one run."""
    renewal, this = plan.study.renewal, plan.series_run
    if renewal is None:
        return {}
    series: dict[str, Any] = {
        **to_plain(renewal),
        "attended": [
            {
                "runs": one.runs,
                "total": cost_mapping(one.server),
                "towards_party": cost_mapping(one.party),
            }
            for one in attended
        ],
    }
    return {"series": series if this is None else {**series, **to_plain(this)}}


def _listed(most: int) -> list[int]:
    listed = {runs for runs in range(1, min(most, _ALL_LISTED) + 1)}
    power = _ALL_LISTED
    while power < most:
        listed.add(power)
        power *= 2
    return sorted(listed | {most})
