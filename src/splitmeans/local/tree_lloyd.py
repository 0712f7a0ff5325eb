"""Tree-Lloyd: starting points from a noisy tree, then Lloyd's steps on noisy sums."""

import math
from dataclasses import dataclass

import numpy as np

from splitmeans import _validate
from splitmeans._types import IntArray
from splitmeans.kernels.assign import nearest
from splitmeans.local.lsh_tree import GaussianTree
from splitmeans.local.mechanism import (
    COUNT_UNITS,
    check_public,
    clip_rows,
    gaussian_event,
    l2_sensitivity,
    mu_scale,
    to_grid,
)
from splitmeans.privacy.events import ComposedEvent
from splitmeans.privacy.noise import NoiseSource


@dataclass(frozen=True, kw_only=True)
class TreeLloyd:
    """Gaussian tree for starting points, then Gaussian Lloyd steps.

    Guarantee: for adding or removing one row, mu-Gaussian privacy.
    """

    n_clusters: int
    bounds: tuple[int, ...]
    mu: float
    steps: int = 4
    tree_share: float = 0.4

    def __post_init__(self) -> None:
        check_public(n_clusters=self.n_clusters, bounds=self.bounds)
        _validate.positive(mu=self.mu)

    @property
    def _tree(self) -> GaussianTree:
        mu = self.mu * math.sqrt(self.tree_share)
        return GaussianTree(n_clusters=self.n_clusters, bounds=self.bounds, mu=mu)

    @property
    def _vector_bounds(self) -> tuple[int, ...]:
        return (*self.bounds, COUNT_UNITS)

    @property
    def step_scale(self) -> int:
        """Scale of the noise on a step's counts and sums."""
        mu = self.mu * math.sqrt((1 - self.tree_share) / self.steps)
        return mu_scale(l2_sensitivity(self._vector_bounds), mu=mu)

    @property
    def event(self) -> ComposedEvent:
        """The tree, then the steps."""
        step = gaussian_event(
            self.step_scale,
            sensitivity=l2_sensitivity(self._vector_bounds),
            coordinates=len(self.bounds) + 1,
        )
        return ComposedEvent(parts=(*self._tree.event.parts, *(step,) * self.steps))

    def release(
        self, raw_rows: IntArray, *, noise: NoiseSource, rng: np.random.Generator
    ) -> IntArray:
        """Return the centres, shape (k', d); see `LocalClustering`."""
        rows = clip_rows(raw_rows, self.bounds)
        centres = self._tree.release(rows, noise=noise, rng=rng)
        k, d = centres.shape
        for _ in range(self.steps):
            labels = nearest(rows, centres)
            raw = np.zeros((k, d + 1), dtype=np.int64)
            for c in range(k):
                members = rows[labels == c]
                raw[c, :d] = members.sum(axis=0)
                raw[c, d] = len(members) * COUNT_UNITS
            noisy = raw + noise.gaussian(self.step_scale, raw.size).reshape(raw.shape)
            counts = noisy[:, d] / COUNT_UNITS
            useful = counts > 2.5 * self.step_scale / COUNT_UNITS
            means = noisy[:, :d] / np.where(useful, counts, 1)[:, np.newaxis]
            centres = np.where(useful[:, np.newaxis], to_grid(means, self.bounds), centres)
        return centres
