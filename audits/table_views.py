"""What the server gets of tables of columns, with and without a user.

Every cell of two tables has a user of its own, or none has. Two tables of one run are looked at
together: were their keys the same, or their decoys, counts of both would tell more than both cost.
"""

import numpy as np
import pyarrow as pa

from audits.case import Scores, scores_of_calls
from audits.sketch_views import fresh_key
from splitmeans._types import FloatArray
from splitmeans.membership.decoy.column_tables import ColumnTable, ColumnTables
from splitmeans.membership.decoy.join import join_counts
from splitmeans.membership.decoy.law import DecoyLaw
from splitmeans.party.column_tables import encode_table
from splitmeans.privacy.noise import NoiseSource
from splitmeans.table.walk.memory import MemoryUsers

# Cells, hence trials, of one call; a label has one byte.
_CELLS = 200
N_TABLES = 2


def changed_cells(law: DecoyLaw, trials: int, noise: NoiseSource) -> Scores:
    """How many records the server counts in the user's cells of both tables."""
    tables = tuple(
        ColumnTable(parties=(0, 1), columns=(column, 0), widths=(_CELLS, 1))
        for column in range(N_TABLES)
    )
    columns = ColumnTables(law=law, tables=tables)

    def one_call(present: bool) -> FloatArray:
        key = fresh_key(noise)
        n = _CELLS if present else 0
        ids = pa.array([f"user {number}" for number in range(n)], type=pa.large_string())
        found = np.zeros(_CELLS)
        for table in tables:
            messages = [
                encode_table(
                    columns,
                    table,
                    side=side,
                    users=MemoryUsers(ids=ids, labels=labels.astype(np.int32)),
                    run_key=key,
                    high_bits=18,
                    sample_rate=1.0,
                    noise=noise,
                )
                for side, labels in enumerate((np.arange(n), np.zeros(n)))
            ]
            counts = join_counts(
                messages, groups=((0, 1),), n_local_clusters=table.widths, high_bits=18
            )
            found += counts[0, 1][:, 0]
        return found

    return scores_of_calls(one_call, trials=trials)
