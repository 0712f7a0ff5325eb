"""What tables say: noise is taken out by hand, and estimators with and without presence."""

import numpy as np
import pytest

from splitmeans.synopsis.decode import KnowsPresence, read_counts
from splitmeans.synopsis.decode.counted import CUT, without_noise

from .scene import Plain, Users, plain_bundles, segments


class TestWithoutNoise:
    def test_cells_above_the_noise_stay_and_the_rest_goes(self):
        cells = np.array([[90.0, 34.0], [-20.0, 8.0]])
        # The others are 22 together; three deviations of their sum are 52.
        assert without_noise(cells, deviation=10.0).tolist() == [[90, 0], [0, 0]]

    def test_many_small_cells_keep_their_sum(self):
        cells = np.array([100.0, *[30.0, 20.0] * 8, -40.0])
        found = without_noise(cells, deviation=10.0)
        # 360 of seventeen cells, 124 of which noise explains: projected to a sum of 360.
        np.testing.assert_allclose(found, [100, *[27.5, 17.5] * 8, 0])

    def test_the_rest_is_in_regions_that_stand_out(self):
        cells = np.array([30.0, 30.0, 30.0, 30.0, 6.0, 0.0, 0.0, -6.0])
        regions = np.repeat([0, 1], 4)
        found = without_noise(cells, deviation=10.0, regions=regions)
        assert found.tolist() == [30, 30, 30, 30, 0, 0, 0, 0]

    def test_regions_together_have_no_more_than_the_rest(self):
        cells = np.array([30.0, 30.0, 30.0, 30.0, -5.0, -5.0, -5.0, -5.0])
        found = without_noise(cells, deviation=10.0, regions=np.repeat([0, 1], 4))
        assert found.tolist() == [25, 25, 25, 25, 0, 0, 0, 0]

    def test_noise_alone_is_nobody(self):
        """A cell stands out with probability 2.3e-4, the sum of the others with 1.3e-3 at most."""
        rng = np.random.default_rng(0)
        draws = 10.0 * rng.standard_normal((2_000, 40))
        kept = [without_noise(cells, deviation=10.0) > 0 for cells in draws]
        # Expected: 19 of 80,000 cells, 2.6 sums; more than five deviations above are not chance.
        assert np.sum(draws >= CUT * 10) <= 19 + 5 * np.sqrt(19)
        assert sum(own.sum() > 1 for own in kept) <= 12

    def test_exact_counts_lose_what_is_negative(self):
        assert without_noise(np.array([2.0, 0.0, -1.0]), deviation=0.0).tolist() == [2, 0, 0]


class TestReadCounts:
    def test_two_parties_without_presence(self):
        estimator = Plain({(0, 1): np.array([[5.0, -1.0, 2.0], [0.0, 4.0, 0.0]])}, (2, 3))
        counts = read_counts(estimator)
        assert counts.tables[0, 1].tolist() == [[5, -1, 2, 0], [0, 4, 0, 0], [0, 0, 0, 0]]
        assert counts.patterns.tolist() == [[1, 1], [1, 0], [0, 1]]
        assert counts.users.tolist() == [10, 0, 0]
        assert counts.everywhere == counts.total == 10
        assert counts.deviation is None
        assert counts.enough
        nobody = read_counts(Plain({(0, 1): np.full((2, 2), -1.0)}, (2, 2)))
        assert nobody.total == 0
        assert not nobody.enough

    def test_two_parties_of_whom_some_are_absent(self):
        estimator = Users(
            labels=np.array([[0, 1], [0, 1], [1, 0], [1, 1]]),
            present=np.array([[1, 1], [1, 1], [1, 0], [0, 1]], dtype=bool),
            bundles=plain_bundles(2, 2),
        )
        assert isinstance(estimator, KnowsPresence)
        counts = read_counts(estimator)
        assert counts.tables[0, 1].tolist() == [[0, 2, 0], [0, 0, 1], [0, 1, 0]]
        assert counts.users.tolist() == [2, 1, 1]

    def test_three_parties_tell_who_is_at_neither_of_two(self):
        """Users at the third party alone are in the table of the others by the presence table."""
        labels = np.zeros((60, 3), dtype=np.int64)
        present = np.ones((60, 3), dtype=bool)
        present[:20, :2] = False
        present[20:30, 2] = False
        estimator = Users(labels, present, plain_bundles(1, 1, 1))
        counts = read_counts(estimator)
        assert counts.patterns[0].tolist() == [1, 1, 1]
        assert counts.users.tolist() == [30, 10, 0, 0, 0, 0, 20]
        assert counts.tables[0, 1][-1, -1] == 20
        assert counts.tables[0, 2][-1, -1] == 0
        assert estimator.tables[0, 1][-1, -1] == 0  # the estimator's own table stays

    def test_presence_loses_its_noise(self):
        labels = np.zeros((100, 3), dtype=np.int64)
        estimator = Users(labels, np.ones((100, 3), dtype=bool), plain_bundles(1, 1, 1))
        estimator.noise = 10.0
        estimator.counts[0, 0, 1], estimator.counts[1, 0, 0] = 34.0, -10.0
        assert read_counts(estimator).users.tolist() == [100, 0, 0, 0, 0, 0, 0]

    @pytest.mark.parametrize(
        ("n_parties", "users", "enough"), [(3, 100, False), (3, 101, True), (2, 36, True)]
    )
    def test_few_users_at_all_of_many_parties_are_too_few(self, n_parties, users, enough):
        shape = (users, n_parties)
        estimator = Users(
            np.zeros(shape, int), np.ones(shape, bool), plain_bundles(*[1] * n_parties)
        )
        estimator.noise = 10.0
        assert read_counts(estimator).enough == enough

    def test_bundles_are_read_as_labels(self):
        _, labels, present, _ = segments(n=500, n_parties=3, n_segments=4)
        counts = read_counts(Users(labels, present, plain_bundles(4, 4, 4)))
        assert {table.shape for table in counts.tables.values()} == {(5, 5)}
        assert {table.sum() for table in counts.tables.values()} == {500}
