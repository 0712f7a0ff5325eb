"""Metrics on pooled plain rows: how good a clustering is, seen by someone who has all columns.

For simulation and benchmarks only. No participant of a real run can compute these figures, none of
them is private, and none may be published with a private result; so they live in an `Evaluation`
of their own (paper, section on evaluation metrics).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from splitmeans._types import FloatArray, IntArray, LabelArray
from splitmeans.errors import ParameterError
from splitmeans.grid.distances import distance_chunks

# Rows handled at a time: the differences to one centre then stay in a processor's cache.
_CHUNK = 4096


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Non-private figures of one clustering, for simulation only.

    Attributes:
        loss: Mean squared distance of a row to its nearest centre, scaled units.
        central_loss: The same for k-means on pooled rows without privacy.
        v_measure: Agreement with the true classes, between 0 and 1.
        weight_error: Sum of absolute errors of the cell weights over the number of users; None
            for methods without cells.
        loss_ratio: `loss` over `central_loss`.
    """

    loss: float
    central_loss: float
    v_measure: float
    weight_error: float | None = None
    loss_ratio: float = field(init=False)

    def __post_init__(self) -> None:
        if self.central_loss > 0:
            ratio = self.loss / self.central_loss
        else:
            ratio = 1.0 if self.loss == 0 else math.inf
        object.__setattr__(self, "loss_ratio", ratio)


def evaluate(
    scaled_rows: FloatArray,
    scaled_centres: FloatArray,
    *,
    central_centres: FloatArray,
    labels_true: npt.ArrayLike | None = None,
    weight_error: float | None = None,
) -> Evaluation:
    """Return all figures of one clustering; simulation only.

    Args:
        scaled_rows: All parties' columns of every user, shape (n, d), grid / GRID_UNITS.
        scaled_centres: The centres to judge, shape (k, d).
        central_centres: Centres of pooled k-means without privacy.
        labels_true: Classes of the rows; without them the labels by `central_centres` are the
            truth, as the paper does for real data.
        weight_error: Passed on, see `weight_error`.
    """
    truth = assign_labels(scaled_rows, central_centres) if labels_true is None else labels_true
    return Evaluation(
        loss=normalised_loss(scaled_rows, scaled_centres),
        central_loss=normalised_loss(scaled_rows, central_centres),
        v_measure=v_measure(truth, assign_labels(scaled_rows, scaled_centres)),
        weight_error=weight_error,
    )


def normalised_loss(scaled_rows: FloatArray, scaled_centres: FloatArray) -> float:
    """Return the mean squared distance of a row to its nearest centre; simulation only.

    Args:
        scaled_rows: Shape (n, d), in distance units (grid / GRID_UNITS).
        scaled_centres: Shape (k, d), in the same units.
    """
    nearest = [distances.min(axis=1) for distances in _distances(scaled_rows, scaled_centres)]
    return math.fsum(float(part.sum()) for part in nearest) / len(scaled_rows)


def assign_labels(scaled_rows: FloatArray, scaled_centres: FloatArray) -> LabelArray:
    """Return the nearest centre of each row, the lowest index on ties; simulation only."""
    parts = [part.argmin(axis=1) for part in _distances(scaled_rows, scaled_centres)]
    return np.concatenate(parts).astype(np.int32)


def v_measure(labels_true: npt.ArrayLike, labels_pred: npt.ArrayLike) -> float:
    """Return the V-measure: harmonic mean of homogeneity and completeness; simulation only."""
    # Imported on first use: it takes a second to load.
    from sklearn.metrics import v_measure_score

    return float(v_measure_score(labels_true, labels_pred))


def silhouette(
    scaled_rows: FloatArray,
    labels: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    max_rows: int = 4000,
) -> float:
    """Return the mean silhouette of a clustering, between -1 and 1; simulation only.

    Args:
        scaled_rows: Shape (n, d), in distance units.
        labels: The cluster of each row.
        rng: Picks the rows that stand for all, where there are more than `max_rows`.
        max_rows: The time grows with the square of it.
    """
    # Imported on first use: it takes a second to load.
    from sklearn.metrics import silhouette_score

    chosen = np.asarray(labels)
    if len(scaled_rows) > max_rows:
        picked = np.sort(rng.choice(len(scaled_rows), size=max_rows, replace=False))
        scaled_rows, chosen = scaled_rows[picked], chosen[picked]
    if len(np.unique(chosen)) < 2:
        raise ParameterError("labels must name at least two clusters among the picked rows")
    return float(silhouette_score(scaled_rows, chosen))


def weight_error(weights: npt.ArrayLike, true_weights: npt.ArrayLike) -> float:
    """Return the sum of absolute errors of the cell weights over the number of users.

    Args:
        weights: Estimated users in each cell, any shape.
        true_weights: True users in each cell, the same shape.
    """
    estimated = np.asarray(weights, dtype=np.float64)
    true = np.asarray(true_weights, dtype=np.float64)
    if estimated.shape != true.shape:
        raise ParameterError(
            f"weights must have the shape of true_weights {true.shape}, got {estimated.shape}"
        )
    if not true.sum() > 0:
        raise ParameterError("true_weights must count at least one user")
    return float(np.abs(estimated - true).sum() / true.sum())


def true_cell_weights(labels: Sequence[npt.ArrayLike], n_local_clusters: Sequence[int]) -> IntArray:
    """Count the users of each cell exactly; simulation only.

    Args:
        labels: For each party the local cluster of each user, the same users in the same order.
        n_local_clusters: Number of local clusters of each party.

    Returns:
        Counts, shape `n_local_clusters`; its flat order is that of the weighted grid.
    """
    shape = tuple(n_local_clusters)
    if len(shape) != len(labels):
        raise ParameterError(
            f"n_local_clusters must have one number for each of {len(labels)} parties, "
            f"got {len(shape)}"
        )
    cells = np.ravel_multi_index(tuple(np.asarray(party) for party in labels), shape)
    return np.bincount(cells, minlength=math.prod(shape)).reshape(shape).astype(np.int64)


def _distances(rows: FloatArray, centres: FloatArray) -> Iterator[FloatArray]:
    """Return squared distances, shape (chunk, k) each.

    A result without segments is judged as one centre in the middle of the bounds, which is all
    that is known without data.
    """
    if len(centres) == 0:
        centres = np.zeros((1, rows.shape[1]))
    return (part for _, part in distance_chunks(rows, centres, chunk_rows=_CHUNK))
