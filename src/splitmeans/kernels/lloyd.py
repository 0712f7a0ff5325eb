"""One step of Lloyd's k-means, and distances for its starts, on weighted points.

Points come by column, shape (d, n): a block of them is compared with one centre after the other,
which the compiler turns into vector instructions without reordering any sum. So results do not
depend on the machine's number of threads.
"""

import numpy as np

from splitmeans._types import FloatArray, IntArray, LabelArray
from splitmeans.kernels.compiled import kernel
from splitmeans.kernels.screen import Single, screen

# Points of a block: their distances stay in the processor's nearest cache.
_BLOCK = 512


@kernel
def _step(columns, weights, centres, nearest, certain, labels, sums):  # type: ignore[no-untyped-def]
    """Fill `labels` (n,) and `sums` (k, d + 1), both OUT; return how many labels changed.

    `columns` is (d, n), `weights` (n,), `centres` (k, d). The weights are in the last column of
    `sums`. Where `nearest` is not certain distances in double precision decide.
    """
    d, n = columns.shape
    changed = 0
    sums[:] = 0.0
    for i in range(n):
        label = nearest[i]
        if not certain[i]:
            least = np.inf
            for c in range(centres.shape[0]):
                distance = 0.0
                for j in range(d):
                    gap = columns[j, i] - centres[c, j]
                    distance += gap * gap
                if distance < least:
                    label, least = np.int32(c), distance
        changed += label != labels[i]
        labels[i] = label
        own = sums[label]
        own[d] += weights[i]
        for j in range(d):
            own[j] += weights[i] * columns[j, i]
    return changed


@kernel
def _own_distances(columns, centres, labels, out):  # type: ignore[no-untyped-def]
    """Fill `out` (n,) (OUT)."""
    out[:] = 0.0
    for j in range(columns.shape[0]):
        for i in range(labels.size):
            gap = columns[j, i] - centres[labels[i], j]
            out[i] += gap * gap


@kernel
def _nearest_of_all(columns, i, centres):  # type: ignore[no-untyped-def]
    """Return the centre nearest to point i in double precision, the lowest index on ties."""
    best = 0
    best_distance = np.inf
    for c in range(centres.shape[0]):
        distance = 0.0
        for j in range(columns.shape[0]):
            gap = columns[j, i] - centres[c, j]
            distance += gap * gap
        if distance < best_distance:
            best, best_distance = c, distance
    return best


@kernel
def _nearest_two(columns, centres, labels, distances):  # type: ignore[no-untyped-def]
    """Fill `labels` (n,) and `distances` (2, n), both OUT."""
    d, n = columns.shape
    found = np.empty(_BLOCK)
    for start in range(0, n, _BLOCK):
        size = n - start if n - start < _BLOCK else _BLOCK
        best, second = distances[0, start:], distances[1, start:]
        own = labels[start:]
        for i in range(size):
            best[i] = np.inf
            second[i] = np.inf
            own[i] = 0
        for c in range(centres.shape[0]):
            for i in range(size):
                found[i] = 0.0
            for j in range(d):
                column = columns[j, start:]
                centre = centres[c, j]
                for i in range(size):
                    gap = column[i] - centre
                    found[i] += gap * gap
            for i in range(size):
                closer = found[i] < best[i]
                other = best[i] if closer else found[i]
                second[i] = other if other < second[i] else second[i]
                best[i] = found[i] if closer else best[i]
                own[i] = c if closer else own[i]


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
                own[i] = own[i] if own[i] < nearest[start + i] else nearest[start + i]


def lloyd_step(
    columns: FloatArray,
    weights: FloatArray,
    centres: FloatArray,
    *,
    single: Single,
    labels: LabelArray,
) -> tuple[int, FloatArray, FloatArray]:
    """Assign every point to its nearest centre (lowest index on ties) and add points up.

    Args:
        columns: The points by column, shape (d, n), contiguous.
        weights: Shape (n,).
        centres: Shape (k, d).
        single: `in_single(columns)`.
        labels: Shape (n,), int32; the assignment before, replaced by the new one.

    Returns:
        How many points changed their centre, the weighted sums of each centre's points, shape
        (k, d), and their weights, shape (k,).
    """
    sums = np.empty((len(centres), len(columns) + 1))
    own = np.ascontiguousarray(centres)
    nearest, certain = np.empty_like(labels), np.empty(labels.shape, dtype=np.bool_)
    screen(single, own, labels=nearest, certain=certain)
    changed = _step(columns, weights, own, nearest, certain, labels, sums)
    return int(changed), sums[:, :-1], sums[:, -1]


def own_distances(columns: FloatArray, centres: FloatArray, *, labels: LabelArray) -> FloatArray:
    """Return each point's squared distance to the centre of its label; arguments as before."""
    out = np.empty(columns.shape[1])
    _own_distances(columns, np.ascontiguousarray(centres), labels, out)
    return out


def nearest_two(
    columns: FloatArray, centres: FloatArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return each point's nearest centre (lowest index on ties) and squared distances of two.

    Args:
        columns: The points by column, shape (d, n), contiguous.
        centres: Shape (k, d), k >= 2.

    Returns:
        Labels, distances of the nearest and of the second nearest centre, each of shape (n,).
    """
    n = columns.shape[1]
    labels, distances = np.empty(n, dtype=np.int64), np.empty((2, n))
    _nearest_two(columns, np.ascontiguousarray(centres), labels, distances)
    return labels, distances[0], distances[1]


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
