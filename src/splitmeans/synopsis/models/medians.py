"""k-medians on a synopsis: centres that the users of a segment are nearest to in absolute terms.

The centre of a segment has the median of each column of numbers, and of each column of categories
the commonest one: far values pull it less than a mean. A distance is the sum of absolute
differences; another category counts as much as the two ends of a column of numbers of the same
weight. Found on published nodes, so it costs no privacy, for any k.
"""

import functools
from dataclasses import dataclass

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kmeans.weighted_kmeans import weighted_kmeans
from splitmeans.study.features import ONE_HOT_WEIGHT, to_own_units
from splitmeans.synopsis.models.borders import segments_of
from splitmeans.synopsis.models.model_users import ModelUsers, model_users
from splitmeans.synopsis.synopsis import Synopsis

_STARTS = 5
_MOST_STEPS = 50
_CHUNK_NUMBERS = 2**18


@dataclass(frozen=True, kw_only=True, eq=False)
class Medians:
    """Segments around medians, the largest first; every one has users.

    Attributes:
        synopsis: What they were found on.
        scaled_centres: Centres in distance units, shape (k, D). k is what was asked for, or fewer
            if fewer places have users.
        sizes: Estimated users of each, shape (k,).
        loss: Mean absolute distance of a user to the nearest centre, in distance units.
    """

    synopsis: Synopsis
    scaled_centres: FloatArray
    sizes: FloatArray
    loss: float

    def __repr__(self) -> str:
        return f"<Medians of {self.k} segments: mean distance {self.loss:.4g}>"

    @property
    def k(self) -> int:
        """How many segments there are."""
        return len(self.sizes)

    @property
    def centres(self) -> FloatArray:
        """Centres in the columns' own units, shape (k, D); one category of a column has 1."""
        features = tuple(feature for group in self.synopsis.features for feature in group)
        return to_own_units(features, self.scaled_centres)

    @functools.cached_property
    def borders(self) -> "NearestMedian":
        """How a place is told its segment."""
        factors = distance_factors(self.synopsis)
        return NearestMedian(points=self.scaled_centres * factors, factors=factors)

    @functools.cached_property
    def of_node(self) -> IntArray:
        """The segment of each node of the synopsis, shape (nodes,)."""
        return segments_of(self.borders, self.synopsis.scaled_nodes)


@dataclass(frozen=True, kw_only=True, eq=False)
class NearestMedian:
    """Segments of k-medians: the centre at the least sum of absolute differences.

    Attributes:
        points: Centres times the factors, shape (k, D).
        factors: By how much a feature counts, see `distance_factors`.
    """

    points: FloatArray
    factors: FloatArray

    @property
    def n_segments(self) -> int:
        """How many segments there are."""
        return len(self.points)

    def placed(self, points: FloatArray, columns: slice = slice(None)) -> FloatArray:
        """Return points as distances see them."""
        return points * self.factors[columns]

    def distances(self, places: FloatArray, points: FloatArray) -> FloatArray:
        """Return sums of absolute differences."""
        return absolute_distances(places, points)

    def column_distances(self, places: FloatArray, point: FloatArray) -> FloatArray:
        """Return absolute differences."""
        return np.asarray(np.abs(places - point))

    def chosen(self, distances: FloatArray) -> IntArray:
        """Return the nearest centre."""
        return np.asarray(distances.argmin(axis=-1), dtype=np.int64)


def distance_factors(synopsis: Synopsis) -> FloatArray:
    """Return by how much the absolute difference of each feature counts, shape (D,).

    Another category differs in two features; with this factor that adds up to the distance of the
    two ends of a number of the same weight.
    """
    factors = np.ones(synopsis.scaled_nodes.shape[1])
    for own in synopsis.level_features:
        factors[own] = ONE_HOT_WEIGHT
    return factors if synopsis.stretch is None else factors * synopsis.stretch


def absolute_distances(places: FloatArray, points: FloatArray) -> FloatArray:
    """Return sums of absolute differences, shape (n, k)."""
    found = np.empty((len(places), len(points)))
    step = max(64, _CHUNK_NUMBERS // max(1, places.shape[1]))
    for start in range(0, len(places), step):
        rows = slice(start, start + step)
        for at, point in enumerate(points):
            found[rows, at] = np.abs(places[rows] - point).sum(axis=1)
    return found


def fit_medians(synopsis: Synopsis, k: int, *, rng: np.random.Generator) -> Medians:
    """Find up to k segments around medians; see `Synopsis.medians`."""
    users = model_users(synopsis, rng=rng)
    factors = distance_factors(synopsis)
    steps = _Steps(users=users, places=users.points * factors)
    fits = [steps.fit(min(k, users.n_places), rng=rng) for _ in range(_STARTS if k > 1 else 1)]
    centres, _ = min(fits, key=lambda fit: fit[1])
    nodes = synopsis.scaled_nodes * factors
    distances = absolute_distances(nodes, centres)
    sizes = np.bincount(distances.argmin(axis=1), weights=synopsis.weights, minlength=len(centres))
    order = np.argsort(-sizes, kind="stable")[: int(np.count_nonzero(sizes > 0))]
    return Medians(
        synopsis=synopsis,
        scaled_centres=centres[order] / factors,
        sizes=np.asarray(sizes[order], dtype=np.float64),
        loss=float(synopsis.weights @ distances.min(axis=1)) / synopsis.total,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Steps:
    """Finds centres by turns: the nearest centre of each place, the medians of its places."""

    users: ModelUsers
    places: FloatArray

    @functools.cached_property
    def _orders(self) -> IntArray:
        """The order of the places in each column of numbers, shape (d, n)."""
        columns = self.places[:, self.users.layout.numbers]
        return np.argsort(columns, axis=0, kind="stable").T.copy()

    def fit(self, k: int, *, rng: np.random.Generator) -> tuple[FloatArray, float]:
        """Return centres, at most k, and their mean distance, from one start by k-means."""
        weights = self.users.weights
        points = self.users.synopsis.seen(self.users.points)
        levels = self.users.layout.categories
        start = weighted_kmeans(points, weights, n_clusters=k, rng=rng, starts=1, levels=levels)
        stretch = self.users.synopsis.stretch
        factors = distance_factors(self.users.synopsis)
        centres = self._valid(start / (1.0 if stretch is None else stretch) * factors)
        least = np.inf
        for _ in range(_MOST_STEPS):
            distances = absolute_distances(self.places, centres)
            nearest = distances.argmin(axis=1)
            loss = float(weights @ distances.min(axis=1)) / self.users.total
            if loss >= least * (1 - 1e-6):
                break
            best, least = centres, loss
            centres = self._medians(nearest, len(centres))
        return best, least

    def _valid(self, centres: FloatArray) -> FloatArray:
        """Return centres with one category, the commonest, in place of shares."""
        found = centres.copy()
        ends = self.users.layout.scales * distance_factors(self.users.synopsis)
        for own in self.users.layout.categories:
            found[:, own] = -ends[own]
            most = centres[:, own].argmax(axis=1)
            found[np.arange(len(found)), own.start + most] = ends[own][most]
        return found

    def _medians(self, nearest: IntArray, k: int) -> FloatArray:
        """Return the centres of places by segment; a segment without any is left out."""
        weights = self.users.weights
        sizes = np.bincount(nearest, weights=weights, minlength=k)
        used = np.flatnonzero(sizes > 0)
        found = np.empty((len(used), self.places.shape[1]))
        # Few segments fit small integers, which are sorted much faster.
        labels = np.searchsorted(used, nearest).astype(np.int16 if k < 2**15 else np.int64)
        ends = np.cumsum(sizes[used])
        for at, order in zip(self.users.layout.numbers, self._orders, strict=True):
            by_segment = order[np.argsort(labels[order], kind="stable")]
            below = np.cumsum(weights[by_segment])
            middles = np.searchsorted(below, ends - sizes[used] / 2)
            found[:, at] = self.places[by_segment[np.minimum(middles, len(below) - 1)], at]
        for own, shares in zip(self.users.layout.categories, self.users.shares, strict=True):
            for level in range(shares.shape[1]):
                found[:, own.start + level] = np.bincount(
                    labels, weights=weights * shares[:, level], minlength=len(used)
                )
        return self._valid(found)
