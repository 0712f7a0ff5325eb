"""Sketch registers of users, generated only where they can rise above the public floor.

A register is the maximum of geometric values, one for each user and row, raised to a floor. A value
at or below the floor never shows, so per user it is enough to draw how many of the M rows exceed
the floor (binomial), which rows (a uniform set) and by how much (geometric again: it has no
memory). The law is that of the naive n x M form; the work is M (1+gamma)^-floor draws per user.
Everything is integer arithmetic on the user's own keyed stream, so all parties and machines agree.
"""

import numpy as np

from splitmeans._types import LabelArray, RegisterArray, WordArray
from splitmeans.kernels.compiled import kernel
from splitmeans.kernels.siphash import prf_word

_Word = np.uint64
_32 = _Word(32)
_LOW_HALF = _Word(0xFFFFFFFF)


def user_registers(
    id_words: WordArray,
    labels: LabelArray,
    *,
    n_clusters: int,
    repetitions: int,
    floor: int,
    count_table: WordArray,
    excess_table: WordArray,
) -> RegisterArray:
    """Return the users' registers without phantoms, shape (M, k'); inputs already validated.

    Registers of disjoint batches of users combine by `np.maximum`.

    Args:
        id_words: Each user's 128-bit key, shape (n, 2).
        labels: Each user's cluster in 0..k'-1, shape (n,).
        n_clusters: k'.
        repetitions: M, the number of rows.
        floor: Smallest register value.
        count_table: Thresholds of the number of rows above the floor (`RegisterLaw.count_table`).
        excess_table: Thresholds of a value minus one (`RegisterLaw.value_table`).
    """
    registers = np.full((repetitions, n_clusters), floor, dtype=np.uint16)
    last_user = np.full(repetitions, -1, dtype=np.int64)
    inputs = [np.ascontiguousarray(a).view() for a in (id_words, labels, count_table, excess_table)]
    for array in inputs:
        # Read-only whatever the source, so that the kernel is compiled for one type only.
        array.setflags(write=False)
    # Hashes wrap by design; NumPy warns of it when the kernels run uncompiled (for coverage).
    with np.errstate(over="ignore"):
        _raise_registers(*inputs, floor, last_user, registers)
    return registers


@kernel
def _raise_registers(id_words, labels, counts, excesses, floor, last_user, registers):  # type: ignore[no-untyped-def]
    """OUT `registers` (M, k'); `last_user` (M,) is scratch: the user who drew a row last.

    Stream of a user: word 0 is the count; words 2i + 1 and 2i + 2 are row and excess of draw i.
    """
    rows = registers.shape[0]
    for user in range(labels.size):
        key0, key1 = id_words[user, 0], id_words[user, 1]
        cluster = labels[user]
        above = look_up(counts, prf_word(key0, key1, _Word(0)))
        for draw in range(above):
            # Floyd's method: draw i picks among the first M - above + i + 1 rows; a row that the
            # user has already is replaced by the last of these, which is new to this draw.
            last = rows - above + draw
            row = _below(prf_word(key0, key1, _Word(2 * draw + 1)), _Word(last + 1))
            if last_user[row] == user:
                row = last
            last_user[row] = user
            value = floor + 1 + look_up(excesses, prf_word(key0, key1, _Word(2 * draw + 2)))
            if value > registers[row, cluster]:
                registers[row, cluster] = value


@kernel
def look_up(table, word):  # type: ignore[no-untyped-def]
    """Return how many thresholds are <= word."""
    low, high = 0, table.size
    while low < high:
        middle = (low + high) >> 1
        if table[middle] <= word:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _below(word, bound):  # type: ignore[no-untyped-def]
    """Return floor(word bound / 2^64) for bound <= 2^32: uniform below bound up to bound / 2^64."""
    high = (word >> _32) * bound
    low = (word & _LOW_HALF) * bound
    return np.int64((high + (low >> _32)) >> _32)
