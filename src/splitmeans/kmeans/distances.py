"""Squared distances between pseudo-points and centres, a chunk of points at a time."""

from collections.abc import Iterator

import numpy as np

from splitmeans._types import FloatArray

# Points handled at a time: a grid may have ten million of them.
CHUNK_ROWS = 65_536

# Differences held at a time: so many stay in a processor's cache until they are added up.
_BLOCK = 32_768


def squared_distances(points: FloatArray, centres: FloatArray) -> FloatArray:
    """Return the squared distance of each point to each centre, shape (n, k).

    From differences, not from the expanded square: no cancellation near a centre.
    """
    distances = np.empty((len(points), len(centres)))
    step = max(1, _BLOCK // max(1, points.shape[1]))
    differences = np.empty((min(step, len(points)), points.shape[1]))
    for start in range(0, len(points), step):
        block = points[start : start + step]
        part = differences[: len(block)]
        for place, centre in enumerate(centres):
            np.subtract(block, centre, out=part)
            np.multiply(part, part, out=part)
            distances[start : start + step, place] = part.sum(axis=1)
    return distances


def distance_chunks(
    points: FloatArray, centres: FloatArray, *, chunk_rows: int = CHUNK_ROWS
) -> Iterator[tuple[slice, FloatArray]]:
    """Yield which points are meant and their squared distances, shape (chunk, k)."""
    for start in range(0, len(points), chunk_rows):
        rows = slice(start, start + chunk_rows)
        yield rows, squared_distances(points[rows], centres)


def nearest_distance(points: FloatArray, centres: FloatArray) -> FloatArray:
    """Return the squared distance of each point to its nearest centre, shape (n,)."""
    parts = [distances.min(axis=1) for _, distances in distance_chunks(points, centres)]
    return np.concatenate(parts)
