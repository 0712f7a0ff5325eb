"""From Arrow to NumPy where values may be missing."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitmeans.table.plain_arrow import flags_of, numbers_of


@given(st.lists(st.none() | st.booleans()), st.integers(0, 20), st.integers(0, 20))
def test_missing_flags_are_not_set(values, skip, most):
    array = pa.array(values, pa.bool_()).slice(skip, most)
    found = flags_of(array)
    assert found.dtype == np.bool_
    assert found.tolist() == [value is True for value in values[skip : skip + most]]


@pytest.mark.parametrize("given", [np.array([True, False]), pa.chunked_array([[True], [False]])])
def test_flags_may_be_chunked_or_numpys(given):
    assert np.flatnonzero(flags_of(given)).tolist() == [0]


def test_missing_numbers_become_the_given_one():
    array = pa.array([7, None, 9], pa.int8())
    assert numbers_of(array, missing=-1).tolist() == [7, -1, 9]
    assert numbers_of(array.slice(2)).dtype == np.int8
    assert numbers_of(pa.chunked_array([array, array]), missing=0).tolist() == [7, 0, 9] * 2
