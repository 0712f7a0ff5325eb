"""k-means on a synopsis as a scikit-learn estimator, for its tools that choose parameters.

    search = GridSearchCV(SynopsisKMeans(random_state=0), {"n_clusters": range(2, 9)})
    search.fit(synopsis.scaled_nodes, sample_weight=synopsis.weights)

Every fit is on published values, so a search costs no privacy, however many fits it takes. Its
score is the simplified silhouette, so that more clusters are not always better.
"""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from splitmeans import _validate
from splitmeans._types import FloatArray, LabelArray
from splitmeans.errors import ParameterError
from splitmeans.kmeans.distances import distance_chunks
from splitmeans.kmeans.weighted_kmeans import weighted_kmeans
from splitmeans.synopsis.choose_k import measure_fit


class SynopsisKMeans(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """k-means on weighted nodes.

    Args:
        n_clusters: Number of clusters, k.
        random_state: Seeds the starting centres.

    Attributes:
        cluster_centers_: Shape (k, D), in the units of the nodes.
        labels_: The nearest centre of each node.
    """

    def __init__(self, n_clusters: int = 5, *, random_state: int | None = None) -> None:
        self.n_clusters = n_clusters
        self.random_state = random_state

    def fit(
        self, X: npt.ArrayLike, y: None = None, *, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Cluster nodes, shape (nodes, D), such as `synopsis.scaled_nodes`, by their weights."""
        _validate.at_least(1, n_clusters=self.n_clusters)
        nodes, weights = _checked(X, sample_weight)
        rng = np.random.default_rng(self.random_state)
        self.cluster_centers_: FloatArray = weighted_kmeans(
            nodes, weights, n_clusters=self.n_clusters, rng=rng
        )
        self.n_features_in_ = nodes.shape[1]
        self.labels_ = self.predict(nodes)
        return self

    def predict(self, X: npt.ArrayLike) -> LabelArray:
        """Return the nearest centre of each node."""
        check_is_fitted(self)
        nodes, _ = _checked(X, None)
        parts = [part.argmin(axis=1) for _, part in distance_chunks(nodes, self.cluster_centers_)]
        return np.concatenate(parts).astype(np.int32)

    def score(
        self, X: npt.ArrayLike, y: None = None, sample_weight: npt.ArrayLike | None = None
    ) -> float:
        """Return the simplified silhouette of the centres on these nodes; higher is better."""
        check_is_fitted(self)
        nodes, weights = _checked(X, sample_weight)
        return measure_fit(nodes, weights, self.cluster_centers_)[1]


def _checked(X: Any, sample_weight: Any) -> tuple[FloatArray, FloatArray]:
    nodes = np.asarray(X, dtype=np.float64)
    if nodes.ndim != 2 or not nodes.size or not np.isfinite(nodes).all():
        raise ParameterError(
            f"X must be finite numbers of shape (nodes, columns), got shape {nodes.shape}"
        )
    weights = np.ones(len(nodes)) if sample_weight is None else np.asarray(sample_weight, float)
    if weights.shape != (len(nodes),) or not np.all(weights >= 0) or weights.sum() <= 0:
        raise ParameterError("sample_weight must be one number from 0 for each node, not all 0")
    return nodes, weights
