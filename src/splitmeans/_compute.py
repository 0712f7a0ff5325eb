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


def numbers_of(array: Any, *, missing: int | None = None) -> npt.NDArray[Any]:
    """Return numbers as NumPy has them; other types as Arrow does it.

    Args:
        array: The numbers.
        missing: What stands where there is none; None where none can be missing.
    """
    if isinstance(array, pa.ChunkedArray) and array.num_chunks:
        return np.concatenate([numbers_of(chunk, missing=missing) for chunk in array.chunks])
    kind = _NUMBERS.get(array.type)
    has_gaps = bool(array.null_count)
    is_plain = kind is not None and isinstance(array, pa.Array) and len(array)
    if not is_plain or (has_gaps and missing is None):
        whole = array.fill_null(missing) if has_gaps and missing is not None else array
        return np.asarray(whole.to_numpy(zero_copy_only=False))
    first, end = array.offset, array.offset + len(array)
    valid, data = array.buffers()
    numbers = np.frombuffer(data, dtype=kind)[first:end]
    if not has_gaps:
        return numbers
    return np.where(bits_of(valid, first, end), numbers, np.array(missing, dtype=kind))


def bits_of(buffer: pa.Buffer, first: int, end: int) -> npt.NDArray[np.bool_]:
    """Return some of the bits of a buffer, as Arrow packs them."""
    packed = np.frombuffer(buffer, dtype=np.uint8)
    return np.unpackbits(packed, count=end, bitorder="little")[first:].view(np.bool_)
