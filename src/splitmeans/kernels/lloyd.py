"""The loops of Lloyd's k-means on weighted points; `steps.py` puts them together.

Comparisons are in single precision with a bound on all rounding, as in `screen.py`; where that
leaves a doubt distances in double precision decide. So labels are those of exact distances, and
nothing depends on the number of threads. Each kernel is one flat loop over plain arrays: kernels
that call kernels take many times as long to compile.

Arrays of `Points` go by the names that they have there; n points have p numbers and q codes, a
centre has D features (`kernels/points.py`).
"""

import numpy as np

from splitmeans.kernels.compiled import kernel

# Points of a block: their scores stay in the processor's nearest cache.
_BLOCK = 512
# Half the distance between 1 and the next number in single precision.
_UNIT = 2.0**-24
# With more features centres are about equally far from each other, which settles nothing.
_FREE_FEATURES = 64
# Makes distances that were rounded to single precision safe bounds.
_UP, _DOWN = np.float32(1 + 2.0**-20), np.float32(1 - 2.0**-20)


@kernel
def prepare(  # type: ignore[no-untyped-def]
    centres, before, numbers, spans, firsts, largest, singles, halves, level_squares, moves, free
):
    """Make centres ready to be compared; return the bound on all rounding (`screen.screen`).

    It holds for two scores together and for a score with a point's squared length. A column of
    levels is one more term of a score.

    Args:
        centres: Shape (k, D).
        before: Where they were, shape (k, D).
        numbers: Shape (n, p).
        spans: Shape (q,).
        firsts: Shape (q,).
        largest: No number is larger.
        singles: OUT; features of levels are multiplied with what a point has there.
        halves: OUT half the squared lengths, shape (k,).
        level_squares: OUT the squared lengths of the levels' features, shape (k,).
        moves: OUT how far the centres went, at most, shape (k,).
        free: OUT within so much of a centre no other one is nearer, shape (k,).
    """
    k, features = centres.shape
    p, q = numbers.shape[1], spans.size
    padded = singles.shape[1] - (features - p)
    sizes = 0.0
    for c in range(k):
        square, absolute, level_square, terms, move = 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(features):
            gap = centres[c, j] - before[c, j]
            move += gap * gap
        for j in range(p):
            value = centres[c, j]
            square += value * value
            absolute += abs(value)
            singles[c, j] = value
        for j in range(q):
            last = firsts[j + 1] if j + 1 < q else features - p
            tallest = 0.0
            for level in range(firsts[j], last):
                value = centres[c, p + level]
                level_square += value * value
                singles[c, padded + level] = value * spans[j]
                tallest = value if value > tallest else tallest
            terms += tallest * spans[j] + spans[j] * spans[j]
        half = (square + level_square) / 2
        halves[c] = half
        level_squares[c] = level_square
        moves[c] = np.float32(np.sqrt(move)) * _UP
        free[c] = np.float32(0.0 if features > _FREE_FEATURES else np.inf)
        size = half + largest * absolute + terms
        sizes = size if size > sizes else sizes
    if features <= _FREE_FEATURES:
        for c in range(k):
            for other in range(c):
                square = 0.0
                for j in range(features):
                    gap = centres[c, j] - centres[other, j]
                    square += gap * gap
                half_way = np.float32(np.sqrt(square) / 2) * _DOWN
                free[c] = half_way if half_way < free[c] else free[c]
                free[other] = half_way if half_way < free[other] else free[other]
    sizes += p * largest * largest
    return 2 * 1.01 * (8 + padded // 4 + q) * _UNIT * sizes


@kernel
def scan(columns, codes, firsts, singles, halves, chosen, own, best, second, which):  # type: ignore[no-untyped-def]
    """Compare points with some centres, all in single precision; OUT `best`, `second`, `which`.

    The score of a centre is half the squared distance, up to a number that all centres share.

    Args:
        columns: Of the points, shape (multiple of 4, n or more).
        codes: Shape (q, n).
        firsts: Shape (q,).
        singles: The centres: numbers as in `columns`, then levels; shape (k, ...).
        halves: Half their squared lengths, shape (k,).
        chosen: Which centres.
        own: A centre for each point with which it is not compared, or -1, shape (n,).
        best: Least score, shape (n,).
        second: Second least score, shape (n,).
        which: The centre with the least score, shape (n,).
    """
    # Two centres at a time, so that a point is read half as often. Arrays made here are known to be
    # apart from each other, which lets loops become vector instructions.
    ones = np.empty(_BLOCK, dtype=np.float32)
    twos = np.empty(_BLOCK, dtype=np.float32)
    least = np.empty(_BLOCK, dtype=np.float32)
    next_least = np.empty(_BLOCK, dtype=np.float32)
    nearest = np.empty(_BLOCK, dtype=np.int32)
    nothing = np.float32(np.inf)
    width = columns.shape[0]
    for start in range(0, own.size, _BLOCK):
        size = own.size - start
        size = size if size < _BLOCK else _BLOCK
        excluded = own[start:]
        for i in range(size):
            least[i] = nothing
            next_least[i] = nothing
            nearest[i] = 0
        for place in range(0, chosen.size, 2):
            one = chosen[place]
            two = chosen[place + 1] if place + 1 < chosen.size else one
            half_one = halves[one]
            half_two = halves[two] if two != one else nothing
            for i in range(size):
                ones[i] = half_one
                twos[i] = half_two
            for j in range(0, width, 4):
                x0, x1 = columns[j, start:], columns[j + 1, start:]
                x2, x3 = columns[j + 2, start:], columns[j + 3, start:]
                a0, a1 = singles[one, j], singles[one, j + 1]
                a2, a3 = singles[one, j + 2], singles[one, j + 3]
                b0, b1 = singles[two, j], singles[two, j + 1]
                b2, b3 = singles[two, j + 2], singles[two, j + 3]
                for i in range(size):
                    ones[i] -= (x0[i] * a0 + x1[i] * a1) + (x2[i] * a2 + x3[i] * a3)
                    twos[i] -= (x0[i] * b0 + x1[i] * b1) + (x2[i] * b2 + x3[i] * b3)
            for j in range(codes.shape[0]):
                code = codes[j, start:]
                of_one, of_two = (
                    singles[one, width + firsts[j] :],
                    singles[two, width + firsts[j] :],
                )
                for i in range(size):
                    ones[i] -= of_one[code[i]]
                    twos[i] -= of_two[code[i]]
            for i in range(size):
                a = nothing if excluded[i] == one else ones[i]
                b = nothing if excluded[i] == two else twos[i]
                low, high = (a, b) if a <= b else (b, a)
                which_low = np.int32(one) if a <= b else np.int32(two)
                first = least[i]
                closer = low < first
                middle = first if closer else low
                middle = middle if middle < high else high
                next_least[i] = middle if middle < next_least[i] else next_least[i]
                least[i] = low if closer else first
                nearest[i] = which_low if closer else nearest[i]
        for i in range(size):
            best[start + i] = least[i]
            second[start + i] = next_least[i]
            which[start + i] = nearest[i]


@kernel
def unsettled(labels, upper, lower, squares, best, slack, moves, near_move, free, asked):  # type: ignore[no-untyped-def]
    """Carry bounds over a move of the centres; return how many points they do not settle.

    Args:
        labels: Nearest centre of each point before, shape (n,).
        upper: INOUT distance to it at most, shape (n,).
        lower: INOUT distance to all others at least, shape (n,).
        squares: Squared length of each point, shape (n,).
        best: Least score of the centres that moved far, other than its own, shape (n,).
        slack: Bound on rounding.
        moves: How far each centre went, shape (k,).
        near_move: How far those went at most that did not move far.
        free: No other centre is nearer within so much of a centre, shape (k,).
        asked: OUT the points that may have another centre now.
    """
    n_asked = 0
    for i in range(labels.size):
        square = best[i] + best[i] + squares[i] - slack
        mover = np.sqrt(square if square > 0 else np.float32(0.0))
        others = lower[i] - near_move
        lower[i] = (mover if mover < others else others) * _DOWN
    for i in range(labels.size):
        label = labels[i]
        upper[i] = (upper[i] + moves[label]) * _UP
        asked[n_asked] = i
        n_asked += not (upper[i] < lower[i] or upper[i] < free[label])
    return n_asked


@kernel
def settle(  # type: ignore[no-untyped-def]
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
):
    """Give each point that was compared with all centres its nearest one, lowest index on ties.

    Args:
        numbers: Shape (n, p).
        codes: Shape (q, n).
        firsts: Shape (q,).
        spans: Shape (q,).
        centres: Shape (k, D).
        level_squares: Squared length of each centre's levels, shape (k,).
        squares: Squared length of each point, shape (n,).
        slack: Bound on rounding.
        asked: Which points, shape (m,).
        best: Their least score, shape (m,).
        second: Their second least score, shape (m,).
        which: Which centre has the least, shape (m,).
        labels: OUT, shape (n,).
        upper: OUT, shape (n,).
        lower: OUT, shape (n,).
    """
    p, q = numbers.shape[1], codes.shape[0]
    for place in range(asked.size):
        i = asked[place]
        label = which[place]
        gap = second[place] - best[place]
        least = np.float64(best[place]) * 2 + squares[i] + slack
        next_least = np.float64(second[place]) * 2 + squares[i] - slack
        if not gap > slack:
            least = np.inf
            next_least = np.inf
            for c in range(centres.shape[0]):
                square = 0.0
                for j in range(p):
                    offset = numbers[i, j] - centres[c, j]
                    square += offset * offset
                if q > 0:
                    levels = level_squares[c]
                    for j in range(q):
                        feature = p + firsts[j] + codes[j, i]
                        levels += spans[j] * (spans[j] - 2.0 * centres[c, feature])
                    square += levels if levels > 0 else 0.0
                if square < least:
                    next_least = least
                    least = square
                    label = np.int32(c)
                elif square < next_least:
                    next_least = square
        labels[i] = label
        upper[i] = np.float32(np.sqrt(least if least > 0 else 0.0)) * _UP
        lower[i] = np.float32(np.sqrt(next_least if next_least > 0 else 0.0)) * _DOWN


@kernel
def move_points(numbers, codes, firsts, spans, weights, asked, before, labels, sums, left):  # type: ignore[no-untyped-def]
    """Carry points from the sums of the label before to those of the new one; count them.

    Args:
        numbers: Shape (n, p).
        codes: Shape (q, n).
        firsts: Shape (q,).
        spans: Shape (q,).
        weights: Shape (n,).
        asked: Points that may have a new label.
        before: INOUT the label before, -1 for none, shape (n,).
        labels: The new one, shape (n,).
        sums: INOUT for each centre the features of its points, then their weight, then their
            number; shape (k, D + 2).
        left: INOUT weight that has left each centre, shape (k,).
    """
    p, q = numbers.shape[1], codes.shape[0]
    width = sums.shape[1]
    changed = 0
    for place in range(asked.size):
        i = asked[place]
        old, new = before[i], labels[i]
        if old == new:
            continue
        changed += 1
        before[i] = new
        for side in range(2):
            label = new if side == 0 else old
            if label < 0:
                continue
            weight = weights[i] if side == 0 else -weights[i]
            left[label] -= weight if side == 1 else 0.0
            own = sums[label]
            own[width - 1] += 1 if side == 0 else -1
            own[width - 2] += weight
            for j in range(p):
                own[j] += weight * numbers[i, j]
            for j in range(q):
                own[p + firsts[j] + codes[j, i]] += weight * spans[j]
    return changed


@kernel
def own_distances(numbers, codes, firsts, spans, centres, level_squares, labels, out):  # type: ignore[no-untyped-def]
    """OUT each point's squared distance to the centre of its label, in double precision."""
    p = numbers.shape[1]
    for i in range(labels.size):
        centre = centres[labels[i]]
        square = 0.0
        for j in range(p):
            offset = numbers[i, j] - centre[j]
            square += offset * offset
        levels = level_squares[labels[i]]
        for j in range(codes.shape[0]):
            levels += spans[j] * (spans[j] - 2.0 * centre[p + firsts[j] + codes[j, i]])
        out[i] = square + (levels if levels > 0 else 0.0)


@kernel
def nearer(columns, codes, spans, positions, nearest, out):  # type: ignore[no-untyped-def]
    """OUT for each candidate every point's squared distance if it were a centre too.

    Distances are from differences in single precision, so they are zero where points are the same.

    Args:
        columns: Shape (multiple of 4, n or more).
        codes: Shape (q, n).
        spans: Shape (q,).
        positions: The points that are candidates, shape (c,).
        nearest: Squared distance to the nearest centre so far, shape (n,).
        out: Shape (c, n).
    """
    width = columns.shape[0]
    for start in range(0, nearest.size, _BLOCK):
        size = nearest.size - start
        size = size if size < _BLOCK else _BLOCK
        before = nearest[start:]
        for c in range(positions.size):
            own = out[c, start:]
            for i in range(size):
                own[i] = 0.0
            for j in range(0, width, 4):
                x0, x1 = columns[j, start:], columns[j + 1, start:]
                x2, x3 = columns[j + 2, start:], columns[j + 3, start:]
                c0, c1 = columns[j, positions[c]], columns[j + 1, positions[c]]
                c2, c3 = columns[j + 2, positions[c]], columns[j + 3, positions[c]]
                for i in range(size):
                    g0, g1, g2, g3 = x0[i] - c0, x1[i] - c1, x2[i] - c2, x3[i] - c3
                    own[i] += (g0 * g0 + g1 * g1) + (g2 * g2 + g3 * g3)
            for j in range(codes.shape[0]):
                code, level = codes[j, start:], codes[j, positions[c]]
                apart = np.float32(2 * spans[j] * spans[j])
                for i in range(size):
                    own[i] += np.float32(0.0) if code[i] == level else apart
            for i in range(size):
                own[i] = own[i] if own[i] < before[i] else before[i]


@kernel
def spreads(numbers, weights, labels, means, out):  # type: ignore[no-untyped-def]
    """INOUT for each centre the weighted squares of its points' offsets from its mean, (k, p)."""
    for i in range(labels.size):
        mean, own = means[labels[i]], out[labels[i]]
        for j in range(numbers.shape[1]):
            offset = numbers[i, j] - mean[j]
            own[j] += weights[i] * offset * offset


@kernel
def half_sums(numbers, codes, firsts, spans, weights, labels, means, cut, sums):  # type: ignore[no-untyped-def]
    """INOUT features and weight of both halves of each centre's points, shape (2, k, D + 1).

    The second half are the points above the mean (k, D) in the feature that `cut` (k,) names.
    """
    p, q = numbers.shape[1], codes.shape[0]
    for i in range(labels.size):
        label, weight = labels[i], weights[i]
        feature = cut[label]
        above = 0
        if feature < p:
            above = 1 if numbers[i, feature] > means[label, feature] else 0
        for j in range(q):
            above = 1 if p + firsts[j] + codes[j, i] == feature else above
        own = sums[above, label]
        own[own.size - 1] += weight
        for j in range(p):
            own[j] += weight * numbers[i, j]
        for j in range(q):
            own[p + firsts[j] + codes[j, i]] += weight * spans[j]
