"""The quantising kernel against the same in NumPy."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from splitmeans.kernels.quantise import to_grid_column


def naive(values, *, low, high, bound, stand_in):
    filled = np.where(np.isnan(values), stand_in, values)
    scaled = (np.clip(filled, low, high) - low) / (high - low) * 2 - 1
    grid = np.clip(np.rint(scaled * bound), -bound, bound)
    return np.where(np.isnan(filled), 0, grid).astype(np.int64)


def test_by_hand():
    out = np.full((6, 2), -1)
    values = np.array([-5.0, 0.0, 2.5, 10.0, 99.0, np.nan])
    to_grid_column(values, low=0, high=10, bound=8, stand_in=np.nan, out=out[:, 1])
    # 2.5 is a quarter of the way: -8 + 4; what is missing goes to the middle.
    assert out[:, 1].tolist() == [-8, -8, -4, 8, 8, 0]
    assert out[:, 0].tolist() == [-1] * 6


@given(
    values=hnp.arrays(
        np.float64, st.integers(0, 40), elements=st.floats(allow_infinity=False, width=64)
    ),
    low=st.floats(-1e6, 1e6),
    width=st.floats(1e-3, 1e6),
    bound=st.integers(1, 100 * 2**20),
    stand_in=st.one_of(st.floats(-1e7, 1e7), st.just(np.nan)),
)
@settings(max_examples=50, deadline=None)
def test_agrees_with_the_naive_twin(values, low, width, bound, stand_in):
    public = {"low": low, "high": low + width, "bound": bound, "stand_in": stand_in}
    out = np.empty(len(values), dtype=np.int64)
    to_grid_column(values, **public, out=out)
    with np.errstate(over="ignore"):
        assert out.tolist() == naive(values, **public).tolist()
