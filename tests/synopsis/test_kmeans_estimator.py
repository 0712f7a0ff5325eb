"""k-means on a synopsis in scikit-learn's hands."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from splitmeans import ParameterError, SynopsisKMeans


def three_places() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    nodes = np.repeat([[-0.8, 0.0], [0.0, 0.7], [0.8, -0.2]], 60, axis=0)
    return rng.permutation(nodes + rng.normal(0, 0.05, nodes.shape)), rng.uniform(1, 2, 180)


def test_a_search_over_k_finds_the_number_of_places():
    nodes, weights = three_places()
    search = GridSearchCV(SynopsisKMeans(random_state=0), {"n_clusters": range(2, 7)}, cv=3)
    search.fit(nodes, sample_weight=weights)
    assert search.best_params_ == {"n_clusters": 3}
    assert sorted(np.bincount(search.predict(nodes))) == [60, 60, 60]


def test_a_clone_fits_the_same():
    nodes, weights = three_places()
    model = SynopsisKMeans(3, random_state=1).fit(nodes, sample_weight=weights)
    again = clone(model).fit(nodes, sample_weight=weights)
    np.testing.assert_array_equal(model.cluster_centers_, again.cluster_centers_)
    np.testing.assert_array_equal(model.labels_, again.predict(nodes))


def test_weights_count():
    nodes = np.array([[0.0], [1.0], [10.0]])
    model = SynopsisKMeans(2, random_state=0).fit(nodes, sample_weight=[3, 1, 4])
    assert sorted(model.cluster_centers_.ravel()) == pytest.approx([0.25, 10])


@pytest.mark.parametrize(
    ("nodes", "weights", "message"),
    [
        ([1.0, 2.0], None, "shape"),
        ([[np.nan]], None, "finite"),
        ([[1.0], [2.0]], [1], "one number from 0 for each node"),
        ([[1.0], [2.0]], [0, 0], "not all 0"),
    ],
)
def test_what_is_no_synopsis_is_refused(nodes, weights, message):
    with pytest.raises(ParameterError, match=message):
        SynopsisKMeans(1).fit(nodes, sample_weight=weights)
