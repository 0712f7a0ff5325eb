"""Growing a tree of segments: joins above given segments, splits below them (see `tree.py`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from splitmeans._types import FloatArray, IntArray
from splitmeans.kmeans.distances import squared_distances
from splitmeans.kmeans.weighted_kmeans import weighted_kmeans
from splitmeans.synopsis.models.model_users import ModelUsers

ROOT_NAME = "all"
_STARTS = 3

Sides: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class Branch:
    """A segment of a tree.

    Attributes:
        name: Letters of the given segments that it is made of, as "A+C"; parts of one are "A1" and
            "A2", the larger first.
        since: The least k at which it is a segment.
        until: The k from which on it is split; None if it never is.
        parent: Position of the segment that it is split from; None for the root.
        children: Positions of the two that it splits into, the larger first; None if it does not.
        scaled_centre: Its centre in distance units, shape (D,).
    """

    name: str
    since: int
    until: int | None
    parent: int | None
    children: tuple[int, int] | None
    scaled_centre: FloatArray


@dataclass(kw_only=True, eq=False)
class _Part:
    """A segment while the tree grows; `point` is its centre as k-means sees it."""

    name: str
    point: FloatArray
    size: float
    until: int | None = None
    children: "tuple[_Part, _Part] | None" = None


def grow(
    users: ModelUsers,
    scaled_centres: FloatArray,
    letters: Sequence[str],
    *,
    most: int,
    rng: np.random.Generator,
) -> tuple[Branch, ...]:
    """Return the branches of a tree, the root first, parents before their children.

    Args:
        users: What it is grown on.
        scaled_centres: The given segments in distance units, shape (k, D), at least one.
        letters: What they are called.
        most: Split until there are so many segments, or no two users are apart.
        rng: Seeds the starts of k-means.
    """
    seen = users.synopsis.seen
    places, points = seen(users.points), seen(scaled_centres)
    nearest = squared_distances(places, points).argmin(axis=1)
    sizes = np.bincount(nearest, weights=users.weights, minlength=len(points))
    given = [
        _Part(name=name, point=point, size=float(size))
        for name, point, size in zip(letters, points, sizes, strict=True)
    ]
    rows = [np.flatnonzero(nearest == at) for at in range(len(given))]
    _split(given, rows, places, users, most=most, rng=rng)
    return _listed(_joined(given), stretch=users.synopsis.stretch)


def _split(
    given: list[_Part],
    rows: list[IntArray],
    places: FloatArray,
    users: ModelUsers,
    *,
    most: int,
    rng: np.random.Generator,
) -> None:
    """Split the part that gains most, again and again."""

    def best_split(part: _Part, own: IntArray) -> tuple[float, FloatArray, Sides] | None:
        """Return how much squared distance two centres save, the centres, and whose is nearer."""
        if len(np.unique(places[own], axis=0)) < 2:
            return None
        weights = users.weights[own]
        levels = users.layout.categories
        two = weighted_kmeans(
            places[own], weights, n_clusters=2, rng=rng, starts=_STARTS, levels=levels
        )
        distances = squared_distances(places[own], two)
        second = distances[:, 1] < distances[:, 0]
        if second.all() or not second.any():
            return None
        before = np.square(places[own] - part.point).sum(axis=1)
        return float(weights @ (before - distances.min(axis=1))), two, second

    leaves = [(part, own, best_split(part, own)) for part, own in zip(given, rows, strict=True)]
    while len(leaves) < most:
        gains = [-np.inf if split is None else split[0] for _, _, split in leaves]
        at = int(np.argmax(gains))
        part, own, split = leaves[at]
        if split is None:
            return
        _, two, second = split
        halves = [own[~second], own[second]]
        sizes = [float(users.weights[half].sum()) for half in halves]
        order = (0, 1) if sizes[0] >= sizes[1] else (1, 0)
        part.until = len(leaves) + 1
        parts = [
            _Part(name=f"{part.name}{rank + 1}", point=two[side], size=sizes[side])
            for rank, side in enumerate(order)
        ]
        part.children = (parts[0], parts[1])
        new = [
            (child, halves[side], best_split(child, halves[side]))
            for child, side in zip(parts, order, strict=True)
        ]
        leaves[at : at + 1] = new


def _joined(given: list[_Part]) -> _Part:
    """Join the two parts whose union costs least, until one is left: the root."""
    left = list(given)
    while len(left) > 1:
        points = np.stack([part.point for part in left])
        sizes = np.array([part.size for part in left])
        # Ward's rule. Parts without users join for nothing.
        costs = squared_distances(points, points) * (
            np.outer(sizes, sizes) / np.maximum(np.add.outer(sizes, sizes), 1e-300)
        )
        costs[np.tril_indices(len(left))] = np.inf
        first, second = np.unravel_index(int(costs.argmin()), costs.shape)
        pair = sorted((left[int(first)], left[int(second)]), key=lambda part: -part.size)
        size = pair[0].size + pair[1].size
        shares = [part.size / size if size > 0 else 0.5 for part in pair]
        names = {letter for part in pair for letter in part.name.split("+")}
        union = _Part(
            name="+".join(sorted(names, key=lambda name: (len(name), name))),
            point=shares[0] * pair[0].point + shares[1] * pair[1].point,
            size=size,
            until=len(left),
            children=(pair[0], pair[1]),
        )
        left = [part for part in left if part not in pair] + [union]
    root = left[0]
    if len(given) > 1:
        root.name = ROOT_NAME
    return root


def _listed(root: _Part, *, stretch: FloatArray | None) -> tuple[Branch, ...]:
    """Return the parts as branches, level by level."""
    parts, parents, since = [root], [-1], [1]
    children: list[tuple[int, int] | None] = []
    at = 0
    while at < len(parts):
        own = parts[at]
        if own.children is None:
            children.append(None)
        else:
            assert own.until is not None
            children.append((len(parts), len(parts) + 1))
            parts += own.children
            parents += [at, at]
            since += [own.until, own.until]
        at += 1
    return tuple(
        Branch(
            name=part.name,
            since=first,
            until=part.until,
            parent=None if parent < 0 else parent,
            children=pair,
            scaled_centre=part.point if stretch is None else part.point / stretch,
        )
        for part, first, parent, pair in zip(parts, since, parents, children, strict=True)
    )
