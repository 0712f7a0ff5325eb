"""Users at some parties only: pseudo-points from pair tables and a presence table.

Three or more parties that share only some of their users count pairs of local clusters, "absent"
as one more label, and how many users are at which parties. Pair tables alone cannot tell how many
are at all of them; the presence table can, but says nothing about clusters. Latent classes with
presence explain both (`presence_fit`). Label vectors drawn from them are the pseudo-points, of the
users at all parties or of everyone: then what is absent is filled in by the model. Everything here
is post-processing of released tables.
"""

import itertools
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from splitmeans._types import FloatArray, IntArray
from splitmeans.kmeans.simplex import project_to_simplex
from splitmeans.membership.estimator import KnowsDeviation
from splitmeans.plan.grid_limits import N_POINTS
from splitmeans.synopsis.classes import LatentClasses
from splitmeans.synopsis.many import draw_labels
from splitmeans.synopsis.pairs import CUT, explaining, sure_sizes
from splitmeans.synopsis.presence_fit import Observed, fit_presence

# Fewer users at all parties than so many deviations of their number: no segments of them.
LEAST_DEVIATIONS = 10.0
_AGREEING_ROUNDS = 3


@runtime_checkable
class KnowsPresence(KnowsDeviation, Protocol):
    """An estimator that knows who is at which parties."""

    def with_absent(self, pair: tuple[int, ...]) -> FloatArray:
        """Return the users in each cell of two parties, "absent" as the last label of each."""
        ...

    def presence(self) -> tuple[FloatArray, float]:
        """Return how many users are at which parties, shape (2, ..., 2), and its deviation.

        0 stands for present and 1 for absent; the last cell, absent everywhere, is zero.
        """
        ...


def presence_points(
    estimator: KnowsPresence,
    *,
    n_classes: int,
    everyone: bool,
    n_points: int = N_POINTS,
    rng: np.random.Generator,
) -> tuple[IntArray, FloatArray]:
    """Return different label vectors, shape (points, S), and their weights, shape (points,).

    Weights add up to the released number of users at all parties, or of everyone. With too few
    users at all parties (`LEAST_DEVIATIONS`), or nobody, there is one point of weight zero.

    Args:
        estimator: What the messages say.
        n_classes: Number of classes; about three times the number of clusters wanted.
        everyone: Whether the points stand for all users, not only for those at all parties.
        n_points: How many vectors to draw; equal ones are merged, so fewer may come back.
        rng: Seeds the starts and draws the vectors.
    """
    counts, deviation = estimator.presence()
    total = float(counts.sum()) if everyone else float(counts.flat[0])
    if total <= (0.0 if everyone else LEAST_DEVIATIONS * deviation):
        return np.zeros((1, len(estimator.n_local_clusters)), dtype=np.int64), np.zeros(1)
    observed = observe(estimator)
    model = fit_presence(observed, n_classes=n_classes, rng=rng)
    shares = model.users.sum(axis=0) if everyone else model.users[0]
    classes = LatentClasses(shares=shares, profiles=model.profiles, log_likelihood=0.0)
    drawn = draw_labels(classes, n_points, rng=rng)
    labels, found = np.unique(drawn, axis=0, return_counts=True)
    return labels, np.asarray(found * (total / len(drawn)), dtype=np.float64)


def observe(estimator: KnowsPresence) -> Observed:
    """Clean the released tables: none negative, sizes that agree, noise cut away."""
    widths, counts = estimator.n_local_clusters, estimator.presence()[0].ravel()[:-1]
    n_parties, widest = len(widths), max(widths)
    pairs = np.array(list(itertools.combinations(range(n_parties), 2)))
    tables = np.zeros((len(pairs), widest + 1, widest + 1))
    # Of a party with fewer labels than the widest some rows stay empty.
    real = np.zeros((n_parties, widest + 1), dtype=bool)
    for party, width in enumerate(widths):
        real[party, [*range(width), widest]] = True
    for place, (first, second) in enumerate(pairs):
        cells = np.ix_(np.flatnonzero(real[first]), np.flatnonzero(real[second]))
        tables[place][cells] = estimator.with_absent((int(first), int(second)))
    deviation = max(estimator.deviation((int(i), int(j))) for i, j in pairs)
    exists = real[pairs[:, 0]][:, :, np.newaxis] & real[pairs[:, 1]][:, np.newaxis]
    exists[:, -1, -1] = False
    _agree(tables, pairs, exists)
    tables = np.stack([_cut(table, deviation=deviation) for table in tables])
    absent = np.indices((2,) * n_parties).reshape(n_parties, -1).T[:-1]
    counts = _none_negative(counts)
    # With many parties nearly all of many thousand patterns have nobody.
    some = np.flatnonzero((counts > 0) | (np.arange(len(counts)) == 0))
    return Observed(
        pairs=pairs,
        tables=tables,
        widths=widths,
        patterns=(1 - absent[some]).astype(np.float64),
        counts=counts[some],
        deviation=deviation,
    )


def _none_negative(counts: FloatArray) -> FloatArray:
    """Make the presence table none negative; its sum and its first count, all parties, stay."""
    first = max(float(counts[0]), 0.0)
    rest = max(float(counts.sum()) - first, 0.0)
    return np.concatenate([[first], project_to_simplex(counts[1:], total=rest)])


def _agree(tables: FloatArray, pairs: IntArray, exists: npt.NDArray[np.bool_]) -> None:
    """Make cluster sizes of a party equal in all its `tables` (INOUT), roughly least squares."""
    for _ in range(_AGREEING_ROUNDS):
        for party in range(int(pairs.max()) + 1):
            turned = [
                (table, mask) if party == first else (table.T, mask.T)
                for table, mask, (first, second) in zip(tables, exists, pairs, strict=True)
                if party in (first, second)
            ]
            sizes = [table.sum(axis=1) for table, _ in turned]
            cells = [np.maximum(mask.sum(axis=1), 1) for _, mask in turned]
            agreed = np.average(sizes, axis=0, weights=[1 / n for n in cells])
            for (table, mask), size, n in zip(turned, sizes, cells, strict=True):
                shift = (agreed - size) / n
                shift[-1] = 0.0  # who is absent here is in no other table of this party
                table += shift[:, np.newaxis] * mask


def _cut(table: FloatArray, *, deviation: float) -> FloatArray:
    """Cut cells within the noise, but for those that explain sizes; the sum stays."""
    total = max(float(table.sum()), 0.0)
    kept = table >= CUT * deviation
    for turned, marks in ((table, kept), (table.T, kept.T)):
        sizes = turned[:-1].sum(axis=1)
        marks[:-1] |= explaining(sure_sizes(sizes, deviation=deviation), turned[:-1])
    cut = np.where(kept & (table > 0), table, 0.0)
    found = float(cut.sum())
    return cut * (total / found) if found > 0 else cut
