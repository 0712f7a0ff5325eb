"""What segments are called: letters in order of size, A the largest.

The files of a result, the report and the commands all name segments by this rule.
"""

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kmeans.distances import distance_chunks
from splitmeans.synopsis.synopsis import Synopsis


def assign_nodes(synopsis: Synopsis, scaled_centres: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the nearest centre of each node, shape (nodes,), and the users of each centre.

    Without centres every node has -1.
    """
    if len(scaled_centres) == 0:
        return np.full(len(synopsis.weights), -1, dtype=np.int64), np.zeros(0)
    parts = [
        distances.argmin(axis=1)
        for _, distances in distance_chunks(
            synopsis.seen(synopsis.scaled_nodes), synopsis.seen(scaled_centres)
        )
    ]
    of_node = np.concatenate(parts).astype(np.int64)
    sizes = np.bincount(of_node, weights=synopsis.weights, minlength=len(scaled_centres))
    return of_node, np.asarray(sizes, dtype=np.float64)


def by_size(sizes: FloatArray) -> IntArray:
    """Return the order of segments from the largest to the smallest; equal ones stay in place."""
    return np.argsort(-sizes, kind="stable").astype(np.int64)


def letter(rank: int) -> str:
    """Return A to Z for 0 to 25, then AA, AB and so on."""
    text = ""
    rest = rank + 1
    while rest > 0:
        rest, digit = divmod(rest - 1, 26)
        text = chr(65 + digit) + text
    return text
