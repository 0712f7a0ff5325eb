"""What a user has who is there in some runs of a series and not in others.

A run that a user is not in costs the user nothing: its releases have the same law with and without.
So the cost of r runs is that of the events of one run composed r times, whichever runs they are.
"""

import dataclasses
from dataclasses import dataclass

from splitmeans.plan.plan import Plan
from splitmeans.plan.views import fellow_party_cost
from splitmeans.privacy.accountant import Cost, cost_text, total_cost
from splitmeans.privacy.events import Relation

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
    study = plan.study
    if study.renewal is None:
        return ()
    plan = dataclasses.replace(plan, series_run=None)
    found = []
    for runs in _listed(study.n_runs):
        server = total_cost(
            plan.events * runs,
            delta=study.budget.delta,
            accounting=study.accounting,
            interval=interval,
        )
        towards = (
            fellow_party_cost(plan, relation, interval=interval, runs=runs) for relation in Relation
        )
        party = max((one for one in towards if one), key=lambda one: one.epsilon, default=None)
        found.append(AttendedRuns(runs=runs, of=study.n_runs, server=server, party=party))
    return tuple(found)


def _listed(most: int) -> list[int]:
    listed = {runs for runs in range(1, min(most, _ALL_LISTED) + 1)}
    power = _ALL_LISTED
    while power < most:
        listed.add(power)
        power *= 2
    return sorted(listed | {most})
