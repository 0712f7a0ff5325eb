"""About how much memory a run takes, from public facts; a run that dies for it has been paid for.

Good for telling a laptop from a server: within a factor of two or three of what was measured.
"""

import math
from dataclasses import dataclass

from splitmeans.membership.decoy.join import PIECE_RECORDS
from splitmeans.membership.methods import method_of
from splitmeans.plan.grid_limits import N_POINTS, SAMPLED, grid_bytes
from splitmeans.plan.message_sizes import MessageSizes, most_nodes
from splitmeans.plan.plan import Plan
from splitmeans.study.features import features_of
from splitmeans.wire.on_disk import HELD_BYTES

# Python, the libraries and the compiled kernels.
_START = 350 * 10**6
# A record of a piece that the server joins: its tag and label, and copies of both.
_RECORD, _TAGGED_RECORD = 4, 44


@dataclass(frozen=True, kw_only=True)
class RunMemory:
    """Bytes at the peak, each on a machine of its own.

    Attributes:
        server: From the first release to the written result.
        reader: Of a party that takes the result, writes and reads it; its own table comes on top.
    """

    server: int
    reader: int


def run_memory(plan: Plan, sizes: MessageSizes) -> RunMemory:
    """Return about how much memory the server and a reader of the result need."""
    parties = plan.parties
    n_cells = N_POINTS if plan.grid_method in SAMPLED else math.prod(plan.n_local_clusters)
    n_features = sum(len(features_of(party)) for party in parties)
    n_nodes = most_nodes(plan)
    # The server has cells before it has nodes; readers have nodes alone.
    held, published = (
        grid_bytes(cells=count, n_features=n_features, n_parties=len(parties))
        for count in (max(n_cells, n_nodes), n_nodes)
    )
    # Small releases are kept, large ones lie on disk; one that arrives is there sealed and open.
    kept = sum(min(size, HELD_BYTES) for size in sizes.releases.values())
    arriving = 3 * max(sizes.releases.values())
    n_records = sum(min(count, PIECE_RECORDS) for count in sizes.records.values())
    joining = n_records * (_RECORD if plan.study.user_sets == "equal" else _TAGGED_RECORD)
    joining += method_of(plan.study).server_bytes(plan.membership, plan)
    reading = kept + max(arriving, joining)
    # The result is sealed for every party before the first copy is sent.
    publishing = held + sizes.result * (len(parties) + 2)
    return RunMemory(
        server=_START + max(reading, kept + publishing),
        reader=_START + published + 3 * sizes.result,
    )
