"""Names for the types that travel between modules.

Shapes are always written with the same letters: n rows (users), d columns (features of one party),
k clusters, S parties, M sketch repetitions.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

IntArray: TypeAlias = npt.NDArray[np.int64]
FloatArray: TypeAlias = npt.NDArray[np.float64]
WordArray: TypeAlias = npt.NDArray[np.uint64]
RegisterArray: TypeAlias = npt.NDArray[np.uint16]
LabelArray: TypeAlias = npt.NDArray[np.int32]
# Rows as they are kept in memory: every code fits 32 bits.
HalfWidthArray: TypeAlias = npt.NDArray[np.int32]

# A noisy quantity, the standard deviation of its noise, and the unit of it.
NoiseLine: TypeAlias = tuple[str, float, str]

# The code of a value that is not there, in coded rows (`study/coding.py`). Fits the 32 bits that
# blocks on disk have, and lies far outside every bound.
NO_VALUE = -(2**31) + 1
