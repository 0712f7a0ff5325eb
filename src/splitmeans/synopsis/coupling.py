"""Which places of the parties go together, by tables of columns that were counted of the users.

Pseudo-users of a cell have their places put together by chance (`pseudo_users.py`). Where columns
of two parties were counted together, persons exchange places until their tables are as counted, as
far as a count is more than noise. Every party's places stay, so single columns and what one party's
columns have in common stay too. Made from released values only.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kernels.swaps import exchange
from splitmeans.kmeans.trust import trusted

# How often each person is tried: from forty on, more changes nothing that can be seen.
_TRIES = 60


class CountedTable(NamedTuple):
    """Two columns of different parties, counted together.

    Attributes:
        columns: Which two of all columns.
        users: Users in each cell, with noise, shape (labels of the one, labels of the other).
        deviation: Standard deviation of the noise; 0 for what is to stay as it is.
    """

    columns: tuple[int, int]
    users: FloatArray
    deviation: float


def coupled(
    labels: IntArray,
    *,
    parties: IntArray,
    tables: Sequence[CountedTable],
    rng: np.random.Generator,
) -> IntArray:
    """Return for each party which of its rows goes with each person, shape (parties, n).

    Args:
        labels: Labels of persons, each for equally many users, in all columns, shape (n, c); the
            last column of each party is its cluster, and how clusters go together is kept.
        parties: The party of each column.
        tables: What was counted.
        rng: Draws which exchanges are tried.
    """
    n, c = labels.shape
    widths = labels.max(axis=0) + 1
    firsts = np.full((c, c), -1, dtype=np.int64)
    strides = np.zeros((c, c), dtype=np.int64)
    parts: list[FloatArray] = []
    at = 0
    for table in [*tables, *_clusters(labels, parties)]:
        (i, j), counted = table.columns, table.users
        widths[[i, j]] = np.maximum(widths[[i, j]], counted.shape)
        found = np.zeros((widths[i], widths[j]))
        np.add.at(found, (labels[:, i], labels[:, j]), 1.0)
        firsts[i, j] = firsts[j, i] = at
        strides[i, j], strides[j, i] = widths[j], 1
        parts.append((found - _wanted(found, counted, deviation=table.deviation)).ravel())
        at += found.size
    return exchange(
        labels,
        parties=parties,
        firsts=firsts,
        strides=strides,
        excess=np.concatenate(parts),
        steps=_TRIES * n,
        rng=rng,
    )


def _wanted(found: FloatArray, counted: FloatArray, *, deviation: float) -> FloatArray:
    """Return what a table should be: as found, and further as far as counts are off by more."""
    if not deviation or counted.sum() <= 0:
        return found
    rows, columns = counted.shape
    # As many persons as there are, in labels that they can have.
    seen = found[:rows, :columns]
    scale = float(found.sum() / counted.sum())
    off = counted * scale - seen
    # Exchanges leave sums over rows and columns alone, so what is off there is no aim.
    off = off - off.mean(axis=1, keepdims=True) - off.mean(axis=0, keepdims=True) + off.mean()
    deviation = deviation * scale
    trust = trusted(seen.ravel(), (seen + off).ravel(), deviation=deviation).reshape(seen.shape)
    wanted = found.copy()
    wanted[:rows, :columns] = np.maximum(seen + trust * off, 0.0)
    return wanted


def _clusters(labels: IntArray, parties: IntArray) -> list[CountedTable]:
    """Return the tables of clusters, which are to stay as they are."""
    last = [int(np.flatnonzero(parties == party)[-1]) for party in range(int(parties.max()) + 1)]
    return [
        CountedTable(columns=(i, j), users=np.zeros((1, 1)), deviation=0.0)
        for place, i in enumerate(last)
        for j in last[place + 1 :]
    ]
