"""Plain k-means: the non-private baseline."""

import numpy as np
import pytest

from splitmeans.errors import ParameterError
from splitmeans.local.plain import PlainKMeans
from splitmeans.privacy.events import NonPrivateEvent
from splitmeans.privacy.noise import InsecureSeededNoise


def release(rows, *, n_clusters, bounds):
    mechanism = PlainKMeans(n_clusters=n_clusters, bounds=bounds)
    rows = np.array(rows, dtype=np.int64)
    noise, rng = InsecureSeededNoise(0), np.random.default_rng(0)
    return mechanism.release(rows, noise=noise, rng=rng).centres


def test_centres_are_means_rounded_to_the_grid():
    centres = release([[0], [1], [1], [100], [104]], n_clusters=2, bounds=(128,))
    # (0 + 1 + 1) / 3 = 0.67 becomes 1; (100 + 104) / 2 = 102.
    assert sorted(centres.ravel().tolist()) == [1, 102]


def test_rows_outside_the_bounds_are_clipped():
    assert release([[500], [500]], n_clusters=1, bounds=(10,)).tolist() == [[10]]


def test_event_says_there_is_no_privacy():
    event = PlainKMeans(n_clusters=2, bounds=(1,)).event
    assert isinstance(event, NonPrivateEvent)
    assert "without noise" in event.reason


@pytest.mark.parametrize(
    ("n_clusters", "bounds", "message"),
    [
        (0, (1,), "n_clusters must be a whole number >= 1"),
        (2, (), "bounds must be a tuple"),
        (2, [4], "bounds must be a tuple"),
        (2, (4, 0), "bounds must be a whole number >= 1, got 0"),
        (2, (1.5,), "bounds must be a whole number >= 1, got 1.5"),
    ],
)
def test_wrong_parameters_are_refused(n_clusters, bounds, message):
    with pytest.raises(ParameterError, match=message):
        PlainKMeans(n_clusters=n_clusters, bounds=bounds)


def test_wrong_rows_are_refused():
    with pytest.raises(ParameterError, match=r"int64 of shape \(n, 2\)"):
        release([[1], [2]], n_clusters=1, bounds=(5, 5))
