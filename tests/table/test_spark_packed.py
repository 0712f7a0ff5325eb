"""Results of Spark's workers as bytes and back."""

import io

import numpy as np
import pytest

from splitmeans.errors import ParameterError
from splitmeans.table.spark.packed import pack, unpack

ARRAYS = [
    np.arange(6, dtype=np.int64).reshape(2, 3),
    np.array([], dtype=np.uint8),
    np.asfortranarray(np.arange(6.0).reshape(3, 2)),
    np.arange(10, dtype=np.uint16)[::2],
]


@pytest.mark.parametrize("array", ARRAYS, ids=["matrix", "empty", "by column", "every other"])
def test_an_array_comes_back(array):
    back = unpack(pack(array))
    assert back.dtype == array.dtype
    assert back.tolist() == array.tolist()
    back[:] = 0  # kernels are compiled for arrays that can be written to


def test_tuples_and_bytes_come_back_as_what_they_were():
    tags, labels = unpack(pack((ARRAYS[0], ARRAYS[1])))
    assert (tags == ARRAYS[0]).all()
    assert labels.shape == (0,)
    assert isinstance(unpack(pack((ARRAYS[0],))), tuple)
    assert unpack(pack(b"\x00some bytes")) == b"\x00some bytes"
    assert unpack(pack(b"")) == b""


@pytest.mark.parametrize("value", [None, 5, [1, 2], {"a": 1}, (ARRAYS[0], 5)])
def test_other_results_are_refused(value):
    with pytest.raises(ParameterError, match="must be an array, a tuple of arrays or bytes"):
        pack(value)


def test_objects_are_neither_written_nor_read():
    with pytest.raises(ValueError, match="allow_pickle"):
        pack(np.array([object()]))
    stream = io.BytesIO()
    np.save(stream, np.array([{}]), allow_pickle=True)
    with pytest.raises(ValueError, match="allow_pickle"):
        unpack(b"\x01\x01" + stream.getvalue())
