"""k-medians on a synopsis: medians and commonest categories by hand and against a plain twin."""

import dataclasses

import numpy as np
import pytest

from splitmeans.errors import ParameterError
from splitmeans.study import Column
from splitmeans.synopsis.models.borders import segments_of
from splitmeans.synopsis.models.medians import absolute_distances, distance_factors
from tests.synopsis.model_scene import mixed_synopsis, numbers_synopsis


def test_one_segment_by_hand():
    """Users 1, 1 and 3 at -0.8, 0 and 0.4: most are at 0.4 or above; far ones do not pull."""
    found = numbers_synopsis(np.array([[-0.8], [0.0], [0.4]]), weights=[1, 1, 3]).medians(1)
    assert found.centres.ravel() == pytest.approx([0.4])
    assert found.sizes.tolist() == [5.0]
    assert found.loss == pytest.approx((1.2 + 0.4) / 5)


def test_far_values_pull_less_than_in_k_means():
    rows = np.array([[-0.5], [-0.45], [-0.4], [0.5], [0.45], [0.4], [1.0]])
    synopsis = numbers_synopsis(rows, weights=[1, 1, 1, 1, 1, 1, 0.5])
    centres = synopsis.medians(2, random_state=0).centres
    assert sorted(centres.ravel()) == pytest.approx([-0.45, 0.45])
    assert synopsis.cluster(2, random_state=0).centres.max() > 0.5


def test_centres_are_the_best_of_their_segment():
    """Against a plain twin: no value of any node is a better centre in any column."""
    rng = np.random.default_rng(1)
    rows, weights = rng.uniform(-1, 1, (300, 3)), rng.uniform(0.2, 3, 300)
    found = numbers_synopsis(rows, weights=weights).medians(4, random_state=0)
    nearest = np.abs(rows[:, np.newaxis] - found.centres).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(found.of_node, nearest)
    np.testing.assert_allclose(found.sizes, np.bincount(nearest, weights=weights))
    for segment, centre in enumerate(found.centres):
        own, users = rows[nearest == segment], weights[nearest == segment]
        for column in range(3):
            costs = [users @ np.abs(own[:, column] - value) for value in own[:, column]]
            assert users @ np.abs(own[:, column] - centre[column]) <= min(costs) * (1 + 1e-3)
    own = np.abs(rows - found.centres[nearest]).sum(axis=1)
    assert found.loss == pytest.approx(weights @ own / weights.sum())


def test_categories_are_whole_and_count_as_much_as_the_ends_of_a_number():
    synopsis = mixed_synopsis(np.random.default_rng(2))
    found = synopsis.medians(2, random_state=0)
    plans = found.centres[:, 1:4]
    assert set(plans.ravel()) == {0.0, 1.0}
    assert plans.sum(axis=1).tolist() == [1.0, 1.0]
    assert found.centres[found.centres[:, 0] > 0][0, 3] == 1.0
    columns = (Column(name="n", low=0, high=10), Column(name="c", categories=("a", "b", "c")))
    nodes = np.array([[-1, 1, -1, -1], [1, 1, -1, -1], [-1, -1, 1, -1]]) * [1, *[0.5**0.5] * 3]
    three = numbers_synopsis(nodes, columns=columns)
    factors = distance_factors(three)
    apart = absolute_distances(nodes * factors, nodes * factors)
    np.testing.assert_allclose(apart, [[0, 2, 2], [2, 0, 4], [2, 4, 0]], atol=1e-6)


def test_nodes_that_are_cells_have_their_commonest_category():
    """Shares of 0.2, 0.5 and 0.3 in one cell: b."""
    columns = (Column(name="c", categories=("a", "b", "c")),)
    nodes = (2 * np.array([[0.2, 0.5, 0.3]]) - 1) * 0.5**0.5
    assert numbers_synopsis(nodes, columns=columns).medians(1).centres.tolist() == [[0, 1, 0]]


def test_stretched_columns_decide():
    rng = np.random.default_rng(3)
    rows = np.column_stack([rng.choice([-0.1, 0.1], 200), rng.choice([-0.9, 0.9], 200)])
    plain = numbers_synopsis(rows)
    stretched = dataclasses.replace(plain, stretch=np.array([50.0, 1.0]))
    for synopsis, column in ((plain, 1), (stretched, 0)):
        centres = synopsis.medians(2, random_state=0).centres
        assert np.ptp(centres[:, column]) == pytest.approx(np.ptp(rows[:, column]))


def test_more_segments_than_places_and_wide_tables():
    few = numbers_synopsis(np.repeat([[0.0], [0.5]], 10, axis=0)).medians(9, random_state=0)
    assert few.k == 2
    assert few.loss == 0
    rng = np.random.default_rng(4)
    wide = numbers_synopsis(rng.uniform(-1, 1, (300, 60))).medians(50, random_state=0)
    assert 40 <= wide.k <= 50
    assert wide.sizes.min() > 0
    again = numbers_synopsis(rng.uniform(-1, 1, (5, 1)))
    assert again.medians(3, random_state=1).loss == again.medians(3, random_state=1).loss
    with pytest.raises(ParameterError, match="hold no user"):
        numbers_synopsis(np.zeros((2, 1)), weights=np.zeros(2)).medians(2)


def test_borders_are_those_of_the_nodes():
    synopsis = mixed_synopsis(np.random.default_rng(5))
    found = synopsis.medians(4, random_state=0)
    np.testing.assert_array_equal(segments_of(found.borders, synopsis.scaled_nodes), found.of_node)
