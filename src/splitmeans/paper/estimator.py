"""`PaperKMeans`: the paper's system behind scikit-learn's interface."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from splitmeans import _validate
from splitmeans._types import FloatArray
from splitmeans.errors import DataError
from splitmeans.paper.algorithm1 import Settings, vertical_clustering
from splitmeans.privacy.noise import InsecureSeededNoise, NoiseSource, SecureNoise


class PaperKMeans(BaseEstimator):  # type: ignore[misc]
    """Vertical federated k-means as published, for reproducing the paper; all in one process.

    Guarantee: none for "exact" and "plain". The published bound of "dpfmps" does not hold, and
    "ldp-agg" does not hide who is a user. `fit` warns of each, and `statement_` begins with it. For
    what remains read `algorithm1.vertical_clustering`.

    Args:
        n_clusters: Number of centres, k.
        epsilon: Total epsilon of all parties.
        delta: Total delta; the paper takes 1/n.
        membership: "dpfmps" (Algorithms 2 to 5; bound not proved), "ind-lap", "ldp-agg" (does not
            hide who is a user) or "exact" (not private).
        local: Local clustering: "dplsf", "dplloyd" or "plain" (not private).
        estimate: "basic" (Algorithm 4), "2pest" (Algorithm 5), or "auto": 2PEst where the method
            has it.
        n_local_clusters: k', or "auto": the rule of section 5.2 for "dpfmps", k for the others.
        random_state: A whole number repeats a run, noise included, so that it hides nothing. None
            takes noise from the operating system.

    Attributes:
        cluster_centers_: Shape (k, all columns in party order).
        grid_weights_: Estimated users of every cell, shape (k', ..., k').
        local_centers_: For each party its private centres, shape (k', m_l).
        noisy_count_: The released number of users; None where the method needs none.
        statement_: What the run claims, as text; it begins with what does not hold.

    Example:
        >>> from splitmeans.paper import PaperKMeans, mixed_gaussian
        >>> rows = mixed_gaussian(2000, random_state=0).rows
        >>> model = PaperKMeans(5, epsilon=4, delta=1e-4, membership="ind-lap", random_state=0)
        >>> model.fit([rows[:, :4], rows[:, 4:]]).cluster_centers_.shape
        (5, 8)
    """

    def __init__(
        self,
        n_clusters: int,
        *,
        epsilon: float,
        delta: float,
        membership: str,
        local: str = "dplsf",
        estimate: str = "auto",
        n_local_clusters: int | str = "auto",
        random_state: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.membership = membership
        self.local = local
        self.estimate = estimate
        self.n_local_clusters = n_local_clusters
        self.random_state = random_state

    def fit(self, X: Sequence[npt.ArrayLike], y: Any = None) -> Self:
        """Find the centres; `X` holds for each party its rows in [-1, 1], shape (n, m_l).

        Row i is the same user at every party; `y` is ignored.
        """
        datasets = read_datasets(X)
        settings = Settings(
            n_clusters=self.n_clusters,
            epsilon=self.epsilon,
            delta=self.delta,
            n_parties=len(datasets),
            membership=self.membership,
            local=self.local,
            estimate=self.estimate,
        )
        if self.n_local_clusters != "auto":
            _validate.at_least(2, n_local_clusters=self.n_local_clusters)
        noise: NoiseSource = SecureNoise()
        if self.random_state is not None:
            noise = InsecureSeededNoise(self.random_state)
        outcome = vertical_clustering(
            datasets,
            settings,
            n_local_clusters=None
            if self.n_local_clusters == "auto"
            else int(self.n_local_clusters),
            noise=noise,
            rng=np.random.default_rng(self.random_state),
        )
        self.cluster_centers_ = outcome.centres
        self.grid_weights_ = outcome.weights
        self.local_centers_ = tuple(message.centres for message in outcome.messages)
        self.noisy_count_ = outcome.noisy_count
        self.statement_ = outcome.statement
        return self


def read_datasets(given: Sequence[npt.ArrayLike]) -> list[FloatArray]:
    """Return the parties' rows as arrays; raise if they do not fit each other."""
    datasets = [np.asarray(rows, dtype=np.float64) for rows in given]
    if len(datasets) < 2:
        raise DataError(f"X must hold the rows of at least two parties, got {len(datasets)}")
    for party, rows in enumerate(datasets):
        if rows.ndim != 2 or rows.size == 0:
            raise DataError(f"X[{party}] must have rows and columns, got shape {rows.shape}")
        if len(rows) != len(datasets[0]):
            raise DataError(
                f"X[{party}] must have as many rows as X[0], {len(datasets[0])}, got {len(rows)}"
            )
        if not (np.abs(rows) <= 1).all():
            raise DataError(f"X[{party}] must have values from -1 to 1; scale its columns")
    return datasets
