"""Detail: what it costs, that points get the rows' shapes, and that noise alone changes little."""

import math
import pickle

import numpy as np
import pytest

from audits.noise_twins import Silence
from splitmeans.errors import ParameterError
from splitmeans.kernels.assign import nearest
from splitmeans.local.bins import (
    bins_of,
    coarser,
    codes_of,
    even_edges,
    going_together,
    with_shape,
)
from splitmeans.local.detail import _NO_PAIRS, Detail, _part
from splitmeans.local.law import COUNT_UNITS
from splitmeans.local.laws.detail import DetailLaw, pairs_for
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.study.coding import Coding
from splitmeans.table.walk.memory import as_rows

BOUND = 2**20
MIXED = Coding(bounds=(BOUND, BOUND, BOUND, BOUND), levels=(0, 0, 2))


def test_the_cost_of_all_parts_adds_up_to_mu() -> None:
    for n_pairs in (0, 4):
        law = DetailLaw(n_columns=5, n_pairs=n_pairs, mu=0.3)
        parts = law.event.parts
        assert len(parts) == (3 if n_pairs else 2)
        spent = math.sqrt(sum(1 / part.noise_multiplier**2 for part in parts))
        assert 0.3 * (1 - 1e-6) < spent <= 0.3
        # By hand: a user moves 5 bins by one each, so noise is sqrt(5) over the part's mu.
        by_hand = math.sqrt(5) / (0.3 * math.sqrt(0.3))
        assert law.whole_scale / COUNT_UNITS == pytest.approx(by_hand)


def test_pairs_are_asked_for_where_noise_allows() -> None:
    assert pairs_for(1, mu=10.0, users=10**6) == 0
    assert pairs_for(6, mu=0.05, users=10_000) == 0
    assert pairs_for(6, mu=1.0, users=100_000) == 5
    with pytest.raises(ParameterError, match="2 columns have no 2 pairs"):
        DetailLaw(n_columns=2, n_pairs=2, mu=1.0)


def test_values_take_a_shape_and_keep_their_order() -> None:
    values = np.array([5, -90, 30, 31, 80])
    edges, shares = np.array([0, 10]), np.array([0.0, 0.8, 0.2])
    found = with_shape(values, edges, shares, rng=np.random.default_rng(0))
    assert np.argsort(found).tolist() == np.argsort(values).tolist()
    assert ((found >= 0) & (found <= 10)).sum() == 4
    assert 10 <= found.max() <= 80


def test_coarser_bins_keep_a_value_that_many_have_on_its_own() -> None:
    edges = np.arange(10, 100, 10)
    shares = np.full(10, 0.05)
    shares[4] = 0.55  # between 40 and 50
    chosen = coarser(edges, shares, n_bins=4)
    assert {40, 50} <= set(chosen.tolist())
    assert len(chosen) <= 6


def test_the_columns_that_go_together_come_first() -> None:
    rng = np.random.default_rng(1)
    first = rng.integers(0, 4, 4000)
    bins = np.column_stack([first, rng.integers(0, 3, 4000), (first + 1) % 4])
    assert going_together(bins, np.array([4, 3, 4]), n_pairs=1).tolist() == [[0, 2]]


def skewed(rng, n=20_000):
    """Rows in two clusters; one has an atom in the first column and mostly the second level."""
    cluster = rng.random(n) < 0.4
    x = np.where(cluster, 0.6, -0.6) + rng.normal(0, 0.1, n)
    y = np.where(cluster & (rng.random(n) < 0.5), 0.25, rng.uniform(-1, 1, n))
    level = rng.random(n) < np.where(cluster, 0.9, 0.2)
    x, y = (np.clip(np.rint(own * BOUND), -BOUND, BOUND).astype(np.int64) for own in (x, y))
    return np.column_stack([x, y, level.astype(np.int64)])


def start(rng, n=4096):
    """Points that know the clusters and nothing else."""
    cluster = rng.random(n) < 0.5
    x = np.rint(np.where(cluster, 0.6, -0.6) * BOUND + rng.normal(0, 0.1 * BOUND, n))
    y, level = rng.integers(-BOUND, BOUND + 1, n), rng.random(n) < 0.5
    tops = np.where(np.column_stack([~level, level]), BOUND, -BOUND)
    return np.column_stack([x, y, tops]).astype(np.int64)


CENTRES = np.array([[round(-0.6 * BOUND), 0, 0, 0], [round(0.6 * BOUND), 0, 0, 0]])


def distances(points, rows):
    """Total variation of the columns in each cluster, in ten equal bins, worst and of sizes."""
    edges = [np.arange(-9, 10, 2) * BOUND // 10] * 2 + [np.zeros(0, dtype=np.int64)]
    found = []
    shares = []
    tables = (codes_of(points, MIXED), points), (rows, MIXED.features(rows))
    for codes, features in tables:
        labels, bins = nearest(features, CENTRES), bins_of(codes, edges, MIXED)
        shares.append(np.bincount(labels, minlength=2) / len(labels))
        found.append(
            [
                np.bincount(bins[labels == one, j], minlength=11) / (labels == one).sum()
                for one in range(2)
                for j in range(3)
            ]
        )
    apart = [np.abs(a - b).sum() / 2 for a, b in zip(*found, strict=True)]
    return max(apart), np.abs(shares[0] - shares[1]).max()


@pytest.mark.parametrize("n_pairs", [0, 3])
def test_points_take_the_shapes_of_the_rows_in_each_cluster(n_pairs: int) -> None:
    rng = np.random.default_rng(5)
    rows, points = skewed(rng), start(rng)
    before, _ = distances(points, rows)
    assert before > 0.4
    detail = Detail(n_columns=3, n_pairs=n_pairs, mu=1.0)
    for noise, allowed in ((Silence(), 0.06), (InsecureSeededNoise(2), 0.08)):
        found = detail.release(
            as_rows(rows),
            centres=CENTRES,
            points=points,
            size=float(len(rows)),
            coding=MIXED,
            noise=noise,
            rng=np.random.default_rng(0),
        ).points
        assert found.shape == points.shape
        assert np.abs(found).max() <= BOUND
        # One level each, exactly.
        assert (np.sort(found[:, 2:], axis=1) == [-BOUND, BOUND]).all()
        apart, sizes = distances(found, rows)
        assert apart < allowed
        assert sizes < 0.02


def test_noise_that_drowns_everything_leaves_clusters_as_they_are() -> None:
    rng = np.random.default_rng(6)
    rows, points = skewed(rng, n=300), start(rng)
    found = (
        Detail(n_columns=3, n_pairs=0, mu=0.002)
        .release(
            as_rows(rows),
            centres=CENTRES,
            points=points,
            size=300.0,
            coding=MIXED,
            noise=InsecureSeededNoise(1),
            rng=rng,
        )
        .points
    )
    shares = [np.bincount(nearest(own, CENTRES), minlength=2) / len(own) for own in (points, found)]
    np.testing.assert_allclose(shares[0], shares[1], atol=0.1)


def test_rows_without_values_are_made_up_for() -> None:
    rng = np.random.default_rng(7)
    rows, points = skewed(rng), start(rng)
    gaps = Coding(bounds=MIXED.bounds, levels=MIXED.levels, has_gaps=True)
    lacking = rows.copy()
    lacking[rng.random(len(rows)) < 0.3, 2] = -1
    found = (
        Detail(n_columns=3, n_pairs=0, mu=1.0)
        .release(
            as_rows(lacking),
            centres=CENTRES,
            points=points,
            size=float(len(rows)),
            coding=gaps,
            noise=InsecureSeededNoise(2),
            rng=rng,
        )
        .points
    )
    apart, sizes = distances(found, rows)
    assert apart < 0.09
    assert sizes < 0.03


def test_edges_have_equally_many_points_between_them() -> None:
    points = np.column_stack([np.arange(1000), np.zeros(1000), np.ones((1000, 2))]).astype(np.int64)
    first, second, third = even_edges(points, MIXED, n_bins=4)
    assert first.tolist() == [250, 500, 750]
    assert len(second) == len(third) == 0  # one value cannot be parted, levels are not


class InBlocks:
    """Rows as a table on disk or in Spark has them: in blocks, worked on by other processes."""

    def __init__(self, rows):
        self.blocks = np.array_split(rows, 7)

    def __len__(self):
        return sum(map(len, self.blocks))

    def total(self, part):
        sent = pickle.loads(pickle.dumps(part))
        return sum(sent(block) for block in self.blocks[::-1])


def test_blocks_of_rows_give_the_same_points() -> None:
    rng = np.random.default_rng(8)
    rows, points = skewed(rng, n=3000), start(rng)
    found = [
        Detail(n_columns=3, n_pairs=2, mu=1.0)
        .release(
            own,
            centres=CENTRES,
            points=points,
            size=3000.0,
            coding=MIXED,
            noise=InsecureSeededNoise(4),
            rng=np.random.default_rng(4),
        )
        .points
        for own in (as_rows(rows), InBlocks(rows))
    ]
    np.testing.assert_array_equal(*found)


def test_numbers_alone_are_counted_as_they_are() -> None:
    plain = Coding(bounds=(10, 10), levels=(0, 0))
    edges, bins = [np.array([0]), np.array([5])], np.array([2, 2])
    part = _part(
        coding=plain, edges=edges, bins=bins, pairs=_NO_PAIRS, centres=np.array([[-9, 0], [9, 0]])
    )
    assert part(np.array([[-8, 7], [8, 5], [7, 4]])).tolist() == [1, 0, 0, 1, 0, 2, 1, 1]


def test_a_column_of_one_value_stays_one() -> None:
    rng = np.random.default_rng(9)
    rows, points = skewed(rng, n=2000), start(rng)
    rows[:, 1], points[:, 1] = -BOUND, -BOUND
    found = (
        Detail(n_columns=3, n_pairs=1, mu=1.0)
        .release(
            as_rows(rows),
            centres=CENTRES,
            points=points,
            size=2000.0,
            coding=MIXED,
            noise=InsecureSeededNoise(1),
            rng=rng,
        )
        .points
    )
    assert (found[:, 1] == -BOUND).all()
