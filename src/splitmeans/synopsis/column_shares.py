"""Shares of single columns by all that was released of them, and rows that have these shares.

A party's points have its columns as its histograms say. Tables of two columns tell the same shares
again: each column is in a table with every column of the other parties, and all of them together
are often more exact than the histograms. Rows are weighted until their columns have the mean of
both, by how exact they are, and drawn anew. Made from released values only.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kmeans.draws import draw_evenly
from splitmeans.synopsis.counted_tables import CountedTable

_ROUNDS = 10
# A weight changes by no more than this factor at a column: labels of few rows are left alone.
_MOST = 10.0


def shares_of_columns(
    labels: IntArray, tables: Sequence[CountedTable], *, deviations: FloatArray
) -> dict[int, FloatArray]:
    """Return the share of each label, for every column that is in a table with users.

    Args:
        labels: Labels of persons in all columns, shape (n, c).
        tables: What was counted.
        deviations: Standard deviation of the noise that the persons' shares have, in users of a
            label, shape (c,).
    """
    sums: dict[int, FloatArray] = {}
    precisions: dict[int, float] = {}
    for table in tables:
        if table.users.sum() <= 0:
            continue
        for side, column in enumerate(table.columns):
            own = table.users.sum(axis=1 - side)
            if column not in sums:
                precisions[column] = float(deviations[column]) ** -2
                here = np.bincount(labels[:, column], minlength=len(own))[: len(own)]
                sums[column] = precisions[column] * here / max(int(here.sum()), 1)
            precision = 1 / (table.deviation**2 * table.users.shape[1 - side])
            sums[column] = sums[column] + precision * own / own.sum()
            precisions[column] += precision
    found = {}
    for column, total in sums.items():
        shares = np.maximum(total / precisions[column], 0.0)
        found[column] = shares / shares.sum()
    return found


def rows_with_shares(
    labels: IntArray,
    *,
    parties: IntArray,
    shares: Mapping[int, FloatArray],
    rng: np.random.Generator,
) -> IntArray:
    """Return for each party which of its rows each person gets, shape (parties, n).

    Persons keep their rows as far as the shares allow it. Who cannot gets a row of the same local
    cluster, but for one or two at the seams.

    Args:
        labels: Labels of persons in all columns, shape (n, c); the last column of each party is
            its cluster.
        parties: The party of each column.
        shares: For some columns the share that each label is to have.
        rng: Draws.
    """
    n = len(labels)
    found = []
    for party in range(int(parties.max()) + 1):
        own = np.flatnonzero(parties == party)
        clusters = labels[:, own[-1]]
        weights = np.ones(n)
        wanted = [(labels[:, i], n * shares[i]) for i in own.tolist() if i in shares]
        wanted.append((clusters, np.bincount(clusters).astype(np.float64)))
        for _ in range(_ROUNDS):
            for at, sizes in wanted:
                now = np.bincount(at, weights=weights, minlength=len(sizes))
                # What a table does not count, as who has no value, stays as it is.
                goal = np.concatenate([sizes, now[len(sizes) :]])
                ratios = np.divide(goal, now, out=np.ones_like(now), where=now > 0)
                weights = weights * np.clip(ratios, 1 / _MOST, _MOST)[at]
        found.append(_redrawn(weights, clusters, rng=rng))
    return np.stack(found)


def _redrawn(weights: FloatArray, clusters: IntArray, *, rng: np.random.Generator) -> IntArray:
    """Return whose row each person gets, drawn by weight, of the same cluster; most keep theirs."""
    n = len(weights)
    order = np.lexsort((rng.random(n), clusters))
    times = np.bincount(order[draw_evenly(weights[order], n, rng=rng)], minlength=n)
    taken = np.arange(n)
    lacking = order[times[order] == 0]
    spare = np.repeat(order, np.maximum(times[order] - 1, 0))
    # Both are in the order of clusters; within one, chance decides.
    spare = spare[np.lexsort((rng.random(len(spare)), clusters[spare]))]
    taken[lacking] = spare
    return taken
