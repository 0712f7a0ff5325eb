"""Arrow's functions on columns, loaded when the first one is called; numbers without pandas.

`pyarrow.compute` makes some three hundred functions as it is loaded, documentation included, and
not every process calls one. `to_numpy` of an Arrow array loads pandas wherever there is one.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_NUMBERS = {
    pa.from_numpy_dtype(kind): np.dtype(kind)
    for kind in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")
}


def __getattr__(name: str) -> Any:
    import pyarrow.compute

    return getattr(pyarrow.compute, name)


def numbers_of(array: Any) -> npt.NDArray[Any]:
    """Return numbers, none of them missing, as NumPy has them; other types as Arrow does it."""
    if isinstance(array, pa.ChunkedArray) and array.num_chunks:
        return np.concatenate([numbers_of(chunk) for chunk in array.chunks])
    kind = _NUMBERS.get(array.type)
    if kind is None or array.null_count or not isinstance(array, pa.Array) or not len(array):
        return np.asarray(array.to_numpy(zero_copy_only=False))
    first = array.offset
    return np.frombuffer(array.buffers()[1], dtype=kind)[first : first + len(array)]
