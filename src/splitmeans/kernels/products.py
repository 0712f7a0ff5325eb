"""Matrix products of many short rows, in pieces that libraries work out on one thread.

A library of linear algebra shares products beyond a size among threads, which then wait for the
next one by turning in circles: OpenBLAS for 25 milliseconds a product, more than all products of a
fit take. Pieces below that size leave them asleep. A row's products are the same bits in either
case; a sum of all rows would depend on the number of threads.
"""

import numpy as np

from splitmeans._types import FloatArray

# Multiplications of a matrix product, and terms of a sum, that OpenBLAS leaves to one thread.
_ALONE = 2**18
_TERMS_ALONE = 10_000
# Where pieces would have fewer rows, there is work for threads.
_FEWEST_ROWS = 128


def row_products(rows: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return `rows @ matrix`, shape (n, q), for rows of shape (n, d)."""
    step = _ALONE // max(1, matrix.size)
    if len(rows) <= step or step < _FEWEST_ROWS:
        return np.asarray(rows @ matrix)
    found = np.empty((len(rows), matrix.shape[1]))
    for start in range(0, len(rows), step):
        np.matmul(rows[start : start + step], matrix, out=found[start : start + step])
    return found


def product_sum(first: FloatArray, second: FloatArray) -> float:
    """Return the sum of products of two rows of numbers, the same whatever the threads."""
    starts = range(0, len(first), _TERMS_ALONE)
    parts = (slice(start, start + _TERMS_ALONE) for start in starts)
    return sum((float(first[part] @ second[part]) for part in parts), 0.0)


def summed_products(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return `first.T @ second`, shape (p, q), of n rows each, the same whatever the threads."""
    found = np.zeros((first.shape[1], second.shape[1]))
    step = max(1, _ALONE // max(1, found.size))
    for start in range(0, len(first), step):
        found += first[start : start + step].T @ second[start : start + step]
    return found
