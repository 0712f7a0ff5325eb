"""Phase 5: a party works out the segments of its own users (paper, after section 3.4; ours).

A party holds its own columns of each user and the published synopsis. The synopsis says where
users of the row's local cluster are in the other parties' columns, so the party can tell which
segments are likely for a user, though it does not know those columns. It reads its own rows and
published values and sends nothing: there is no message, and no privacy cost.

The answer stays with the party. It is a function of its rows, so it is as sensitive as they are.
"""

import numpy as np
import numpy.typing as npt

from splitmeans._types import NO_VALUE, FloatArray, IntArray
from splitmeans.errors import ParameterError
from splitmeans.kmeans.distances import squared_distances
from splitmeans.kmeans.lloyd import draw_evenly
from splitmeans.party.nearest_rows import labeller
from splitmeans.study.coding import Coding, plain_coding
from splitmeans.study.features import GRID_UNITS
from splitmeans.synopsis.clustering import NOBODY, Clustering
from splitmeans.synopsis.synopsis import Synopsis
from splitmeans.table.prepare import PartyTable

# Comparisons of rows with nodes held in memory at a time, times the number of segments.
_CHUNK_SIZE = 4_000_000

# Nodes of a local cluster that a row is compared with: drawn evenly over the cells, which are in
# order, so a probability is off by far less than the 2 % of a plain draw.
_MOST_NODES = 512


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
    coding = table.coding or plain_coding(table.raw_rows.shape[1])
    if len(coding.bounds) != own.stop - own.start:
        raise ParameterError(
            f"the table of party {name!r} must have {own.stop - own.start} features, "
            f"got {len(coding.bounds)}"
        )
    if isinstance(centres, Clustering) and len(centres.sizes) == 0:
        raise ParameterError(NOBODY)
    segments = synopsis.scaled_centres(centres)
    used = synopsis.weights > 0
    if not used.any():
        return np.full((len(table), len(segments)), 1 / len(segments))

    node_labels = synopsis.labels_of(name)[used]
    weights = synopsis.weights[used]
    elsewhere = np.ones(segments.shape[1], dtype=bool)
    elsewhere[own] = False
    from_nodes = squared_distances(
        synopsis.scaled_nodes[used][:, elsewhere], segments[:, elsewhere]
    )
    raw_labels = _local_labels(
        table.raw_rows, coding, synopsis.local_centres(name), np.unique(node_labels)
    )

    probabilities = np.empty((len(table), len(segments)))
    for label in np.unique(raw_labels):
        nodes, odds = _nodes_of(node_labels == label, weights)
        rows = np.flatnonzero(raw_labels == label)
        step = max(1, _CHUNK_SIZE // (len(nodes) * len(segments)))
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            from_rows = _distances(coding.features(table.raw_rows[part]), segments[:, own])
            probabilities[part] = _shares(from_rows, from_nodes[nodes], odds)
    return probabilities


def _nodes_of(own: npt.NDArray[np.bool_], weights: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return some of the nodes of a local cluster, and the odds of each."""
    nodes = np.flatnonzero(own)
    if len(nodes) <= _MOST_NODES:
        return nodes, weights[nodes]
    # The seed only makes two label files alike; nothing is hidden by it.
    drawn = draw_evenly(weights[nodes], _MOST_NODES, rng=np.random.default_rng(0))
    return nodes[drawn], np.ones(_MOST_NODES)


def _distances(features: IntArray, segments: FloatArray) -> FloatArray:
    """Return squared distances over the columns that a row has, shape (n, k)."""
    absent = features == NO_VALUE
    found = squared_distances(np.where(absent, 0, features) / GRID_UNITS, segments)
    # Absent ones were taken as 0; what they have added is the square of the segment's own.
    return np.asarray(found - absent @ np.square(segments).T) if absent.any() else found


def _local_labels(
    raw_rows: IntArray, coding: Coding, local_centres: FloatArray, present: IntArray
) -> IntArray:
    """Return each row's nearest local centre among those that have any users in the synopsis."""
    # Centres are whole grid integers over a power of two, so this restores them exactly.
    on_grid = np.rint(local_centres[present] * GRID_UNITS).astype(np.int64)
    return np.asarray(present[labeller(coding, on_grid)(raw_rows)])


def _shares(from_rows: FloatArray, from_nodes: FloatArray, weights: FloatArray) -> FloatArray:
    """Return for each row the share of the nodes' weight that is nearest to each segment.

    Args:
        from_rows: Squared distances in own columns, shape (rows, k).
        from_nodes: Squared distances in the other columns, shape (nodes, k).
        weights: Users of each node, shape (nodes,).
    """
    chosen = (from_rows[:, np.newaxis] + from_nodes).argmin(axis=2)  # (rows, nodes)
    n_rows, n_segments = from_rows.shape
    flat = chosen + n_segments * np.arange(n_rows)[:, np.newaxis]
    counts = np.bincount(
        flat.ravel(), weights=np.tile(weights, n_rows), minlength=n_rows * n_segments
    )
    return np.asarray(counts.reshape(n_rows, n_segments) / weights.sum())
