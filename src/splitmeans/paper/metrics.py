"""Figures of the evaluation (paper, section 6); all need pooled rows, and none is private."""

import numpy as np
import numpy.typing as npt

from splitmeans.errors import ParameterError
from splitmeans.simulate.evaluation import normalised_loss

__all__ = ["normalised_loss", "v_score", "weight_error"]


def v_score(labels_true: npt.ArrayLike, labels_pred: npt.ArrayLike) -> float:
    """Return the V-score: harmonic mean of homogeneity and completeness, between 0 and 1."""
    # Imported on first use: it takes a second to load.
    from sklearn.metrics import v_measure_score

    return float(v_measure_score(labels_true, labels_pred))


def weight_error(weights: npt.ArrayLike, true_weights: npt.ArrayLike) -> float:
    """Return the sum of absolute errors of the cell weights over the number of users."""
    estimated = np.asarray(weights, dtype=np.float64)
    true = np.asarray(true_weights, dtype=np.float64)
    if estimated.shape != true.shape:
        raise ParameterError(
            f"weights must have the shape of true_weights {true.shape}, got {estimated.shape}"
        )
    if not true.sum() > 0:
        raise ParameterError("true_weights must count at least one user")
    return float(np.abs(estimated - true).sum() / true.sum())
