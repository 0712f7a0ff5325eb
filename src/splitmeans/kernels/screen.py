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
from splitmeans.kernels.compiled import screening_kernel

# Rows are compared in blocks whose scores stay in the processor's nearest cache; always in whole
# blocks, whatever lies behind the last row: loops of a known length are faster and sooner compiled.
_BLOCK = 512
# Numbers of a line of the cache. Columns begin with a line, so that no vector is read from two of
# them, which takes twice as long; and they have a line to spare: at a distance of a power of two
# all of them would share a few places of the cache.
_LINE = 16
# Half the distance between 1 and the next number in single precision.
_UNIT = 2.0**-24


class Single(NamedTuple):
    """Rows in single precision.

    Attributes:
        columns: The rows by column, as `empty_columns` makes them: with room for whole blocks of
            rows, and with columns of zeros up to a multiple of four.
        largest: No coordinate is larger than this.
    """

    columns: npt.NDArray[np.float32]
    largest: float


def empty_columns(d: int, n: int) -> npt.NDArray[np.float32]:
    """Return the columns of n rows that are all zero; see `Single`."""
    shape = -(-d // 4) * 4, -(-n // _BLOCK) * _BLOCK + _LINE
    room = np.zeros(shape[0] * shape[1] + _LINE, dtype=np.float32)
    first = -room.__array_interface__["data"][0] // room.itemsize % _LINE
    return room[first : first + shape[0] * shape[1]].reshape(shape)


def in_single(columns: FloatArray) -> Single:
    """Return points, given by column, shape (d, n), in single precision."""
    d, n = columns.shape
    single = empty_columns(d, n)
    single[:d, :n] = columns
    return Single(columns=single, largest=float(np.abs(columns).max(initial=0.0)))


class ScreenedCentres(NamedTuple):
    """Centres in single precision.

    Attributes:
        padded: Shape (k or k + 1, columns); an even number, so the last may stand for none.
        halves: Half their squared lengths; infinite where there is none.
        half: The largest of the finite ones, exactly.
        reach: The largest sum of absolute coordinates.
    """

    padded: npt.NDArray[np.float32]
    halves: npt.NDArray[np.float32]
    half: float
    reach: float


def to_screen(centres: FloatArray) -> ScreenedCentres:
    """Return centres, shape (k, d), k >= 1, ready to be compared with rows."""
    k, d = centres.shape
    padded = np.zeros((k + k % 2, -(-d // 4) * 4), dtype=np.float32)
    padded[:k, :d] = centres
    exact = np.square(centres).sum(axis=1) / 2
    halves = np.full(len(padded), np.inf, dtype=np.float32)
    halves[:k] = exact
    reach = float(np.abs(centres).sum(axis=1).max())
    return ScreenedCentres(padded, halves, float(exact.max()), reach)


def screen(
    rows: Single,
    centres: ScreenedCentres,
    *,
    labels: LabelArray,
    certain: npt.NDArray[np.bool_],
) -> None:
    """Fill the nearest centre of each row and whether it is certain; inputs already validated.

    A score is a sum of d + 1 terms. Rounding multiplies each by at most (1 + u)^(5 + columns / 4):
    row and centre to single precision, their product, two sums within four columns, and the sums of
    fours. So a score is off by no more than about (5 + columns / 4) u times the sum of the terms'
    sizes; 8 for 5 and a hundredth more cover what "about" leaves out, up to 100,000 columns. Two
    scores that differ by more than twice that are in the right order.

    Args:
        rows: What is compared.
        centres: See `to_screen`.
        labels: Shape (n,), OUT.
        certain: Shape (n,), OUT; False wherever a score is no number.
    """
    slack = slack_of(rows.columns) * (centres.half + rows.largest * centres.reach)
    _screen(rows.columns, centres.padded, centres.halves, slack, labels, certain)


def slack_of(columns: npt.NDArray[np.float32]) -> float:
    """Return by how much two scores must differ for each unit of their terms; see `screen`."""
    return 2 * 1.01 * (8 + len(columns) // 4) * _UNIT


@screening_kernel
def _screen(columns, centres, halves, slack, labels, certain):  # type: ignore[no-untyped-def]
    """OUT `labels` (n,) and `certain` (n,); see `screen`."""
    # Two centres at a time, so that a row is read half as often, and scores of the last columns
    # are compared before they are stored, because storing is what takes longest. Arrays made here
    # are known to be apart from each other, which lets loops become vector instructions.
    ones = np.empty(_BLOCK, dtype=np.float32)
    twos = np.empty(_BLOCK, dtype=np.float32)
    best = np.empty(_BLOCK, dtype=np.float32)
    second = np.empty(_BLOCK, dtype=np.float32)
    nearest = np.empty(_BLOCK, dtype=np.int32)
    last = centres.shape[1] - 4
    nothing = np.float32(np.inf)
    for start in range(0, labels.size, _BLOCK):
        size = labels.size - start
        size = size if size < _BLOCK else _BLOCK
        for i in range(_BLOCK):
            best[i] = nothing
            second[i] = nothing
            nearest[i] = 0
        for c in range(0, centres.shape[0], 2):
            half_one, half_two = halves[c], halves[c + 1]
            if last == 0:
                for i in range(_BLOCK):
                    ones[i] = half_one
                    twos[i] = half_two
            for j in range(0, last + 4, 4):
                x0, x1 = columns[j, start:], columns[j + 1, start:]
                x2, x3 = columns[j + 2, start:], columns[j + 3, start:]
                a0, a1 = centres[c, j], centres[c, j + 1]
                a2, a3 = centres[c, j + 2], centres[c, j + 3]
                b0, b1 = centres[c + 1, j], centres[c + 1, j + 1]
                b2, b3 = centres[c + 1, j + 2], centres[c + 1, j + 3]
                if j == last:
                    for i in range(_BLOCK):
                        one = ones[i] - ((x0[i] * a0 + x1[i] * a1) + (x2[i] * a2 + x3[i] * a3))
                        two = twos[i] - ((x0[i] * b0 + x1[i] * b1) + (x2[i] * b2 + x3[i] * b3))
                        later = two < one
                        low, high = (two, one) if later else (one, two)
                        first = best[i]
                        closer = low < first
                        middle = first if closer else low
                        middle = middle if middle < high else high
                        second[i] = middle if middle < second[i] else second[i]
                        best[i] = low if closer else first
                        which = np.int32(c + 1) if later else np.int32(c)
                        nearest[i] = which if closer else nearest[i]
                elif j == 0:
                    for i in range(_BLOCK):
                        ones[i] = half_one - ((x0[i] * a0 + x1[i] * a1) + (x2[i] * a2 + x3[i] * a3))
                        twos[i] = half_two - ((x0[i] * b0 + x1[i] * b1) + (x2[i] * b2 + x3[i] * b3))
                else:
                    for i in range(_BLOCK):
                        ones[i] -= (x0[i] * a0 + x1[i] * a1) + (x2[i] * a2 + x3[i] * a3)
                        twos[i] -= (x0[i] * b0 + x1[i] * b1) + (x2[i] * b2 + x3[i] * b3)
        for i in range(size):
            labels[start + i] = nearest[i]
            certain[start + i] = second[i] - best[i] > slack
