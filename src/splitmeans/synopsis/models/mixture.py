"""Gaussian mixtures on a synopsis: overlapping segments, each with a shape of its own.

A component is a segment whose users lie around its centre as a Gaussian in the columns of numbers,
and have categories with probabilities of its own. Unlike k-means it does not cut space at borders:
every user has a probability of each. Fitted to the published nodes by expectation maximisation
(`mixture_steps.py`), so it costs no privacy, for any k and as often as one likes.
"""

import functools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from splitmeans._types import NO_VALUE, FloatArray, IntArray
from splitmeans.errors import ParameterError
from splitmeans.kmeans.distances import distance_chunks
from splitmeans.kmeans.weighted_kmeans import weighted_kmeans
from splitmeans.study.features import GRID_UNITS, to_own_units
from splitmeans.synopsis.models.mixture_steps import (
    Components,
    best_components,
    responsibilities,
)
from splitmeans.synopsis.models.model_users import Layout, ModelUsers, layout_of, model_users
from splitmeans.synopsis.synopsis import Synopsis

AUTO, FULL, DIAGONAL = "auto", "full", "diagonal"
COVARIANCES = (AUTO, FULL, DIAGONAL)

# So many starts take the first steps; the best of them goes on.
_STARTS, _FIRST_STEPS, _MOST_STEPS = 3, 8, 150
# Steps end when the mean log likelihood of a user gains less.
_LEAST_GAIN = 5e-4
_CHUNK = 65_536


@dataclass(frozen=True, kw_only=True, eq=False)
class Mixture:
    """A mixture fitted to a synopsis, the largest component first.

    Attributes:
        synopsis: What it was fitted to.
        components: Its components, in the scale of columns from -1 to 1 between their bounds.
        log_likelihood: Mean over the weighted nodes of the logarithm of the density, in that scale.
    """

    synopsis: Synopsis
    components: Components
    log_likelihood: float

    def __repr__(self) -> str:
        return (
            f"<Mixture of {self.k} components, {self.covariance} covariances: mean log likelihood "
            f"{self.log_likelihood:.3f}>"
        )

    @property
    def k(self) -> int:
        """How many components: as many as were asked for, or fewer if there are fewer places."""
        return len(self.components.shares)

    @property
    def covariance(self) -> str:
        """Whether covariances are "full" or "diagonal"."""
        return DIAGONAL if self.components.is_diagonal else FULL

    @property
    def shares(self) -> FloatArray:
        """The share of all users that each component stands for, shape (k,)."""
        return self.components.shares

    @property
    def sizes(self) -> FloatArray:
        """Estimated users of each component, shape (k,)."""
        return self.components.shares * self.synopsis.total

    @functools.cached_property
    def _layout(self) -> Layout:
        return layout_of(self.synopsis)

    @functools.cached_property
    def scaled_centres(self) -> FloatArray:
        """Centres in distance units, shape (k, D)."""
        return self._layout.points(self.components.means, list(self.components.probabilities))

    @property
    def centres(self) -> FloatArray:
        """Centres in the columns' own units, shape (k, D); a category has its probability."""
        features = tuple(feature for group in self.synopsis.features for feature in group)
        return to_own_units(features, self.scaled_centres)

    @property
    def deviations(self) -> FloatArray:
        """Standard deviation of each feature within each component, in own units, shape (k, D)."""
        own = self.components
        variances = (
            own.covariances if own.is_diagonal else np.diagonal(own.covariances, axis1=1, axis2=2)
        )
        features = [feature for group in self.synopsis.features for feature in group]
        found = np.empty((self.k, len(features)))
        for at, deviation in zip(self._layout.numbers, np.sqrt(variances).T, strict=True):
            # Halved first: a difference of bounds may be close to the largest float.
            found[:, at] = deviation * (features[at].high / 2 - features[at].low / 2)
        for place, shares in zip(self._layout.categories, own.probabilities, strict=True):
            found[:, place] = np.sqrt(shares * (1 - shares))
        return found

    @property
    def n_parameters(self) -> int:
        """Free numbers of the model."""
        d = self.components.means.shape[1]
        shape = d if self.components.is_diagonal else d * (d + 1) // 2
        levels = sum(own.shape[1] - 1 for own in self.components.probabilities)
        return int(self.k * (d + shape + levels) + self.k - 1)

    @property
    def bic(self) -> float:
        """Bayesian information criterion; the model with the least of it is suggested."""
        users = self.synopsis.total
        cost = self.n_parameters * math.log(max(users, 2.0))
        return cost - 2 * users * self.log_likelihood

    def probabilities(self, points: npt.ArrayLike, *, scaled: bool = False) -> FloatArray:
        """Return how likely each component is for points with all features, shape (n, k).

        Args:
            points: Shape (n, D), in the columns' own units, features in the order of the synopsis.
            scaled: Say that they are in distance units instead.
        """
        return self._read(points, scaled=scaled)[0]

    def score(self, points: npt.ArrayLike, *, scaled: bool = False) -> float:
        """Return the mean log likelihood of points, as `probabilities` takes them."""
        return float(self._read(points, scaled=scaled)[1].mean())

    def _read(self, points: npt.ArrayLike, *, scaled: bool) -> tuple[FloatArray, FloatArray]:
        placed = self.synopsis.scaled_centres(points, scaled=scaled)
        parts = []
        for start in range(0, len(placed), _CHUNK):
            part = placed[start : start + _CHUNK]
            shares = self._layout.shares_of(part)
            densities = self.components.log_densities(self._layout.numbers_of(part), shares)
            parts.append(responsibilities(densities))
        found, scores = zip(*parts, strict=True)
        return np.concatenate(found), np.concatenate(scores)

    @functools.cached_property
    def of_node(self) -> IntArray:
        """The likeliest component of each node of the synopsis, shape (nodes,)."""
        found = self.probabilities(self.synopsis.scaled_nodes, scaled=True)
        return np.asarray(found.argmax(axis=1), dtype=np.int64)

    def own_shares(self, own_rows: IntArray, *, party: str) -> FloatArray:
        """Return how likely each component is for rows of one party's columns, shape (n, k).

        By the mixture that these columns alone have. What a row has no value of is left out.

        Args:
            own_rows: In grid integers, shape (n, d_l), `NO_VALUE` where a row has none.
            party: Whose columns they are.
        """
        own = self.synopsis.columns_of(party)
        features = self._layout.scales[own]
        points = own_rows / GRID_UNITS
        is_number = np.zeros(len(self._layout.scales), dtype=bool)
        is_number[self._layout.numbers] = True
        here = [own.start <= part.start < own.stop for part in self._layout.categories]
        whole = self.components.of_columns(
            np.isin(self._layout.numbers, np.arange(own.start, own.stop)),
            np.array(here, dtype=bool),
        )
        numbers = np.flatnonzero(is_number[own])
        levels = [
            slice(part.start - own.start, part.stop - own.start)
            for part, is_here in zip(self._layout.categories, here, strict=True)
            if is_here
        ]
        known = np.stack(
            [own_rows[:, at] != NO_VALUE for at in (*numbers, *(part.start for part in levels))],
            axis=1,
        )
        found = np.empty((len(own_rows), self.k))
        patterns, which = np.unique(known, axis=0, return_inverse=True)
        for place, pattern in enumerate(patterns):
            rows = np.flatnonzero(which.ravel() == place)
            kept_numbers, kept_levels = pattern[: len(numbers)], pattern[len(numbers) :]
            margin = whole.of_columns(kept_numbers, kept_levels)
            kept = numbers[kept_numbers]
            chosen = [part for part, is_kept in zip(levels, kept_levels, strict=True) if is_kept]
            for start in range(0, len(rows), _CHUNK):
                some = points[rows[start : start + _CHUNK]]
                shares = [
                    np.maximum((some[:, part] / features[part] + 1) / 2, 0.0) for part in chosen
                ]
                densities = margin.log_densities(some[:, kept] / features[kept], shares)
                found[rows[start : start + _CHUNK]] = responsibilities(densities)[0]
        return found


def fit_mixture(
    synopsis: Synopsis, k: int, *, covariance: str = AUTO, rng: np.random.Generator
) -> Mixture:
    """Fit a mixture of up to k components; see `Synopsis.mixture`."""
    if covariance not in COVARIANCES:
        listed = ", ".join(repr(one) for one in COVARIANCES)
        raise ParameterError(f"covariance must be one of {listed}, got {covariance!r}")
    users = model_users(synopsis, rng=rng)
    starts = [
        _start(users, min(k, users.n_places), rng=rng) for _ in range(_STARTS if k > 1 else 1)
    ]
    kinds = (FULL, DIAGONAL) if covariance == AUTO else (covariance,)
    fits = []
    for kind in kinds:
        components, score = _fit(users, starts, diagonal=kind == DIAGONAL)
        fits.append(Mixture(synopsis=synopsis, components=components, log_likelihood=score))
    return min(fits, key=lambda fit: fit.bic)


def _fit(
    users: ModelUsers, starts: list[FloatArray], *, diagonal: bool
) -> tuple[Components, float]:
    """Return the components that the best of some starts leads to, and mean log likelihoods."""
    first = [_steps(users, given, diagonal=diagonal, most=_FIRST_STEPS) for given in starts]
    given, _, _ = max(first, key=lambda found: found[2])
    _, components, score = _steps(users, given, diagonal=diagonal, most=_MOST_STEPS)
    return _largest_first(components), score


def _steps(
    users: ModelUsers, given: FloatArray, *, diagonal: bool, most: int
) -> tuple[FloatArray, Components, float]:
    """Take steps from probabilities of components; return new ones, components and their score."""
    numbers, shares, weights = users.numbers, users.shares, users.weights
    score = -math.inf
    for _ in range(most):
        components = best_components(numbers, shares, weights, given, diagonal=diagonal)
        given, scores = responsibilities(components.log_densities(numbers, shares))
        before, score = score, float(weights @ scores / weights.sum())
        if score - before < _LEAST_GAIN:
            break
    return given, components, score


def _start(users: ModelUsers, k: int, *, rng: np.random.Generator) -> FloatArray:
    """Return one component for each node: the nearest of k centres by k-means."""
    points = users.synopsis.seen(users.points)
    levels = users.layout.categories
    centres = weighted_kmeans(points, users.weights, n_clusters=k, rng=rng, starts=1, levels=levels)
    nearest = np.concatenate(
        [distances.argmin(axis=1) for _, distances in distance_chunks(points, centres)]
    )
    return np.asarray(nearest[:, np.newaxis] == np.arange(k), dtype=np.float64)


def _largest_first(components: Components) -> Components:
    order = np.argsort(-components.shares, kind="stable")
    return Components(
        shares=components.shares[order],
        means=components.means[order],
        covariances=components.covariances[order],
        probabilities=tuple(own[order] for own in components.probabilities),
    )
