"""Replicates of a synopsis: what may have been instead, for the interval of any figure.

As files of a census carry replicate weights, a synopsis has replicates: for each, a weight of every
row, and values of its columns. A figure is computed once from what was published and once from each
replicate; how far those are from it tells how far it may be off from the truth.

    half width of the 95 % interval = width_95(R) * sqrt(mean over r of (figure_r - figure)^2)

Three things are drawn. Cells: their published users, plus the error of an estimate that was made
again of cells as they may have been (`redrawn.py`). Users within cells, and values: allowances for
what nobody published (`within_cells.py`). Everything is computed from published values, always with
the same seed: it costs no privacy, and two readers of a result have the same intervals.

Weights of replicates may be negative; sums of them are what counts. Cells that were cut because
they could be noise have no pseudo-user; the replicates have a row for them, of published weight
zero, because users may be there.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.synopsis.column_places import ColumnPlace, column_places, find_column
from splitmeans.synopsis.precision import Precision, grid_of
from splitmeans.synopsis.replicates.redrawn import redrawn_grids
from splitmeans.synopsis.replicates.within_cells import WithinCells
from splitmeans.synopsis.synopsis import Synopsis

# So many cells that were cut get a row: those where most users may be.
_MOST_CUT_CELLS = 4000
_SEED = 2026
NORMAL_95 = 1.96


def width_95(n: int) -> float:
    """Return half the width of a 95 % interval over a root mean square of n replicates.

    1.96 for many; a little more for few, as Student's t has it (within 0.3 % from 20 on).
    """
    return NORMAL_95 * (1 + 1.25 / n)


# A figure, or several: from the values of columns by name, and weights of rows.
Statistic: TypeAlias = "Callable[[Callable[[str], FloatArray], FloatArray], FloatArray | float]"


@dataclass(frozen=True, kw_only=True, eq=False)
class Replicates:
    """Replicates of one synopsis.

    Attributes:
        synopsis: Its rows: the published nodes in their order, then rows of weight zero for cells
            that were cut.
        cell_weights: Weights of all rows in every replicate as far as cells go, shape (rows, R).
        published: How many of the rows were published.
    """

    synopsis: Synopsis
    cell_weights: FloatArray
    published: int
    within: WithinCells

    @property
    def n(self) -> int:
        """R, how many replicates there are: 50, or 20 and more for large grids."""
        return int(self.cell_weights.shape[1])

    def weights(self, columns: Iterable[str] | None = None) -> FloatArray:
        """Return the weight of every row in every replicate, shape (rows, R).

        Args:
            columns: The columns that a figure is about: what is not known of their values within
                cells is in the weights. All of them if not given, which is wider.
        """
        places = (
            self._places
            if columns is None
            else tuple(find_column(self._places, name) for name in columns)
        )
        return self._weights(places)

    @functools.lru_cache(maxsize=4)  # noqa: B019  a synopsis and its replicates go together
    def _weights(self, places: tuple[ColumnPlace, ...]) -> FloatArray:
        ordered = tuple(sorted(set(places), key=lambda place: place.feature))
        found = self.cell_weights.copy()
        found[: self.published] *= 1 + self.within.factors(ordered)
        found.flags.writeable = False
        return found

    def values(self, column: str) -> FloatArray:
        """Return the values of a column of numbers in every replicate, own units, shape (rows, R).

        They differ from the published ones by what the resolution of the column leaves open.
        """
        return self._values(find_column(self._places, column))

    @functools.lru_cache(maxsize=8)  # noqa: B019
    def _values(self, place: ColumnPlace) -> FloatArray:
        assert self.synopsis.labels is not None
        labels = self.synopsis.labels[:, place.party].astype(np.int64)
        moved = self.within.moved(place, self._nodes[:, place.feature], labels)
        # Wherever they are, they are whole numbers if the column is one of those.
        return np.rint(moved) if place.whole else moved

    @functools.cached_property
    def _places(self) -> tuple[ColumnPlace, ...]:
        return column_places(self.synopsis)

    @functools.cached_property
    def _nodes(self) -> FloatArray:
        return self.synopsis.nodes

    def errors(self, statistic: Statistic, *, columns: Iterable[str]) -> FloatArray:
        """Return how far a figure is from the published one in every replicate, shape (R, ...).

        Args:
            statistic: Called with a function that returns the values of a column by its name, and
                the weights of all rows. A column of categories has its shares by category, shape
                (rows, categories). It returns a number, or an array of always the same shape.
            columns: The columns that it asks for.
        """
        names = tuple(columns)
        weights = self.weights(names)
        figure = np.asarray(statistic(self._published_values, self.synopsis.weights), dtype=float)
        found = np.empty((self.n, *figure.shape))
        for draw in range(self.n):
            here = functools.partial(self._replicate_values, draw=draw)
            found[draw] = np.asarray(statistic(here, weights[:, draw])) - figure
        return found

    def half_width(self, statistic: Statistic, *, columns: Iterable[str]) -> FloatArray:
        """Return half the width of the 95 % interval of a figure; see `errors`.

        A figure that is no number in some replicate, such as a mean of nobody, has none: NaN.
        """
        return half_width(self.errors(statistic, columns=columns))

    def _published_values(self, column: str) -> FloatArray:
        place = find_column(self._places, column)
        if place.levels:
            return self._nodes[:, place.features]
        return self._nodes[:, place.feature]

    def _replicate_values(self, column: str, *, draw: int) -> FloatArray:
        place = find_column(self._places, column)
        if place.levels:
            return self._nodes[:, place.features]
        return self._values(place)[:, draw]


def half_width(errors: FloatArray) -> FloatArray:
    """Return half the width of the 95 % interval from errors of replicates, shape (R, ...)."""
    # In parts of the largest: squares of very large or small numbers are no floats.
    largest = np.abs(errors).max(axis=0)
    parts = errors / np.where(largest > 0, largest, 1.0)
    return np.asarray(width_95(len(errors)) * largest * np.sqrt(np.mean(np.square(parts), axis=0)))


def make_replicates(synopsis: Synopsis, precision: Precision) -> Replicates:
    """Draw the replicates of a synopsis with places; see the head of the file."""
    assert synopsis.labels is not None
    rng = np.random.default_rng(_SEED)
    flat = np.ravel_multi_index(tuple(synopsis.labels.T), precision.shape)
    grid = grid_of(synopsis, precision.shape).ravel()
    used = np.flatnonzero(grid > 0)
    draws = redrawn_grids(precision, grid.reshape(precision.shape), rng=rng)
    errors = np.stack([(one.estimate - one.users).ravel() for one in draws], axis=1)
    cut = _cut_cells(grid, errors)
    kept = errors[used]
    # What may be in cells without a row is spread over the others, so that the total stays right.
    rest = errors.sum(axis=0) - kept.sum(axis=0) - errors[cut].sum(axis=0)
    kept += np.outer(grid[used] / max(float(grid.sum()), 1e-12), rest)

    of_node = np.searchsorted(used, flat)
    empty = grid[flat] <= 0
    of_node[empty] = 0
    share = np.where(empty, 0.0, synopsis.weights / np.maximum(grid[flat], 1e-300))
    nodes = share[:, np.newaxis] * (grid[used][:, np.newaxis] + kept)[of_node]
    return Replicates(
        synopsis=_with_cut_cells(synopsis, precision, cut, rng=rng),
        cell_weights=np.concatenate([nodes, errors[cut]]),
        published=len(synopsis.weights),
        within=WithinCells(
            synopsis=synopsis,
            precision=precision,
            cells=np.unique(flat, return_inverse=True)[1].astype(np.int64).ravel(),
        ),
    )


def _cut_cells(grid: FloatArray, errors: FloatArray) -> IntArray:
    """Return cells without published users where most may be."""
    squares = np.where(grid > 0, 0.0, np.square(errors).sum(axis=1))
    order = np.argsort(-squares, kind="stable")[:_MOST_CUT_CELLS]
    return np.sort(order[squares[order] > 0])


def _with_cut_cells(
    synopsis: Synopsis, precision: Precision, cut: IntArray, *, rng: np.random.Generator
) -> Synopsis:
    """Return the synopsis with a row of weight zero for each of these cells.

    It has at each party the place of some pseudo-user of that local cluster, or is at its centre.
    """
    assert synopsis.labels is not None
    assert synopsis.centres is not None
    labels = np.stack(np.unravel_index(cut, precision.shape), axis=1).astype(np.int32)
    parts = []
    for party, own, of_node in zip(synopsis.party_names, labels.T, synopsis.labels.T, strict=True):
        places = synopsis.local_centres(party)[own]
        columns = synopsis.columns_of(party)
        for label in np.unique(own):
            there, here = np.flatnonzero(of_node == label), np.flatnonzero(own == label)
            if len(there):
                chosen = rng.choice(there, size=len(here))
                places[here] = synopsis.scaled_nodes[chosen, columns]
        parts.append(places)
    found = dataclasses.replace(
        synopsis,
        scaled_nodes=np.concatenate([synopsis.scaled_nodes, np.concatenate(parts, axis=1)]),
        weights=np.concatenate([synopsis.weights, np.zeros(len(cut))]),
        labels=np.concatenate([synopsis.labels, labels]),
        precision=None,
    )
    found.__dict__["whole_features"] = synopsis.whole_features
    return found
