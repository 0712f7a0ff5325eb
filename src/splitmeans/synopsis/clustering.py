"""Segments found on weighted nodes: those that have users, the largest first.

K-means on a noisy grid can be asked for more segments than there are places with users. Centres
that repeat others have nobody: they are left out, so that every segment named anywhere has users,
and the first is A everywhere (`segments.letter`).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.kmeans.distances import CHUNK_ROWS, distance_chunks
from splitmeans.kmeans.weighted_kmeans import weighted_kmeans
from splitmeans.study import EVERYONE, Study
from splitmeans.study.features import Feature, to_own_units

if TYPE_CHECKING:
    from splitmeans.synopsis.synopsis import Synopsis

# Said by server, party, estimator, commands and report alike.
NOBODY = (
    "the released counts hold no user: the noise is larger than what any cell counts, so there are "
    "no segments; agree on more epsilon, more users or fewer local clusters"
)


COUNTS_ALONE = (
    "this was a study of counts alone: it asked how many users are at which parties, and nothing "
    "about them, so there are no segments"
)
TOO_FEW_SHARED = (
    "too few users are at all parties: their released number is below ten times its noise, so no "
    "segments of them are published; agree on more epsilon or fewer parties, or on segments of "
    'everyone (population = "everyone")'
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Clustering:
    """Segments found on a synopsis, the largest first; every one has users.

    Attributes:
        centres: Centres in the columns' own units, party order, shape (k, D). k is what was asked
            for, or fewer if fewer places have users; 0 if nobody was counted.
        scaled_centres: The same in distance units, shape (k, D).
        sizes: Estimated users of each cluster, shape (k,).
        loss: Mean squared distance to the nearest centre over the weighted nodes, in distance
            units; see `Synopsis.estimated_loss`.
    """

    centres: FloatArray
    scaled_centres: FloatArray
    sizes: FloatArray
    loss: float


def cluster_nodes(
    scaled_nodes: FloatArray,
    weights: FloatArray,
    features: tuple[Feature, ...],
    *,
    k: int,
    rng: np.random.Generator,
    stretch: FloatArray | None = None,
) -> Clustering:
    """Find up to k segments on weighted nodes.

    Args:
        scaled_nodes: Shape (nodes, D), in distance units.
        weights: Users of each, zero or more, shape (nodes,).
        features: The D features.
        k: How many are wanted.
        rng: Draws the starting centres.
        stretch: See `Synopsis.stretch`.
    """
    total = float(weights.sum())
    if total <= 0:
        return _none(len(features))
    nodes = scaled_nodes if stretch is None else scaled_nodes * stretch
    found = weighted_kmeans(nodes, weights, n_clusters=k, rng=rng)
    sizes, cost = _assign(nodes, weights, found)
    if stretch is not None:
        found = found / stretch
    order = np.argsort(-sizes, kind="stable")[: int(np.count_nonzero(sizes > 0))]
    return Clustering(
        centres=to_own_units(features, found[order]),
        scaled_centres=found[order],
        sizes=sizes[order],
        loss=cost / total,
    )


def no_segments(synopsis: "Synopsis") -> Clustering:
    """Return a clustering without segments, for a study that asks for none."""
    return _none(synopsis.scaled_nodes.shape[1])


def _none(n_features: int) -> Clustering:
    none = np.zeros((0, n_features))
    return Clustering(centres=none, scaled_centres=none, sizes=np.zeros(0), loss=0.0)


def nobody(study: Study) -> str:
    """Return what to say of a run of a study that ends without segments."""
    shared = study.population != EVERYONE and len(study.parties) > 2
    return TOO_FEW_SHARED if shared else NOBODY


def about_found(found: int, study: Study) -> str | None:
    """Return what to say if fewer segments were found than the study asks for."""
    asked = study.n_clusters
    if study.counts_only:
        return None
    if found == 0:
        return nobody(study)
    if found < asked:
        return (
            f"asked for k = {asked}, found {found} with users: the released counts have users in "
            "no more different places"
        )
    return None


def _assign(
    points: FloatArray, weights: FloatArray, centres: FloatArray
) -> tuple[FloatArray, float]:
    """Return the weight nearest to each centre, shape (k,), and the weighted squared distance."""
    sizes = np.zeros(len(centres))
    cost = 0.0
    for rows, distances in distance_chunks(points, centres, chunk_rows=CHUNK_ROWS):
        nearest = distances.argmin(axis=1)
        sizes += np.bincount(nearest, weights=weights[rows], minlength=len(centres))
        cost += float(weights[rows] @ distances.min(axis=1))
    return sizes, cost
