"""Phase 5: a party works out the segments of its own users (paper, after section 3.4; ours).

A party holds its own columns of each user and the published synopsis. The synopsis says where
users of the row's local cluster are in the other parties' columns, so the party can tell which
segments are likely for a user, though it does not know those columns. It reads its own rows and
published values and sends nothing: there is no message, and no privacy cost.

The answer stays with the party. It is a function of its rows, so it is as sensitive as they are.
"""

import numpy.typing as npt

from splitmeans._types import FloatArray
from splitmeans.errors import ParameterError
from splitmeans.synopsis.clustering import NOBODY, Clustering
from splitmeans.synopsis.own_columns import segment_shares
from splitmeans.synopsis.synopsis import Synopsis
from splitmeans.table.prepare import PartyTable


def segment_probabilities(
    table: PartyTable,
    synopsis: Synopsis,
    *,
    centres: Clustering | npt.ArrayLike,
    party: str | None = None,
) -> FloatArray:
    """Return the probability of each segment for each row of a party's own table, shape (n, k).

    A row belongs to its nearest local centre. The nodes with that local cluster say where its
    user may be in the other parties' columns, with the weights as odds. For each such place the
    segment is the nearest centre, with the row's own columns as they are and the others as in the
    node. Probabilities of a row add up to one.

    Guarantee: reads the party's own rows and published values; releases nothing.

    Args:
        table: The party's rows, prepared for the study of the synopsis.
        synopsis: What the server published; it must know the local clusters of its nodes.
        centres: The segments: a clustering of the synopsis, or centres in own units.
        party: The party's name, if it is not `table.party`.
    """
    name = table.party if party is None else party
    own = synopsis.columns_of(name)
    n_features = len(table.coding.bounds) if table.coding else table.raw_rows.shape[1]
    if n_features != own.stop - own.start:
        raise ParameterError(
            f"the table of party {name!r} must have {own.stop - own.start} features, "
            f"got {n_features}"
        )
    if isinstance(centres, Clustering) and len(centres.sizes) == 0:
        raise ParameterError(NOBODY)
    segments = synopsis.scaled_centres(centres)
    return segment_shares(table.features, synopsis, segments, party=name)
