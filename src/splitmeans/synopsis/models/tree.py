"""A tree of segments: which of them split into which, from one segment of all users to many.

It grows both ways from given segments, such as the published ones. Upwards the two segments whose
union costs least are joined (Ward's rule: the rise of the squared distances to the centres), until
one is left. Downwards the segment is split in two, by k-means, that gains most by it. So the cuts
of the tree at k = 1, 2, 3, ... are nested, and one of them is the given segments as they are.

All of it is worked out on published nodes, so it costs no privacy.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from splitmeans import _validate
from splitmeans._types import FloatArray, IntArray
from splitmeans.errors import ParameterError
from splitmeans.kmeans.distances import squared_distances
from splitmeans.study.features import to_own_units
from splitmeans.synopsis.models.borders import segments_of
from splitmeans.synopsis.models.growth import Branch, grow
from splitmeans.synopsis.models.model_users import model_users
from splitmeans.synopsis.synopsis import Synopsis


@dataclass(frozen=True, kw_only=True, eq=False)
class SegmentTree:
    """A tree of segments; its root is all users.

    Attributes:
        synopsis: What it was found on.
        branches: All segments of all cuts, the root first, parents before their children.
        given: At which k the cut is the segments that the tree was grown from.
    """

    synopsis: Synopsis
    branches: tuple[Branch, ...]
    given: int

    def __repr__(self) -> str:
        return f"<SegmentTree of up to {self.most} segments, grown from {self.given}>"

    def __str__(self) -> str:
        from splitmeans.synopsis.models.tree_text import tree_lines

        return "\n".join(tree_lines(self))

    @property
    def most(self) -> int:
        """The largest number of segments that it has."""
        return sum(branch.children is None for branch in self.branches)

    def at(self, k: int) -> tuple[int, ...]:
        """Return the positions of the branches that are the segments at k."""
        _validate.at_least(1, k=k)
        if k > self.most:
            raise ParameterError(
                f"k must be at most {self.most}, the segments of the tree, got {k}"
            )
        return tuple(
            at
            for at, branch in enumerate(self.branches)
            if branch.since <= k and (branch.until is None or k < branch.until)
        )

    def cut(self, k: int) -> "Cut":
        """Return the k segments of the tree; those of more k are parts of them."""

        def rank(at: int) -> tuple[float, int, str]:
            name = self.branches[at].name
            return -self.sizes[at], len(name), name

        return Cut(tree=self, positions=tuple(sorted(self.at(k), key=rank)))

    @functools.cached_property
    def sizes(self) -> FloatArray:
        """Estimated users of each branch."""
        last = np.bincount(self.of_node, self.synopsis.weights, minlength=len(self.branches))
        for at in reversed(range(len(self.branches))):
            children = self.branches[at].children
            if children is not None:
                last[at] = last[list(children)].sum()
        return np.asarray(last)

    @functools.cached_property
    def of_node(self) -> IntArray:
        """The last branch, one that does not split, of each node of the synopsis."""
        return segments_of(self.last_borders, self.synopsis.scaled_nodes)

    @property
    def last_borders(self) -> "LastBranch":
        """How a place is told its last branch."""
        return LastBranch(tree=self)

    @functools.cached_property
    def points(self) -> FloatArray:
        """Centres of all branches as the final k-means sees them."""
        return self.synopsis.seen(np.stack([branch.scaled_centre for branch in self.branches]))

    @property
    def centres(self) -> FloatArray:
        """Centres of all branches in the columns' own units."""
        features = tuple(item for group in self.synopsis.features for item in group)
        return to_own_units(features, np.stack([one.scaled_centre for one in self.branches]))

    def last_branches(self, distances: FloatArray) -> IntArray:
        """Return the last branch of places, from squared distances to all centres."""
        given = np.array(self.at(self.given))
        found = np.asarray(given[distances[..., given].argmin(axis=-1)], dtype=np.int64)
        # Parents stand before their children, so whoever moves down may move on.
        for at, branch in enumerate(self.branches):
            if branch.children is not None and (branch.until or 0) > self.given:
                first, second = branch.children
                nearer = distances[..., second] < distances[..., first]
                found = np.where(found == at, np.where(nearer, second, first), found)
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class LastBranch:
    """Tells the last branch of a place; see `borders.Borders`."""

    tree: SegmentTree

    @property
    def points(self) -> FloatArray:
        """Centres of all branches."""
        return self.tree.points

    @property
    def n_segments(self) -> int:
        """How many branches there are."""
        return len(self.tree.branches)

    def placed(self, points: FloatArray, columns: slice = slice(None)) -> FloatArray:
        """Return points as the final k-means sees them."""
        return self.tree.synopsis.seen(points, columns)

    def distances(self, places: FloatArray, points: FloatArray) -> FloatArray:
        """Return squared distances."""
        return squared_distances(places, points)

    def column_distances(self, places: FloatArray, point: FloatArray) -> FloatArray:
        """Return squared differences."""
        return np.asarray(np.square(places - point))

    def chosen(self, distances: FloatArray) -> IntArray:
        """Return the last branch."""
        return self.tree.last_branches(distances)


@dataclass(frozen=True, kw_only=True, eq=False)
class CutBorders(LastBranch):
    """Tells the segment of a cut: the one that the place's last branch is part of."""

    segment_of: IntArray

    @property
    def n_segments(self) -> int:
        """How many segments the cut has."""
        return int(self.segment_of.max()) + 1

    def chosen(self, distances: FloatArray) -> IntArray:
        """Return the segment."""
        return np.asarray(self.segment_of[self.tree.last_branches(distances)])


@dataclass(frozen=True, kw_only=True, eq=False)
class Cut:
    """The segments of a tree at one k, the largest first.

    Attributes:
        tree: The tree.
        positions: The branches that are the segments.
    """

    tree: SegmentTree
    positions: tuple[int, ...]

    def __repr__(self) -> str:
        return f"<Cut of {self.k} segments: {', '.join(self.names)}>"

    @property
    def k(self) -> int:
        """How many segments there are."""
        return len(self.positions)

    @property
    def names(self) -> tuple[str, ...]:
        """What they are called."""
        return tuple(self.tree.branches[at].name for at in self.positions)

    @property
    def sizes(self) -> FloatArray:
        """Estimated users of each, shape (k,)."""
        return self.tree.sizes[list(self.positions)]

    @property
    def scaled_centres(self) -> FloatArray:
        """Centres in distance units, shape (k, D)."""
        return np.stack([self.tree.branches[at].scaled_centre for at in self.positions])

    @property
    def centres(self) -> FloatArray:
        """Centres in the columns' own units, shape (k, D)."""
        features = tuple(item for group in self.tree.synopsis.features for item in group)
        return to_own_units(features, self.scaled_centres)

    @functools.cached_property
    def borders(self) -> CutBorders:
        """How a place is told its segment."""
        segment_of = np.full(len(self.tree.branches), -1, dtype=np.int64)
        segment_of[list(self.positions)] = np.arange(self.k)
        for at, branch in enumerate(self.tree.branches):
            if branch.parent is not None and segment_of[at] < 0:
                segment_of[at] = segment_of[branch.parent]
        return CutBorders(tree=self.tree, segment_of=segment_of)

    @functools.cached_property
    def of_node(self) -> IntArray:
        """The segment of each node of the synopsis, shape (nodes,)."""
        return np.asarray(self.borders.segment_of[self.tree.of_node])

    @functools.cached_property
    def loss(self) -> float:
        """Mean squared distance of users to the centre of their segment, in distance units."""
        synopsis = self.tree.synopsis
        centres = self.tree.points[list(self.positions)][self.of_node]
        gaps = np.square(synopsis.seen(synopsis.scaled_nodes) - centres).sum(axis=1)
        return float(synopsis.weights @ gaps) / synopsis.total


def grow_tree(
    synopsis: Synopsis,
    scaled_centres: FloatArray,
    letters: Sequence[str],
    *,
    most: int,
    rng: np.random.Generator,
) -> SegmentTree:
    """Grow a tree from segments, up to `most` of them; see `Synopsis.tree`."""
    users = model_users(synopsis, rng=rng)
    branches = grow(users, scaled_centres, letters, most=most, rng=rng)
    return SegmentTree(synopsis=synopsis, branches=branches, given=len(scaled_centres))
