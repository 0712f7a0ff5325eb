"""What every synopsis must satisfy, whether built from a run or read from a file."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from splitmeans import _validate
from splitmeans.errors import ParameterError
from splitmeans.features import features_of
from splitmeans.study import Column, PartySpec

if TYPE_CHECKING:
    from splitmeans.grid.synopsis import Synopsis


def check_synopsis(synopsis: "Synopsis") -> None:
    """Refuse shapes that do not fit and numbers that cannot be."""
    _check_nodes(synopsis)
    if synopsis.columns is not None:
        _check_columns(synopsis, synopsis.columns)
    if synopsis.labels is not None:
        expected = (synopsis.weights.size, len(synopsis.party_names))
        if synopsis.labels.shape != expected or synopsis.labels.min() < 0:
            raise ParameterError(
                f"labels must have the shape (cells, parties) = {expected} and be >= 0, "
                f"got shape {synopsis.labels.shape}"
            )
    if synopsis.spread is not None:
        _check_spread(synopsis)
    deviation = synopsis.weight_deviation
    if deviation is not None:
        _validate.finite(weight_deviation=deviation)
        if deviation < 0:
            raise ParameterError(f"weight_deviation must be >= 0, got {deviation!r}")


def _check_nodes(synopsis: "Synopsis") -> None:
    if len(synopsis.party_names) != len(synopsis.features):
        raise ParameterError(
            "party_names and features must have one entry per party, "
            f"got {len(synopsis.party_names)} and {len(synopsis.features)}"
        )
    weights, nodes = synopsis.weights, synopsis.scaled_nodes
    expected = (weights.size, sum(len(group) for group in synopsis.features))
    if weights.ndim != 1 or nodes.shape != expected or 0 in expected:
        raise ParameterError(
            f"scaled_nodes must have the shape (cells, columns) = {expected}, none of them 0, "
            f"got {nodes.shape}"
        )
    if not (np.isfinite(nodes).all() and np.isfinite(weights).all()):
        raise ParameterError("scaled_nodes and weights must be finite")
    if weights.min() < 0:
        raise ParameterError(f"weights must be >= 0, got {weights.min()!r}")


def _check_columns(synopsis: "Synopsis", columns: Sequence[tuple[Column, ...]]) -> None:
    features = []
    for group in columns:
        # Features depend on the columns alone; the names here only have to be allowed.
        other = "".join(column.name for column in group) + " id"
        features.append(features_of(PartySpec(name="party", columns=group, id_column=other)))
    if tuple(features) != synopsis.features:
        raise ParameterError("columns and features must describe the same columns")


def _check_spread(synopsis: "Synopsis") -> None:
    assert synopsis.spread is not None
    if synopsis.labels is None or len(synopsis.spread) != len(synopsis.party_names):
        raise ParameterError("spread must have one entry per party, and needs labels")
    largest = synopsis.labels.max(axis=0)
    for party, spread, label in zip(synopsis.party_names, synopsis.spread, largest, strict=True):
        usable = spread.ndim == 1 and spread.size > label and np.isfinite(spread).all()
        if not usable or spread.min() < 0:
            raise ParameterError(
                f"spread of party {party!r} must be one number >= 0 per local cluster"
            )
