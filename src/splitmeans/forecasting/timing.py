"""About how long a run takes, from the stages that `splitmeans bench speed` times.

Two cores, waiting for others and the network not included. Good for telling seconds from hours.
"""

from dataclasses import dataclass

from splitmeans.features import features_of
from splitmeans.grid.many import N_POINTS
from splitmeans.message_sizes import MessageSizes
from splitmeans.plan import Plan

# Starting Python, loading compiled kernels, planning.
_START = 4.0
# Nanoseconds, from docs/speed.md at a million users: reading and checking a value; id work of a
# user; one column of one local cluster in all passes; sorting a record; reading one at the server.
_VALUE, _USER, _DISTANCE, _RECORD, _SERVED = 100e-9, 320e-9, 3.8e-9, 150e-9, 30e-9
# k-means on the grid: one column of one segment of a cell, all restarts and steps. Pair tables are
# fitted by passes over all cells.
_GRID_DISTANCE, _GRID_CELL = 2e-7, 2e-7


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
    parties = {}
    n_features = 0
    for party, width in zip(plan.study.parties, plan.n_local_clusters, strict=True):
        d = len(features_of(party))
        n_features += d
        per_user = _VALUE * len(party.columns) + _USER + _DISTANCE * d * width
        parties[party.name] = _START + users * per_user + _RECORD * sizes.records[party.name]
    cells = N_POINTS
    if plan.grid_method != "many":
        cells = 1
        for width in plan.n_local_clusters:
            cells *= width
    n_pairs = len(plan.study.parties) * (len(plan.study.parties) - 1) // 2
    grid = cells * (_GRID_DISTANCE * plan.study.n_clusters * n_features + _GRID_CELL * n_pairs)
    server = _START + _SERVED * sum(sizes.records.values()) + grid
    return RunTime(parties=parties, server=server)
