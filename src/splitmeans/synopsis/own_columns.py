"""Which segments are likely for points of which only one party's columns are known.

The synopsis says where users of a local cluster are in the other parties' columns. A party asks it
about its own rows (`party/labels.py`); asked about pseudo-users, whose segments are known, it tells
how well that works (`insights/own_labels.py`).
"""

import numpy as np
import numpy.typing as npt

from splitmeans._types import NO_VALUE, FloatArray, IntArray
from splitmeans.kernels.assign import nearest
from splitmeans.kernels.coded_rows import coded_nearest
from splitmeans.kmeans.distances import squared_distances
from splitmeans.kmeans.draws import draw_evenly
from splitmeans.study.features import GRID_UNITS
from splitmeans.synopsis.synopsis import Synopsis

# Comparisons of rows with nodes held in memory at a time, times the number of segments.
_CHUNK_SIZE = 4_000_000

# Nodes of a local cluster that a row is compared with: drawn evenly over the cells, which are in
# order, so a probability is off by far less than the 2 % of a plain draw.
_MOST_NODES = 512


def segment_shares(
    own_rows: IntArray, synopsis: Synopsis, segments: FloatArray, *, party: str
) -> FloatArray:
    """Return how likely each segment is for each row of a party's columns, shape (n, k).

    Args:
        own_rows: In grid integers, shape (n, d_l), `NO_VALUE` where a row has none: distances are
            over what it has.
        synopsis: It must know the local clusters of its nodes.
        segments: Centres in distance units, shape (k, D), at least one.
        party: Whose columns the rows have.
    """
    own = synopsis.columns_of(party)
    used = synopsis.weights > 0
    if not used.any():
        return np.full((len(own_rows), len(segments)), 1 / len(segments))
    node_labels = synopsis.labels_of(party)[used]
    weights = synopsis.weights[used]
    points = synopsis.seen(segments)
    elsewhere = np.ones(points.shape[1], dtype=bool)
    elsewhere[own] = False
    from_nodes = squared_distances(
        synopsis.seen(synopsis.scaled_nodes[used])[:, elsewhere], points[:, elsewhere]
    )
    labels = _local_labels(own_rows, synopsis.local_centres(party), np.unique(node_labels))
    probabilities = np.empty((len(own_rows), len(segments)))
    for label in np.unique(labels):
        nodes, odds = _nodes_of(node_labels == label, weights)
        rows = np.flatnonzero(labels == label)
        step = max(1, _CHUNK_SIZE // (len(nodes) * len(points)))
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            placed = synopsis.seen(own_rows[part] / GRID_UNITS, own)
            from_rows = _distances(placed, own_rows[part] == NO_VALUE, points[:, own])
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


def _local_labels(own_rows: IntArray, local_centres: FloatArray, present: IntArray) -> IntArray:
    """Return each row's nearest local centre among those that have any users in the synopsis."""
    # Centres are whole grid integers over a power of two, so this restores them exactly.
    on_grid = np.rint(local_centres[present] * GRID_UNITS).astype(np.int64)
    if not (own_rows == NO_VALUE).any():
        return np.asarray(present[nearest(own_rows, on_grid)])
    largest = max(
        int(np.abs(on_grid).max()), int(np.where(own_rows == NO_VALUE, 0, own_rows).max())
    )
    d = own_rows.shape[1]
    limits = np.full(d, max(largest, -int(np.where(own_rows == NO_VALUE, 0, own_rows).min())))
    found = coded_nearest(own_rows, centres=on_grid, limits=limits, levels=(0,) * d)
    return np.asarray(present[found])


def _distances(places: FloatArray, absent: npt.NDArray[np.bool_], points: FloatArray) -> FloatArray:
    """Return squared distances over the columns that a place has, shape (n, points)."""
    if not absent.any():
        return squared_distances(places, points)
    parts = [np.where(absent, 0.0, np.square(places - one)).sum(axis=1) for one in points]
    return np.stack(parts, axis=1)


def _shares(from_rows: FloatArray, from_nodes: FloatArray, weights: FloatArray) -> FloatArray:
    """Return for each row the share of the nodes' weight that is in each segment.

    Args:
        from_rows: Distances in own columns, shape (rows, k).
        from_nodes: Distances in the other columns, shape (nodes, k).
        weights: Users of each node, shape (nodes,).
    """
    chosen = (from_rows[:, np.newaxis] + from_nodes).argmin(axis=-1)  # (rows, nodes)
    n_rows, n_segments = from_rows.shape
    flat = chosen + n_segments * np.arange(n_rows)[:, np.newaxis]
    counts = np.bincount(
        flat.ravel(), weights=np.tile(weights, n_rows), minlength=n_rows * n_segments
    )
    return np.asarray(counts.reshape(n_rows, n_segments) / weights.sum())
