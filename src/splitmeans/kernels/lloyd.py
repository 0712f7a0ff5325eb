"""The loops of weighted k-means (`kmeans/weighted_kmeans.py` says what the arrays are).

Most points keep their centre from one step to the next. The distance to a point's own centre, at
most, and to every other one, at least, stay true when the moves of centres are added and taken off
(Hamerly, "Making k-means even faster", 2010), so only points that this does not settle are compared
with all centres. Centres that moved far are compared with every point instead: after a relocation
all others stay where they are.
"""

import numpy as np

from splitmeans.kernels.compiled import kernel

# Centres that moved farther than this many times the typical move are compared with every point,
# unless they are more than this share of all.
_FAR, _MOST_FAR = 4.0, 0.25


@kernel
def to_rest(  # type: ignore[no-untyped-def]
    numbers,
    places,
    spans,
    weights,
    centres,
    before,
    labels,
    upper,
    lower,
    tolerance,
    most_steps,
):
    """Move centres to the means of their points until they rest; return the loss.

    Args:
        numbers: Shape (n, p).
        places: Shape (n, q).
        spans: Shape (q,).
        weights: Shape (n,).
        centres: INOUT, shape (k, D).
        before: INOUT centres that `labels`, `upper` and `lower` are about, shape (k, D).
        labels: INOUT the nearest centre of each point, shape (n,); -1 where nothing is known.
        upper: INOUT the distance to it at most, shape (n,).
        lower: INOUT the distance to any other at least, shape (n,).
        tolerance: Stop once the squared shifts of all centres add up to no more than this.
        most_steps: Stop after this many steps.
    """
    n, p = numbers.shape
    k, features = centres.shape
    columns = np.empty((features, k))
    lengths, scores = np.empty(k), np.empty(k)
    moves, free = np.empty(k), np.empty(k)
    sums, totals = np.empty((k, features)), np.empty(k)
    far = np.empty(k, dtype=np.int64)
    resting = False
    for step in range(most_steps + 1):
        for c in range(k):
            lengths[c] = 0.0
            for j in range(features):
                columns[j, c] = centres[c, j]
                if j >= p:
                    lengths[c] += centres[c, j] * centres[c, j]
        n_far, first, second, mover = _moved(centres, before, moves, far)
        _half_gaps(centres, free)
        changed = 0
        for i in range(n):
            own = labels[i]
            if own >= 0:
                upper[i] += moves[own]
                lower[i] -= second if own == mover else first
                for place in range(n_far):
                    c = far[place]
                    if c != own:
                        gap = _distance(numbers[i], places[i], spans, centres[c], lengths[c], p)
                        lower[i] = min(lower[i], gap)
                settled = max(lower[i], free[own])
                if upper[i] <= settled:
                    continue
                upper[i] = _distance(numbers[i], places[i], spans, centres[own], lengths[own], p)
                if upper[i] <= settled:
                    continue
            for c in range(k):
                scores[c] = lengths[c]
            for j in range(p):
                value, column = numbers[i, j], columns[j]
                for c in range(k):
                    gap = value - column[c]
                    scores[c] += gap * gap
            for j in range(spans.size):
                column, span = columns[places[i, j]], spans[j]
                for c in range(k):
                    scores[c] += span * (span - 2.0 * column[c])
            best, nearest, next_one = 0, np.inf, np.inf
            for c in range(k):
                if scores[c] < nearest:
                    best, nearest, next_one = c, scores[c], nearest
                elif scores[c] < next_one:
                    next_one = scores[c]
            changed += best != own
            labels[i] = best
            upper[i], lower[i] = np.sqrt(max(nearest, 0.0)), np.sqrt(max(next_one, 0.0))
        if resting or changed == 0 or step == most_steps:
            break
        _add_up(numbers, places, spans, weights, labels, sums, totals)
        shift = _to_means(numbers, places, spans, weights, centres, before, labels, sums, totals)
        resting = shift <= tolerance
    loss = 0.0
    for i in range(n):
        gap = _distance(numbers[i], places[i], spans, centres[labels[i]], lengths[labels[i]], p)
        loss += weights[i] * gap * gap
    return loss


@kernel
def _distance(numbers, places, spans, centre, length, p):  # type: ignore[no-untyped-def]
    square = length
    for j in range(p):
        gap = numbers[j] - centre[j]
        square += gap * gap
    for j in range(spans.size):
        square += spans[j] * (spans[j] - 2.0 * centre[places[j]])
    return np.sqrt(max(square, 0.0))


@kernel
def _moved(centres, before, moves, far):  # type: ignore[no-untyped-def]
    """OUT how far each centre moved, and those that moved far.

    Returns how many moved far, and of the others the largest move, the second largest, and which
    centre has the largest.
    """
    k = moves.size
    for c in range(k):
        square = 0.0
        for j in range(centres.shape[1]):
            gap = centres[c, j] - before[c, j]
            square += gap * gap
        moves[c] = np.sqrt(square)
    limit = _FAR * np.median(moves)
    n_far = 0
    for c in range(k):
        if moves[c] > limit:
            far[n_far] = c
            n_far += 1
    if n_far > _MOST_FAR * k:
        n_far = 0
    first, second, mover = 0.0, 0.0, -1
    for c in range(k):
        if n_far and moves[c] > limit:
            continue
        if moves[c] > first:
            first, second, mover = moves[c], first, c
        elif moves[c] > second:
            second = moves[c]
    return n_far, first, second, mover


@kernel
def _half_gaps(centres, free):  # type: ignore[no-untyped-def]
    """OUT half the distance of each centre to the nearest other one: no other is nearer within."""
    k = free.size
    for c in range(k):
        free[c] = np.inf
    for c in range(k):
        for other in range(c):
            square = 0.0
            for j in range(centres.shape[1]):
                gap = centres[c, j] - centres[other, j]
                square += gap * gap
            free[c], free[other] = min(free[c], square), min(free[other], square)
    for c in range(k):
        free[c] = np.sqrt(free[c]) / 2.0


@kernel
def _add_up(numbers, places, spans, weights, labels, sums, totals):  # type: ignore[no-untyped-def]
    """OUT the weighted features of each centre's points, and their weight."""
    p = numbers.shape[1]
    sums[:] = 0.0
    totals[:] = 0.0
    for i in range(labels.size):
        own, weight = sums[labels[i]], weights[i]
        totals[labels[i]] += weight
        for j in range(p):
            own[j] += weight * numbers[i, j]
        for j in range(spans.size):
            own[places[i, j]] += weight * spans[j]


@kernel
def _to_means(numbers, places, spans, weights, centres, before, labels, sums, totals):  # type: ignore[no-untyped-def]
    """INOUT centres, to the means of their points; return the sum of squared shifts.

    A centre without points starts again at the point that costs most.
    """
    k, features = centres.shape
    p = numbers.shape[1]
    costs = np.empty(0)
    shift = 0.0
    for c in range(k):
        if totals[c] == 0.0:
            if costs.size == 0:
                costs = np.empty(labels.size)
                for i in range(labels.size):
                    own, length = centres[labels[i]], 0.0
                    for j in range(p, features):
                        length += own[j] * own[j]
                    gap = _distance(numbers[i], places[i], spans, own, length, p)
                    costs[i] = weights[i] * gap * gap
            worst = np.argmax(costs)
            costs[worst] = -1.0
            for j in range(features):
                sums[c, j] = numbers[worst, j] if j < p else 0.0
            for j in range(spans.size):
                sums[c, places[worst, j]] = spans[j]
            totals[c] = 1.0
    for c in range(k):
        for j in range(features):
            before[c, j] = centres[c, j]
            centres[c, j] = sums[c, j] / totals[c]
            gap = centres[c, j] - before[c, j]
            shift += gap * gap
    return shift


@kernel
def spread(columns, places, spans, weights, uniforms, chosen):  # type: ignore[no-untyped-def]
    """Draw points that are far from each other (k-means++, each the best of a few draws).

    Args:
        columns: Shape (p, n).
        places: Shape (n, q).
        spans: Shape (q,).
        weights: Shape (n,).
        uniforms: Numbers in [0, 1), shape (k, draws); of the first row one is used.
        chosen: OUT the points, shape (k,).
    """
    n, n_draws = weights.size, uniforms.shape[1]
    nearest, edges = np.full(n, np.inf), np.empty(n)
    tried, kept = np.empty(n), np.empty(n)
    for place in range(chosen.size):
        total = 0.0
        for i in range(n):
            total += weights[i] * nearest[i] if place else weights[i]
            edges[i] = total
        least = np.inf
        for draw in range(n_draws if place else 1):
            at = min(np.searchsorted(edges, uniforms[place, draw] * total, side="right"), n - 1)
            tried[:] = 0.0
            for j in range(columns.shape[0]):
                column, value = columns[j], columns[j, at]
                for i in range(n):
                    gap = column[i] - value
                    tried[i] += gap * gap
            for j in range(spans.size):
                level, apart = places[at, j], 2.0 * spans[j] * spans[j]
                for i in range(n):
                    tried[i] += 0.0 if places[i, j] == level else apart
            loss = 0.0
            for i in range(n):
                tried[i] = min(tried[i], nearest[i])
                loss += weights[i] * tried[i]
            if loss < least:
                least = loss
                chosen[place] = at
                tried, kept = kept, tried
        for i in range(n):
            nearest[i] = kept[i]


@kernel
def half_sums(numbers, places, spans, weights, labels, sums):  # type: ignore[no-untyped-def]
    """OUT features and weight of both halves of each centre's points, shape (2, k, D + 1).

    A cluster is cut at its mean across the feature in which it is widest; the second half are the
    points above.
    """
    p, k, features = numbers.shape[1], sums.shape[1], sums.shape[2] - 1
    means, totals = np.empty((k, features)), np.empty(k)
    _add_up(numbers, places, spans, weights, labels, means, totals)
    widths, cut = np.zeros((k, features)), np.empty(k, dtype=np.int64)
    for c in range(k):
        for j in range(features):
            means[c, j] /= max(totals[c], 1e-300)
    for i in range(labels.size):
        mean, own = means[labels[i]], widths[labels[i]]
        for j in range(p):
            gap = numbers[i, j] - mean[j]
            own[j] += weights[i] * gap * gap
        for j in range(spans.size):
            # A share s of a cluster at the top of a feature is a variance of s (1 - s) span^2.
            own[places[i, j]] += weights[i] * spans[j] * (spans[j] - mean[places[i, j]])
    for c in range(k):
        cut[c] = np.argmax(widths[c])
    for i in range(labels.size):
        label, weight = labels[i], weights[i]
        feature, above = cut[label], 0
        if feature < p:
            above = 1 if numbers[i, feature] > means[label, feature] else 0
        for j in range(spans.size):
            above = 1 if places[i, j] == feature else above
        own = sums[above, label]
        own[features] += weight
        for j in range(p):
            own[j] += weight * numbers[i, j]
        for j in range(spans.size):
            own[places[i, j]] += weight * spans[j]
