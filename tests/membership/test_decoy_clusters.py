"""The rule for k' of three or more parties, by hand: from users per deviation of a cell's noise."""

import pytest

from splitmeans.membership.decoy.auto_clusters import _told_apart


@pytest.mark.parametrize(
    ("k", "precision", "expected"),
    [
        # 1.2 x 20 = 24, and 1.4 x 24^2 = 806.4
        (20, 806.5, 24.0),
        (20, 806.3, 18.0),
        # 0.9 x 20 = 18, and 1.2 x 18^2 = 388.8
        (20, 388.9, 18.0),
        (20, 388.7, 0.0),
        # 1.2 x 50 = 60, and 1.4 x 60^2 = 5040
        (50, 5_041, 60.0),
        (50, 840, 0.0),
    ],
)
def test_clear_segments_are_told_apart_where_noise_allows_it(k, precision, expected):
    assert _told_apart(k, precision) == pytest.approx(expected)
