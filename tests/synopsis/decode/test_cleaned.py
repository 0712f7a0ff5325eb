"""Tables that agree, are cut at their noise and keep their totals."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.membership.bundles import Bundles
from splitmeans.synopsis.decode.cleaned import (
    agree,
    cut_noise,
    none_negative,
    regions_of,
    total_of,
)
from splitmeans.synopsis.decode.pooling import Pooling

from .scene import plain_bundles, tables_of


def noisy(shape, *, scale=100.0, deviation=5.0, seed=0):
    rng = np.random.default_rng(seed)
    tables = tables_of(rng.gamma(0.3, scale, size=shape))
    return {
        pair: table + deviation * rng.standard_normal(table.shape) for pair, table in tables.items()
    }


def test_agreement_is_least_squares():
    """The agreed tables are the nearest ones that are sums of one (signed) grid."""
    shape = (2, 3, 4)
    tables = noisy(shape)
    kept = {pair: table.copy() for pair, table in tables.items()}
    units = [tables_of(unit.reshape(shape)) for unit in np.eye(24)]
    design = np.stack([np.concatenate([t.ravel() for t in own.values()]) for own in units], axis=1)
    observed = np.concatenate([table.ravel() for table in tables.values()])
    nearest = design @ np.linalg.lstsq(design, observed, rcond=None)[0]
    found = agree(tables, same_labels=True)
    np.testing.assert_allclose(np.concatenate([t.ravel() for t in found.values()]), nearest)
    for pair, table in tables.items():
        np.testing.assert_array_equal(table, kept[pair])


def test_tables_of_bundles_agree_in_their_total_alone():
    tables = noisy((3, 3, 3))
    found = agree(tables, same_labels=False)
    total = np.mean([table.sum() for table in tables.values()])
    for pair, table in found.items():
        assert table.sum() == pytest.approx(total)
        assert np.ptp(table - tables[pair]) == pytest.approx(0, abs=1e-9)


def test_cells_above_the_noise_get_the_total_of_all_tables():
    table = np.array([[1000.0, 34.0], [-2.0, 500.0]])
    found = cut_noise({(0, 1): table}, deviation=10.0)[0, 1]
    np.testing.assert_allclose(found, np.array([[1000, 0], [0, 500]]) * 1532 / 1500)


def test_without_a_deviation_negative_cells_are_projected_away():
    found = none_negative({(0, 1): np.array([[15.0, 12.0], [14.0, -1.0]])})[0, 1]
    np.testing.assert_allclose(found, [[15 - 1 / 3, 12 - 1 / 3], [14 - 1 / 3, 0]])


def test_noise_far_from_everybody_goes():
    """Small cells of two regions hold users; one cell elsewhere, within the cut, holds none."""
    table = np.zeros((12, 12))
    table[:6, :6] = table[6:, 6:] = 30.0
    table[2, 9] = 40.0
    regions = [np.repeat([0, 1], 6)] * 2
    tables = {(0, 1): table}
    assert cut_noise(tables, deviation=15.0)[0, 1][2, 9] > 0
    found = cut_noise(tables, deviation=15.0, regions=regions)[0, 1]
    assert found[2, 9] == 0
    assert found.sum() == pytest.approx(table.sum())


@settings(max_examples=60, deadline=None)
@given(
    shape=st.lists(st.integers(1, 4), min_size=2, max_size=4),
    scale=st.sampled_from([0.0, 1e-3, 1.0, 1e4]),
    deviation=st.sampled_from([None, 0.0, 1e-6, 1.0, 1e5]),
    seed=st.integers(0, 2**32 - 1),
)
def test_clean_tables_have_one_total_and_nothing_negative(shape, scale, deviation, seed):
    tables = noisy(shape, scale=scale, deviation=deviation or 0.0, seed=seed)
    agreed = agree(tables, same_labels=True)
    total = total_of(tables)
    regions = [np.arange(width) // 2 for width in shape]
    for table in cut_noise(agreed, deviation=deviation, regions=regions).values():
        assert np.isfinite(table).all()
        assert table.min() >= 0
        assert table.sum() == pytest.approx(max(total, 0))


class TestRegions:
    def test_clusters_that_lie_together_are_a_region_and_absent_is_its_own(self):
        centres = np.concatenate([np.arange(6), 1000 + np.arange(5)])[:, np.newaxis]
        own, _ = regions_of([centres, centres], Pooling(bundles=plain_bundles(11, 11)))
        assert own.shape == (12,)
        assert len(set(own[:6])) == len(set(own[6:11])) == 1
        assert len(set(own)) == 3

    def test_few_clusters_are_one_region(self):
        centres = np.arange(8)[:, np.newaxis] ** 3
        for own in regions_of([centres, centres], Pooling(bundles=plain_bundles(8, 8))):
            assert own.tolist() == [0] * 8 + [1]

    def test_a_label_of_two_clusters_is_where_the_first_of_them_is(self):
        centres = np.concatenate([np.arange(10), 1000 + np.arange(10)])[:, np.newaxis]
        bundles = Bundles(n_local_clusters=(20,) * 3, n_labels=(10,) * 3)
        for own in regions_of([centres] * 3, Pooling(bundles=bundles)):
            assert own.shape == (11,)
            first = {tuple(own[:5]), tuple(own[5:10])}
            assert not set.intersection(*map(set, first))


def test_all_pairs_are_cleaned():
    tables = noisy((3, 3, 3, 3))
    assert set(cut_noise(tables, deviation=5.0)) == set(itertools.combinations(range(4), 2))
