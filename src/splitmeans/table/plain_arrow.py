"""From Arrow to NumPy where values may be missing."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def numbers_of(array: Any, *, missing: int | None = None) -> npt.NDArray[Any]:
    """Return numbers; `missing` stands where there is none, None where none can be missing."""
    whole = array if missing is None else array.fill_null(missing)
    return np.asarray(whole.to_numpy(zero_copy_only=False))


def flags_of(array: Any) -> npt.NDArray[np.bool_]:
    """Return booleans, missing ones as not set."""
    whole = array.fill_null(False) if isinstance(array, pa.Array | pa.ChunkedArray) else array
    return np.asarray(whole, dtype=np.bool_)
