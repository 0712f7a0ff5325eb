"""About how long a run takes, from the stages that `python -m benchmarks speed` times.

Two cores, waiting for others and the network not included. Good for telling seconds from hours.
"""

import math
from dataclasses import dataclass

from splitmeans.membership.methods import method_of
from splitmeans.plan.grid_limits import N_POINTS, SAMPLED
from splitmeans.plan.message_sizes import MessageSizes
from splitmeans.plan.plan import Plan
from splitmeans.study.features import features_of
from splitmeans.synopsis.pairs_paper import fit_steps

# Starting Python, loading compiled kernels, planning.
_START = 4.0
# Nanoseconds, from docs/speed.md at a million users: reading and checking a value; id work of a
# user; one column of one local cluster in all passes; sorting a record; reading one at the server.
_VALUE, _USER, _DISTANCE, _RECORD, _SERVED = 100e-9, 320e-9, 3.8e-9, 150e-9, 30e-9
# k-means on the grid: one column of one segment of a cell, all restarts and steps. Pair tables are
# fitted by passes over all cells.
_GRID_DISTANCE, _GRID_CELL = 2e-7, 2e-7
# One cell in one step of the paper's fit of pairs.
_PAPER_STEP = 8e-9


@dataclass(frozen=True, kw_only=True)
class RunTime:
    """Seconds of work, each on a machine of its own.

    Attributes:
        parties: For each party.
        server: For the server.
    """

    parties: dict[str, float]
    server: float

    @property
    def total(self) -> float:
        """The slowest party, then the server."""
        return max(self.parties.values()) + self.server


def run_time(plan: Plan, sizes: MessageSizes, *, users: int) -> RunTime:
    """Return about how long everyone works."""
    parties, method, law = {}, method_of(plan.study), plan.membership
    n_features = 0
    for place, (party, width) in enumerate(zip(plan.parties, plan.n_local_clusters, strict=True)):
        d = len(features_of(party))
        n_features += d
        per_user = _VALUE * len(party.columns) + _USER + _DISTANCE * d * width
        own = users * per_user + _RECORD * sizes.records[party.name]
        parties[party.name] = _START + own + method.party_seconds(law, plan, place, users)
    grid = _grid(plan, n_features=n_features)
    read = _SERVED * sum(sizes.records.values()) + method.server_seconds(law, plan, users)
    return RunTime(parties=parties, server=_START + read + grid)


def _grid(plan: Plan, *, n_features: int) -> float:
    """Return the seconds for fitting the grid and clustering it."""
    n_parties = len(plan.study.parties)
    cells = N_POINTS if plan.grid_method in SAMPLED else math.prod(plan.n_local_clusters)
    clustering = cells * _GRID_DISTANCE * plan.study.n_clusters * n_features
    if plan.grid_method == "pairs-paper":
        return clustering + cells * _PAPER_STEP * fit_steps(n_parties)
    return clustering + cells * _GRID_CELL * n_parties * (n_parties - 1) / 2
