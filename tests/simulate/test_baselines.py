"""The baseline finds clear clusters, in distance units, repeatably."""

import numpy as np

from splitmeans.paper.datasets import mixed_gaussian
from splitmeans.simulate.baselines import central_kmeans
from splitmeans.simulate.evaluation import normalised_loss

DATA = mixed_gaussian(5_000, n_columns=4, n_clusters=4, std=0.05, random_state=4)
# Clipping pulls rows inwards, so the loss of true clusters is at most d * std^2.
TRUE_LOSS = 4 * 0.05**2


def ordered(centres):
    return centres[np.lexsort(centres.T)]


def test_central_kmeans_finds_the_clusters():
    centres = central_kmeans(DATA.rows, 4, random_state=0)
    assert centres.shape == (4, 4)
    assert centres.dtype == np.float64
    assert normalised_loss(DATA.rows, centres) < 1.02 * TRUE_LOSS
    true = np.array([DATA.rows[DATA.labels == label].mean(axis=0) for label in range(4)])
    assert np.allclose(ordered(centres), ordered(true), atol=0.01)
    assert np.array_equal(centres, central_kmeans(DATA.rows, 4, random_state=0))
