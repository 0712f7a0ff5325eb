"""Pairs with maximum entropy: the whole grid from the tables of all pairs.

A table of two parties has far fewer cells than the grid, so its noise is small beside its counts.
Of all grids that agree with every pair table, the one of maximum entropy assumes nothing further;
proportional fitting finds it (the aim of the paper's 2PEst, section 5.1, by another road).

Noisy tables contradict each other, so they are cleaned first: least squares makes the cluster
sizes agree, and cells within the noise become zero. That last step matters most. A little weight
spread over combinations that hold no user costs k-means far more than the few users cut off,
because those combinations lie far from every centre.
"""

import itertools
import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from splitmeans import _validate
from splitmeans._types import FloatArray
from splitmeans.errors import ParameterError
from splitmeans.kmeans.simplex import project_to_simplex
from splitmeans.membership.estimator import WeightEstimator
from splitmeans.plan.grid_limits import MAX_CELLS
from splitmeans.synopsis.regions import Regions, where_users_are

PairTables: TypeAlias = dict[tuple[int, int], FloatArray]

# Cells below this many standard deviations of noise are cut. Measured on mixed Gaussian, letter,
# loan and taxi data with noise of 18, 65 and 120 a cell: 2 to 2.5 gives the lowest loss; 1 leaves
# too much spurious weight, and 3 loses rare clusters.
CUT = 2.5
# With two parties the one table is the grid. Its noise cells are far from everybody, and no fit to
# other tables takes users from them: the first of these that leaves most of all users. One limit
# for all tables loses .005 with columns that are mostly zero, and .01 with 20 segments.
_CUTS_OF_TWO, _MOST_USERS = (3.5, 3.0, 2.5, 2.0), 0.95
# A cluster's largest cells are kept, cut or not, until they explain this share of its size and all
# but this many standard deviations of it. Without this rule strong noise cuts every cell of a
# cluster whose users are spread over many, and with them the cluster (letter and loan, noise 120:
# loss ratio 1.26 and 1.14 without, 1.08 and 1.05 with).
_EXPLAINED_SHARE = 0.9
_UNEXPLAINED = 4.0

# Cut tables need not agree exactly, so the fit may never settle; from eight rounds on, more of
# them change the loss by less than the noise does.
_ROUNDS = 10
_TOLERANCE = 1e-4
# Cells cut in different tables may leave no cell of the grid at all, or few. If less than this
# share of the users finds a place, the fit is repeated with cut cells at a small share of an
# average cell. Not always: in separated data that puts users where none are (1.014 against 1.002).
_PLACED = 0.5
_FLOOR = 1e-6
# A grid cell with less than this share of an average one is dropped, which speeds up k-means.
_NEGLIGIBLE = 1e-3
# Margins below this count as zero: dividing by them could overflow.
_GONE = 1e-200


def largest_cut(n_parties: int) -> float:
    """Return below how many standard deviations of noise cells are cut at most."""
    return _CUTS_OF_TWO[0] if n_parties == 2 else CUT


def _cut_of_two(table: FloatArray, *, deviation: float | None, total: float) -> float:
    """Return below how many standard deviations of noise the cells of two parties are cut."""
    for cut in _CUTS_OF_TWO:
        if table[table >= cut * (deviation or 0.0)].sum() >= _MOST_USERS * total:
            break
    return cut


def max_entropy_weights(
    estimator: WeightEstimator,
    *,
    deviation: float | None = None,
    regions: Regions | None = None,
) -> FloatArray:
    """Return the weights of all cells of maximum entropy, shape (k'_1, ..., k'_S), none negative.

    They add up to the number of users that the pair tables agree on. With two parties the one
    table, cleaned, is the grid.

    Args:
        estimator: What the messages say about pairs of clusters, of two parties or more.
        deviation: Standard deviation of the noise of a pair table's cell; None if it is not
            known, and then no cell is cut and negative ones are projected away.
        regions: Of each party's clusters, where cells of regions without users are cut too.
    """
    check_dense(estimator)
    tables, total = clean_pair_tables(estimator, deviation=deviation, regions=regions)
    return fitted_weights(tables, estimator.n_local_clusters, total=total)


def fitted_weights(tables: PairTables, shape: tuple[int, ...], *, total: float) -> FloatArray:
    """Return the weights of maximum entropy with these tables, all of which have this sum."""
    if total == 0:
        return np.zeros(shape)
    weights = _fit(tables, shape, total=total)
    if weights.sum() < _PLACED * total:
        floored = {
            pair: np.maximum(table, _FLOOR * total / table.size) for pair, table in tables.items()
        }
        weights = _fit(floored, shape, total=total)
    weights[weights < _NEGLIGIBLE * total / weights.size] = 0.0
    return np.asarray(weights * (total / weights.sum()))


def clean_pair_tables(
    estimator: WeightEstimator,
    *,
    deviation: float | None = None,
    regions: Regions | None = None,
) -> tuple[PairTables, float]:
    """Return tables of all pairs i < j, none negative, each with the same sum, and that sum.

    Args:
        estimator: What the messages say about pairs of clusters, of two parties or more.
        deviation: See `max_entropy_weights`.
        regions: See `max_entropy_weights`.
    """
    tables = _counted(estimator, deviation=deviation)
    sizes, total = _agree(estimator.n_local_clusters, tables)
    cut = CUT
    if len(sizes) == 2:
        cut = _cut_of_two(tables[0, 1], deviation=deviation, total=total)
        # The sizes are sums of the same noise; no other table confirms them.
        sizes = [np.zeros_like(own) for own in sizes]
    cleaned = {}
    for (i, j), table in tables.items():
        users = None
        if deviation and regions is not None:
            users = where_users_are(table, regions[i], regions[j], deviation=deviation)
        own = sizes[i], sizes[j]
        cleaned[i, j] = _cleaned(table, own, deviation=deviation, total=total, cut=cut, users=users)
    return cleaned, max(total, 0.0)


def clean_tables_apart(estimator: WeightEstimator, *, deviation: float) -> tuple[PairTables, float]:
    """Return tables as `clean_pair_tables` does, where labels differ from table to table.

    A label then has a size of its own in each table, so that tables agree on the total alone.
    """
    tables = _counted(estimator, deviation=deviation)
    total = float(np.mean([table.sum() for table in tables.values()]))
    cleaned = {}
    for pair, table in tables.items():
        table += (total - table.sum()) / table.size
        sizes = table.sum(axis=1), table.sum(axis=0)
        cleaned[pair] = _cleaned(table, sizes, deviation=deviation, total=total)
    return cleaned, max(total, 0.0)


def _counted(estimator: WeightEstimator, *, deviation: float | None) -> PairTables:
    """Return the estimates of all pairs, as copies."""
    check_deviation(deviation)
    pairs = itertools.combinations(range(len(estimator.n_local_clusters)), 2)
    return {pair: np.array(estimator.joint(pair), dtype=np.float64) for pair in pairs}


def _cleaned(
    table: FloatArray,
    sizes: tuple[FloatArray, FloatArray],
    *,
    deviation: float | None,
    total: float,
    cut: float = CUT,
    users: npt.NDArray[np.bool_] | None = None,
) -> FloatArray:
    """Return a table without noise cells and with this sum: its cells above the noise, scaled.

    Cells that are needed to explain the size of a cluster stay, and of those only where regions
    have users, if any has. Without a known deviation, or if nothing stays, negative cells are
    projected away instead.
    """
    if total <= 0:
        return np.zeros(table.shape)
    if deviation:
        rows, columns = (sure_sizes(own, deviation=deviation) for own in sizes)
        kept = table >= cut * deviation
        kept |= explaining(rows, table) | explaining(columns, table.T).T
        if users is not None and (kept & users).any():
            kept &= users
        left = np.where(kept, table, 0.0)
        if left.sum() > 0:
            return np.asarray(left * (total / left.sum()))
    return project_to_simplex(table, total=total)


def _agree(shape: tuple[int, ...], tables: PairTables) -> tuple[list[FloatArray], float]:
    """Make totals and cluster sizes equal in all `tables` (INOUT), by least squares.

    All cells have noise of the same size, so a sum over few cells counts more than one over many.

    Returns:
        The sizes of each party's clusters, and the total.
    """
    total = float(
        np.average(
            [table.sum() for table in tables.values()],
            weights=[1 / table.size for table in tables.values()],
        )
    )
    for table in tables.values():
        table += (total - table.sum()) / table.size
    all_sizes: list[FloatArray] = []
    for party in range(len(shape)):
        # Tables that hold the party, turned so that its clusters are the rows; views, not copies.
        turned = [
            table if pair[0] == party else table.T
            for pair, table in tables.items()
            if party in pair
        ]
        sizes = np.average(
            [table.sum(axis=1) for table in turned],
            axis=0,
            weights=[1 / table.shape[1] for table in turned],
        )
        for table in turned:
            # The shifts add up to zero, so sizes of the other party and the total stay.
            table += ((sizes - table.sum(axis=1)) / table.shape[1])[:, np.newaxis]
        all_sizes.append(sizes)
    return all_sizes, total


def sure_sizes(sizes: FloatArray, *, deviation: float) -> FloatArray:
    """Return how much of each cluster's size its cells must explain, given a cell's noise."""
    return np.minimum(_EXPLAINED_SHARE * sizes, sizes - _UNEXPLAINED * deviation)


def explaining(wanted: FloatArray, table: FloatArray) -> npt.NDArray[np.bool_]:
    """Mark in each row the fewest positive cells that add up to `wanted` (or all of them)."""
    order = np.argsort(-table, axis=1)
    descending = np.take_along_axis(table, order, axis=1)
    before = np.cumsum(descending, axis=1) - descending
    marks = (before < wanted[:, np.newaxis]) & (descending > 0)
    result = np.empty_like(marks)
    np.put_along_axis(result, order, marks, axis=1)
    return result


def _fit(tables: PairTables, shape: tuple[int, ...], *, total: float) -> FloatArray:
    """Scale a uniform grid to one pair table after another until all of them agree with it."""
    weights = np.full(shape, total / math.prod(shape))
    for _ in range(_ROUNDS):
        worst = 0.0
        for pair, target in tables.items():
            others = tuple(axis for axis in range(len(shape)) if axis not in pair)
            margin = weights.sum(axis=others)
            worst = max(worst, float(np.abs(margin - target).sum()))
            # Where the margin is gone there is nothing left to scale.
            ratio = np.divide(target, margin, out=np.zeros_like(target), where=margin > _GONE)
            weights *= np.expand_dims(ratio, others)
        if worst < _TOLERANCE * total:
            break
    return weights


def check_deviation(deviation: float | None) -> None:
    """Check that the standard deviation of a cell's noise is one, where it is known."""
    if deviation is not None:
        _validate.finite(deviation=deviation)
        if deviation < 0:
            raise ParameterError(f"deviation must be >= 0, got {deviation!r}")


def check_dense(estimator: WeightEstimator) -> None:
    """Check that an array over all cells is small enough to build."""
    n_cells = math.prod(estimator.n_local_clusters)
    if n_cells > MAX_CELLS:
        raise ParameterError(
            f"the grid must have at most {MAX_CELLS} cells, got {n_cells}; use fewer local clusters"
        )
