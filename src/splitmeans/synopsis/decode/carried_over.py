"""Pseudo-users of a run of a series: some of them are those of the result before it.

A run counts the users of its cells anew, and its parties release anew how their rows lie within
their clusters. Both are noisy, and which places of two parties go together within a cell nobody
releases. The result before has users of its own, counted with other cells: where theirs cross
those of this run, they tell both. So a cell takes some of its pseudo-users from them. Its number of
users stays what this run counted, so users who come, go or change are followed at once.

Where users of a cluster have moved, old places are wrong. The mean of a cluster's new points and
that of the old users in it differ by noise of a known size; the further they are apart beyond
that, the fewer old users are taken (`_trust`), and none where there were none.

Everything here is computed from values that were released, this run's and those of a published
result: it is post-processing and costs no privacy.
"""

from collections.abc import Callable, Sequence

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kernels.assign import nearest
from splitmeans.kmeans.draws import draw_evenly
from splitmeans.plan.grid_limits import N_POINTS
from splitmeans.synopsis.decode.placing import PseudoUsers
from splitmeans.synopsis.earlier_users import EarlierUsers

# Largest share of a cell's users that are old ones; docs/accuracy.md has what was measured.
MOST_OLD = 0.6
# Means of a cluster that differ by up to so many times what noise explains tell of no change.
_EXPLAINED = 3.0


def place_with_earlier(
    labels: IntArray,
    weights: FloatArray,
    centres: Sequence[IntArray],
    points: Sequence[IntArray],
    *,
    earlier: EarlierUsers,
    deviations: Sequence[float],
    rng: np.random.Generator,
    place: Callable[[FloatArray, int], PseudoUsers],
) -> PseudoUsers:
    """Return pseudo-users of cells, some of them old ones.

    Args:
        labels: The local cluster of each cell at each party, shape (cells, S).
        weights: Users of each cell, zero or more.
        centres: Local centres of each party in grid integers, each of shape (k'_l, d_l).
        points: Synthetic points of each party in grid integers, each of shape (p, d_l).
        earlier: The users of the result before.
        deviations: For each party the noise of a coordinate of a cluster's mean over the spread of
            the cluster, for one of average size.
        rng: Draws which old users stay; nothing is hidden by it.
        place: Makes new pseudo-users of cells, for weights of cells and about how many users.
    """
    total, used = float(weights.sum()), int(np.count_nonzero(weights > 0))
    if total <= 0:
        return place(weights, N_POINTS)
    nearest_ones = [nearest(own, local) for own, local in zip(earlier.places, centres, strict=True)]
    old_labels = np.stack(nearest_ones, axis=1).astype(np.int64)
    cells, old_cells = _numbered(labels, old_labels)
    n_cells = int(max(cells.max(), old_cells.max())) + 1
    users = np.bincount(cells, weights=weights, minlength=n_cells)
    scaled = earlier.weights * (total / float(earlier.weights.sum()))
    there = np.bincount(old_cells, weights=scaled, minlength=n_cells)
    trust = np.ones(n_cells)
    for position, local in enumerate(centres):
        of_cluster = _trust(
            points[position],
            local,
            earlier.places[position],
            old_labels[:, position],
            earlier.weights,
            total=total,
            deviation=deviations[position],
        )
        trust[cells] = np.minimum(trust[cells], of_cluster[labels[:, position]])
    taken = np.minimum(MOST_OLD * trust * users, there)
    n_old = min(round(N_POINTS * float(taken.sum()) / total), N_POINTS - used)
    if n_old <= 0:
        return place(weights, N_POINTS)
    shares = np.divide(taken, there, out=np.zeros(n_cells), where=there > 0)
    drawn = draw_evenly(scaled * shares[old_cells], n_old, rng=rng)
    of_drawn = old_cells[drawn]
    found = np.bincount(of_drawn, minlength=n_cells)
    each = np.divide(taken, found, out=np.zeros(n_cells), where=found > 0)
    left = (
        weights
        * np.divide(users - each * found, users, out=np.zeros(n_cells), where=users > 0)[cells]
    )
    new = place(left, N_POINTS - n_old)
    return PseudoUsers(
        labels=np.concatenate([new.labels, old_labels[drawn]]),
        weights=np.concatenate([new.weights, each[of_drawn]]),
        places=tuple(
            np.concatenate([fresh, own[drawn]])
            for fresh, own in zip(new.places, earlier.places, strict=True)
        ),
    )


def _trust(
    points: IntArray,
    centres: IntArray,
    places: IntArray,
    old_labels: IntArray,
    old_weights: FloatArray,
    *,
    total: float,
    deviation: float,
) -> FloatArray:
    """Return for each cluster of a party how far its old users are where its new points are.

    1 where the means differ by no more than chance explains, and less the further they are apart.
    """
    k = len(centres)
    labels = nearest(points, centres).astype(np.int64)
    counts = np.bincount(labels, minlength=k)
    means = _means(points, labels, np.ones(len(points)), k)
    old_means = _means(places, old_labels, old_weights, k)
    old_counts = np.bincount(old_labels, minlength=k)
    offsets = points - means[labels]
    squares = np.bincount(labels, weights=np.square(offsets).sum(axis=1), minlength=k)
    spreads = squares / np.maximum(counts, 1)
    # The noise on a sum is the same for large and small clusters, that of a mean is not. Both
    # results have it, both are so many points drawn, and other people may be there alike.
    shares = np.maximum(counts, 1) / len(points)
    noise = 2 * points.shape[1] * np.square(deviation / k / shares)
    drawn = 1 / np.maximum(counts, 1) + 1 / np.maximum(old_counts, 1) + 2 / (total * shares)
    # A grid unit in each column is what rounding explains, where all users are at one place.
    explained = _EXPLAINED * spreads * (noise + drawn) + points.shape[1]
    apart = np.square(means - old_means).sum(axis=1)
    known = (counts > 0) & (old_counts > 0)
    return np.where(known, explained / np.maximum(apart, explained), 0.0)


def _means(points: IntArray, labels: IntArray, weights: FloatArray, k: int) -> FloatArray:
    """Return the weighted mean of the points of each label, shape (k, d); zero for nobody."""
    total = np.bincount(labels, weights=weights, minlength=k)
    sums = np.stack(
        [np.bincount(labels, weights=weights * column, minlength=k) for column in points.T], axis=1
    )
    return np.asarray(sums / np.where(total > 0, total, 1.0)[:, np.newaxis])


def _numbered(first: IntArray, second: IntArray) -> tuple[IntArray, IntArray]:
    """Number the label vectors of two lists alike, from 0."""
    both = np.concatenate([first, second]).astype(np.int64)
    numbers = np.zeros(len(both), dtype=np.int64)
    for column in both.T:
        # Anew for each party: a product of all widths may not fit into 64 bits.
        numbers = numbers * (int(column.max()) + 1) + column
        numbers = np.unique(numbers, return_inverse=True)[1].ravel().astype(np.int64)
    return numbers[: len(first)], numbers[len(first) :]
