"""Lloyd's steps until they come to rest, and where they start, each in one call.

What is done in a step, and why most points are left alone, is in `kmeans/steps.py`; the loops over
points are in `lloyd.py`. A fit takes some hundred steps on some thousand points: a call of a
compiled function for each loop of each step took longer than the loops.
"""

import numpy as np

from splitmeans.kernels.compiled import kernel
from splitmeans.kernels.lloyd import (
    move_points,
    nearer,
    own_distances,
    prepare,
    scan,
    settle,
    unsettled,
)

# Of so many centres one is compared with every point in a step: those that moved farthest.
_CENTRES_TO_MOVER = 8
# Scores beyond this may overflow in single precision, and say nothing.
_TOO_LARGE = 1e37
# Sums are made anew when this many times a cluster's weight has left it.
_STALE = 1e3


@kernel
def to_rest(  # type: ignore[no-untyped-def]
    numbers,
    columns,
    codes,
    firsts,
    spans,
    weights,
    squares,
    largest,
    tolerance,
    most_steps,
    centres,
    before,
    labels,
    upper,
    lower,
    sums,
):
    """Move centres to the means of their points until they rest; return the loss.

    Args:
        numbers: Shape (n, p).
        columns: The same by column in single precision, shape (multiple of 4, n or more).
        codes: Shape (q, n).
        firsts: Shape (q,).
        spans: Shape (q,).
        weights: Shape (n,).
        squares: Squared length of each point, shape (n,).
        largest: No number is larger.
        tolerance: Stop once the squared shifts of all centres add up to no more than this.
        most_steps: Stop after so many steps; with none, points are compared where they are.
        centres: INOUT, shape (k, D).
        before: INOUT centres that `labels`, `upper` and `lower` are about, shape (k, D).
        labels: INOUT the nearest centre of each point, shape (n,); -1 where nothing is known.
        upper: INOUT the distance to it at most, shape (n,).
        lower: INOUT the distance to any other at least, shape (n,).
        sums: OUT for each centre the features of its points, then their weight, then their number;
            shape (k, D + 2).
    """
    n, p = numbers.shape
    k, features = centres.shape
    width, q = columns.shape[0], codes.shape[0]
    singles = np.zeros((k, width + features - p), dtype=np.float32)
    halves = np.empty(k, dtype=np.float32)
    moves = np.empty(k, dtype=np.float32)
    free = np.empty(k, dtype=np.float32)
    level_squares = np.empty(k)
    some_columns = np.empty((width, n), dtype=np.float32)
    some_codes = np.empty((q, n), dtype=np.int32)
    best = np.empty(n, dtype=np.float32)
    second = np.empty(n, dtype=np.float32)
    which = np.empty(n, dtype=np.int32)
    nobody = np.empty(n, dtype=np.int32)
    earlier = np.empty(n, dtype=np.int32)
    everyone = np.empty(n, dtype=np.int64)
    for i in range(n):
        nobody[i], earlier[i], everyone[i] = -1, -1, i
    left = np.zeros(k)
    everywhere = np.empty(k, dtype=np.int64)
    for c in range(k):
        everywhere[c] = c
        for j in range(features + 2):
            sums[c, j] = 0.0
    costs = np.empty(n)
    open_points = np.empty(n, dtype=np.int64)
    movers = np.empty(k // _CENTRES_TO_MOVER + 1, dtype=np.int64)
    resting = False
    for step in range(most_steps + 1):
        rounding = prepare(
            centres,
            before,
            numbers,
            spans,
            firsts,
            largest,
            singles,
            halves,
            level_squares,
            moves,
            free,
        )
        # Beyond what single precision holds no score is certain.
        slack = np.float32(rounding) if rounding < _TOO_LARGE else np.float32(np.inf)
        n_asked = n
        if labels[0] >= 0 and rounding < _TOO_LARGE:
            _farthest(moves, movers)
            n_far = movers.size - 1
            if n_far:
                far = movers[:n_far]
                scan(columns, codes, firsts, singles, halves, far, labels, best, second, which)
            else:
                for i in range(n):
                    best[i] = np.inf
            near_move = moves[movers[n_far]]
            n_asked = unsettled(
                labels, upper, lower, squares, best, slack, moves, near_move, free, open_points
            )
        if n_asked < n:
            asked = open_points[:n_asked]
            _take(columns, codes, asked, some_columns, some_codes)
            compared, compared_codes = some_columns, some_codes
        else:
            asked, compared, compared_codes = everyone, columns, codes
        scan(
            compared,
            compared_codes,
            firsts,
            singles,
            halves,
            everywhere,
            nobody[:n_asked],
            best,
            second,
            which,
        )
        settle(
            numbers,
            codes,
            firsts,
            spans,
            centres,
            level_squares,
            squares,
            slack,
            asked,
            best,
            second,
            which,
            labels,
            upper,
            lower,
        )
        asked = everyone if step == 0 else asked
        changed = carry(
            numbers, codes, firsts, spans, weights, asked, everyone, earlier, labels, sums, left
        )
        if resting or changed == 0 or step == most_steps:
            break
        shift, n_lost = 0.0, 0
        for c in range(k):
            n_lost += sums[c, features + 1] == 0
            for j in range(features):
                before[c, j] = centres[c, j]
                if sums[c, features + 1] > 0:
                    centres[c, j] = sums[c, j] / sums[c, features]
        if n_lost:
            own_distances(numbers, codes, firsts, spans, before, level_squares, labels, costs)
            _start_anew(numbers, codes, firsts, spans, weights, costs, sums, centres)
        for c in range(k):
            for j in range(features):
                gap = centres[c, j] - before[c, j]
                shift += gap * gap
        resting = shift <= tolerance
    own_distances(numbers, codes, firsts, spans, centres, level_squares, labels, costs)
    loss = 0.0
    for i in range(n):
        loss += weights[i] * costs[i]
    return loss


@kernel
def carry(  # type: ignore[no-untyped-def]
    numbers, codes, firsts, spans, weights, asked, everyone, before, labels, sums, left
):
    """Carry points `asked` to the sums of their new labels; return how many have one.

    Differences of large sums say little about small ones: sums from which much was taken are made
    anew. See `lloyd.move_points`; `everyone` are all points.
    """
    changed = move_points(numbers, codes, firsts, spans, weights, asked, before, labels, sums, left)
    stale = False
    for c in range(left.size):
        stale |= left[c] > _STALE * sums[c, sums.shape[1] - 2]
    if stale:
        for i in range(before.size):
            before[i] = -1
        for c in range(left.size):
            left[c] = 0.0
            for j in range(sums.shape[1]):
                sums[c, j] = 0.0
        move_points(numbers, codes, firsts, spans, weights, everyone, before, labels, sums, left)
    return changed


@kernel
def spread(columns, codes, spans, weights, uniforms, chosen):  # type: ignore[no-untyped-def]
    """Draw points that are far from each other (k-means++, each the best of a few draws).

    Args:
        columns: Shape (multiple of 4, n or more).
        codes: Shape (q, n).
        spans: Shape (q,).
        weights: Shape (n,).
        uniforms: Numbers in [0, 1), shape (k, draws); of the first row one is used.
        chosen: OUT the points, shape (k,).
    """
    n, n_draws = weights.size, uniforms.shape[1]
    nearest = np.empty(n, dtype=np.float32)
    for i in range(n):
        nearest[i] = np.inf
    out = np.empty((n_draws, n), dtype=np.float32)
    edges = np.empty(n)
    drawn = np.empty(n_draws, dtype=np.int64)
    for place in range(chosen.size):
        total = 0.0
        for i in range(n):
            total += weights[i] * np.float64(nearest[i]) if place else weights[i]
            edges[i] = total
        tried = n_draws if place else 1
        for draw in range(tried):
            wanted = uniforms[place, draw] * total
            first, last = 0, n - 1
            while first < last:
                middle = (first + last) // 2
                if edges[middle] > wanted:
                    last = middle
                else:
                    first = middle + 1
            drawn[draw] = first
        nearer(columns, codes, spans, drawn[:tried], nearest, out)
        least, best = np.inf, 0
        for draw in range(tried):
            own = out[draw]
            # Four sums, so that an addition need not wait for the one before.
            s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
            for i in range(0, n - 3, 4):
                s0 += weights[i] * own[i]
                s1 += weights[i + 1] * own[i + 1]
                s2 += weights[i + 2] * own[i + 2]
                s3 += weights[i + 3] * own[i + 3]
            for i in range(n - n % 4, n):
                s0 += weights[i] * own[i]
            loss = (s0 + s1) + (s2 + s3)
            if loss < least:
                least, best = loss, draw
        chosen[place] = drawn[best]
        for i in range(n):
            nearest[i] = out[best, i]


@kernel
def _farthest(moves, order):  # type: ignore[no-untyped-def]
    """OUT `order`: as many centres as there is room for, those that moved farthest first."""
    for place in range(order.size):
        best = -1
        for c in range(moves.size):
            taken = False
            for other in range(place):
                taken |= order[other] == c
            if not taken and (best < 0 or moves[c] > moves[best]):
                best = c
        order[place] = best


@kernel
def _take(columns, codes, asked, some_columns, some_codes):  # type: ignore[no-untyped-def]
    """OUT columns and codes of the points that are asked."""
    for j in range(columns.shape[0]):
        column, out = columns[j], some_columns[j]
        for place in range(asked.size):
            out[place] = column[asked[place]]
    for j in range(codes.shape[0]):
        code, own = codes[j], some_codes[j]
        for place in range(asked.size):
            own[place] = code[asked[place]]


@kernel
def _start_anew(numbers, codes, firsts, spans, weights, costs, sums, centres):  # type: ignore[no-untyped-def]
    """Put centres without points where points cost most; `costs` (INOUT) are squared distances."""
    p, features = numbers.shape[1], centres.shape[1]
    for i in range(weights.size):
        costs[i] *= weights[i]
    for c in range(centres.shape[0]):
        if sums[c, features + 1] > 0:
            continue
        worst = 0
        for i in range(weights.size):
            worst = i if costs[i] > costs[worst] else worst
        costs[worst] = -1.0
        for j in range(features):
            centres[c, j] = numbers[worst, j] if j < p else 0.0
        for j in range(codes.shape[0]):
            centres[c, p + firsts[j] + codes[j, worst]] = spans[j]
