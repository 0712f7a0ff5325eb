"""How a segment is told from distances to points: what k-means, medians and trees differ in.

Distances add up over columns. So a place of which the parties' columns are known apart, as a cell
of the grid is, or a row of one party with what the synopsis says of the others, has its segment by
adding the parts and looking where they are least.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kmeans.distances import CHUNK_ROWS, squared_distances
from splitmeans.synopsis.synopsis import Synopsis


class Borders(Protocol):
    """Where segments end."""

    @property
    def points(self) -> FloatArray:
        """The points that distances are to, as `distances` takes them, shape (p, D)."""

    @property
    def n_segments(self) -> int:
        """How many segments there are."""

    def placed(self, points: FloatArray, columns: slice = slice(None)) -> FloatArray:
        """Return points in distance units, with these columns, as distances see them."""

    def distances(self, places: FloatArray, points: FloatArray) -> FloatArray:
        """Return distances of places to points over the columns that both have, shape (n, p)."""

    def column_distances(self, places: FloatArray, point: FloatArray) -> FloatArray:
        """Return the part of every column in the distance to one point, shape (n, columns)."""

    def chosen(self, distances: FloatArray) -> IntArray:
        """Return the segment of each place, from distances with points on the last axis."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NearestCentre:
    """Segments of k-means: the centre at the least squared distance.

    Attributes:
        synopsis: Whose distances they are.
        points: Centres as the final k-means sees them, shape (k, D).
    """

    synopsis: Synopsis
    points: FloatArray

    @property
    def n_segments(self) -> int:
        """How many segments there are."""
        return len(self.points)

    def placed(self, points: FloatArray, columns: slice = slice(None)) -> FloatArray:
        """Return points as the final k-means sees them."""
        return self.synopsis.seen(points, columns)

    def distances(self, places: FloatArray, points: FloatArray) -> FloatArray:
        """Return squared distances."""
        return squared_distances(places, points)

    def column_distances(self, places: FloatArray, point: FloatArray) -> FloatArray:
        """Return squared differences."""
        return np.asarray(np.square(places - point))

    def chosen(self, distances: FloatArray) -> IntArray:
        """Return the nearest centre."""
        return np.asarray(distances.argmin(axis=-1), dtype=np.int64)


def nearest_centre(synopsis: Synopsis, scaled_centres: FloatArray) -> NearestCentre:
    """Return the borders of segments with these centres in distance units."""
    return NearestCentre(synopsis=synopsis, points=synopsis.seen(scaled_centres))


def segments_of(borders: Borders, scaled_points: FloatArray) -> IntArray:
    """Return the segment of each point in distance units, shape (n,)."""
    parts = [
        borders.chosen(borders.distances(borders.placed(part), borders.points))
        for part in _chunks(scaled_points)
    ]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _chunks(points: FloatArray) -> Sequence[FloatArray]:
    return [points[start : start + CHUNK_ROWS] for start in range(0, len(points), CHUNK_ROWS)]
