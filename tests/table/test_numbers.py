"""Numbers of Arrow arrays without pandas: the same as Arrow's own way."""

import numpy as np
import pyarrow as pa
import pytest

from splitmeans._compute import numbers_of


@pytest.mark.parametrize("kind", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"])
def test_numbers_are_those_of_arrow(kind):
    array = pa.array(np.arange(7, dtype=kind))
    for part in (array, array.slice(2, 3), array.slice(7), pa.chunked_array([array, array[:2]])):
        found = numbers_of(part)
        assert found.dtype == np.dtype(kind)
        assert found.tolist() == part.to_pylist()
    assert numbers_of(pa.chunked_array([], pa.float64())).tolist() == []


def test_other_types_and_missing_values_go_to_arrow():
    assert numbers_of(pa.array([True, False])).tolist() == [True, False]
    missing = numbers_of(pa.array([1.5, None]))
    assert missing[0] == 1.5
    assert np.isnan(missing[1])
