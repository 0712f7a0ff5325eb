"""Weights of label vectors whose pairs agree with the tables (raking).

Vectors are weighted until they agree with one table, then with the next, in turns. Post-processing
of released tables.
"""

import math

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.shrinkage import shrinkage
from splitmeans.study.methods import MANY_PARTIES
from splitmeans.synopsis.decode.counted import PairTables
from splitmeans.synopsis.decode.pooling import Pooling

_ROUNDS = 10
# A weight changes by no more than this factor at a pair: cells with few vectors are left alone.
_MOST = 20.0


def shrink(
    tables: PairTables, counted: PairTables, predicted: PairTables, *, deviation: float | None
) -> PairTables:
    """Return tables of many parties between prediction and count, each with its own total.

    Many tables know the classes well, and each has much noise: cells are taken between what the
    classes predict and what was counted, by how far off the classes are beyond the noise (empirical
    Bayes). Tables of few parties stay as they are cleaned.

    Args:
        tables: Cleaned tables.
        counted: Noisy tables without bias.
        predicted: What the classes say of the same cells.
        deviation: Standard deviation of the noise of a cell, where it is known.
    """
    if not deviation or len(tables) < math.comb(MANY_PARTIES, 2):
        return tables
    found: PairTables = {}
    for pair, noisy in counted.items():
        model = predicted[pair]
        off = noisy - model
        weight = shrinkage(off, deviation, sizes=np.maximum(model, 1.0))
        table = np.maximum(model + weight * off, 0.0)
        found[pair] = table * (float(tables[pair].sum()) / max(float(table.sum()), 1e-9))
    return found


def rake(weights: FloatArray, labels: IntArray, tables: PairTables, pooling: Pooling) -> FloatArray:
    """Return weights of label vectors, shape (n,), whose pairs agree with the tables as they can.

    Args:
        weights: Their weights before, all positive.
        labels: Label vectors, shape (n, S).
        tables: Users in each cell of each pair, none negative.
        pooling: Which local clusters are counted together.
    """
    total = float(weights.sum())
    margins = [
        (_cells(labels, pair, width=table.shape[1], pooling=pooling), table.ravel())
        for pair, table in tables.items()
    ]
    for _ in range(_ROUNDS):
        for cells, wanted in margins:
            found = np.bincount(cells, weights=weights, minlength=wanted.size)
            # No ratio is above the most: weights can become too small to divide by.
            found = np.maximum(found, wanted / _MOST)
            ratios = np.divide(wanted, found, out=np.ones(wanted.size), where=found > 0)
            weights = weights * np.maximum(ratios, 1 / _MOST)[cells]
        weights = weights * (total / float(weights.sum()))
    return weights


def _cells(labels: IntArray, pair: tuple[int, int], *, width: int, pooling: Pooling) -> IntArray:
    """Return the cell of each vector in the table of two parties."""
    first, second = pair
    rows = pooling.labels_of(first, second)[labels[:, first]]
    return np.asarray(rows * width + pooling.labels_of(second, first)[labels[:, second]])
