"""Nearest centres in single precision, and how far to trust them.

Single precision does twice as many distances at a time as double precision. Here it only screens: a
row whose two nearest centres differ by more than all rounding together has its nearest centre for
certain, whatever the rounding was; for the others (one in thousands) the caller compares exact
distances. So labels are those of exact distances, always.

The score of centre c for row x is |c|^2 / 2 - x c, half the squared distance up to a number that is
the same for all centres.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from splitmeans._types import LabelArray
from splitmeans.kernels.compiled import kernel

SingleArray = npt.NDArray[np.float32]

# Rows are walked in blocks whose scores stay in the processor's nearest cache.
BLOCK = 512
# Columns of a block are this far apart: at a power of two all would share a few lines of the cache.
STRIDE = BLOCK + 16
# Half the distance between 1 and the next number in single precision.
_UNIT = 2.0**-24


class Screen(NamedTuple):
    """Centres as the screen compares them.

    Attributes:
        centres: Shape (k, d), d filled up with zeros to a multiple of four.
        halves: Half the squared length of each centre, shape (k,).
        slack_at_zero: How far two scores of the row 0 may be off together.
        slack_by_size: By how much more, for each unit of the row's largest coordinate.
    """

    centres: SingleArray
    halves: SingleArray
    slack_at_zero: float
    slack_by_size: float


class Room(NamedTuple):
    """Where a block of rows is compared.

    Attributes:
        columns: The rows by column, shape (columns, STRIDE); zero beyond the last column.
        scores: Scratch, shape (BLOCK,).
        best: Scratch, shape (BLOCK,).
        margins: How much larger the second smallest score is, shape (BLOCK,).
        labels: The centre of the smallest score, shape (BLOCK,).
    """

    columns: SingleArray
    scores: SingleArray
    best: SingleArray
    margins: SingleArray
    labels: LabelArray


@kernel
def screen_of(centres):  # type: ignore[no-untyped-def]
    """Return the screen of these centres, shape (k, d), float64 or whole numbers.

    A score is a sum of d + 1 terms. Rounding multiplies each by at most (1 + u)^(5 + columns / 4):
    row and centre to single precision, their product, two sums within four columns, and the sums of
    fours. So a score is off by no more than about (5 + columns / 4) u times the sum of the terms'
    sizes; 8 for 5 and a hundredth more cover what "about" leaves out, up to 100,000 columns.
    """
    k, d = centres.shape
    fours = (d + 3) // 4
    padded = np.zeros((k, 4 * fours), dtype=np.float32)
    halves = np.empty(k, dtype=np.float32)
    largest_half, largest_sum = 0.0, 0.0
    for c in range(k):
        half, size = 0.0, 0.0
        for j in range(d):
            value = float(centres[c, j])
            padded[c, j] = value
            half += value * value / 2
            size += abs(value)
        halves[c] = half
        largest_half, largest_sum = max(largest_half, half), max(largest_sum, size)
    off_by = 1.01 * (8 + fours) * _UNIT
    return Screen(padded, halves, 2 * off_by * largest_half, 2 * off_by * largest_sum)


@kernel
def room_for(screen):  # type: ignore[no-untyped-def]
    """Return a room for blocks of rows that are compared with this screen's centres."""
    return Room(
        np.zeros((screen.centres.shape[1], STRIDE), dtype=np.float32),
        np.empty(BLOCK, dtype=np.float32),
        np.empty(BLOCK, dtype=np.float32),
        np.empty(BLOCK, dtype=np.float32),
        np.empty(BLOCK, dtype=np.int32),
    )


@kernel
def screen_block(screen, room, size):  # type: ignore[no-untyped-def]
    """Fill the room's labels and margins (OUT) from its first `size` rows.

    A label is certain if its margin is above the slack; where a score is no number it never is.
    """
    centres, halves = screen.centres, screen.halves
    columns, scores, best = room.columns, room.scores, room.best
    margins, labels = room.margins, room.labels
    last = centres.shape[1] - 4
    nothing = np.float32(np.inf)
    best[:size] = nothing
    margins[:size] = nothing
    labels[:size] = 0
    for c in range(centres.shape[0]):
        scores[:size] = halves[c]
        for j in range(0, last + 1, 4):
            x0, x1, x2, x3 = columns[j], columns[j + 1], columns[j + 2], columns[j + 3]
            c0, c1, c2, c3 = centres[c, j], centres[c, j + 1], centres[c, j + 2], centres[c, j + 3]
            if j < last:
                for i in range(size):
                    scores[i] -= (x0[i] * c0 + x1[i] * c1) + (x2[i] * c2 + x3[i] * c3)
            else:
                for i in range(size):
                    score = scores[i] - ((x0[i] * c0 + x1[i] * c1) + (x2[i] * c2 + x3[i] * c3))
                    first = best[i]
                    closer = score < first
                    # Up to the end the margins hold the second smallest score.
                    other = first if closer else score
                    margins[i] = other if other < margins[i] else margins[i]
                    best[i] = score if closer else first
                    labels[i] = np.int32(c) if closer else labels[i]
    for i in range(size):
        margins[i] -= best[i]


@kernel
def screen_points(points, centres, labels, certain):  # type: ignore[no-untyped-def]
    """Fill `labels` (n,) and whether each is `certain` (n,), both OUT.

    `points` is (n, d), `centres` (k, d), both float64.
    """
    n, d = points.shape
    screen = screen_of(centres)
    room = room_for(screen)
    for start in range(0, n, BLOCK):
        size = min(BLOCK, n - start)
        largest = 0.0
        for i in range(size):
            for j in range(d):
                value = points[start + i, j]
                room.columns[j, i] = value
                largest = abs(value) if abs(value) > largest else largest
        screen_block(screen, room, size)
        slack = screen.slack_at_zero + screen.slack_by_size * largest
        for i in range(size):
            labels[start + i] = room.labels[i]
            certain[start + i] = room.margins[i] > slack
