"""Baselines: they find clear clusters, repeatably."""

import numpy as np
import pytest

from splitmeans.errors import ParameterError
from splitmeans.paper.baselines import (
    central_dplsf,
    central_kmeans,
    count_cells,
    plain_labels,
    vertical_kmeans,
)
from splitmeans.paper.datasets import mixed_gaussian
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.simulate.evaluation import normalised_loss

DATA = mixed_gaussian(5_000, n_columns=4, n_clusters=4, std=0.05, random_state=4)
# Clipping pulls rows inwards, so the loss of true clusters is at most d * std^2.
TRUE_LOSS = 4 * 0.05**2


def rng():
    return np.random.default_rng(0)


def ordered(centres):
    return centres[np.lexsort(centres.T)]


def test_vertical_kmeans_is_exact_when_local_clusters_are_cells():
    # Two values a column: local clusters are the values and cells are the corners of a square.
    corners = np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]]) / 2
    rows = np.repeat(corners, [4, 3, 2, 1], axis=0)
    centres = vertical_kmeans([rows[:, :1], rows[:, 1:]], 4, n_local_clusters=2, rng=rng())
    assert ordered(centres).tolist() == ordered(corners).tolist()
    # With one centre the result is the weighted mean of the corners.
    centre = vertical_kmeans([rows[:, :1], rows[:, 1:]], 1, n_local_clusters=2, rng=rng())
    assert np.allclose(centre, rows.mean(axis=0))


def test_vertical_kmeans_is_close_to_central():
    parts = [DATA.rows[:, [0, 2]], DATA.rows[:, [1, 3]]]
    centres = vertical_kmeans(parts, 4, n_local_clusters=8, rng=rng())
    pooled = np.hstack(parts)
    central = normalised_loss(pooled, central_kmeans(pooled, 4, random_state=0))
    assert central <= normalised_loss(pooled, centres) < 1.1 * central
    assert np.array_equal(centres, vertical_kmeans(parts, 4, n_local_clusters=8, rng=rng()))


def test_vertical_kmeans_with_many_parties_builds_only_used_cells():
    # 16 parties with 3 local clusters each would be 43 million cells.
    parts = [DATA.rows[:500, [column % 4]] for column in range(16)]
    assert vertical_kmeans(parts, 4, n_local_clusters=3, rng=rng()).shape == (4, 16)


def test_vertical_kmeans_rules():
    with pytest.raises(ParameterError, match="datasets must have the same users"):
        vertical_kmeans([DATA.rows, DATA.rows[:-1]], 2, n_local_clusters=2, rng=rng())


def test_central_dplsf_nears_central_with_much_budget_and_loses_with_little():
    central = normalised_loss(DATA.rows, central_kmeans(DATA.rows, 4, random_state=0))

    def mean_loss(epsilon):
        losses = []
        for seed in range(3):
            centres = central_dplsf(
                DATA.rows,
                4,
                epsilon=epsilon,
                delta=1e-6,
                noise=InsecureSeededNoise(seed),
                rng=np.random.default_rng(seed),
            )
            assert centres.shape == (4, 4)
            assert np.abs(centres).max() <= 1
            losses.append(normalised_loss(DATA.rows, centres))
        return np.mean(losses)

    generous, tight = mean_loss(100.0), mean_loss(0.1)
    assert generous < 1.5 * central
    assert tight > 2 * generous


def test_exact_cell_counts_by_hand():
    centres = np.array([[-1.0], [1.0]])
    first = plain_labels(np.array([[-0.9], [-0.2], [0.1], [0.8]]), centres)
    second = plain_labels(np.array([[0.9], [0.9], [-0.9], [0.9]]), centres)
    assert first.labels.tolist() == [0, 0, 1, 1]
    assert count_cells([first, second]).tolist() == [[0, 2], [1, 1]]
    assert first.n_bytes == 4
