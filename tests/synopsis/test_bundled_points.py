"""Tables of bundles: pooling against a loop, classes that tell clusters in one bundle apart."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest

from splitmeans.errors import ParameterError
from splitmeans.membership.bundles import Bundles
from splitmeans.synopsis.classes import fit_bundled_classes
from splitmeans.synopsis.many import bundled_points, latent_points
from splitmeans.synopsis.pairs import clean_tables_apart
from splitmeans.synopsis.pooling import Pooling

N_PARTIES, CLUSTERS, LABELS = 4, 24, 12
BUNDLES = Bundles(n_local_clusters=(CLUSTERS,) * N_PARTIES, n_labels=(LABELS,) * N_PARTIES)


@dataclass
class Tables:
    """An estimator that has tables of pairs alone."""

    n_local_clusters: tuple[int, ...]
    tables: dict

    def one(self, party):
        raise NotImplementedError

    def joint(self, parties):
        return self.tables[tuple(parties)]


def segments(n, *, rng):
    """As many segments as clusters: so every label of a table stands for two segments."""
    of_user = rng.integers(CLUSTERS, size=n)
    turns = [rng.permutation(CLUSTERS) for _ in range(N_PARTIES)]
    return of_user, np.stack([own[of_user] for own in turns], axis=1), turns


def counted(clusters, *, deviation=0.0, rng, bundles=BUNDLES):
    tables = {}
    for first, second in itertools.combinations(range(N_PARTIES), 2):
        rows = bundles.labels_of(first, second)[clusters[:, first]]
        columns = bundles.labels_of(second, first)[clusters[:, second]]
        table = np.zeros((bundles.n_labels[first], bundles.n_labels[second]))
        np.add.at(table, (rows, columns), 1.0)
        tables[first, second] = table + deviation * rng.standard_normal(table.shape)
    return Tables(bundles.n_labels, tables)


class TestPooling:
    @pytest.mark.parametrize("shape", [(CLUSTERS,) * N_PARTIES, (12, 24, 20, 12)])
    def test_against_a_loop_over_cells(self, shape):
        bundles = Bundles(n_local_clusters=shape, n_labels=(LABELS,) * N_PARTIES)
        starts = np.cumsum([0, *shape])
        party_of = np.repeat(np.arange(N_PARTIES), shape)
        size = sum(shape)
        matrix = np.random.default_rng(0).random((size, size))
        pooled = Pooling(bundles=bundles).pooled(matrix)
        for a, b in itertools.product(range(size), repeat=2):
            party, other = party_of[a], party_of[b]
            if party == other:
                assert pooled[a, b] == 0
                continue
            rows, columns = bundles.labels_of(party, other), bundles.labels_of(other, party)
            alike = np.ix_(
                starts[party] + np.flatnonzero(rows == rows[a - starts[party]]),
                starts[other] + np.flatnonzero(columns == columns[b - starts[other]]),
            )
            assert pooled[a, b] == pytest.approx(matrix[alike].sum())

    def test_tables_of_cells_and_back(self):
        rng = np.random.default_rng(1)
        _, clusters, _ = segments(3_000, rng=rng)
        pooling = Pooling(bundles=BUNDLES)
        cells = np.zeros((N_PARTIES * CLUSTERS,) * 2)
        for first, second in itertools.permutations(range(N_PARTIES), 2):
            places = first * CLUSTERS + clusters[:, first], second * CLUSTERS + clusters[:, second]
            np.add.at(cells, places, 1.0)
        tables = counted(clusters, rng=rng).tables
        for pair, table in tables.items():
            assert np.array_equal(pooling.table(cells, pair), table)
        assert np.array_equal(pooling.stacked(tables), pooling.pooled(cells))

    def test_parties_with_other_numbers_of_labels_are_refused(self):
        with pytest.raises(ParameterError, match="as many labels"):
            Pooling(bundles=Bundles(n_local_clusters=(6, 6), n_labels=(3, 4)))


def test_classes_tell_clusters_of_one_bundle_apart():
    """Half as many labels as segments: a table alone has two segments in every label."""
    rng = np.random.default_rng(2)
    _, clusters, _ = segments(40_000, rng=rng)
    shares = [np.bincount(own, minlength=CLUSTERS) / len(clusters) for own in clusters.T]
    model = fit_bundled_classes(
        counted(clusters, rng=rng).tables,
        Pooling(bundles=BUNDLES),
        shares,
        n_classes=2 * CLUSTERS,
        rng=rng,
    )
    # In a class nearly all users have one cluster at each party.
    for profile in model.profiles:
        assert float(model.shares @ profile.max(axis=0)) > 0.95


@pytest.mark.parametrize("deviation", [1.0, 40.0])
def test_vectors_are_those_of_the_segments(deviation):
    rng = np.random.default_rng(3)
    _, clusters, turns = segments(40_000, rng=rng)
    estimator = counted(clusters, deviation=deviation, rng=rng)
    shares = [np.bincount(own, minlength=CLUSTERS) / len(clusters) for own in clusters.T]
    labels, weights = bundled_points(
        estimator, BUNDLES, shares, n_classes=2 * CLUSTERS, rng=rng, deviation=deviation
    )
    assert weights.sum() == pytest.approx(40_000, rel=0.02)
    segment = np.argsort(turns[0])[labels[:, 0]]
    same = np.all([own[segment] == labels[:, at] for at, own in enumerate(turns)], axis=0)
    # Four parties have two ways to pair neighbours, so a few segments stay mixed with another; by
    # chance alone one vector in a few thousand would be right.
    assert weights[same].sum() > 0.75 * weights.sum()
    # A twin that takes labels for clusters cannot: half of a label's users are of another segment.
    merged, merged_weights = latent_points(
        estimator, n_classes=2 * CLUSTERS, rng=rng, deviation=deviation
    )
    assert merged.max() < LABELS
    assert merged_weights.sum() == pytest.approx(40_000, rel=0.02)


def test_no_users_are_one_point_of_no_weight():
    rng = np.random.default_rng(4)
    nobody = counted(np.zeros((0, N_PARTIES), dtype=np.int64), rng=rng)
    shares = [np.full(CLUSTERS, 1 / CLUSTERS)] * N_PARTIES
    labels, weights = bundled_points(nobody, BUNDLES, shares, n_classes=4, rng=rng, deviation=5.0)
    assert labels.shape == (1, N_PARTIES)
    assert weights.tolist() == [0.0]


def test_clean_tables_have_one_sum_and_nothing_negative():
    rng = np.random.default_rng(5)
    _, clusters, _ = segments(5_000, rng=rng)
    tables, total = clean_tables_apart(counted(clusters, deviation=30.0, rng=rng), deviation=30.0)
    assert total == pytest.approx(5_000, rel=0.1)
    for table in tables.values():
        assert table.min() >= 0
        assert table.sum() == pytest.approx(total)
