"""Tables between noise and a model, and weighting label vectors to them.

A few classes cannot say everything that the tables do, and the tables have noise. Each cell of a
pair is taken between what the classes predict and what was counted, by how far off the classes are
beyond the noise (empirical Bayes). Vectors are weighted until their pairs agree with that, one pair
after the other. Post-processing of released tables.
"""

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.membership.bundles import Bundles
from splitmeans.shrinkage import shrinkage
from splitmeans.synopsis.pairs import PairTables

_ROUNDS = 10
# A weight changes by no more than this factor at a pair: cells with few vectors are left alone.
_MOST = 20.0


def between(
    counted: PairTables, predicted: PairTables, *, deviation: float, total: float
) -> PairTables:
    """Return tables between prediction and count, none negative, each with the sum `total`.

    Args:
        counted: Noisy tables without bias.
        predicted: What a model says of the same cells.
        deviation: Standard deviation of the noise of a cell, above zero.
        total: Number of users.
    """
    tables: PairTables = {}
    for pair, noisy in counted.items():
        model = predicted[pair]
        off = noisy - model
        weight = shrinkage(off, deviation, sizes=np.maximum(model, 1.0))
        table = np.maximum(model + weight * off, 0.0)
        tables[pair] = table * (total / max(float(table.sum()), 1e-9))
    return tables


def raked(
    labels: IntArray, weights: FloatArray, tables: PairTables, *, bundles: Bundles | None = None
) -> FloatArray:
    """Return weights of label vectors, shape (n,), whose pairs agree with the tables as they can.

    Args:
        labels: Label vectors, shape (n, S).
        weights: Their weights before, all positive.
        tables: Users in each cell of each pair, none negative.
        bundles: Where vectors are of local clusters and tables count bundles of them, these.
    """
    total = float(weights.sum())
    cells_of = {
        pair: _cells(labels, pair, width=table.shape[1], bundles=bundles)
        for pair, table in tables.items()
    }
    for _ in range(_ROUNDS):
        for pair, table in tables.items():
            cells = cells_of[pair]
            found = np.bincount(cells, weights=weights, minlength=table.size)
            # No ratio is above the most: weights can become too small to divide by.
            found = np.maximum(found, table.ravel() / _MOST)
            ratios = np.divide(table.ravel(), found, out=np.ones(table.size), where=found > 0)
            weights = weights * np.maximum(ratios, 1 / _MOST)[cells]
        weights = weights * (total / float(weights.sum()))
    return weights


def _cells(
    labels: IntArray, pair: tuple[int, int], *, width: int, bundles: Bundles | None
) -> IntArray:
    """Return the cell of each vector in the table of two parties."""
    first, second = pair
    rows, columns = labels[:, first], labels[:, second]
    if bundles is not None:
        rows = bundles.labels_of(first, second)[rows]
        columns = bundles.labels_of(second, first)[columns]
    return np.asarray(rows * width + columns)
