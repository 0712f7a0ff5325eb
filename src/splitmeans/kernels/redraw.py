"""Gibbs sampling of label vectors: each party's label is drawn anew, given those of the others.

All labels of all parties are numbered through: party l's label a is `starts[l] + a`.
"""

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kernels.compiled import kernel


@kernel
def _redraw(labels, sizes, ties, starts, uniforms):  # type: ignore[no-untyped-def]
    """Replace `labels` (n, S) (INOUT), one party after the other."""
    n, n_parties = labels.shape
    odds = np.empty(sizes.shape[0])
    for user in range(n):
        for party in range(n_parties):
            first, width = starts[party], starts[party + 1] - starts[party]
            for a in range(width):
                odds[a] = sizes[first + a]
            for other in range(n_parties):
                if other != party:
                    row = ties[starts[other] + labels[user, other]]
                    for a in range(width):
                        odds[a] += row[first + a]
            largest = odds[0]
            for a in range(1, width):
                largest = max(largest, odds[a])
            total = 0.0
            for a in range(width):
                total += np.exp(odds[a] - largest)
                odds[a] = total
            mark = uniforms[user, party] * total
            chosen = 0
            while chosen < width - 1 and odds[chosen] <= mark:
                chosen += 1
            labels[user, party] = chosen


@kernel
def _count(labels, starts, counts):  # type: ignore[no-untyped-def]
    """Add to `counts` (N, N) (INOUT) the pairs of labels, those of earlier parties first."""
    n, n_parties = labels.shape
    for user in range(n):
        for party in range(n_parties):
            row = counts[starts[party] + labels[user, party]]
            for other in range(party + 1, n_parties):
                row[starts[other] + labels[user, other]] += 1


def redraw_labels(
    labels: IntArray,
    *,
    sizes: FloatArray,
    ties: FloatArray,
    starts: IntArray,
    uniforms: FloatArray,
) -> None:
    """Draw every label of every vector anew, one party after the other.

    The probability of a label is proportional to exp(its size + its ties to the others' labels).

    Args:
        labels: Label vectors, shape (n, S); replaced.
        sizes: Logarithm of how common each label is, shape (N,).
        ties: How much more than by chance two labels meet, in logarithms, symmetric, shape (N, N).
        starts: Number of each party's first label, and N, shape (S + 1,).
        uniforms: Even draws from [0, 1), shape (n, S).
    """
    _redraw(labels, sizes, ties, starts, uniforms)


def count_pairs(labels: IntArray, *, starts: IntArray) -> IntArray:
    """Return how often two labels of different parties meet, symmetric, shape (N, N).

    Args:
        labels: Label vectors, shape (n, S).
        starts: See `redraw_labels`.
    """
    counts = np.zeros((int(starts[-1]), int(starts[-1])), dtype=np.int64)
    _count(labels, starts, counts)
    return counts + counts.T
