"""What every synopsis must satisfy, whether built from a run or read from a file."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from splitmeans import _validate
from splitmeans._types import FloatArray
from splitmeans.errors import ParameterError
from splitmeans.study import Column
from splitmeans.study.features import features_of_columns
from splitmeans.study.parties import MAX_WEIGHT
from splitmeans.synopsis.precision import Precision

if TYPE_CHECKING:
    from splitmeans.synopsis.synopsis import Synopsis


# Above what any number on the wire can be, and small enough to add up and multiply.
MOST_USERS = 2.0**64
# Far beyond the bounds of any feature, which are its weight.
_MOST_UNITS = 1e6


def check_synopsis(synopsis: "Synopsis") -> None:
    """Refuse shapes that do not fit and numbers that cannot be."""
    _check_features(synopsis)
    _check_nodes(synopsis)
    if synopsis.columns is not None:
        _check_columns(synopsis, synopsis.columns)
    if synopsis.labels is not None:
        expected = (synopsis.weights.size, len(synopsis.party_names))
        if synopsis.labels.shape != expected or synopsis.labels.min() < 0:
            raise ParameterError(
                f"labels must have the shape (nodes, parties) = {expected} and be >= 0, "
                f"got shape {synopsis.labels.shape}"
            )
    if synopsis.centres is not None:
        _check_centres(synopsis, synopsis.centres)
    if synopsis.stretch is not None:
        _check_stretch(synopsis, synopsis.stretch)
    if synopsis.precision is not None:
        _check_precision(synopsis, synopsis.precision)
    deviation = synopsis.weight_deviation
    if deviation is not None:
        _validate.finite(weight_deviation=deviation)
        if not 0 <= deviation <= MOST_USERS:
            raise ParameterError(f"weight_deviation must be >= 0, got {deviation!r}")


def _check_precision(synopsis: "Synopsis", precision: Precision) -> None:
    if synopsis.centres is None or synopsis.labels is None:  # it tells nothing then
        return
    shape = precision.shape
    fits = len(shape) == len(synopsis.centres) and all(
        width <= len(own) for width, own in zip(shape, synopsis.centres, strict=True)
    )
    fits = fits and not (synopsis.labels >= np.array(shape)).any()
    if not fits or len(precision.resolutions) != synopsis.scaled_nodes.shape[1]:
        raise ParameterError(
            "precision must be of the synopsis' local clusters, with a resolution for each "
            f"feature, got shape {shape} and {len(precision.resolutions)} resolutions"
        )


def _check_features(synopsis: "Synopsis") -> None:
    """Refuse names and bounds that no column of a study has."""
    names = (*synopsis.party_names, *(item.name for group in synopsis.features for item in group))
    if not all(isinstance(name, str) for name in names):
        raise ParameterError("names of parties and features must be text")
    for feature in (item for group in synopsis.features for item in group):
        _validate.finite(low=feature.low, high=feature.high)
        _validate.positive(weight=feature.weight)
        width = float(feature.high) - float(feature.low)
        if not 0 < width < math.inf or feature.weight > MAX_WEIGHT:
            raise ParameterError(
                f"features must have low < high and a weight up to {MAX_WEIGHT}, "
                f"got {feature.low!r}, {feature.high!r} and {feature.weight!r}"
            )


def _check_nodes(synopsis: "Synopsis") -> None:
    if len(synopsis.party_names) != len(synopsis.features):
        raise ParameterError(
            "party_names and features must have one entry per party, "
            f"got {len(synopsis.party_names)} and {len(synopsis.features)}"
        )
    weights, nodes = synopsis.weights, synopsis.scaled_nodes
    expected = (weights.size, sum(len(group) for group in synopsis.features))
    # A study of counts alone has one node without columns.
    if weights.ndim != 1 or nodes.shape != expected or 0 in expected[:1]:
        raise ParameterError(
            f"scaled_nodes must have the shape (nodes, columns) = {expected}, at least one node, "
            f"got {nodes.shape}"
        )
    if not (np.isfinite(nodes).all() and np.isfinite(weights).all()):
        raise ParameterError("scaled_nodes and weights must be finite")
    if weights.min() < 0:
        raise ParameterError(f"weights must be >= 0, got {weights.min()!r}")
    if weights.max() > MOST_USERS or np.abs(nodes).max(initial=0) > _MOST_UNITS:
        raise ParameterError("scaled_nodes and weights must be numbers that a study can have")


def _check_stretch(synopsis: "Synopsis", stretch: FloatArray) -> None:
    expected = (synopsis.scaled_nodes.shape[1],)
    usable = stretch.shape == expected and bool(np.isfinite(stretch).all())
    if not usable or not (stretch.min() > 0 and stretch.max() <= _MOST_UNITS):
        raise ParameterError(f"stretch must be {expected[0]} numbers above 0, one for each feature")


def _check_columns(synopsis: "Synopsis", columns: Sequence[tuple[Column, ...]]) -> None:
    if tuple(features_of_columns(group) for group in columns) != synopsis.features:
        raise ParameterError("columns and features must describe the same columns")


def _check_centres(synopsis: "Synopsis", centres: Sequence[FloatArray]) -> None:
    if synopsis.labels is None or len(centres) != len(synopsis.party_names):
        raise ParameterError("centres must have one entry per party, and need labels")
    largest = synopsis.labels.max(axis=0)
    for party, own, group, label in zip(
        synopsis.party_names, centres, synopsis.features, largest, strict=True
    ):
        fits = own.ndim == 2 and own.shape[1] == len(group) and len(own) > label
        if not fits or not np.isfinite(own).all() or np.abs(own).max(initial=0) > _MOST_UNITS:
            raise ParameterError(
                f"centres of party {party!r} must be {len(group)} numbers per local cluster"
            )
