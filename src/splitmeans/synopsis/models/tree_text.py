"""A tree of segments as text: a line for each, with what it differs in from its sibling."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from splitmeans.figures import number, percent, users
from splitmeans.synopsis.column_places import column_places

if TYPE_CHECKING:
    from splitmeans.synopsis.models.tree import SegmentTree


class TreeLine(NamedTuple):
    """A branch as it is shown.

    Attributes:
        branch: Its position in the tree.
        stem: The lines that lead to it.
        name: What it is called.
        differs: The column in which it is farthest from its sibling, and what it has there; empty
            for the root.
    """

    branch: int
    stem: str
    name: str
    differs: str


def tree_rows(tree: "SegmentTree") -> list[TreeLine]:
    """Return the branches from the root down, each with all of its parts below it."""
    return list(_below(tree, 0, stem="", lead=""))


def tree_lines(tree: "SegmentTree") -> list[str]:
    """Return the tree as lines of text: name, users, share, and what it differs in."""
    rows = tree_rows(tree)
    width = max(len(row.stem) + len(row.name) for row in rows)
    sizes = [users(size) for size in tree.sizes]
    longest = max(len(size) for size in sizes)
    total = max(tree.synopsis.total, 1e-12)
    return [
        f"{row.stem + row.name:<{width}}  {sizes[row.branch]:>{longest}}  "
        f"{percent(tree.sizes[row.branch] / total):>4}  {row.differs}".rstrip()
        for row in rows
    ]


def _below(tree: "SegmentTree", at: int, *, stem: str, lead: str) -> Iterator[TreeLine]:
    branch = tree.branches[at]
    yield TreeLine(at, stem, branch.name, differs_in(tree, at))
    if branch.children is not None:
        first, second = branch.children
        yield from _below(tree, first, stem=f"{lead}├─ ", lead=f"{lead}│  ")
        yield from _below(tree, second, stem=f"{lead}└─ ", lead=f"{lead}   ")


def differs_in(tree: "SegmentTree", at: int) -> str:
    """Return the column in which a branch is farthest from its sibling, with its own value.

    Of a column of categories it is the one that the branch has more of.
    """
    parent = tree.branches[at].parent
    if parent is None:
        return ""
    pair = tree.branches[parent].children
    assert pair is not None
    other = pair[0] if pair[1] == at else pair[1]
    gaps = tree.points[at] - tree.points[other]
    places = column_places(tree.synopsis)
    far = max(places, key=lambda place: float(np.square(gaps[place.features]).sum()))
    own = tree.centres[at, far.features]
    if not far.levels:
        return f"{far.name} {number(float(own[0]))}"
    most = int(np.argmax(own - tree.centres[other, far.features]))
    return f"{far.name} = {far.levels[most]} {percent(float(own[most]))}"
