"""What the server gets of pair tables that count clusters in bundles, with and without a user.

One party's clusters share labels two by two, others in its table with the second party than in that
with the third. Every second cluster has a user of its own, or none has, so that in each table every
label has one user; both tables are looked at together.
"""

import numpy as np
import pyarrow as pa

from audits.case import Scores, scores_of_calls
from audits.sketch_views import fresh_key
from splitmeans._types import FloatArray
from splitmeans.membership.bundles import Bundles
from splitmeans.membership.decoy.encode import encode
from splitmeans.membership.decoy.join import join_counts
from splitmeans.membership.decoy.law import DecoyLaw
from splitmeans.privacy.noise import NoiseSource
from splitmeans.table.walk.memory import MemoryUsers

# Labels of the first party, hence trials of one call; a label has one byte.
_LABELS = 200
_BUNDLES = Bundles(n_local_clusters=(2 * _LABELS, 1, 1), n_labels=(_LABELS, 1, 1))
_PAIRS = ((0, 1), (0, 2))
N_TABLES = len(_PAIRS)


def changed_cells(law: DecoyLaw, trials: int, noise: NoiseSource) -> Scores:
    """How many records the server counts in the user's cells of both tables."""
    # What the bundles' own rule says of a user's cluster is part of what is audited.
    clusters = np.arange(0, 2 * _LABELS, 2)
    own_labels = [_BUNDLES.labels_of(0, other)[clusters] for _, other in _PAIRS]

    def one_call(present: bool) -> FloatArray:
        key = fresh_key(noise)
        n = _LABELS if present else 0
        ids = pa.array([f"user {number}" for number in range(n)], type=pa.large_string())
        messages = [
            encode(
                law,
                users=MemoryUsers(ids=ids, labels=labels[:n].astype(np.int32)),
                position=position,
                groups=_PAIRS,
                n_local_clusters=_BUNDLES.n_labels,
                run_key=key,
                high_bits=18,
                bundles=_BUNDLES,
                noise=noise,
            )
            for position, labels in enumerate((clusters, np.zeros(_LABELS), np.zeros(_LABELS)))
        ]
        counts = join_counts(
            messages, groups=_PAIRS, n_local_clusters=_BUNDLES.n_labels, high_bits=18
        )
        found = np.zeros(_LABELS)
        for pair, own in zip(_PAIRS, own_labels, strict=True):
            found += counts[pair][own, 0]
        return found

    return scores_of_calls(one_call, trials=trials)
