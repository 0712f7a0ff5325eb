"""From counted cells and the parties' released places to a synopsis."""

from collections.abc import Sequence

import numpy as np

from splitmeans._types import FloatArray, IntArray, LabelArray
from splitmeans.errors import ParameterError
from splitmeans.study import PartySpec
from splitmeans.study.features import GRID_UNITS, features_of
from splitmeans.synopsis.synopsis import Synopsis


def build_synopsis(
    weights: FloatArray,
    centres: Sequence[IntArray],
    parties: Sequence[PartySpec],
    *,
    weight_deviation: float | None = None,
) -> Synopsis:
    """Combine local centres to the grid of all their combinations; no cell is dropped.

    Args:
        weights: Weight of each cell, shape (k'_1, ..., k'_S).
        centres: Local centres of each party in grid integers, each of shape (k'_l, d_l).
        parties: The public facts of each party.
        weight_deviation: See `Synopsis.weight_deviation`.
    """
    if not weights.ndim == len(centres) == len(parties):
        raise ParameterError(
            "weights, centres and parties must agree on the number of parties, "
            f"got {weights.ndim}, {len(centres)} and {len(parties)}"
        )
    for party, local, width in zip(parties, centres, weights.shape, strict=True):
        shape = (width, len(features_of(party)))
        if local.shape != shape:
            raise ParameterError(
                f"centres of party {party.name!r} must have the shape {shape}, got {local.shape}"
            )
    return build_synopsis_from_points(
        all_cells(weights.shape),
        weights.ravel(),
        centres,
        parties,
        weight_deviation=weight_deviation,
    )


def all_cells(shape: tuple[int, ...]) -> IntArray:
    """Return the labels of all cells of a grid, shape (cells, S), in the order of ravel."""
    return np.indices(shape, dtype=np.int64).reshape(len(shape), -1).T


def build_synopsis_from_points(
    labels: LabelArray | IntArray,
    weights: FloatArray,
    centres: Sequence[IntArray],
    parties: Sequence[PartySpec],
    *,
    nodes: IntArray | None = None,
    weight_deviation: float | None = None,
) -> Synopsis:
    """Make a synopsis of pseudo-users, or of some cells, for grids too large to list.

    Args:
        labels: The local cluster of each point at each party, shape (points, S).
        weights: Users at each point, shape (points,).
        centres: Local centres of each party in grid integers, each of shape (k'_l, d_l).
        parties: The public facts of each party.
        nodes: Where the points are, in grid integers, shape (points, D); at the combined centres if
            not given.
        weight_deviation: See `Synopsis.weight_deviation`.
    """
    features = tuple(features_of(party) for party in parties)
    if labels.ndim != 2 or not labels.shape[1] == len(centres) == len(features):
        raise ParameterError(
            "labels, centres and parties must agree on the number of parties, "
            f"got {labels.shape[-1]}, {len(centres)} and {len(features)}"
        )
    for party, group, local, column in zip(parties, features, centres, labels.T, strict=True):
        if local.ndim != 2 or local.shape[1] != len(group):
            raise ParameterError(
                f"centres of party {party.name!r} must have {len(group)} columns, "
                f"got shape {local.shape}"
            )
        if column.size and not 0 <= column.min() <= column.max() < len(local):
            raise ParameterError(
                f"labels of party {party.name!r} must be between 0 and {len(local) - 1}"
            )
    if nodes is None:
        parts = [local[column] for local, column in zip(centres, labels.T, strict=True)]
        nodes = np.concatenate(parts, axis=1)
    return Synopsis(
        scaled_nodes=nodes / GRID_UNITS,
        weights=weights.astype(np.float64),
        party_names=tuple(party.name for party in parties),
        features=features,
        columns=tuple(party.columns for party in parties),
        labels=np.asarray(labels, dtype=np.int32),
        centres=tuple(local / GRID_UNITS for local in centres),
        weight_deviation=weight_deviation,
    )
