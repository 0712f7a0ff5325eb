"""The map: the plane through the weighted nodes that shows most of their differences.

Weighted principal components of the synopsis in distance units. It is made from published values
alone, so it costs no privacy.
"""

from dataclasses import dataclass

import numpy as np

from splitmeans._types import FloatArray

_AXES = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Plane:
    """Two directions through the mean of weighted points.

    Attributes:
        mean: Shape (D,).
        axes: Orthonormal directions, shape (2, D); the second is zero if D is 1.
        explained: Share of the variance along each, shape (2,).
    """

    mean: FloatArray
    axes: FloatArray
    explained: FloatArray

    def place(self, points: FloatArray) -> FloatArray:
        """Return where points, shape (n, D), lie on the plane, shape (n, 2)."""
        return np.asarray((points - self.mean) @ self.axes.T)


def fit_plane(points: FloatArray, weights: FloatArray) -> Plane:
    """Return the first two weighted principal components.

    An axis points so that its largest coordinate is positive: the same map at every call.

    Args:
        points: Shape (n, D).
        weights: Shape (n,), zero or more, at least one above zero.
    """
    total = weights.sum()
    mean = weights @ points / total
    centred = points - mean
    covariance = (centred * weights[:, np.newaxis]).T @ centred / total
    values, vectors = np.linalg.eigh(covariance)
    values, vectors = np.maximum(values[::-1][:_AXES], 0.0), vectors.T[::-1][:_AXES]
    axes = np.zeros((_AXES, points.shape[1]))
    explained = np.zeros(_AXES)
    variance = float(np.trace(covariance))
    for axis, (value, vector) in enumerate(zip(values, vectors, strict=True)):
        axes[axis] = vector * np.sign(vector[np.argmax(np.abs(vector))])
        explained[axis] = value / variance if variance > 0 else 0.0
    return Plane(mean=mean, axes=axes, explained=explained)
