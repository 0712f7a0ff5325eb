"""Nearest centres in single precision, and which of them are certain.

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

from splitmeans._types import FloatArray, LabelArray
from splitmeans.kernels.compiled import kernel

# Rows are compared in blocks whose scores stay in the processor's nearest cache.
_BLOCK = 512
# Columns are this much longer than they must be: at a distance of a power of two all of them would
# share a few lines of the cache.
_SPARE = 16
# Half the distance between 1 and the next number in single precision.
_UNIT = 2.0**-24


class Single(NamedTuple):
    """Rows in single precision.

    Attributes:
        columns: The rows by column, at least as long as there are rows; columns of zeros fill
            their number up to a multiple of four.
        largest: No coordinate is larger than this.
    """

    columns: npt.NDArray[np.float32]
    largest: float


def empty_columns(d: int, n: int) -> npt.NDArray[np.float32]:
    """Return the columns of n rows that are all zero; see `Single`."""
    return np.zeros((-(-d // 4) * 4, n + _SPARE), dtype=np.float32)


def in_single(columns: FloatArray) -> Single:
    """Return points, given by column, shape (d, n), in single precision."""
    d, n = columns.shape
    single = empty_columns(d, n)
    single[:d, :n] = columns
    return Single(columns=single, largest=float(np.abs(columns).max(initial=0.0)))


def screen(
    rows: Single, centres: FloatArray, *, labels: LabelArray, certain: npt.NDArray[np.bool_]
) -> None:
    """Fill the nearest centre of each row and whether it is certain; inputs already validated.

    A score is a sum of d + 1 terms. Rounding multiplies each by at most (1 + u)^(5 + columns / 4):
    row and centre to single precision, their product, two sums within four columns, and the sums of
    fours. So a score is off by no more than about (5 + columns / 4) u times the sum of the terms'
    sizes; 8 for 5 and a hundredth more cover what "about" leaves out, up to 100,000 columns. Two
    scores that differ by more than twice that are in the right order.

    Args:
        rows: What is compared.
        centres: Shape (k, d), k >= 1, float64.
        labels: Shape (n,), OUT.
        certain: Shape (n,), OUT; False wherever a score is no number.
    """
    k, d = centres.shape
    padded = np.zeros((k, len(rows.columns)), dtype=np.float32)
    padded[:, :d] = centres
    halves = np.square(centres).sum(axis=1) / 2
    sizes = halves.max() + rows.largest * np.abs(centres).sum(axis=1).max()
    slack = 2 * 1.01 * (8 + len(rows.columns) // 4) * _UNIT * float(sizes)
    _screen(rows.columns, padded, halves.astype(np.float32), slack, labels, certain)


@kernel
def _screen(columns, centres, halves, slack, labels, certain):  # type: ignore[no-untyped-def]
    """OUT `labels` (n,) and `certain` (n,); see `screen`."""
    scores = np.empty(_BLOCK, dtype=np.float32)
    best = np.empty(_BLOCK, dtype=np.float32)
    second = np.empty(_BLOCK, dtype=np.float32)
    nearest = np.empty(_BLOCK, dtype=np.int32)
    last = centres.shape[1] - 4
    nothing = np.float32(np.inf)
    for start in range(0, labels.size, _BLOCK):
        size = labels.size - start
        size = size if size < _BLOCK else _BLOCK
        for i in range(size):
            best[i] = nothing
            second[i] = nothing
            nearest[i] = 0
        for c in range(centres.shape[0]):
            for i in range(size):
                scores[i] = halves[c]
            for j in range(0, last + 1, 4):
                x0, x1 = columns[j, start:], columns[j + 1, start:]
                x2, x3 = columns[j + 2, start:], columns[j + 3, start:]
                c0, c1, c2, c3 = (
                    centres[c, j],
                    centres[c, j + 1],
                    centres[c, j + 2],
                    centres[c, j + 3],
                )
                if j < last:
                    for i in range(size):
                        scores[i] -= (x0[i] * c0 + x1[i] * c1) + (x2[i] * c2 + x3[i] * c3)
                else:
                    for i in range(size):
                        score = scores[i] - ((x0[i] * c0 + x1[i] * c1) + (x2[i] * c2 + x3[i] * c3))
                        first = best[i]
                        closer = score < first
                        other = first if closer else score
                        second[i] = other if other < second[i] else second[i]
                        best[i] = score if closer else first
                        nearest[i] = np.int32(c) if closer else nearest[i]
        for i in range(size):
            labels[start + i] = nearest[i]
            certain[start + i] = second[i] - best[i] > slack
