"""Which places of the parties go together, by tables of columns that were counted of the users.

Pseudo-users of a cell have their places put together by chance (`decode/placing.py`). Where columns
of two parties were counted together, persons exchange what they have until their tables are as
counted, as far as a count is more than noise (`counted_tables.py`):

    rows      all columns of a party at once, so that nothing of one party changes
    columns   then single ones, as far as tables of two columns of one party stay as they are: few
              whole rows are left that would agree better with many tables at once

Single columns have the shares that they had. Made from released values only.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kernels.swaps import exchange
from splitmeans.synopsis.counted_tables import CountedTable, believed, finer

# How often each person is tried, with rows and with columns: from forty rows on, and two hundred
# columns, more changes little that can be seen.
_TRIES, _COLUMN_TRIES = 60, 200
# Into how many parts labels of numbers are cut.
PARTS = 3


def coupled(
    labels: IntArray,
    parts: IntArray,
    *,
    parties: IntArray,
    tables: Sequence[CountedTable],
    rng: np.random.Generator,
) -> IntArray:
    """Return for each column whose value goes with each person, shape (c, n).

    Args:
        labels: Labels of persons, each for equally many users, in all columns, shape (n, c); the
            last column of each party is its cluster, and how clusters go together is kept.
        parts: Narrower labels of columns of numbers, see `parts_of`, shape (n, c).
        parties: The party of each column.
        tables: What was counted.
        rng: Draws which exchanges are tried.
    """
    c = labels.shape[1]
    last = [int(np.flatnonzero(parties == party)[-1]) for party in range(int(parties.max()) + 1)]
    clusters = [(i, j) for place, i in enumerate(last) for j in last[place + 1 :]]
    columns = [column for column in range(c) if column not in last]
    within = [(i, j) for i in columns for j in columns if i < j and parties[i] == parties[j]]
    found = {table.columns: believed(_found(labels, table), table) for table in tables}
    wanted = {pair: table.cells for pair, table in found.items()}
    rows = _exchanged(labels, wanted, kept=clusters, movers=parties, tries=_TRIES, rng=rng)[parties]
    # Where a copula was found, parts of labels are columns too, and move with them.
    for pair in [pair for pair, table in found.items() if table.correlation]:
        shape = tuple(PARTS * size for size in found[pair].cells.shape)
        narrow = _cells(parts, *pair, shape=shape)
        wanted[pair[0] + c, pair[1] + c] = finer(found[pair], narrow)
    both = np.concatenate([labels, parts], axis=1)
    moved = np.take_along_axis(both, np.tile(rows, (2, 1)).T, axis=0)
    movers = np.tile(np.arange(c), 2)
    more = _exchanged(moved, wanted, kept=within, movers=movers, tries=_COLUMN_TRIES, rng=rng)
    return np.take_along_axis(rows, more, axis=1)


def parts_of(values: IntArray, labels: IntArray) -> IntArray:
    """Return narrower labels: each is parted into `PARTS` with about equally many persons.

    Args:
        values: Of a column, shape (n,); equal values stay together.
        labels: Which rise with the values, shape (n,).
    """
    ordered = np.sort(values)
    ranks = np.searchsorted(ordered, values) + np.searchsorted(ordered, values, side="right")
    ends = np.concatenate([[0], np.cumsum(np.bincount(labels))])
    inside = (ranks / 2 - ends[labels]) / np.maximum(ends[labels + 1] - ends[labels], 1)
    part = np.clip((PARTS * inside).astype(np.int64), 0, PARTS - 1)
    return np.asarray(PARTS * labels + part)


def _exchanged(
    labels: IntArray,
    wanted: Mapping[tuple[int, int], FloatArray],
    *,
    kept: Sequence[tuple[int, int]],
    movers: IntArray,
    tries: int,
    rng: np.random.Generator,
) -> IntArray:
    """Return which rows go with each person, shape (movers, n).

    Args:
        labels: Labels of persons, shape (n, c).
        wanted: Persons that are to be in each cell, for some pairs of columns.
        kept: Pairs of columns whose cells are to stay as they are.
        movers: Columns with one number move together, shape (c,).
        tries: How often each person is tried.
        rng: Draws which exchanges are tried.
    """
    n, c = labels.shape
    firsts = np.full((c, c), -1, dtype=np.int64)
    strides = np.zeros((c, c), dtype=np.int64)
    parts = [np.zeros(0)]
    at = 0
    for i, j in [*wanted, *kept]:
        found = _cells(labels, i, j, shape=wanted[i, j].shape if (i, j) in wanted else (0, 0))
        firsts[i, j] = firsts[j, i] = at
        strides[i, j], strides[j, i] = found.shape[1], 1
        parts.append((found - wanted.get((i, j), found)).ravel())
        at += found.size
    return exchange(
        labels,
        parties=movers,
        firsts=firsts,
        strides=strides,
        excess=np.concatenate(parts),
        steps=tries * n,
        rng=rng,
    )


def _found(labels: IntArray, table: CountedTable) -> FloatArray:
    return _cells(labels, *table.columns, shape=table.users.shape)


def _cells(labels: IntArray, i: int, j: int, *, shape: tuple[int, ...]) -> FloatArray:
    """Count the persons in each cell of two columns, with so many labels at least."""
    one, other = labels[:, i], labels[:, j]
    rows, columns = max(shape[0], int(one.max()) + 1), max(shape[1], int(other.max()) + 1)
    cells = np.bincount(one * columns + other, minlength=rows * columns)
    return cells.reshape(rows, columns).astype(np.float64)
