"""Exchanging partners: rows of several parties are put together so that tables of columns agree.

Each party's rows stay as they are; what changes is which row of one party goes with which of
another. So nothing that one party's columns say of each other is touched.
"""

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.errors import ParameterError
from splitmeans.kernels.compiled import kernel


def exchange(
    labels: IntArray,
    *,
    parties: IntArray,
    firsts: IntArray,
    strides: IntArray,
    excess: FloatArray,
    steps: int,
    rng: np.random.Generator,
) -> IntArray:
    """Return for each party which of its rows goes with each person, shape (parties, n).

    Two persons exchange their rows at one party wherever that makes the sum of squares of `excess`
    less; so many exchanges are tried, of persons and parties that are drawn.

    Args:
        labels: Label of each person in each column, shape (n, c); not changed.
        parties: The party of each column, shape (c,), from 0 on without gaps.
        firsts: First cell of the table of two columns, shape (c, c), -1 where there is none;
            the same both ways.
        strides: What a label of the first column adds to the number of a cell in the table with the
            second, shape (c, c).
        excess: By how much the count of each cell is above what is wanted; not changed.
        steps: How many exchanges are tried.
        rng: Draws them.
    """
    n, c = labels.shape
    if parties.shape != (c,) or firsts.shape != (c, c) or strides.shape != (c, c):
        raise ParameterError("parties, firsts and strides must be about the columns of labels")
    n_parties = int(parties.max()) + 1
    rows = np.tile(np.arange(n, dtype=np.int64), (n_parties, 1))
    drawn = rng.integers(n, size=(steps, 2), dtype=np.int64)
    chosen = rng.integers(n_parties, size=steps, dtype=np.int64)
    _exchange(labels.copy(), parties, firsts, strides, excess.copy(), drawn, chosen, rows)
    return rows


@kernel
def _exchange(labels, parties, firsts, strides, excess, drawn, chosen, rows):  # type: ignore[no-untyped-def]
    """INOUT `labels`, `excess`, `rows`."""
    c = labels.shape[1]
    for step in range(len(chosen)):
        r, s, party = drawn[step, 0], drawn[step, 1], chosen[step]
        change = 0.0
        for i in range(c):
            if parties[i] != party or labels[r, i] == labels[s, i]:
                continue
            for j in range(c):
                at = firsts[i, j]
                if at < 0 or labels[r, j] == labels[s, j]:
                    continue
                one, two = labels[r, i] * strides[i, j], labels[s, i] * strides[i, j]
                own, other = labels[r, j] * strides[j, i], labels[s, j] * strides[j, i]
                change += excess[at + two + own] + excess[at + one + other]
                change -= excess[at + one + own] + excess[at + two + other]
                change += 2.0
        if change >= 0.0:
            continue
        for i in range(c):
            if parties[i] != party:
                continue
            if labels[r, i] != labels[s, i]:
                for j in range(c):
                    at = firsts[i, j]
                    if at < 0 or labels[r, j] == labels[s, j]:
                        continue
                    one, two = labels[r, i] * strides[i, j], labels[s, i] * strides[i, j]
                    own, other = labels[r, j] * strides[j, i], labels[s, j] * strides[j, i]
                    excess[at + two + own] += 1.0
                    excess[at + one + other] += 1.0
                    excess[at + one + own] -= 1.0
                    excess[at + two + other] -= 1.0
        for i in range(c):
            if parties[i] == party:
                kept = labels[r, i]
                labels[r, i] = labels[s, i]
                labels[s, i] = kept
        kept = rows[party, r]
        rows[party, r] = rows[party, s]
        rows[party, s] = kept
