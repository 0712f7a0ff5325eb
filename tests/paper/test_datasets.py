"""The drawn data of the evaluation: sizes, ranges and seeds."""

import numpy as np
import pytest

from splitmeans.errors import ParameterError
from splitmeans.paper.datasets import mixed_gaussian


def test_mixed_gaussian_has_the_papers_shape():
    data = mixed_gaussian(random_state=1)
    assert data.rows.shape == (20_000, 8)
    assert data.labels.shape == (20_000,)
    assert np.abs(data.rows).max() <= 1
    assert repr(data) == "Dataset(name='mixed Gaussian')"


def test_mixed_gaussian_sizes_and_spread():
    data = mixed_gaussian(5_000, n_columns=3, n_clusters=4, std=0.01, random_state=3)
    sizes = np.bincount(data.labels, minlength=4)
    # Shares are 0.8 + U(0, 1) over their sum: each between 0.8/6.2 and 1.8/4.2 of all rows.
    assert sizes.sum() == 5_000
    assert sizes.min() >= 5_000 * 0.8 / 6.2 - 1
    assert sizes.max() <= 5_000 * 1.8 / 4.2 + 1
    for label in range(4):
        own = data.rows[data.labels == label]
        # Standard error of a standard deviation is 0.01 / sqrt(2 * 640) = 0.0003; ten of them.
        # No centre of this seed is near the border, so clipping does not show.
        assert np.allclose(own.std(axis=0), 0.01, atol=0.003)


def test_mixed_gaussian_rows_are_shuffled_and_seeded():
    data = mixed_gaussian(1_000, random_state=5)
    assert np.count_nonzero(np.diff(data.labels)) > 500
    again = mixed_gaussian(1_000, random_state=np.random.default_rng(5))
    assert np.array_equal(data.rows, again.rows)
    assert not np.array_equal(data.rows, mixed_gaussian(1_000, random_state=6).rows)


@pytest.mark.parametrize("changes", [{"n": 0}, {"n_columns": 0}, {"n_clusters": 0}, {"std": 0}])
def test_mixed_gaussian_rules(changes):
    with pytest.raises(ParameterError, match=f"{next(iter(changes))} must be"):
        mixed_gaussian(**changes)
