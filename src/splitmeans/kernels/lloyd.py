"""One step of Lloyd's k-means, and distances for its starts, on weighted points.

Points come by column, shape (d, n): a block of them is compared with one centre after the other,
which the compiler turns into vector instructions without reordering any sum. So results do not
depend on the machine's number of threads.
"""

import numpy as np

from splitmeans._types import FloatArray, LabelArray
from splitmeans.kernels.compiled import kernel

# Points of a block: their distances stay in the processor's nearest cache.
_BLOCK = 512


@kernel
def _step(columns, weights, centres, labels, distances, sums):  # type: ignore[no-untyped-def]
    """Fill `labels` (n,), `distances` (n,) and `sums` (k, d + 1), all OUT; return what changed.

    `columns` is (d, n), `weights` (n,), `centres` (k, d). The weights are in the last
    column of `sums`.
    """
    d, n = columns.shape
    k = centres.shape[0]
    found = np.empty(_BLOCK)
    best = np.empty(_BLOCK)
    nearest = np.empty(_BLOCK, dtype=np.int32)
    changed = 0
    sums[:] = 0.0
    for start in range(0, n, _BLOCK):
        size = min(_BLOCK, n - start)
        for c in range(k):
            found[:size] = 0.0
            for j in range(d):
                column = columns[j, start : start + size]
                centre = centres[c, j]
                for i in range(size):
                    gap = column[i] - centre
                    found[i] += gap * gap
            if c == 0:
                for i in range(size):
                    best[i] = found[i]
                    nearest[i] = 0
            else:
                for i in range(size):
                    closer = found[i] < best[i]
                    best[i] = found[i] if closer else best[i]
                    nearest[i] = c if closer else nearest[i]
        for i in range(size):
            changed += nearest[i] != labels[start + i]
            labels[start + i] = nearest[i]
            distances[start + i] = best[i]
            own = sums[nearest[i]]
            own[d] += weights[start + i]
            for j in range(d):
                own[j] += weights[start + i] * columns[j, start + i]
    return changed


@kernel
def _nearer(columns, candidates, nearest, out):  # type: ignore[no-untyped-def]
    """Fill `out` (c, n) (OUT): `nearest` (n,), or the distance to a candidate if it is less."""
    d, n = columns.shape
    for start in range(0, n, _BLOCK):
        size = min(_BLOCK, n - start)
        for c in range(candidates.shape[0]):
            own = out[c, start : start + size]
            own[:] = 0.0
            for j in range(d):
                column = columns[j, start : start + size]
                centre = candidates[c, j]
                for i in range(size):
                    gap = column[i] - centre
                    own[i] += gap * gap
            for i in range(size):
                own[i] = min(own[i], nearest[start + i])


def lloyd_step(
    columns: FloatArray,
    weights: FloatArray,
    centres: FloatArray,
    *,
    labels: LabelArray,
    distances: FloatArray,
) -> tuple[int, FloatArray, FloatArray]:
    """Assign every point to its nearest centre (lowest index on ties) and add points up.

    Args:
        columns: The points by column, shape (d, n), contiguous.
        weights: Shape (n,).
        centres: Shape (k, d).
        labels: Shape (n,), int32; the assignment before, replaced by the new one.
        distances: Shape (n,), filled with each point's squared distance to its centre.

    Returns:
        How many points changed their centre, the weighted sums of each centre's points, shape
        (k, d), and their weights, shape (k,).
    """
    sums = np.empty((len(centres), len(columns) + 1))
    changed = _step(columns, weights, np.ascontiguousarray(centres), labels, distances, sums)
    return int(changed), sums[:, :-1], sums[:, -1]


def nearer_distances(
    columns: FloatArray, candidates: FloatArray, *, nearest: FloatArray
) -> FloatArray:
    """Return, for each candidate centre, every point's squared distance if it were added.

    Args:
        columns: The points by column, shape (d, n), contiguous.
        candidates: Shape (c, d).
        nearest: Squared distance of each point to its nearest centre so far, shape (n,).
    """
    out = np.empty((len(candidates), columns.shape[1]))
    _nearer(columns, np.ascontiguousarray(candidates), nearest, out)
    return out
