"""The weighted users that models are fitted to: numbers on one scale, categories as shares.

A model sees a column of numbers from -1 to 1 between its bounds, and a column of categories as the
shares of its categories at a node (one of them is 1 where nodes are pseudo-users). Everything is
read from a synopsis, so fitting costs no privacy.
"""

import functools
from dataclasses import dataclass

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.errors import ParameterError
from splitmeans.kmeans.draws import draw_evenly
from splitmeans.study.features import GRID_UNITS, bounds_of
from splitmeans.synopsis.clustering import NOBODY
from splitmeans.synopsis.synopsis import Synopsis

# A model is fitted to at most so many nodes, drawn evenly over the cells: what more of them would
# tell is far below the noise, and a fit takes as long as it has nodes.
MOST_NODES = 10_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Layout:
    """Which of the D features are what.

    Attributes:
        numbers: The features that are columns of numbers, shape (d,).
        categories: The features of each column of categories.
        scales: Distance units of a feature per unit that models see, shape (D,).
    """

    numbers: IntArray
    categories: tuple[slice, ...]
    scales: FloatArray

    def numbers_of(self, points: FloatArray) -> FloatArray:
        """Return the numbers of points in distance units, shape (n, D), from -1 to 1."""
        return np.asarray(points[:, self.numbers] / self.scales[self.numbers])

    def shares_of(self, points: FloatArray) -> list[FloatArray]:
        """Return for each column of categories the shares at points, each of shape (n, L)."""
        return [level_shares(points[:, own], self.scales[own]) for own in self.categories]

    def points(self, numbers: FloatArray, shares: list[FloatArray]) -> FloatArray:
        """Return points in distance units, shape (n, D): the inverse of the two above."""
        found = np.empty((len(numbers), len(self.scales)))
        found[:, self.numbers] = numbers * self.scales[self.numbers]
        for own, part in zip(self.categories, shares, strict=True):
            found[:, own] = (2 * part - 1) * self.scales[own]
        return found


def level_shares(features: FloatArray, scales: FloatArray) -> FloatArray:
    """Return features of one column of categories as shares that add up to one, shape (n, L)."""
    shares = np.maximum((features / scales + 1) / 2, 0.0)
    sums = shares.sum(axis=1, keepdims=True)
    even = np.full_like(shares, 1 / shares.shape[1])
    return np.asarray(np.divide(shares, sums, out=even, where=sums > 0))


def layout_of(synopsis: Synopsis) -> Layout:
    """Return which features of a synopsis are what."""
    features = tuple(feature for group in synopsis.features for feature in group)
    is_number = np.ones(len(features), dtype=bool)
    for own in synopsis.level_features:
        is_number[own] = False
    return Layout(
        numbers=np.flatnonzero(is_number),
        categories=synopsis.level_features,
        scales=bounds_of(features) / GRID_UNITS,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelUsers:
    """Nodes with users, at most `MOST_NODES` of them.

    Attributes:
        synopsis: Where they come from.
        points: In distance units, shape (n, D).
        weights: Users at each, above zero, shape (n,).
    """

    synopsis: Synopsis
    points: FloatArray
    weights: FloatArray

    @functools.cached_property
    def layout(self) -> Layout:
        """Which features are what."""
        return layout_of(self.synopsis)

    @functools.cached_property
    def numbers(self) -> FloatArray:
        """Columns of numbers from -1 to 1, shape (n, d)."""
        return self.layout.numbers_of(self.points)

    @functools.cached_property
    def shares(self) -> list[FloatArray]:
        """Shares of the categories of each such column, each of shape (n, L)."""
        return self.layout.shares_of(self.points)

    @property
    def total(self) -> float:
        """Estimated users."""
        return float(self.weights.sum())

    @functools.cached_property
    def n_places(self) -> int:
        """How many different places they are at."""
        return len(np.unique(self.points, axis=0))


def model_users(synopsis: Synopsis, *, rng: np.random.Generator) -> ModelUsers:
    """Return the users to fit a model to.

    Raises:
        ParameterError: If nobody was counted.
    """
    used = np.flatnonzero(synopsis.weights > 0)
    if len(used) == 0:
        raise ParameterError(NOBODY)
    weights = synopsis.weights[used]
    if len(used) > MOST_NODES:
        used = used[draw_evenly(weights, MOST_NODES, rng=rng)]
        weights = np.full(MOST_NODES, synopsis.total / MOST_NODES)
    return ModelUsers(synopsis=synopsis, points=synopsis.scaled_nodes[used], weights=weights)
