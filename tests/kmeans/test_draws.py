"""Even draws: how often each position comes."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.kmeans.draws import draw_evenly


def test_even_draws_are_as_often_as_weights_say():
    drawn = draw_evenly(np.array([3.0, 0.0, 1.0]), 40, rng=np.random.default_rng(0))
    counts = np.bincount(drawn, minlength=3)
    assert counts[1] == 0
    assert abs(counts[0] - 30) <= 1
    assert counts.sum() == 40


@settings(max_examples=50, deadline=None)
@given(
    shares=st.lists(st.floats(0, 1), min_size=1, max_size=6).filter(
        lambda values: sum(values) > 0.01
    ),
    n=st.integers(1, 50),
    seed=st.integers(0, 1000),
)
def test_counts_are_within_one(shares, n, seed):
    found = draw_evenly(np.array(shares), n, rng=np.random.default_rng(seed))
    assert len(found) == n
    assert (np.diff(found) >= 0).all()
    counts = np.bincount(found, minlength=len(shares))
    expected = np.array(shares) / sum(shares) * n
    assert (np.abs(counts - expected) <= 1 + 1e-9).all()
