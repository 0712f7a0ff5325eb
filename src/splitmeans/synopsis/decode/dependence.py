"""How columns of different parties go together within cells, told by how cells do.

A pair table says which local clusters of two parties meet. Within a cell it says nothing, so the
dependence of two parties' columns is seen through cells and comes out too weak: with few clusters,
or many columns, by half. For columns that depend on each other in a straight line the loss is
known. Let T be the covariance of one party's points, B that of its clusters' means, and
R = B T^-1, the part of every direction that clusters show. Of the covariance C of two parties'
columns their clusters then show R_i C R_j', so C is what they show, divided by it.

Not all tables are like that. Clear segments depend through nothing but their clusters, and there
the division would make up a dependence that nobody has. The tables tell this themselves: with
neighbouring clusters taken as one, what the coarse tables foretell of the fine ones is compared
with the fine ones (`_borne_out`). As far as it is found there it is believed.

Made from released values only: it is post-processing, and costs no privacy.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kmeans.weighted_kmeans import weighted_kmeans

# The least part of a direction that clusters are taken to show: noise is divided by it twice.
_LEAST_SHOWN = 0.15
# Least variance of a direction, with all parties' columns of variance 1: it would be a column that
# is known from the others.
_LEAST_LEFT = 0.15
# A party's features that enter, those that vary most: of a column with hundreds of levels the rare
# ones say nothing.
_MOST_FEATURES = 96
# Directions with less than this share of the largest variance are none.
_NO_VARIANCE = 1e-6
# So few local clusters cannot be taken together and leave something to compare.
_FEWEST_CLUSTERS = 4


class PartySide(NamedTuple):
    """One party's columns as far as its clusters tell of them.

    Attributes:
        places: Each pseudo-user's place in directions that are uncorrelated and of variance 1,
            shape (u, q); q is less than the number of local clusters.
        labels: Its local cluster, shape (u,).
        shown: The variance between clusters in each direction, at most 1, shape (q,).
    """

    places: FloatArray
    labels: IntArray
    shown: FloatArray


class Dependence(NamedTuple):
    """What pulls places of different parties together.

    Attributes:
        ties: For two directions how far large values meet large ones beyond cells, in all parties'
            directions one after the other, shape (Q, Q); zero within a party.
        believed: How far the tables bear it out, between 0 and 1; `ties` have it in them.
    """

    ties: FloatArray
    believed: float


def party_side(places: FloatArray, labels: IntArray, weights: FloatArray) -> PartySide:
    """Return one party's side of the dependence.

    Args:
        places: The places of pseudo-users in the party's features, shape (u, d).
        labels: Their local clusters, shape (u,).
        weights: How many users each stands for, their sum positive.
    """
    centred = places - np.average(places, axis=0, weights=weights)
    spread = np.average(np.square(centred), axis=0, weights=weights)
    if len(spread) > _MOST_FEATURES:
        most = np.sort(np.argsort(-spread, kind="stable")[:_MOST_FEATURES])
        centred, spread = centred[:, most], spread[most]
    if not spread.max(initial=0.0) > 0:
        return PartySide(np.zeros((len(places), 0)), labels, np.zeros(0))
    even = _directions(_covariance(centred, centred, weights))
    whitened = centred @ even
    shown, turn = np.linalg.eigh(_between(whitened, labels, weights))
    kept = shown > _NO_VARIANCE
    return PartySide(whitened @ turn[:, kept], labels, np.minimum(shown[kept], 1.0))


def dependence(
    sides: Sequence[PartySide], weights: FloatArray, *, rng: np.random.Generator
) -> Dependence:
    """Return how the parties' directions depend on each other beyond what cells say.

    Args:
        sides: Every party's side.
        weights: How many users each pseudo-user stands for, their sum positive.
        rng: Starts the search for neighbouring clusters.
    """
    believed = _borne_out(sides, weights, rng=rng)
    if believed <= 0:
        size = sum(len(side.shown) for side in sides)
        return Dependence(ties=np.zeros((size, size)), believed=0.0)
    seen = [_means_of(side.places, side.labels, weights) for side in sides]
    correlation = _assembled(
        {
            (i, j): _undone(_covariance(seen[i], seen[j], weights), sides[i].shown, sides[j].shown)
            for i, j in _pairs(len(sides))
        },
        widths=[len(side.shown) for side in sides],
    )
    return Dependence(
        ties=believed * _ties(correlation, [len(side.shown) for side in sides]), believed=believed
    )


def _borne_out(
    sides: Sequence[PartySide], weights: FloatArray, *, rng: np.random.Generator
) -> float:
    """Return how much of what coarse clusters foretell of fine ones these show, from 0 to 1."""
    coarse = [_taken_together(side, weights, rng=rng) for side in sides]
    foretold_found = foretold_squared = 0.0
    fine = [_means_of(side.places, side.labels, weights) for side in sides]
    for i, j in _pairs(len(sides)):
        one, other = coarse[i], coarse[j]
        if one is None or other is None:
            continue
        known = _covariance(
            _means_of(one.places, one.labels, weights),
            _means_of(other.places, other.labels, weights),
            weights,
        )
        whole = _undone(known, one.shown, other.shown)
        # All in the directions of the fine clusters: the coarse ones are turned against them.
        turns = [
            _covariance(side.places, given.places, weights)
            for side, given in ((sides[i], one), (sides[j], other))
        ]
        before = turns[0] @ known @ turns[1].T
        shown = np.outer(sides[i].shown, sides[j].shown)
        foretold = shown * (turns[0] @ whole @ turns[1].T) - before
        found = _covariance(fine[i], fine[j], weights) - before
        foretold_found += float(np.vdot(foretold, found))
        foretold_squared += float(np.vdot(foretold, foretold))
    return min(max(foretold_found / foretold_squared, 0.0), 1.0) if foretold_squared > 0 else 0.0


def _taken_together(
    side: PartySide, weights: FloatArray, *, rng: np.random.Generator
) -> PartySide | None:
    """Return the side with half as many clusters, neighbours taken as one; None with too few."""
    used, labels = np.unique(side.labels, return_inverse=True)
    if len(used) < _FEWEST_CLUSTERS or len(side.shown) == 0:
        return None
    sizes = np.bincount(labels, weights=weights).astype(np.float64)
    means = np.zeros((len(used), len(side.shown)))
    means[labels] = _means_of(side.places, side.labels, weights)
    centres = weighted_kmeans(means, sizes, n_clusters=len(used) // 2, rng=rng)
    apart = np.square(means[:, np.newaxis] - centres).sum(axis=2)
    return party_side(side.places, apart.argmin(axis=1)[labels.ravel()], weights)


def _ties(correlation: FloatArray, widths: Sequence[int]) -> FloatArray:
    """Return what in a normal distribution of this correlation ties directions to each other.

    Of its density exp(-x' P x / 2), P the inverse, the ties are -P between parties. What noise made
    impossible is brought back first.
    """
    values, vectors = np.linalg.eigh(correlation)
    possible = (vectors * np.maximum(values, _LEAST_LEFT)) @ vectors.T
    scale = np.sqrt(np.diag(possible))
    ties: FloatArray = -np.linalg.inv(possible / np.outer(scale, scale))
    ends = np.cumsum(widths)
    for start, end in zip(ends - widths, ends, strict=True):
        ties[start:end, start:end] = 0.0
    return ties


def _undone(covariance: FloatArray, shown: FloatArray, other_shown: FloatArray) -> FloatArray:
    """Return the covariance of two parties' directions from that of their clusters' means."""
    parts = np.maximum(shown, _LEAST_SHOWN), np.maximum(other_shown, _LEAST_SHOWN)
    return np.asarray(covariance / np.outer(*parts))


def _assembled(blocks: dict[tuple[int, int], FloatArray], *, widths: Sequence[int]) -> FloatArray:
    """Return one symmetric matrix of all directions, with ones on its diagonal."""
    ends = np.cumsum(widths)
    slices = [slice(end - width, end) for end, width in zip(ends, widths, strict=True)]
    whole = np.eye(int(ends[-1]))
    for (i, j), block in blocks.items():
        whole[slices[i], slices[j]] = block
        whole[slices[j], slices[i]] = block.T
    return whole


def _pairs(n_parties: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(n_parties) for j in range(i + 1, n_parties)]


def _directions(covariance: FloatArray) -> FloatArray:
    """Return directions in which columns of this covariance have variance 1, shape (d, q)."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > _NO_VARIANCE * values[-1]
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


def _between(places: FloatArray, labels: IntArray, weights: FloatArray) -> FloatArray:
    means = _means_of(places, labels, weights)
    return _covariance(means, means, weights)


def _covariance(first: FloatArray, second: FloatArray, weights: FloatArray) -> FloatArray:
    return np.asarray((first * weights[:, np.newaxis]).T @ second / weights.sum())


def _means_of(places: FloatArray, labels: IntArray, weights: FloatArray) -> FloatArray:
    """Return for each pseudo-user the mean of its cluster, shape (u, q)."""
    sizes = np.bincount(labels, weights=weights).astype(np.float64)
    sums = [np.bincount(labels, weights=weights * column) for column in places.T]
    if not sums:
        return np.zeros_like(places)
    means = np.stack(sums, axis=1) / np.where(sizes > 0, sizes, 1.0)[:, np.newaxis]
    return np.asarray(means[labels])
