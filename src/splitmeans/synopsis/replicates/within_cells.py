"""What is not known of users within cells: allowances, drawn anew in every replicate.

A cell says how many users it has. How they lie in it is told by the parties' released points, up
to noise and the width of the bins that points were made from; that places of different parties are
independent within a cell is assumed, and real tables contradict it. Nothing published says how far
that is off, so it is drawn, with the sizes below. They were measured on tables whose truth is known
and widened until intervals held (docs/intervals.md); a table may be worse.

Every draw has a seed of its own, by what it is for: the same columns have the same replicates.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from splitmeans._types import FloatArray, IntArray
from splitmeans.synopsis.column_places import ColumnPlace
from splitmeans.synopsis.precision import Precision
from splitmeans.synopsis.synopsis import Synopsis

Factors = npt.NDArray[np.float32]

# How much more or less often than published low, outer and skewed values of a column are within a
# local cluster, as coefficients of Legendre polynomials of their rank; and the first in common for
# all clusters of a party.
_SHAPE = (0.15, 0.1, 0.1)
_COMMON_SHAPE = 0.05

# Correlation of ranks within cells, beyond the published one: between columns of two parties, whose
# points are drawn together by chance, and of one party, whose points follow its released
# correlation. All cells have the same in one replicate: dependence has its sign everywhere. Sums
# over many columns are bounded, or they would drown what is asked.
_DEPENDENCE = 0.4
_OWN_DEPENDENCE = 0.25
_MOST_DEPENDENCE = 12.0

# A value may be elsewhere near by, with all values around it: a table of whole numbers has atoms
# that points only show as wide as a bin of their histogram, or as the moves of a local cluster have
# smeared them: so many of its deviations. Half of that width, one standard deviation.
_MOVED_BINS = 0.5
_SMEARED = 0.5
# Where a column has atoms far apart, seen by bins that differ much from their neighbours, points
# of an atom are spread over some bins and users may all be on either side of a bound beside it:
# such columns move by more, and so many bins together, in widths of a bin. From the first
# unevenness on, and in full from the second: smooth columns had 0.15 to 0.3, skewed ones up to 0.5,
# atoms 0.35 to 1.3.
_MOVED_ATOMS, _ATOM = 1.1, 2.5
_UNEVEN = (0.2, 0.5)
# And the values of a local cluster may be off together, in deviations of the cluster's values.
_MOVED_CLUSTER = 0.1

# Lighter pseudo-users than this stand for chance alone.
_LEAST_USER = 0.05

_SEED = 2026
_SHAPES, _DEPENDENCES, _CHANCE, _MOVES = range(4)


@dataclass(frozen=True, kw_only=True, eq=False)
class WithinCells:
    """Draws for the nodes of one synopsis.

    Attributes:
        synopsis: The published nodes, each with a cell.
        precision: What is known of its errors.
        cells: The cell of each node, shape (nodes,), numbered from 0.
    """

    synopsis: Synopsis
    precision: Precision
    cells: IntArray

    def factors(self, places: Sequence[ColumnPlace]) -> Factors:
        """Return by what every weight is multiplied, less 1, shape (nodes, replicates).

        The users of every cell stay as they are.

        Args:
            places: The columns that are asked for; what is not known of others is left out.
        """
        weights = self.synopsis.weights
        n_draws = self.precision.n_draws
        chance = np.sqrt(1 + 1 / np.maximum(weights, _LEAST_USER)).astype(np.float32)
        found = self._rng(_CHANCE).standard_normal((len(weights), n_draws), dtype=np.float32)
        found *= chance[:, np.newaxis]
        ranks, owners, parties = [], [], []
        for place in places:
            labels = self._labels(place)
            for feature in range(place.features.start, place.features.stop):
                rank = _ranks(self.synopsis.scaled_nodes[:, feature], labels, weights)
                self._add_shapes(found, rank, labels, place=place, feature=feature)
                ranks.append(rank)
                owners.append(place.feature)
                parties.append(place.party)
        if ranks:
            self._add_dependence(
                found, np.stack(ranks, axis=1), owners=np.array(owners), parties=np.array(parties)
            )
        return _centred(found, weights, self.cells)

    def _add_shapes(
        self, found: Factors, rank: Factors, labels: IntArray, *, place: ColumnPlace, feature: int
    ) -> None:
        """Tilt the ranks within every local cluster; changes `found` (INOUT)."""
        rng = self._rng(_SHAPES, feature)
        n_draws = self.precision.n_draws
        size = (self.precision.shape[place.party], n_draws)
        common = _COMMON_SHAPE * rng.standard_normal(n_draws, dtype=np.float32)
        for degree, shape in enumerate(_polynomials(rank)):
            tilt = _SHAPE[degree] * rng.standard_normal(size, dtype=np.float32)
            if degree == 0:
                tilt += common
            found += shape[:, np.newaxis] * tilt[labels]

    def _add_dependence(
        self, found: Factors, ranks: Factors, *, owners: IntArray, parties: IntArray
    ) -> None:
        """Tilt products of ranks of two columns; changes `found` (INOUT)."""
        own = parties[:, np.newaxis] == parties
        size = np.where(own, _OWN_DEPENDENCE, _DEPENDENCE).astype(np.float32)
        # Categories of one column exclude each other: nothing is left open there.
        size[owners[:, np.newaxis] == owners] = 0.0
        size = np.triu(size)
        most = float(np.square(size).sum())
        size *= min(1.0, np.sqrt(_MOST_DEPENDENCE / most)) if most > 0 else 1.0
        first = np.sqrt(3.0) * ranks
        rng = self._rng(_DEPENDENCES, *(int(owner) for owner in owners))
        for draw in range(self.precision.n_draws):
            ties = size * rng.standard_normal(size.shape, dtype=np.float32)
            found[:, draw] += np.einsum("ij,ij->i", first @ ties, first)

    def moved(self, place: ColumnPlace, values: FloatArray, labels: IntArray) -> FloatArray:
        """Return where the values of a number may be, shape (rows, replicates).

        Args:
            place: The column.
            values: Its values in own units, shape (rows,); rows may be more than the nodes.
            labels: The local cluster of each row at the column's party.
        """
        rng = self._rng(_MOVES, place.feature)
        n_clusters = self.precision.shape[place.party]
        # In widths of the column: bounds may be at the ends of what a number can be.
        width = place.high - place.low
        places = np.clip(values / width - place.low / width, 0.0, 1.0)
        spread = self._deviations(place, n_clusters=n_clusters)
        smeared = _SMEARED * float(np.median(spread[np.unique(self._labels(place))]))
        bin_width = max(self.precision.resolutions[place.feature], smeared)
        atoms = _MOVED_ATOMS * self._atoms(place)
        moved = np.empty((len(values), self.precision.n_draws))
        for draw in range(self.precision.n_draws):
            step = (_MOVED_CLUSTER * spread * rng.standard_normal(n_clusters))[labels]
            if bin_width > 0:
                step += _MOVED_BINS * bin_width * _together(places, bin_width, rng=rng)
                if atoms > 0:
                    step += atoms * bin_width * _together(places, _ATOM * bin_width, rng=rng)
            shift = np.clip(places + step, 0.0, 1.0) - places
            moved[:, draw] = np.clip(values + shift * width, place.low, place.high)
        return moved

    def _atoms(self, place: ColumnPlace) -> float:
        """Return how far a column looks like atoms, from 0 to 1, by the users of its bins."""
        width = self.precision.resolutions[place.feature]
        if width <= 0:
            return 0.0
        feature = [item for group in self.synopsis.features for item in group][place.feature]
        places = self.synopsis.scaled_nodes[:, place.feature] / (2 * feature.weight) + 0.5
        n_bins = max(3, round(1 / width))
        bins = np.clip((places * n_bins).astype(np.int64), 0, n_bins - 1)
        users = np.bincount(bins, self.synopsis.weights, minlength=n_bins)
        return _unevenness(users.astype(np.float64))

    def _deviations(self, place: ColumnPlace, *, n_clusters: int) -> FloatArray:
        """Return the deviation of the column's values in every local cluster, in its widths."""
        labels, weights = self._labels(place), self.synopsis.weights
        feature = [item for group in self.synopsis.features for item in group][place.feature]
        values = self.synopsis.scaled_nodes[:, place.feature] / (2 * feature.weight)
        users = np.maximum(np.bincount(labels, weights, minlength=n_clusters), 1e-12)
        means = np.bincount(labels, weights * values, minlength=n_clusters) / users
        squares = weights * np.square(values - means[labels])
        return np.asarray(np.sqrt(np.bincount(labels, squares, minlength=n_clusters) / users))

    def _labels(self, place: ColumnPlace) -> IntArray:
        assert self.synopsis.labels is not None
        return self.synopsis.labels[:, place.party].astype(np.int64)

    def _rng(self, *what: int) -> np.random.Generator:
        return np.random.default_rng([_SEED, *what])


def _together(places: FloatArray, width: float, *, rng: np.random.Generator) -> FloatArray:
    """Draw a normal number for each place from 0 to 1, the same for all that share a bin.

    Bins begin anywhere: noise has moved points across the edges that there were.
    """
    bins = (places / width + rng.random()).astype(np.int64)
    steps = rng.standard_normal(int(1 / width) + 3)
    return np.asarray(steps[np.clip(bins, 0, len(steps) - 1)])


def _unevenness(users: FloatArray) -> float:
    """Return how far bins differ from the mean of their neighbours, between `_UNEVEN`, 0 to 1.

    Args:
        users: Of neighbouring bins, three or more.
    """
    total = float(users.sum())
    if total <= 0:
        return 0.0
    around = np.concatenate([users[1:2], users, users[-2:-1]])
    found = float(np.abs(users - (around[:-2] + around[2:]) / 2).sum()) / total
    low, high = _UNEVEN
    return min(max((found - low) / (high - low), 0.0), 1.0)


def _ranks(values: FloatArray, labels: IntArray, weights: FloatArray) -> Factors:
    """Return the rank of each value within its label, from -1 to 1, equal values in the middle."""
    order = np.lexsort((values, labels))
    sorted_labels, sorted_values = labels[order], values[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (np.diff(sorted_labels) != 0) | (np.diff(sorted_values) != 0)
    which = np.cumsum(new) - 1
    mass = np.bincount(which, weights[order])
    label_of = sorted_labels[new]
    totals = np.bincount(labels, weights)
    before = np.cumsum(mass) - mass - (np.cumsum(totals) - totals)[label_of]
    middle = (before + mass / 2) / np.maximum(totals[label_of], 1e-12)
    found = np.empty(len(order), dtype=np.float32)
    found[order] = (2 * middle - 1)[which]
    return found


def _polynomials(rank: Factors) -> tuple[Factors, Factors, Factors]:
    """Return Legendre polynomials of degree 1 to 3, of mean square 1."""
    square = np.square(rank)
    return (
        np.sqrt(np.float32(3)) * rank,
        np.sqrt(np.float32(5)) * (np.float32(1.5) * square - np.float32(0.5)),
        np.sqrt(np.float32(7)) * rank * (np.float32(2.5) * square - np.float32(1.5)),
    )


def _centred(found: Factors, weights: FloatArray, cells: IntArray) -> Factors:
    """Return factors whose mean is zero in every cell."""
    order = np.argsort(cells, kind="stable")
    starts = np.flatnonzero(np.diff(cells[order], prepend=-1))
    users = np.maximum(np.add.reduceat(weights[order], starts), 1e-12)
    light = weights[order].astype(np.float32)[:, np.newaxis]
    means = np.add.reduceat(found[order] * light, starts, axis=0) / users[:, np.newaxis]
    return np.asarray(found - means[cells], dtype=np.float32)
