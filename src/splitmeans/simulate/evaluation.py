"""Metrics on pooled plain rows: how good a clustering is, seen by someone who has all columns.

For simulation and benchmarks only. No participant of a real run can compute these figures, none of
them is private, and none may be published with a private result.
"""

import math
from collections.abc import Iterator

import numpy as np

from splitmeans._types import FloatArray, LabelArray
from splitmeans.kmeans.distances import distance_chunks
from splitmeans.kmeans.nearest import nearest_centres

# Rows handled at a time: the differences to one centre then stay in a processor's cache.
_CHUNK = 4096


def normalised_loss(scaled_rows: FloatArray, scaled_centres: FloatArray) -> float:
    """Return the mean squared distance of a row to its nearest centre; simulation only.

    Both are in distance units (grid / GRID_UNITS), shapes (n, d) and (k, d).
    """
    nearest = [distances.min(axis=1) for distances in _distances(scaled_rows, scaled_centres)]
    return math.fsum(float(part.sum()) for part in nearest) / len(scaled_rows)


def assign_labels(scaled_rows: FloatArray, scaled_centres: FloatArray) -> LabelArray:
    """Return the nearest centre of each row, the lowest index on ties; simulation only."""
    if not np.isnan(scaled_rows).any():
        return nearest_centres(scaled_rows, scaled_centres)
    parts = [part.argmin(axis=1) for part in _distances(scaled_rows, scaled_centres)]
    return np.concatenate(parts).astype(np.int32)


def _distances(rows: FloatArray, centres: FloatArray) -> Iterator[FloatArray]:
    """Return squared distances, shape (chunk, k) each, over the columns that a row has.

    A result without segments is judged as one centre in the middle of the bounds, which is all
    that is known without data.
    """
    if len(centres) == 0:
        centres = np.zeros((1, rows.shape[1]))
    lacking = np.isnan(rows)
    if not lacking.any():
        return (part for _, part in distance_chunks(rows, centres, chunk_rows=_CHUNK))
    squares = np.square(centres).T
    parts = distance_chunks(np.where(lacking, 0.0, rows), centres, chunk_rows=_CHUNK)
    # Lacking values were taken as 0; what they have added is the square of the centre's own.
    return (part - lacking[at] @ squares for at, part in parts)
