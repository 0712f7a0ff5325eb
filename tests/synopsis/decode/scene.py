"""Tables of known users, as an estimator has them, with noise if wanted."""

import itertools
from dataclasses import dataclass, field

import numpy as np

from splitmeans.membership.bundles import Bundles
from splitmeans.synopsis.decode import Released

UNIT = 10_000


@dataclass
class Plain:
    """An estimator that counts no presence."""

    tables: dict
    n_local_clusters: tuple[int, ...]

    def one(self, party):
        raise AssertionError("not needed")

    def joint(self, parties):
        return self.tables[tuple(parties)]


@dataclass
class Users:
    """An estimator of users with local clusters, shape (n, S), some of them absent."""

    labels: np.ndarray
    present: np.ndarray
    bundles: Bundles
    noise: float = 0.0
    seed: int = 0
    tables: dict = field(init=False)
    counts: np.ndarray = field(init=False)

    def __post_init__(self):
        rng = np.random.default_rng(self.seed)
        n_parties = len(self.n_local_clusters)
        self.tables = {}
        for pair in itertools.combinations(range(n_parties), 2):
            table = np.zeros([self.n_local_clusters[party] + 1 for party in pair])
            rows, columns = (
                np.where(
                    self.present[:, one],
                    self.bundles.labels_of(one, other)[self.labels[:, one]],
                    self.n_local_clusters[one],
                )
                for one, other in (pair, pair[::-1])
            )
            np.add.at(table, (rows, columns), 1.0)
            table += self.noise * rng.standard_normal(table.shape)
            table[-1, -1] = 0.0
            self.tables[pair] = table
        self.counts = np.zeros((2,) * n_parties)
        np.add.at(self.counts, tuple(1 - self.present.T.astype(int)), 1.0)
        self.counts += self.noise * rng.standard_normal(self.counts.shape)
        self.counts.flat[-1] = 0.0

    @property
    def n_local_clusters(self):
        return self.bundles.n_labels

    def one(self, party):
        raise AssertionError("not needed")

    def joint(self, parties):
        raise AssertionError("not needed")

    def deviation(self, group):
        return max(self.noise, 1e-3)

    def with_absent(self, pair):
        return self.tables[pair]

    def presence(self):
        return self.counts.copy(), max(self.noise, 1e-3)


def plain_bundles(*widths):
    """Every cluster is a label of its own."""
    return Bundles(n_local_clusters=widths, n_labels=widths)


def segments(*, n, n_parties, n_segments, share=1.0, seed=0, widths=None):
    """Users of segments with a cluster of their own each at every party; who is where by chance.

    Returns the segment of each user, its clusters (n, S), where it is (n, S), and the cluster of
    each segment at each party, shape (S, segments).
    """
    rng = np.random.default_rng(seed)
    widths = widths or (n_segments,) * n_parties
    chances = np.arange(1, n_segments + 1) / np.arange(1, n_segments + 1).sum()
    of_user = rng.choice(n_segments, size=n, p=chances)
    turns = np.stack([rng.permutation(width)[:n_segments] for width in widths])
    present = rng.random((n, n_parties)) < share
    seen = present.any(axis=1)
    return of_user[seen], turns[:, of_user[seen]].T, present[seen], turns


def released(estimator, *, n_segments, everyone=False):
    """Local centres two units apart on a line, and points half a unit around them."""
    centres, points = [], []
    rng = np.random.default_rng(0)
    for own, width in zip(estimator.labels.T, estimator.bundles.n_local_clusters, strict=True):
        centres.append(2 * UNIT * np.arange(width)[:, np.newaxis])
        sizes = 1 + 2000 * np.bincount(own, minlength=width) // len(own)
        around = np.repeat(centres[-1], sizes, axis=0)
        points.append(around + rng.integers(-UNIT // 2, UNIT // 2, around.shape))
    return Released(
        estimator=estimator,
        bundles=estimator.bundles,
        centres=centres,
        points=points,
        n_segments=n_segments,
        everyone=everyone,
    )


def tables_of(grid):
    """Return the table of each pair of a grid of all parties' labels."""
    n_parties = grid.ndim
    return {
        pair: grid.sum(axis=tuple(axis for axis in range(n_parties) if axis not in pair))
        for pair in itertools.combinations(range(n_parties), 2)
    }
