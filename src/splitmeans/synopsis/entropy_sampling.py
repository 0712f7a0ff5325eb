"""Maximum entropy by sampling: label vectors whose pairs agree with tables, and no more.

Of all distributions with given pair tables the one of maximum entropy assumes nothing further. It
is proportional to exp(sum over pairs of ties(a, b)). Where the grid can be held, proportional
fitting finds it (`pairs.py`); here it is sampled. In turn, labels of all vectors are drawn anew
under the ties as they are, and a tie is raised where vectors have a pair of labels more rarely than
the table wants, or lowered. So labels need not be independent within a few classes, which real
tables contradict: loan data of sixteen parties, k = 20, exact tables, ratio of losses 1.00; vectors
drawn from 40 classes and weighted to the same tables have 1.13. Post-processing of released tables.
"""

from collections.abc import Mapping

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kernels.redraw import count_pairs, redraw_labels
from splitmeans.synopsis.pooling import Pooling

# Rounds of drawing and mending; from half of them on ties move by less and less. With 24 of them
# losses are a few per mille higher.
_ROUNDS = 40
_STEP = 1.4
_CALMER_AFTER = 4.0
# Added to both numbers of a ratio, in deviations of the noise: a cell that is mostly noise says
# little. And half a vector, below which nothing can be counted.
_DOUBT = 0.25
_LEAST_DOUBT = 0.5
# No label has no user at all, so that its logarithm is finite.
_FLOOR = 1e-9


def max_entropy_labels(
    tables: Mapping[tuple[int, int], FloatArray],
    start: IntArray,
    *,
    deviation: float,
    rng: np.random.Generator,
    pooling: Pooling | None = None,
    shares: FloatArray | None = None,
) -> IntArray:
    """Return as many label vectors as `start` has, shape (n, S).

    Args:
        tables: Users in each cell of each pair i < j, none negative, all with about the same
            positive sum.
        start: Label vectors to begin with, which agree with the tables roughly: how many are of
            segments that are far apart hardly changes.
        deviation: Standard deviation of the noise of the tables' cells, zero if exact.
        rng: Draws labels.
        pooling: Where tables count local clusters in bundles, these; vectors are of clusters then.
        shares: With bundles, the share of users in each cluster of each party, shape (N,).
    """
    n_others = start.shape[1] - 1
    if pooling is None:
        starts, wanted, total = _stacked(tables, n_parties=start.shape[1])
        sizes = np.maximum(wanted.sum(axis=1) / n_others, _FLOOR)
    else:
        assert shares is not None, "tables of bundles do not tell them"
        starts = pooling.starts
        total = float(np.mean([table.sum() for table in tables.values()]))
        wanted = pooling.stacked(tables) / total
        sizes = np.maximum(shares, _FLOOR)
    doubt = max(_DOUBT * deviation / total, _LEAST_DOUBT / len(start))
    between_parties = _between_parties(starts)
    labels = np.array(start, dtype=np.int64)
    # Segments that are far apart freeze early, in the shares that they have in the start. So ties
    # begin as if all others together said what one of them says, which keeps the start together.
    counted = _as_is if pooling is None else pooling.pooled
    by_chance = counted(np.outer(sizes, sizes))
    ties = between_parties * np.log((wanted + doubt) / (by_chance + doubt)) / n_others
    # Every label is tied to those of all others, so a pair moves by more than its own tie.
    step = _STEP / start.shape[1]
    for done in range(_ROUNDS):
        found = counted(count_pairs(labels, starts=starts) / len(labels))
        calm = 1 + max(done - _ROUNDS / 2, 0.0) / _CALMER_AFTER
        ties += between_parties * (step / calm) * np.log((wanted + doubt) / (found + doubt))
        redraw_labels(
            labels,
            sizes=np.log(sizes),
            ties=ties,
            starts=starts,
            uniforms=rng.random(labels.shape),
        )
    return labels


def _as_is(matrix: FloatArray) -> FloatArray:
    return matrix


def _stacked(
    tables: Mapping[tuple[int, int], FloatArray], *, n_parties: int
) -> tuple[IntArray, FloatArray, float]:
    """Return where each party's labels start, all tables as shares in one matrix, and their sum."""
    widths = [0] * n_parties
    for (first, second), table in tables.items():
        widths[first], widths[second] = table.shape
    starts = np.cumsum([0, *widths]).astype(np.int64)
    total = float(np.mean([table.sum() for table in tables.values()]))
    stacked = np.zeros((starts[-1], starts[-1]))
    for (first, second), table in tables.items():
        rows = slice(starts[first], starts[first + 1])
        columns = slice(starts[second], starts[second + 1])
        stacked[rows, columns] = table / total
        stacked[columns, rows] = table.T / total
    return starts, stacked, total


def _between_parties(starts: IntArray) -> FloatArray:
    """Return 1 for two labels of different parties and 0 for two of one, shape (N, N)."""
    party_of = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return np.asarray(party_of[:, np.newaxis] != party_of, dtype=np.float64)
