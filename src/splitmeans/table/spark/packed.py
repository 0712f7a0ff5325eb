"""Results of workers as bytes: arrays, tuples of arrays, or bytes.

They lie in a folder that a cluster shares, so reading them must not run code, as pickle would.
"""

import io
from typing import Any

import numpy as np

from splitmeans.errors import ParameterError

_BYTES, _ARRAY, _TUPLE = 0, 1, 2


def pack(value: Any) -> bytes:
    """Return an array, a tuple of arrays or bytes as bytes."""
    if isinstance(value, bytes):
        return bytes([_BYTES, 1]) + value
    arrays = value if isinstance(value, tuple) else (value,)
    if not all(isinstance(array, np.ndarray) for array in arrays) or len(arrays) > 255:
        raise ParameterError(
            "what a worker returns must be an array, a tuple of arrays or bytes, got "
            f"{type(value).__name__}"
        )
    stream = io.BytesIO()
    stream.write(bytes([_TUPLE if isinstance(value, tuple) else _ARRAY, len(arrays)]))
    for array in arrays:
        np.lib.format.write_array(stream, array, allow_pickle=False)
    return stream.getvalue()


def unpack(data: bytes) -> Any:
    """Return what `pack` was given."""
    kind, count = data[0], data[1]
    if kind == _BYTES:
        return data[2:]
    stream = io.BytesIO(data)
    stream.seek(2)
    arrays = tuple(np.lib.format.read_array(stream, allow_pickle=False) for _ in range(count))
    return arrays if kind == _TUPLE else arrays[0]
