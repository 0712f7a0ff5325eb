"""Which label a value has in tables of columns; parties and server share it.

A column of numbers is cut at edges, which the party tells; a column of many levels has a label for
each that is frequent among the party's released points, and one for all others.
"""

from collections.abc import Sequence

import numpy as np

from splitmeans._types import NO_VALUE, IntArray, LabelArray
from splitmeans.membership.decoy.column_tables import MAX_BINS, label_count
from splitmeans.study.coding import Coding

# Edges of each column of numbers; bins that are not needed have edges beyond all values.
N_EDGES = MAX_BINS - 1


def padded_edges(edges: Sequence[IntArray], coding: Coding) -> IntArray:
    """Return the edges of the columns of numbers as they travel, `N_EDGES` for each, flat."""
    found = [np.zeros(0, dtype=np.int64)]
    for place, n_levels in enumerate(coding.levels):
        if n_levels:
            continue
        own = np.full(N_EDGES, coding.bounds[coding.starts[place]] + 1, dtype=np.int64)
        own[: len(edges[place])] = edges[place]
        found.append(own)
    return np.concatenate(found)


def problem_of_edges(flat: IntArray, coding: Coding) -> str | None:
    """Return what is wrong with edges that were sent, if anything is."""
    numbers = np.flatnonzero(np.array(coding.levels) == 0)
    if flat.shape != (len(numbers) * N_EDGES,):
        return f"{len(flat)} edges of columns, expected {len(numbers) * N_EDGES}"
    edges = flat.reshape(len(numbers), N_EDGES)
    bounds = np.array([coding.bounds[coding.starts[place]] for place in numbers])[:, np.newaxis]
    if np.any((edges < -bounds) | (edges > bounds + 1)) or np.any(edges[:, 1:] < edges[:, :-1]):
        return "edges of columns that do not ascend within the study's bounds"
    return None


def rules_of(flat: IntArray, points: IntArray, coding: Coding) -> list[IntArray]:
    """Return for each column its edges, or the label of each of its levels.

    Args:
        flat: The edges as they travel.
        points: The party's released points, coded, shape (n, columns).
        coding: How its rows are coded.
    """
    rules, edges = [], iter(np.reshape(flat, (-1, N_EDGES)))
    for codes, n_levels in zip(points.T, coding.levels, strict=True):
        rules.append(_labels_of_levels(codes, n_levels) if n_levels else next(edges))
    return rules


def labels_in(codes: IntArray, column: int, rule: IntArray, coding: Coding) -> LabelArray:
    """Return the label of each row's value in a column; the last is for no value.

    Guarantee: a row's label is a function of that row and of released values.

    Args:
        codes: Coded rows, shape (n, columns).
        column: Position of the column.
        rule: See `rules_of`.
        coding: How rows are coded.
    """
    own = codes[:, column]
    missing = label_count(coding, column) - 1
    n_levels = coding.levels[column]
    if n_levels:
        known = (own >= 0) & (own < n_levels)
        found = rule[np.where(known, own, 0)]
    else:
        known = own != NO_VALUE
        found = np.searchsorted(rule, own, side="right")
    return np.where(known, found, missing).astype(np.int32)


def _labels_of_levels(codes: IntArray, n_levels: int) -> IntArray:
    labels = np.arange(n_levels, dtype=np.int64)
    if n_levels > MAX_BINS:
        often = np.argsort(-np.bincount(codes, minlength=n_levels), kind="stable")
        labels[often] = np.minimum(np.arange(n_levels), MAX_BINS - 1)
    return labels
