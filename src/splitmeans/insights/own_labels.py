"""How well can a party label its own users? Tried out on pseudo-users, whose segments are known.

One half of the pseudo-users plays users of whom only the party's columns are known; the other half
is what the party knows of the others' columns. The likeliest segment of each is compared with its
own. Everything is made of published values: it costs no privacy, and it is an estimate.
"""

import dataclasses
from dataclasses import dataclass

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.kmeans.draws import draw_evenly
from splitmeans.result.result import Segmentation
from splitmeans.study.features import GRID_UNITS
from splitmeans.synopsis.own_columns import segment_shares
from splitmeans.synopsis.synopsis import Synopsis

# Pseudo-users who are labelled: a share of them is right to about one per cent.
_TRIED = 2000
_BINS = ((0.0, 0.5), (0.5, 0.7), (0.7, 0.9), (0.9, 1.0))


@dataclass(frozen=True, kw_only=True)
class Bin:
    """Users whose label is about equally sure.

    Attributes:
        low: From this probability of the likeliest segment.
        high: Up to this one.
        users: Their share of all users.
        said: Their mean probability.
        right: Share of them whose label is right.
    """

    low: float
    high: float
    users: float
    said: float
    right: float


@dataclass(frozen=True, kw_only=True, repr=False)
class OwnLabels:
    """How well one party can label its users from its own columns.

    Attributes:
        party: Its name.
        right: Expected share of users whose likeliest segment is theirs.
        said: Mean probability of the likeliest segments: about the same if they are calibrated.
        guessing: Share that would be right if everybody were put into the largest segment.
        bins: Users by how sure their label is; those that nobody is in are left out.
    """

    party: str
    right: float
    said: float
    guessing: float
    bins: tuple[Bin, ...]

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        sure = sum(one.users for one in self.bins if one.low >= 0.9)
        return (
            f"{self.party}: about {self.right:.0%} of labels from its own columns are right (the "
            f"largest segment for everybody: {self.guessing:.0%}); {sure:.0%} of users have a "
            "label that is 90 % sure or more"
        )


def own_labels(synopsis: Synopsis, item: Segmentation) -> tuple[OwnLabels, ...]:
    """Return for each party how well it can label its users; none where that cannot be told.

    It cannot where nodes are whole cells, which do not tell how users lie, or nobody was counted.
    """
    used = np.flatnonzero(synopsis.weights > 0)
    if not synopsis.has_places or item.k < 1 or len(used) < 2 * item.k:
        return ()
    # The seed only makes two reports of one result alike.
    rng = np.random.default_rng(0)
    mixed = rng.permutation(used)
    known, tried = mixed[: len(mixed) // 2], mixed[len(mixed) // 2 :]
    assert synopsis.labels is not None
    reference = dataclasses.replace(
        synopsis,
        scaled_nodes=synopsis.scaled_nodes[known],
        weights=synopsis.weights[known],
        labels=synopsis.labels[known],
    )
    drawn = tried[draw_evenly(synopsis.weights[tried], _TRIED, rng=rng)]
    truth = item.of_node[drawn]
    found = []
    for party in synopsis.party_names:
        own = synopsis.scaled_nodes[drawn][:, synopsis.columns_of(party)]
        rows = np.rint(own * GRID_UNITS).astype(np.int64)
        shares = segment_shares(rows, reference, item.scaled_centres, party=party)
        sure, right = shares.max(axis=1), shares.argmax(axis=1) == truth
        found.append(
            OwnLabels(
                party=party,
                right=float(right.mean()),
                said=float(sure.mean()),
                guessing=float(item.sizes.max() / item.sizes.sum()),
                bins=_bins(sure, right.astype(np.float64)),
            )
        )
    return tuple(found)


def _bins(sure: FloatArray, right: FloatArray) -> tuple[Bin, ...]:
    found = []
    for low, high in _BINS:
        own = (sure >= low) & ((sure < high) | (high == 1.0))
        if own.any():
            found.append(
                Bin(
                    low=low,
                    high=high,
                    users=float(own.mean()),
                    said=float(sure[own].mean()),
                    right=float(right[own].mean()),
                )
            )
    return tuple(found)
